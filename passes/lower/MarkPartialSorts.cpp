// Marks argsorts of which only the first results are read, as in topk: selecting them takes one pass over the elements,
// sorting all of them several.
#include "ir/dialect/Burin.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_MARKPARTIALSORTSPASS
#include "passes/Passes.h.inc"

namespace {

constexpr int64_t kLeastRatio = 8; // least ratio of sorted to read elements, where both are static

/// Number of results along the axis that are read; nullopt if unknown or not worth it.
std::optional<int64_t> readOf(ArgsortOp op) {
  const Dim size = shapeOf(op.getResult())[op.getAxis()];
  int64_t most = 0;
  for (Operation *user : op->getUsers()) {
    auto slice = dyn_cast<SliceOp>(user);
    if (!slice)
      return std::nullopt;
    auto starts = std::get<Shape>(*fromMlir(slice.getStarts(), AttrKind::Shape));
    const Dim read = shapeOf(slice.getResult())[op.getAxis()];
    if (starts[op.getAxis()] != Dim(0) || slice.getSteps()[op.getAxis()] != 1 || !read.isStatic())
      return std::nullopt;
    most = std::max(most, read.value());
  }
  bool isWorthIt = most > 0 && (!size.isStatic() || most <= size.value() / kLeastRatio);
  return isWorthIt ? std::optional(most) : std::nullopt;
}

struct MarkPartialSortsPass : impl::MarkPartialSortsPassBase<MarkPartialSortsPass> {
  void runOnOperation() override {
    getOperation().walk([](ArgsortOp op) {
      if (auto first = readOf(op))
        op->setAttr(kFirstOfSorted, IntegerAttr::get(IntegerType::get(op.getContext(), 64), *first));
    });
  }
};

} // namespace

} // namespace burin::passes
