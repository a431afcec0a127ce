// The table of gradients: calls whose gradients are compared with finite differences.
#pragma once
#include <burin/burin.h>
#include <functional>

namespace burin::test {

struct GradientRow {
  std::string name;
  /// f64 operands. A symbol takes several sizes, among them 0.
  std::vector<Shape> operands;
  std::function<Tensor(const std::vector<Tensor> &)> call;
  double low = -2, high = 2; // range of the elements
};

const std::vector<GradientRow> &gradientRows();

} // namespace burin::test
