#include "passes/lower/contractions/TrimTaps.h"
#include "passes/analysis/GraphBuilder.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

using Ints = std::vector<int64_t>;

/// The taps [first, end) of a window that lie inside x at some position; the other taps only see padding.
static std::pair<int64_t, int64_t> liveTaps(int64_t size, int64_t positions, int64_t kernel, int64_t stride,
                                            int64_t low, int64_t dilation) {
  auto isLive = [&](int64_t tap) {
    int64_t at = tap * dilation - low; // position of the tap in the first window; further windows follow at `stride`
    int64_t steps = at < 0 ? (-at + stride - 1) / stride : 0;
    return steps < positions && at + steps * stride < size;
  };
  int64_t first = 0, end = kernel;
  while (first + 1 < end && !isLive(first))
    ++first;
  while (first + 1 < end && !isLive(end - 1))
    --end;
  return {first, end};
}

void trimTaps(ConvOp op) {
  bool last = op.getLayout() == "nhwc";
  Shape x = shapeOf(op.getX()), result = shapeOf(op.getResult()), weight = shapeOf(op.getWeight());
  size_t spatial = x.size() - 2;
  Ints padding(op.getPadding());
  Shape starts(weight.size(), Dim(0)), stops = weight;
  for (size_t d = 0; d < spatial; ++d) {
    size_t dim = d + (last ? 1 : 2), tap = d + (last ? 0 : 2);
    int64_t &low = padding[d], &high = padding[d + spatial], dilation = op.getDilations()[d];
    if (!x[dim].isStatic() || !result[dim].isStatic())
      continue;
    int64_t kernel = weight[tap].value();
    auto [first, end] = liveTaps(x[dim].value(), result[dim].value(), kernel, op.getStrides()[d], low, dilation);
    if (low < first * dilation || high < (kernel - end) * dilation)
      continue;
    low -= first * dilation;
    high -= (kernel - end) * dilation;
    starts[tap] = first;
    stops[tap] = end;
  }
  if (stops == weight && padding == Ints(op.getPadding()))
    return;
  OpBuilder b(op);
  op.getWeightMutable().assign(GraphBuilder(b, op.getLoc()).slice(op.getWeight(), starts, stops));
  op.setPadding(padding);
}

} // namespace burin::passes
