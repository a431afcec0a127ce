// Inference of one op by name, with its attributes by name.
#pragma once
#include "ir/infer/OpInfo.h"

namespace burin::test {

struct Inferred {
  std::vector<TensorSpec> results;
  std::vector<std::optional<TensorSpec>> operands; // as the strict op takes them
  std::vector<ir::Attr> attrs;                     // canonical
  std::string error;
  /// "f32[2, 3]", several separated by ", "; or "error: …".
  std::string str() const;
};

using Attrs = std::vector<std::pair<std::string, ir::Attr>>;
Inferred infer(const char *op, std::vector<std::optional<TensorSpec>> operands, const Attrs &attrs = {},
               bool strict = false);

/// The result types as text, of a loose call. A result is inferred again, strictly, from the canonical form, which must
/// agree, except for matmul of a vector.
std::string typeOf(const char *op, std::vector<std::optional<TensorSpec>> operands, const Attrs &attrs = {});

inline TensorSpec t(Shape shape, DType dtype = f32) { return {dtype, std::move(shape)}; }
inline ir::Attr ints(std::vector<int64_t> values) { return values; }
inline ir::Attr integer(int64_t value) { return value; }
inline ir::Attr shape(Shape value) { return value; }
inline ir::Attr string(std::string value) { return value; }

} // namespace burin::test
