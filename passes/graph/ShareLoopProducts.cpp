// Reuses matrix products of a loop in its gradient loop.
//
// The gradient of a loop recomputes each step from the states that the loop stores. Recomputing elementwise work is
// cheaper than storing it; recomputing a matrix product is not. Where two loops multiply the same values in the same
// iterations, the product becomes a result of the first loop and a sliced operand of the second.
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/IterationSpace.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_SHARELOOPPRODUCTSPASS
#include "passes/Passes.h.inc"

namespace {

/// The value outside of a loop that an argument of its body is taken from; sliced values in the order of the parts.
struct Source {
  enum class Kind { StateBefore, Part, Whole } kind;
  Value value;
  bool operator==(const Source &) const = default;
};

Block &bodyOf(ScanOp scan) { return cast<func::FuncOp>(scan.body()).front(); }

void setTypes(ScanOp scan) {
  auto function = cast<func::FuncOp>(scan.body());
  Block &block = function.front();
  function.setFunctionType(
      FunctionType::get(scan.getContext(), block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
}

class Sharer {
public:
  Sharer(ScanOp first, ScanOp second) : first(first), second(second), parts(first.partCount()) {}

  /// Returns the first loop, which may be a new op.
  ScanOp run() {
    SmallVector<std::pair<MatmulOp, MatmulOp>> same;
    for (auto again : bodyOf(second).getOps<MatmulOp>())
      for (auto known : bodyOf(first).getOps<MatmulOp>())
        if (isSame(known, again)) {
          same.push_back({known, again});
          break;
        }
    for (auto [known, again] : same)
      share(known, again);
    return first;
  }

private:
  bool isSame(MatmulOp a, MatmulOp b) {
    for (auto [x, y] : llvm::zip(a->getOperands(), b->getOperands())) {
      std::optional<Source> known = sourceInFirst(x), again = sourceInSecond(y);
      if (!known || !again || *known != *again || shapeOf(x) != shapeOf(y))
        return false;
    }
    return true;
  }

  static std::optional<Source> sourceOf(ScanOp scan, Value v) {
    auto argument = dyn_cast<BlockArgument>(skipReshapes(v));
    if (!argument || argument.getArgNumber() < scan.getStates())
      return {};
    bool isPart = argument.getArgNumber() < scan.firstWhole();
    return Source{isPart ? Source::Kind::Part : Source::Kind::Whole,
                  skipReshapes(scan.getInputs()[argument.getArgNumber()])};
  }

  std::optional<Source> sourceInFirst(Value v) {
    auto argument = dyn_cast<BlockArgument>(skipReshapes(v));
    if (argument && argument.getArgNumber() < first.getStates())
      return Source{Source::Kind::StateBefore, first.getResult(argument.getArgNumber())};
    return sourceOf(first, v);
  }

  /// The states of the first loop without the last one, in the order of the parts, are the states before its
  /// iterations.
  std::optional<Source> sourceInSecond(Value v) {
    std::optional<Source> source = sourceOf(second, v);
    if (!source || source->kind != Source::Kind::Part)
      return source;
    Value states = source->value;
    if (first.getReverse()) {
      auto flip = states.getDefiningOp<FlipOp>();
      if (!flip || flip.getAxes() != ArrayRef<int64_t>{0})
        return source;
      states = skipReshapes(flip.getX());
    }
    auto slice = states.getDefiningOp<SliceOp>();
    if (!slice || slice.getX().getDefiningOp() != first)
      return source;
    std::optional<Attr> starts = fromMlir(slice.getStarts(), AttrKind::Shape);
    Shape wanted = shapeOf(slice.getX());
    wanted[0] = parts;
    if (starts && std::get<Shape>(*starts).front() == Dim(0) && shapeOf(slice.getResult()) == wanted)
      return Source{Source::Kind::StateBefore, slice.getX()};
    return source;
  }

  void share(MatmulOp known, MatmulOp again) {
    Value all = first.getResult(addResult(known.getResult()));
    unsigned at = second.firstWhole();
    Shape shape = shapeOf(again.getResult());
    shape.insert(shape.begin(), 1);
    Type type = tensorType(second.getContext(), {dtypeOf(again.getResult()), shape});
    BlockArgument part = bodyOf(second).insertArgument(at, type, again.getLoc());
    second->insertOperands(at, all);
    second.setSliced(second.getSliced() + 1);
    setTypes(second);
    OpBuilder b(again);
    again.replaceAllUsesWith(GraphBuilder(b, again.getLoc()).reshape(part, shapeOf(again.getResult())));
    again.erase();
  }

  /// Makes `v` a result of the first loop, for all iterations; returns its index.
  unsigned addResult(Value v) {
    Operation *terminator = bodyOf(first).getTerminator();
    OpBuilder inside(terminator), outside(first);
    Shape shape = shapeOf(v);
    shape.insert(shape.begin(), 1);
    terminator->insertOperands(terminator->getNumOperands(), GraphBuilder(inside, v.getLoc()).reshape(v, shape));
    setTypes(first);
    shape[0] = parts;
    SmallVector<Type> types(first.getResultTypes());
    types.push_back(tensorType(first.getContext(), {dtypeOf(v), shape}));
    auto made = ScanOp::create(outside, first.getLoc(), types, first.getCallee(), first.getInputs(), first.getSliced(),
                               first.getParts(), first.getStates(), first.getReverse());
    first.replaceAllUsesWith(made.getResults().drop_back());
    first.erase();
    first = made;
    return unsigned(types.size() - 1);
  }

  ScanOp first, second;
  Dim parts;
};

struct ShareLoopProductsPass : impl::ShareLoopProductsPassBase<ShareLoopProductsPass> {
  void runOnOperation() override {
    llvm::DenseMap<Operation *, int> loops; // number of loops with this body
    getOperation().walk([&](ScanOp scan) { ++loops[scan.body()]; });
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<ScanOp> scans;
      for (auto scan : function.getOps<ScanOp>())
        if (loops[scan.body()] == 1 && function != scan.body())
          scans.push_back(scan);
      for (size_t second = 1; second < scans.size(); ++second)
        for (size_t first = 0; first < second; ++first)
          if (scans[first].partCount() == scans[second].partCount())
            scans[first] = Sharer(scans[first], scans[second]).run();
    }
  }
};

} // namespace

} // namespace burin::passes
