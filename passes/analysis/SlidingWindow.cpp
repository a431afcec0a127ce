#include "passes/analysis/SlidingWindow.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

template <class Op> static Window windowOf(Op op, ArrayRef<int64_t> kernel) {
  Window w;
  w.x = op.getX();
  w.spatial = kernel.size();
  w.firstSpatial = op.getLayout() == "nhwc" ? 1 : 2;
  w.kernel.assign(kernel.begin(), kernel.end());
  w.strides.assign(op.getStrides().begin(), op.getStrides().end());
  w.dilations.assign(op.getDilations().begin(), op.getDilations().end());
  auto padding = op.getPadding();
  w.low.assign(padding.begin(), padding.begin() + w.spatial);
  w.high.assign(padding.begin() + w.spatial, padding.end());
  if constexpr (!std::is_same_v<Op, ConvOp>)
    w.ceilMode = op.getCeilMode();
  return w;
}

std::optional<Window> windowOf(Operation *op) {
  if (auto pool = dyn_cast<MaxPoolOp>(op))
    return windowOf(pool, pool.getKernel());
  if (auto pool = dyn_cast<AvgPoolOp>(op))
    return windowOf(pool, pool.getKernel());
  auto conv = dyn_cast<ConvOp>(op);
  if (!conv)
    return std::nullopt;
  Shape weight = shapeOf(conv.getWeight()); // [kernel…, 1, C]
  SmallVector<int64_t> kernel;
  for (size_t d = 0; d + 2 < weight.size(); ++d)
    kernel.push_back(weight[d].value());
  return windowOf(conv, kernel);
}

DType sumTypeOf(DType type) { return type == DType::f16 || type == DType::bf16 ? DType::f32 : type; }

} // namespace burin::passes
