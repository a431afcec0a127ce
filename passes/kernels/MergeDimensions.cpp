// Merges adjacent dimensions of the values in kernels that move elements, where no op of the body needs them
// separately. Loops have fewer and longer dimensions then, and less arithmetic on indices.
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/OpFacts.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_MERGEDIMENSIONSPASS
#include "passes/Passes.h.inc"

namespace {

Shape shapeIn(Attribute attribute) { return std::get<Shape>(*fromMlir(attribute, AttrKind::Shape)); }

/// The boundaries between adjacent dimensions of the values of a body. An op ties a boundary of an operand to one of
/// its result if both must be merged or neither, and keeps a boundary that must not be merged. All boundaries that are
/// tied to a kept one are kept.
class Boundaries {
public:
  Boundaries(Block &body, const SizeClasses &classes) : classes(classes) {
    for (BlockArgument argument : body.getArguments())
      add(argument);
    for (Operation &op : body.without_terminator())
      for (Value result : op.getResults())
        add(result);
    ties.grow(count + 1);
    for (Operation &op : body.without_terminator())
      constrain(&op);
    for (unsigned n : kept)
      ties.join(n, count);
    ties.compress();
  }

  /// Whether dimensions d and d + 1 of the value become one.
  bool areMerged(Value v, size_t d) const { return ties[first.at(v) + d] != ties[count]; }
  /// Number of the dimension that dimension d is merged into.
  size_t mergedDimension(Value v, size_t d) const {
    size_t merged = d;
    for (size_t i = 0; i < d; ++i)
      merged -= areMerged(v, i);
    return merged;
  }
  Shape mergedShape(Value v) const {
    Shape merged;
    for (auto [d, size] : llvm::enumerate(shapeOf(v)))
      if (d && areMerged(v, d - 1))
        merged.back() = merged.back() * size;
      else
        merged.push_back(size);
    return merged;
  }

private:
  void add(Value v) {
    first[v] = count;
    count += std::max<unsigned>(shapeOf(v).size(), 1) - 1;
  }
  /// Boundary d of a value lies between its dimensions d and d + 1.
  void tie(Value x, size_t d, Value y, size_t e) { ties.join(first[x] + d, first[y] + e); }
  void keep(Value v, size_t d) { kept.push_back(first[v] + d); }
  void keepAll(Value v) {
    for (size_t d = 0; d + 1 < shapeOf(v).size(); ++d)
      keep(v, d);
  }
  void tieAll(Value x, Value y) {
    for (size_t d = 0; d + 1 < shapeOf(x).size(); ++d)
      tie(x, d, y, d);
  }

  void constrain(Operation *op) {
    if (isa<ReshapeOp>(op))
      return constrainView(op);
    const bool isPointwise =
        op->hasTrait<ir::Elementwise>() && op->getNumResults() == 1 && !isa<CheckOp>(op) &&
        llvm::all_of(op->getOperands(), [&](Value x) { return shapeOf(x) == shapeOf(op->getResult(0)); });
    if (isPointwise)
      return void(llvm::for_each(op->getOperands(), [&](Value x) { tieAll(x, op->getResult(0)); }));
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](FullOp) {})
        .Case([&](BroadcastToOp op) { constrainBroadcast(op); })
        .Case([&](TransposeOp op) { constrainTranspose(op); })
        .Case([&](TakeOp op) { constrainTake(op); })
        .Case<ConcatOp, SliceOp, PadOp, FlipOp>([&](auto op) {
          for (Value x : op->getOperands())
            tieAll(x, op.getResult());
          for (size_t d = 0; d + 1 < shapeOf(op.getResult()).size(); ++d)
            if (!isMergeable(op, d))
              keep(op.getResult(), d);
        })
        .Default([&](Operation *op) {
          llvm::for_each(op->getOperands(), [&](Value v) { keepAll(v); });
          llvm::for_each(op->getResults(), [&](Value v) { keepAll(v); });
        });
  }

  /// Whether the op moves elements along dimensions d and d + 1 as it would along the one that they are merged into: it
  /// leaves dimension d + 1 whole and in order, or reverses both.
  static bool isMergeable(ConcatOp op, size_t d) { return op.getAxis() != d + 1; }
  static bool isMergeable(FlipOp op, size_t d) {
    return llvm::is_contained(op.getAxes(), int64_t(d)) == llvm::is_contained(op.getAxes(), int64_t(d + 1));
  }
  static bool isMergeable(SliceOp op, size_t d) {
    const Shape starts = shapeIn(op.getStarts()), stops = shapeIn(op.getStops()), x = shapeOf(op.getX());
    return op.getSteps()[d] == 1 && op.getSteps()[d + 1] == 1 && starts[d + 1] == Dim(0) && stops[d + 1] == x[d + 1];
  }
  /// Padding of dimension d becomes low[d] * size(d + 1) elements of the merged one, so that this size must be known.
  /// Of the modes only a constant, and no padding between elements, can be counted in that way.
  static bool isMergeable(PadOp op, size_t d) {
    auto isPadded = [&](size_t d) { return op.getLow()[d] != 0 || op.getHigh()[d] != 0 || hasGaps(op, d); };
    if (isPadded(d + 1))
      return false;
    if (isPadded(d) && (op.getMode() != "constant" || hasGaps(op, d)))
      return false;
    const bool isBehindPadded = llvm::any_of(llvm::seq(d + 1), isPadded);
    return !isBehindPadded || shapeOf(op.getX())[d + 1].isStatic();
  }
  static bool hasGaps(PadOp op, size_t d) { return !op.getInterior().empty() && op.getInterior()[d] != 0; }

  /// A view that only adds or drops dimensions of size 1 stays one. Others keep the dimensions of a value that is
  /// computed in the body and read elsewhere in it, as each element would need divisions to find its place in other
  /// dimensions. Views of memory, and those that are only stored, may have any shape.
  void constrainView(Operation *op) {
    Value x = op->getOperand(0), y = op->getResult(0);
    std::optional<SmallVector<int>> source = unitReshape(op, classes);
    if (!source) {
      const bool isOfMemory = isa<BlockArgument>(skipReshapes(x));
      const bool isOnlyStored = llvm::all_of(op->getUsers(), [](Operation *user) { return isa<YieldOp>(user); });
      if (!isOfMemory && !isOnlyStored) {
        keepAll(x);
        keepAll(y);
      }
      return;
    }
    int before = -1; // the last dimension of y with more than one element
    for (int d = 0; d < int(source->size()); ++d) {
      if ((*source)[d] < 0)
        continue;
      if (before >= 0) {
        for (int i = before + 1; i < d; ++i)
          tie(y, before, y, i);
        for (int i = (*source)[before]; i < (*source)[d]; ++i)
          tie(y, before, x, i);
      }
      before = d;
    }
  }

  void constrainBroadcast(BroadcastToOp op) {
    const Shape from = shapeOf(op.getX()), to = shapeOf(op.getResult());
    const size_t added = to.size() - from.size();
    auto isRepeated = [&](size_t d) { return d < added || from[d - added] != to[d]; };
    for (size_t d = 0; d + 1 < to.size(); ++d) {
      if (isRepeated(d) != isRepeated(d + 1))
        keep(op.getResult(), d);
      if (d >= added)
        tie(op.getX(), d - added, op.getResult(), d);
    }
  }

  void constrainTranspose(TransposeOp op) {
    ArrayRef<int64_t> perm = op.getPerm();
    SmallVector<bool> stays(perm.size(), false); // whether dimension d + 1 of x follows d in the result
    for (size_t d = 0; d + 1 < perm.size(); ++d)
      if (perm[d + 1] == perm[d] + 1) {
        tie(op.getX(), perm[d], op.getResult(), d);
        stays[perm[d]] = true;
      } else {
        keep(op.getResult(), d);
      }
    for (size_t d = 0; d + 1 < perm.size(); ++d)
      if (!stays[d])
        keep(op.getX(), d);
  }

  void constrainTake(TakeOp op) {
    Value x = op.getX(), indices = op.getIndices(), y = op.getResult();
    const size_t axis = op.getAxis(), count = shapeOf(indices).size(), rank = shapeOf(x).size();
    for (size_t d = 0; d + 1 < shapeOf(y).size(); ++d)
      if (d + 1 < axis)
        tie(x, d, y, d);
      else if (d >= axis && d + 1 < axis + count)
        tie(indices, d - axis, y, d);
      else if (d >= axis + count)
        tie(x, d - count + 1, y, d);
      else
        keep(y, d);
    for (size_t d = 0; d + 1 < rank; ++d)
      if (d == axis || d + 1 == axis)
        keep(x, d);
  }

  const SizeClasses &classes;
  llvm::DenseMap<Value, unsigned> first; // number of the first boundary of a value
  unsigned count = 0;                    // number of boundaries, and the one that stands for all that are kept
  llvm::IntEqClasses ties;
  SmallVector<unsigned> kept;
};

/// Rewrites the body of a kernel.
class Merger {
public:
  Merger(KernelOp kernel, const Boundaries &boundaries) : kernel(kernel), boundaries(boundaries) {}

  void run() {
    Block &body = kernel.getBody().front();
    OpBuilder b(kernel.getContext());
    GraphBuilder g(b, kernel.getLoc());
    for (Operation &op : body.without_terminator()) // all are looked at before the first one changes
      change(&op);
    Operation *yield = body.getTerminator();
    b.setInsertionPointToStart(&body);
    for (BlockArgument argument : body.getArguments())
      if (Value view = g.reshape(argument, boundaries.mergedShape(argument)); view != argument)
        argument.replaceUsesWithIf(
            view, [&](OpOperand &use) { return use.getOwner() != yield && use.getOwner() != view.getDefiningOp(); });
    const auto yielded = llvm::map_to_vector(yield->getOperands(), [](Value v) { return shapeOf(v); });
    for (auto &[value, shape] : shapes)
      value.setType(tensorType(b.getContext(), {dtypeOf(value), shape}));
    for (auto &[op, attributes] : changed)
      for (NamedAttribute attribute : attributes)
        op->setAttr(attribute.getName(), attribute.getValue());
    b.setInsertionPoint(yield);
    for (auto [operand, shape] : llvm::zip_equal(yield->getOpOperands(), yielded))
      operand.set(g.reshape(operand.get(), shape));
  }

private:
  /// Notes the shape of the result and the attributes of an op.
  void change(Operation *op) {
    for (Value result : op->getResults())
      if (Shape merged = boundaries.mergedShape(result); merged != shapeOf(result))
        shapes[result] = merged;
    Builder b(op->getContext());
    auto set = [&](const char *name, Attribute value) { changed[op].push_back(b.getNamedAttr(name, value)); };
    if (op->hasAttr("shape"))
      set("shape", toMlir(op->getContext(), Attr(boundaries.mergedShape(op->getResult(0)))));
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](ConcatOp op) { set("axis", b.getI64IntegerAttr(mergedDimension(op.getResult(), op.getAxis()))); })
        .Case([&](TakeOp op) { set("axis", b.getI64IntegerAttr(mergedDimension(op.getX(), op.getAxis()))); })
        .Case([&](FlipOp op) {
          SmallVector<int64_t> axes;
          for (int64_t axis : op.getAxes())
            if (int64_t place = mergedDimension(op.getX(), axis); !llvm::is_contained(axes, place))
              axes.push_back(place);
          set("axes", b.getDenseI64ArrayAttr(axes));
        })
        .Case([&](TransposeOp op) {
          SmallVector<int64_t> perm;
          for (int64_t d : op.getPerm())
            if (int64_t place = mergedDimension(op.getX(), d); perm.empty() || perm.back() != place)
              perm.push_back(place);
          set("perm", b.getDenseI64ArrayAttr(perm));
        })
        .Case([&](SliceOp op) {
          set("starts", toMlir(op->getContext(), Attr(scaled(op.getX(), shapeIn(op.getStarts())))));
          set("stops", toMlir(op->getContext(), Attr(scaled(op.getX(), shapeIn(op.getStops())))));
          set("steps", b.getDenseI64ArrayAttr(firstOfEach(op.getX(), op.getSteps())));
        })
        .Case([&](PadOp op) {
          set("low", b.getDenseI64ArrayAttr(scaled(op.getX(), op.getLow())));
          set("high", b.getDenseI64ArrayAttr(scaled(op.getX(), op.getHigh())));
          if (!op.getInterior().empty())
            set("interior", b.getDenseI64ArrayAttr(firstOfEach(op.getX(), op.getInterior())));
        });
  }
  int64_t mergedDimension(Value v, size_t d) const { return int64_t(boundaries.mergedDimension(v, d)); }

  /// For each merged dimension, the entry of `all` for the first of those that it is made of.
  SmallVector<int64_t> firstOfEach(Value v, ArrayRef<int64_t> all) const {
    SmallVector<int64_t> result;
    for (auto [d, number] : llvm::enumerate(all))
      if (!d || !boundaries.areMerged(v, d - 1))
        result.push_back(number);
    return result;
  }
  /// Starts or stops of a slice of the merged shape: those of the first dimension that is merged, times the sizes of
  /// the others, which the slice takes whole.
  Shape scaled(Value v, Shape positions) const {
    const Shape sizes = shapeOf(v);
    Shape result;
    for (auto [d, position] : llvm::enumerate(positions))
      if (d && boundaries.areMerged(v, d - 1))
        result.back() = result.back() * sizes[d];
      else
        result.push_back(position);
    return result;
  }
  /// Amounts of padding of the merged shape.
  SmallVector<int64_t> scaled(Value v, ArrayRef<int64_t> amounts) const {
    SmallVector<int64_t> result;
    for (auto [d, amount] : llvm::enumerate(amounts))
      if (!d || !boundaries.areMerged(v, d - 1))
        result.push_back(amount);
      else if (result.back())
        result.back() *= shapeOf(v)[d].value();
    return result;
  }

  KernelOp kernel;
  const Boundaries &boundaries;
  llvm::MapVector<Value, Shape> shapes;
  llvm::MapVector<Operation *, SmallVector<NamedAttribute>> changed;
};

/// Whether ops of the body move elements. Loops over the iteration space of elementwise ops alone are merged anyway.
bool movesElements(Block &body) {
  return llvm::any_of(body.without_terminator(),
                      [](Operation &op) { return isa<ConcatOp, SliceOp, PadOp, FlipOp, TransposeOp, TakeOp>(op); });
}

struct MergeDimensionsPass : impl::MergeDimensionsPassBase<MergeDimensionsPass> {
  void runOnOperation() override {
    getOperation().walk([](KernelOp kernel) {
      Block &body = kernel.getBody().front();
      if (!movesElements(body))
        return;
      const SizeClasses classes(kernel);
      const Boundaries boundaries(body, classes);
      const bool changes = llvm::any_of(body.without_terminator(), [&](Operation &op) {
        return llvm::any_of(op.getResults(), [&](Value v) { return boundaries.mergedShape(v) != shapeOf(v); });
      });
      if (changes)
        Merger(kernel, boundaries).run();
    });
  }
};

} // namespace

} // namespace burin::passes
