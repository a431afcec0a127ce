// Imports Einsum.
#include "burin/tensor/composed.h"
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

namespace {

Values einsum(Node &n) {
  std::vector<Tensor> operands;
  for (size_t i = 0; i < n.inputCount(); ++i)
    operands.push_back(n[i]);
  return burin::einsum(n.attribute("equation", ""), operands);
}

constexpr OpEntry table[] = {
    {"Einsum", einsum},
};

} // namespace

std::span<const OpEntry> einsumOps() { return table; }

} // namespace burin::onnx
