// The table of gradients: calls that are compared with finite differences.
#pragma once
#include <burin/burin.h>
#include <functional>

namespace burin::test {

struct GradientRow {
  std::string name;
  /// f64 operands. Symbols stand for several sizes, 0 among them.
  std::vector<Shape> operands;
  std::function<Tensor(const std::vector<Tensor> &)> call;
  double low = -2, high = 2; // of the elements
};

const std::vector<GradientRow> &gradientRows();

} // namespace burin::test
