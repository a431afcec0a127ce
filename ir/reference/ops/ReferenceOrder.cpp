// Ops that depend on the order of elements: cumulative sums, sorting, and results whose size depends on the elements.
#include "ir/reference/ReferenceUtil.h"
#include <algorithm>
#include <numeric>

namespace burin::ir::ref {

namespace {

/// Cumulative results along the axis, starting with `first`.
template <class Combine> bool running(RefCall &call, int first, Combine combine) {
  const RefTensor &x = call.in();
  AxisSplit split(x.shape, axisOf(call.attr<int64_t>("axis"), x.shape.size()));
  bool exclusive = call.attr<bool>("exclusive"), reverse = call.attr<bool>("reverse");
  withElements(call.out(), x, [&](auto &to, const auto &from) {
    for (int64_t o = 0; o < split.outer; ++o)
      for (int64_t i = 0; i < split.inner; ++i) {
        auto total = std::remove_cvref_t<decltype(from[0])>(first);
        for (int64_t k = 0; k < split.size; ++k) {
          size_t at = size_t((o * split.size + (reverse ? split.size - 1 - k : k)) * split.inner + i);
          auto next = combine(total, from[at]);
          to[at] = exclusive ? total : next;
          total = next;
        }
      }
  });
  return true;
}
bool cumsum(RefCall &call) {
  return running(call, 0, [](auto a, auto b) { return wrappingSum(a, b); });
}
bool cumprod(RefCall &call) {
  return running(call, 1, [](auto a, auto b) { return wrappingProduct(a, b); });
}

/// Whether x[a] is less than x[b], where NaN is larger than every number.
bool isLess(const RefTensor &x, size_t a, size_t b) {
  if (!isFloat(x.dtype))
    return x.ints()[a] < x.ints()[b];
  double p = x.reals()[a], q = x.reals()[b];
  return p < q || (q != q && p == p);
}

bool argsort(RefCall &call) {
  const RefTensor &x = call.in();
  AxisSplit split(x.shape, axisOf(call.attr<int64_t>("axis"), x.shape.size()));
  bool descending = call.attr<bool>("descending");
  Sizes order(size_t(split.size), 0);
  for (int64_t o = 0; o < split.outer; ++o)
    for (int64_t i = 0; i < split.inner; ++i) {
      auto at = [&](int64_t k) { return size_t((o * split.size + k) * split.inner + i); };
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return descending ? isLess(x, at(b), at(a)) : isLess(x, at(a), at(b));
      });
      for (int64_t k = 0; k < split.size; ++k)
        call.out().ints()[at(k)] = order[size_t(k)];
    }
  return true;
}

struct Box {
  double low[2], high[2];
  double area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

Box boxAt(const RefTensor &boxes, int64_t i, bool centers) {
  const double *p = &boxes.reals()[size_t(i) * 4];
  Box box;
  for (int d = 0; d < 2; ++d) {
    double a = centers ? p[d] - p[2 + d] / 2 : p[d], b = centers ? p[d] + p[2 + d] / 2 : p[2 + d];
    box.low[d] = std::min(a, b);
    box.high[d] = std::max(a, b);
  }
  return box;
}

bool overlap(const Box &a, const Box &b, double threshold) {
  double shared = 1;
  for (int d = 0; d < 2; ++d)
    shared *= std::max(0.0, std::min(a.high[d], b.high[d]) - std::max(a.low[d], b.low[d]));
  return shared > threshold * (a.area() + b.area() - shared);
}

bool nonMaxSuppression(RefCall &call) {
  const RefTensor &boxes = call.in(), &scores = call.in(1);
  double threshold = call.attr<double>("iou_threshold"), least = call.attr<double>("score_threshold");
  bool centers = call.attr<bool>("centers");
  int64_t classes = scores.shape[1], count = scores.shape[2], most = call.out().shape[2];
  std::ranges::fill(call.out().ints(), -1);
  for (int64_t row = 0; row < scores.shape[0] * classes; ++row) {
    auto score = [&](int64_t i) { return scores.reals()[size_t(row * count + i)]; };
    Sizes order;
    for (int64_t i = 0; i < count; ++i)
      if (score(i) > least)
        order.push_back(i);
    std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return score(a) > score(b); });
    std::vector<Box> taken;
    for (int64_t i : order) {
      Box box = boxAt(boxes, row / classes * count + i, centers);
      bool apart = std::ranges::none_of(taken, [&](const Box &other) { return overlap(other, box, threshold); });
      if (!apart || int64_t(taken.size()) == most)
        continue;
      call.out().ints()[size_t(row * most) + taken.size()] = i;
      taken.push_back(box);
    }
  }
  return true;
}

bool prefix(RefCall &call) {
  const RefTensor &x = call.in();
  int64_t count = call.in(1).ints().front();
  if (count < 0 || count > x.shape[0])
    return call.fail("the count " + std::to_string(count) + " must be in [0, " + std::to_string(x.shape[0]) + "]");
  RefTensor &to = call.out();
  to.shape[0] = count;
  auto cut = [&](const auto &from) {
    to.data = std::remove_cvref_t<decltype(from)>(from.begin(), from.begin() + product(to.shape));
  };
  std::visit(cut, x.data);
  return true;
}

bool nonzero(RefCall &call) {
  const RefTensor &x = call.in();
  RefTensor &to = call.out();
  for (int64_t i = 0; i < x.size(); ++i) {
    if (x[size_t(i)] == 0)
      continue;
    ++to.shape[0];
    int64_t stride = x.size();
    for (int64_t size : x.shape) {
      stride /= size;
      to.ints().push_back(i / stride % size);
    }
  }
  return true;
}

constexpr RefKernelEntry kOrderKernels[] = {
    {"cumsum", cumsum}, {"cumprod", cumprod}, {"argsort", argsort}, {"non_max_suppression", nonMaxSuppression},
    {"prefix", prefix}, {"nonzero", nonzero},
};

} // namespace

std::span<const RefKernelEntry> orderKernels() { return kOrderKernels; }

} // namespace burin::ir::ref
