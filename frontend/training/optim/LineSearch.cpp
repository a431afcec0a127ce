#include "frontend/training/optim/LineSearch.h"
#include <algorithm>
#include <cmath>
#include <utility>

namespace burin::optim {

namespace {

constexpr double kDecrease = 1e-4, kCurvature = 0.9; // c1 and c2 of the Wolfe conditions

/// The minimum within [low, high] of the cubic through two points with their slopes.
double cubicMinimum(const LinePoint &a, const LinePoint &b, double low, double high) {
  const LinePoint &left = a.at <= b.at ? a : b, &right = a.at <= b.at ? b : a;
  const double mean = left.slope + right.slope - 3 * (left.value - right.value) / (left.at - right.at);
  const double square = mean * mean - left.slope * right.slope;
  if (!(square >= 0))
    return (low + high) / 2;
  const double root = std::sqrt(square);
  const double part = (right.slope + root - mean) / (right.slope - left.slope + 2 * root);
  return std::min(std::max(right.at - (right.at - left.at) * part, low), high);
}

class Search {
public:
  Search(const std::function<LinePoint(double)> &evaluate, const LinePoint &start, int64_t most, int64_t &evaluations)
      : evaluate(evaluate), start(start), most(most), evaluations(evaluations) {}

  LinePoint run(double first, double size, double smallest) {
    bracket(first);
    if (!isDone)
      zoom(size, smallest);
    return low;
  }

private:
  const std::function<LinePoint(double)> &evaluate;
  const LinePoint &start;
  const int64_t most;
  int64_t &evaluations;
  LinePoint low, high; // interval that contains a good point; `low` has the lower value
  bool isDone = false;

  LinePoint at(double t) {
    ++evaluations;
    return evaluate(t);
  }
  bool isTooHigh(const LinePoint &p) const { return p.value > start.value + kDecrease * p.at * start.slope; }
  bool isFlat(const LinePoint &p) const { return std::abs(p.slope) <= -kCurvature * start.slope; }
  void keep(LinePoint a, LinePoint b) {
    low = std::move(a);
    high = std::move(b);
    if (low.value > high.value)
      std::swap(low, high);
  }

  /// Extends the step until an interval contains a good point.
  void bracket(double first) {
    LinePoint before = start, now = at(first);
    int64_t turn = 0;
    for (; turn < most; ++turn) {
      if (isTooHigh(now) || (turn > 1 && now.value >= before.value) || (!isFlat(now) && now.slope >= 0))
        return keep(before, now);
      if (isFlat(now)) {
        isDone = true;
        return keep(now, now);
      }
      const double next = cubicMinimum(before, now, now.at + 0.01 * (now.at - before.at), now.at * 10);
      before = std::exchange(now, at(next));
    }
    keep(start, now);
  }

  /// Shrinks the interval around the good point.
  void zoom(double size, double smallest) {
    bool wasNearEnd = false;
    while (evaluations <= most && std::abs(high.at - low.at) * size >= smallest && !isDone) {
      const double left = std::min(low.at, high.at), right = std::max(low.at, high.at);
      double t = cubicMinimum(low, high, left, right);
      const double margin = 0.1 * (right - left);
      const bool isNearEnd = std::min(right - t, t - left) < margin;
      const bool isMoved = isNearEnd && (wasNearEnd || t >= right || t <= left);
      if (isMoved)
        t = std::abs(t - right) < std::abs(t - left) ? right - margin : left + margin;
      wasNearEnd = isNearEnd && !isMoved;
      LinePoint now = at(t);
      if (isTooHigh(now) || now.value >= low.value) {
        keep(low, now);
        continue;
      }
      isDone = isFlat(now);
      if (!isDone && now.slope * (high.at - low.at) >= 0)
        high = low;
      low = std::move(now);
    }
  }
};

} // namespace

LinePoint searchStrongWolfe(const std::function<LinePoint(double)> &evaluate, const LinePoint &start, double first,
                            double size, double smallest, int64_t most, int64_t &evaluations) {
  evaluations = 0;
  return Search(evaluate, start, most, evaluations).run(first, size, smallest);
}

} // namespace burin::optim
