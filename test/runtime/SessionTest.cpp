#include "test/runtime/Model.h"
#include <cmath>

using namespace burin;
using namespace burin::rt;
using namespace burin::rt::test;

namespace {

std::unique_ptr<Session> makeSession(Program::Ptr program, SessionOptions options = {}) {
  std::unique_ptr<Session> session;
  requireOk(Session::create(std::move(program), options, session));
  return session;
}

std::vector<float> ramp(size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i)
    x[i] = float(i % 7) * .1f - .3f;
  return x;
}

void requireClose(const std::vector<float> &got, const std::vector<float> &want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i)
    REQUIRE(got[i] == Approx(want[i]).epsilon(1e-5));
}

} // namespace

TEST_CASE("one artifact serves every batch size") {
  auto session = makeSession(threeSteps(5).load());
  for (int64_t batch : {1, 7, 256, 0, 7}) {
    std::vector<float> x = ramp(size_t(batch) * 5), y(x.size());
    std::vector<int64_t> shape = {batch, 5};
    TensorView input = view(x, shape), output = view(y, shape);
    requireOk(session->run({&input, 1}, {&output, 1}));
    requireClose(y, expectedThreeSteps(x, 5));
  }
}

TEST_CASE("a session owns the outputs nobody gave memory for") {
  auto session = makeSession(threeSteps(3).load());
  std::vector<float> x = ramp(6);
  std::vector<int64_t> shape = {2, 3};
  TensorView input = view(x, shape), output;
  requireOk(session->run({&input, 1}, {&output, 1}));
  REQUIRE(std::vector<int64_t>(output.shape, output.shape + output.rank) == shape);
  REQUIRE(output.dtype == f32);
  auto *y = static_cast<float *>(output.data);
  requireClose({y, y + 6}, expectedThreeSteps(x, 3));
}
