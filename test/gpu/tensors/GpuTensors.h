// What the tests of tensors on a GPU share.
#pragma once
#include "test/frontend/Check.h"
#include "test/gpu/driver/FakeCuda.h"

namespace burin::test {

/// Bytes that have gone between the process and its devices.
inline int64_t hostCopies() {
  fake::CopyCounts counts = fake::copies();
  return counts.toDevice + counts.toHost;
}

inline void checkClose(const Tensor &got, const Tensor &want, double atol = 1e-6, double rtol = 1e-5) {
  REQUIRE(got.spec() == want.spec());
  std::vector<double> a = got.to_vector<double>(), b = want.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) {
    INFO("element " << i << ": " << a[i] << ", not " << b[i]);
    REQUIRE(((std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i] ||
             std::abs(a[i] - b[i]) <= atol + rtol * std::abs(b[i])));
  }
}

} // namespace burin::test
