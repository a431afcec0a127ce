// Pooling, tap by tap over the windows of each plane.
#include "ir/reference/ReferenceScalar.h"
#include "ir/reference/ReferenceUtil.h"
#include <algorithm>

namespace burin::ir::ref {

namespace {

/// One dimension of a window: the elements that it covers, and the number of its taps within the padded input.
struct Reach {
  Sizes inside;
  int64_t padded = 0;
};

struct PoolAxis {
  int64_t size, kernel, stride, low, high, dilation;
  Reach at(int64_t out) const {
    Reach reach;
    for (int64_t k = 0; k < kernel; ++k) {
      int64_t i = out * stride - low + k * dilation;
      if (i >= 0 && i < size)
        reach.inside.push_back(i);
      reach.padded += i < size + high;
    }
    return reach;
  }
};

/// x as planes [planes, spatial…, inner]; inner is 1 for channels-first, the number of channels for channels-last.
struct Planes {
  Sizes in, out; // spatial sizes
  int64_t planes, inner;
};
Planes planesOf(const RefCall &call, const Sizes &result) {
  const Sizes &x = call.in().shape;
  bool last = call.attr<std::string>("layout") == "nhwc";
  size_t first = last ? 1 : 2, count = x.size() - 2;
  auto spatial = [&](const Sizes &s) { return Sizes(s.begin() + int64_t(first), s.begin() + int64_t(first + count)); };
  return {spatial(x), spatial(result), last ? x[0] : x[0] * x[1], last ? x[1 + count] : 1};
}

/// Calls f(result offset, offsets of the covered elements, taps in the padded input) for every result. `reach[d][o]`
/// describes output o along dimension d.
template <class F> void forEachWindow(const Planes &p, const std::vector<std::vector<Reach>> &reach, F f) {
  Sizes strides = rowMajorStrides(p.in);
  int64_t outPlane = product(p.out), inPlane = product(p.in);
  Sizes covered, next;
  for (int64_t o = 0; o < outPlane; ++o) {
    covered.assign(1, 0);
    int64_t padded = 1, rest = o;
    Sizes index(p.out.size());
    for (size_t d = p.out.size(); d-- > 0; rest /= p.out[d])
      index[d] = rest % p.out[d];
    for (size_t d = 0; d < p.out.size(); ++d) {
      const Reach &r = reach[d][size_t(index[d])];
      padded *= r.padded;
      next.clear();
      for (int64_t base : covered)
        for (int64_t i : r.inside)
          next.push_back(base + i * strides[d]);
      covered.swap(next);
    }
    for (int64_t plane = 0; plane < p.planes; ++plane)
      for (int64_t c = 0; c < p.inner; ++c)
        f((plane * outPlane + o) * p.inner + c, plane * inPlane * p.inner + c, std::span<const int64_t>(covered),
          padded);
  }
}

std::vector<std::vector<Reach>> windowReach(const RefCall &call, const Planes &p) {
  auto entry = [&](const char *name, size_t d, int64_t otherwise) {
    const auto &list = call.attr<Sizes>(name);
    return d < list.size() ? list[d] : otherwise;
  };
  std::vector<std::vector<Reach>> reach(p.in.size());
  for (size_t d = 0; d < p.in.size(); ++d) {
    int64_t kernel = entry("kernel", d, 1), low = entry("padding", d, 0);
    PoolAxis axis{p.in[d],
                  kernel,
                  entry("strides", d, kernel),
                  low,
                  entry("padding", p.in.size() + d, low),
                  entry("dilations", d, 1)};
    for (int64_t o = 0; o < p.out[d]; ++o)
      reach[d].push_back(axis.at(o));
  }
  return reach;
}

bool maxPool(RefCall &call) {
  RefTensor &y = call.out();
  Planes p = planesOf(call, y.shape);
  auto run = [&](auto &to, const auto &from, auto start) {
    forEachWindow(p, windowReach(call, p), [&](int64_t at, int64_t base, std::span<const int64_t> covered, int64_t) {
      auto best = start;
      for (int64_t i : covered)
        best = maximum(best, from[size_t(base + i * p.inner)]);
      to[size_t(at)] = best;
    });
  };
  if (isFloat(y.dtype))
    run(y.reals(), call.in().reals(), -HUGE_VAL);
  else
    run(y.ints(), call.in().ints(), lowest(y.dtype));
  return true;
}

/// The sum of the covered elements divided by `count(covered, padded)`; windows that cover no element give 0.
template <class Count>
bool average(RefCall &call, const Planes &p, const std::vector<std::vector<Reach>> &reach, Count count) {
  const RefTensor &x = call.in();
  RefTensor &y = call.out();
  forEachWindow(p, reach, [&](int64_t at, int64_t base, std::span<const int64_t> covered, int64_t padded) {
    double sum = 0;
    for (int64_t i : covered)
      sum += x[size_t(base + i * p.inner)];
    double mean = covered.empty() ? 0 : sum / double(count(int64_t(covered.size()), padded));
    if (isFloat(y.dtype))
      y.reals()[size_t(at)] = mean;
    else
      y.ints()[size_t(at)] = saturateTo(y.dtype, mean);
  });
  return true;
}

bool avgPool(RefCall &call) {
  Planes p = planesOf(call, call.out().shape);
  bool includePad = call.attr<bool>("count_include_pad");
  return average(call, p, windowReach(call, p),
                 [&](int64_t covered, int64_t padded) { return includePad ? padded : covered; });
}

bool adaptiveAvgPool(RefCall &call) {
  Planes p = planesOf(call, call.out().shape);
  std::vector<std::vector<Reach>> reach(p.in.size());
  for (size_t d = 0; d < p.in.size(); ++d)
    for (int64_t o = 0; o < p.out[d]; ++o) {
      Reach r;
      int64_t end = ((o + 1) * p.in[d] + p.out[d] - 1) / p.out[d];
      for (int64_t i = o * p.in[d] / p.out[d]; i < end; ++i)
        r.inside.push_back(i);
      reach[d].push_back(std::move(r));
    }
  return average(call, p, reach, [](int64_t covered, int64_t) { return covered; });
}

constexpr RefKernelEntry kPoolKernels[] = {
    {"max_pool", maxPool}, {"avg_pool", avgPool}, {"adaptive_avg_pool", adaptiveAvgPool}};

} // namespace

std::span<const RefKernelEntry> poolKernels() { return kPoolKernels; }

} // namespace burin::ir::ref
