// Line search: the step length along a direction.
#pragma once
#include "burin/tensor.h"
#include <functional>

namespace burin::optim {

/// A function along a line at position `at`: value, slope, and gradient.
struct LinePoint {
  double at, value, slope;
  Tensor gradient;
};

/// A point that satisfies the strong Wolfe conditions, found by bracketing and zooming with cubic interpolation, or the
/// best one within `most` evaluations. `start` is at 0; `size` is the largest element of the direction.
/// Source: Nocedal and Wright 2006, algorithms 3.5 and 3.6, with the safeguards of torch.optim.LBFGS.
LinePoint searchStrongWolfe(const std::function<LinePoint(double at)> &evaluate, const LinePoint &start, double first,
                            double size, double smallest, int64_t most, int64_t &evaluations);

} // namespace burin::optim
