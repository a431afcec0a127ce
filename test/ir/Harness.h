// Type inference of single ops by name, with attributes by name.
#pragma once
#include "ir/infer/OpInfo.h"

namespace burin::test {

struct Inferred {
  std::vector<TensorSpec> results;
  std::vector<std::optional<TensorSpec>> operands; // in the form that the strict op takes
  std::vector<ir::Attr> attrs;                     // canonical
  std::string error;
  /// Returns "f32[2, 3]" (several are separated by ", ") or "error: …".
  std::string str() const;
};

using Attrs = std::vector<std::pair<std::string, ir::Attr>>;
Inferred infer(const char *op, std::vector<std::optional<TensorSpec>> operands, const Attrs &attrs = {},
               bool strict = false);

/// Returns the result types of a loose call as text. Also infers the canonical form again, strictly; it must give the
/// same types, except for matmul of a vector.
std::string typeOf(const char *op, std::vector<std::optional<TensorSpec>> operands, const Attrs &attrs = {});

inline TensorSpec t(Shape shape, DType dtype = f32) { return {dtype, std::move(shape)}; }
inline ir::Attr ints(std::vector<int64_t> values) { return values; }
inline ir::Attr integer(int64_t value) { return value; }
inline ir::Attr shape(Shape value) { return value; }
inline ir::Attr string(std::string value) { return value; }

} // namespace burin::test
