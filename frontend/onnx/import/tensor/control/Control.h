// What branches, loops and sequences share.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

/// A condition that is known during import; nullopt if it depends on data.
std::optional<bool> knownCondition(const Value &condition);
/// The values as tensors; throws for sequences and absent values.
std::vector<Tensor> tensorsOf(const std::vector<Value> &values);
/// A number that is known during import.
Value whole(int64_t number, DType dtype = DType::i64);

} // namespace burin::onnx
