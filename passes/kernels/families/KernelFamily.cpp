#include "passes/kernels/families/KernelFamily.h"
#include "passes/analysis/SlidingWindow.h"
#include "passes/analysis/StridedView.h"
#include "passes/kernels/families/GpuFamilies.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

const IterationSpace *KernelBody::space() const {
  if (!inferred)
    inferred = classes ? inferIterationSpace(block, *classes) : inferIterationSpace(block);
  return *inferred ? &**inferred : nullptr;
}

Operation *KernelBody::root() const {
  Operation *terminator = block.getTerminator();
  return terminator->getNumOperands() ? skipReshapes(terminator->getOperand(0)).getDefiningOp() : nullptr;
}

Operation *tiledWindowIn(Block &body) {
  for (Operation &op : body) {
    std::optional<Window> w = windowOf(&op);
    // An average over windows that reach beyond x would need the number of taps inside.
    if (!w || isa<AvgPoolOp>(op) || !w->channelsLast() || w->kernel.back() > kMostUnrolledTaps)
      continue;
    size_t last = w->spatial;
    if (shapeOf(w->x)[last].isStatic() && shapeOf(op.getResult(0))[last].isStatic())
      return &op;
  }
  return nullptr;
}

namespace {

bool isRunning(const KernelBody &body) { return isa_and_nonnull<CumsumOp, CumprodOp>(body.root()); }
bool isSort(const KernelBody &body) { return isa_and_nonnull<ArgsortOp>(body.root()); }
bool isSuppression(const KernelBody &body) { return isa_and_nonnull<NonMaxSuppressionOp>(body.root()); }
bool isScatter(const KernelBody &body) { return isa_and_nonnull<ScatterOp>(body.root()); }
bool isBf16Split(const KernelBody &body) { return bool(body.first<Bf16TermsOp>()); }

bool hasSpace(const KernelBody &body) { return body.space(); }
bool isContraction(const KernelBody &body) { return body.first<ContractOp>() && body.space(); }
bool isProductOfTerms(const KernelBody &body) {
  auto op = body.first<ContractOp>();
  return op && op.getTerms() && body.space();
}
bool isAttention(const KernelBody &body) { return body.first<ScaledDotProductAttentionOp>() && body.space(); }
bool isAttentionGradient(const KernelBody &body) { return isa_and_nonnull<AttentionGradientOp>(body.root()); }
bool isTiledWindow(const KernelBody &body) { return tiledWindowIn(body.block) && body.space(); }

/// The window of a pool over planes (rows and columns, channels first); nullopt if other families are better.
std::optional<Window> planeWindowOf(Operation *op) {
  constexpr int64_t kFewestTaps = 5;   // with fewer taps scratch memory does not pay
  constexpr int64_t kVectorBytes = 64; // of the widest target
  std::optional<Window> w = op ? windowOf(op) : std::nullopt;
  if (!w || w->channelsLast() || w->spatial != 2 || w->kernel[0] * w->kernel[1] < kFewestTaps ||
      std::min(w->kernel[0], w->kernel[1]) < 2)
    return std::nullopt;
  // Short rows are better joined to fill vectors; the rowwise family does that.
  Value result = op->getResult(0);
  int64_t lanes = kVectorBytes / int64_t(byteWidth(sumTypeOf(dtypeOf(result))));
  bool isShort = upperBound(shapeOf(result)[3]).value_or(INT64_MAX) < lanes / 2;
  return isShort ? std::nullopt : w;
}

bool isPlanePool(const KernelBody &body) {
  constexpr int64_t kMostTaps = 32; // of a row or column of a window; taps are unrolled
  auto w = planeWindowOf(body.first<MaxPoolOp>());
  return w && std::max(w->kernel[0], w->kernel[1]) <= kMostTaps && body.space();
}

bool isPlaneMean(const KernelBody &body) {
  constexpr int64_t kMostTaps = 64; // of a window; taps are unrolled
  auto w = planeWindowOf(body.first<AvgPoolOp>());
  return w && w->kernel[0] * w->kernel[1] <= kMostTaps && body.space();
}

bool isTransposingCopy(const KernelBody &body) { return transposingCopyOf(body.block) && body.space(); }
bool hasTransposedReads(const KernelBody &body) { return body.space() && transposedReadsOf(body.block, *body.space()); }
bool takesColumns(const KernelBody &body) { return body.space() && !takesOfColumns(body.block, *body.space()).empty(); }
bool hasReduction(const KernelBody &body) {
  return llvm::any_of(body.block, [](Operation &op) { return !reducedAxes(&op).empty(); }) && body.space();
}

enum class Devices { Any, Cpu, Gpu, Hopper, RoundingGpu };

bool runsOn(const KernelFamily &family, KernelDevice device) {
  switch (device.kind) {
  case DeviceKind::Cpu:
    return family.onCpu;
  case DeviceKind::Gpu:
    return family.onGpu && (device.roundsF32 || !family.roundsF32);
  case DeviceKind::Hopper:
    return family.onHopper && (device.roundsF32 || !family.roundsF32);
  }
}

} // namespace

llvm::ArrayRef<KernelFamily> kernelFamilies() {
  static constexpr KernelFamily families[] = {
#define KERNEL_FAMILY(id, name, device, accepts, emit)                                                                 \
  {Family::id,                                                                                                         \
   name,                                                                                                               \
   Devices::device == Devices::Any || Devices::device == Devices::Cpu,                                                 \
   Devices::device != Devices::Cpu && Devices::device != Devices::Hopper,                                              \
   Devices::device != Devices::Cpu,                                                                                    \
   Devices::device == Devices::RoundingGpu,                                                                            \
   accepts},
#include "passes/kernels/families/KernelFamilies.def"
  };
  return families;
}

const KernelFamily *familyOf(const KernelBody &body, KernelDevice device) {
  for (const KernelFamily &family : kernelFamilies())
    if (runsOn(family, device) && family.accepts(body))
      return &family;
  return nullptr;
}

bool isKernelBody(const KernelBody &body) { return familyOf(body, {DeviceKind::Cpu}); }

} // namespace burin::passes
