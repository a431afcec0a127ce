#include "codegen/emit/element/ElementEmitter.h"
#include "passes/analysis/OpFacts.h"
#include "passes/analysis/StridedView.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

StridedMemory ElementEmitter::stridedMemoryOf(Value v) { return stridedMemoryOf(passes::stridedViewOf(v)); }

StridedMemory ElementEmitter::stridedMemoryOf(const passes::StridedView &view) {
  Memory memory = *memoryOf(view.base);
  if (view.offset != Dim(0))
    memory.pointer = k.elementPointer(memory, k.dim(view.offset));
  return {memory, view.strides};
}

std::optional<Memory> ElementEmitter::memoryOf(Value v) {
  auto it = memories.find(v);
  if (it == memories.end())
    return std::nullopt;
  return it->second;
}

Value ElementEmitter::masked(Value extra, llvm::function_ref<Value()> body) {
  llvm::SaveAndRestore both(mask,
                            mask ? Value(arith::AndIOp::create(k.b, k.loc, mask, k.broadcast(extra, k.width))) : extra);
  return body();
}

Value ElementEmitter::zeroOf(DType type) {
  return arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(k.storageType(type)));
}

Value ElementEmitter::inRange(const Index &i, Value from, Value to) {
  bool lanes = !i.uniform();
  Value at = lanes ? k.lanesOf(i, k.width) : i.base;
  auto bound = [&](Value v) { return lanes ? k.broadcast(v, k.width) : v; };
  Value result;
  if (k.constantOf(from) != 0)
    result = k.compare(arith::CmpIPredicate::sge, at, bound(from));
  else
    result = k.compare(arith::CmpIPredicate::sge, at, bound(k.constant(0)));
  Value below = k.compare(arith::CmpIPredicate::slt, at, bound(to));
  return arith::AndIOp::create(k.b, k.loc, result, below);
}

Index ElementEmitter::asIndex(Value element, DType type) {
  Type wide = k.b.getI64Type();
  if (auto vector = dyn_cast<VectorType>(element.getType()))
    wide = VectorType::get(vector.getShape(), wide);
  if (element.getType() != wide)
    element = type == DType::u8 ? Value(arith::ExtUIOp::create(k.b, k.loc, wide, element))
                                : Value(arith::ExtSIOp::create(k.b, k.loc, wide, element));
  return isa<VectorType>(wide) ? Index{{}, 0, element} : Index{element};
}

SmallVector<Index> ElementEmitter::delinearize(const Index &position, ArrayRef<Dim> shape) {
  SmallVector<Index> at(shape.size());
  Index rest = position;
  for (size_t i = shape.size(); i-- > 1;)
    std::tie(rest, at[i]) = k.split(rest, k.dim(shape[i]));
  if (!at.empty())
    at[0] = rest;
  return at;
}

Value ElementEmitter::element(Value v, ArrayRef<Index> at) {
  for (auto &scope : known)
    if (auto it = scope.find(v); it != scope.end())
      for (const Known &entry : it->second)
        if (llvm::equal(entry.at, at) && entry.mask == mask && entry.width == k.width)
          return entry.element;
  Value result = compute(v, at);
  known.back()[v].push_back({SmallVector<Index>(at), mask, k.width, result});
  return result;
}

ElementEmitter::Rule const ElementEmitter::rules[] = {
#define OP_RULE(op, rule) &ElementEmitter::rule,
#include "codegen/emit/element/ElementRules.inc"
};

Value ElementEmitter::none(Operation *op, ArrayRef<Index>) {
  llvm::report_fatal_error("fusion has put an op without an element rule into a kernel: " +
                           op->getName().getStringRef());
}

Value ElementEmitter::compute(Value v, ArrayRef<Index> at) {
  if (auto memory = memoryOf(v))
    return k.load(*memory, k.linear(memory->shape, at), k.width, mask);
  Operation *op = v.getDefiningOp();
  if (auto check = dyn_cast<CheckOp>(op)) {
    require(check, element(check.getCondition(), at), at);
    return element(check.getX(), at);
  }
  if (op->hasTrait<ir::Elementwise>()) {
    SmallVector<Value> operands;
    bool vector = false;
    for (Value operand : op->getOperands()) {
      operands.push_back(element(operand, at));
      vector |= isa<VectorType>(operands.back().getType());
    }
    if (vector)
      for (Value &operand : operands)
        operand = k.broadcast(operand, k.width);
    return emitElementwise(k.b, k.loc, op, operands);
  }
  return (this->*rules[*passes::tableIndexOf(op)])(op, at);
}

Value ElementEmitter::repeated(Operation *op, ArrayRef<Index> at) {
  Value x = op->getOperand(0);
  Shape from = shapeOf(x);
  size_t lead = at.size() - from.size();
  SmallVector<Index> inner;
  for (size_t i = 0; i < from.size(); ++i)
    inner.push_back(from[i] == Dim(1) ? Index{k.constant(0)} : at[lead + i]);
  return element(x, inner);
}

Value ElementEmitter::transposed(Operation *op, ArrayRef<Index> at) {
  auto transpose = cast<TransposeOp>(op);
  SmallVector<Index> inner(at.size());
  for (auto [i, from] : llvm::enumerate(transpose.getPerm()))
    inner[from] = at[i];
  return element(transpose.getX(), inner);
}

Value ElementEmitter::sliced(Operation *op, ArrayRef<Index> at) {
  auto slice = cast<SliceOp>(op);
  auto starts = std::get<Shape>(*fromMlir(slice.getStarts(), AttrKind::Shape));
  SmallVector<Index> inner;
  for (size_t i = 0; i < at.size(); ++i)
    inner.push_back(k.shift(k.scale(at[i], k.constant(slice.getSteps()[i])), k.dim(starts[i])));
  return element(slice.getX(), inner);
}

Value ElementEmitter::flipped(Operation *op, ArrayRef<Index> at) {
  auto flip = cast<FlipOp>(op);
  Shape from = shapeOf(flip.getX());
  SmallVector<Index> inner(at);
  for (int64_t axis : flip.getAxes())
    inner[axis] = k.shift(k.scale(at[axis], k.constant(-1)), k.sub(k.dim(from[axis]), k.constant(1)));
  return element(flip.getX(), inner);
}

Value ElementEmitter::counted(Operation *op, ArrayRef<Index> at) {
  auto iota = cast<IotaOp>(op);
  const Index &i = at[iota.getAxis()];
  Value position = i.uniform() ? i.base : k.lanesOf(i, k.width);
  return castLanes(k.b, k.loc, position, DType::i64, dtypeOf(iota.getResult()));
}

Value ElementEmitter::filled(Operation *op, ArrayRef<Index>) {
  auto full = cast<FullOp>(op);
  DType type = dtypeOf(full.getResult());
  Value value = arith::ConstantOp::create(k.b, k.loc, k.b.getF64FloatAttr(full.getValue().convertToDouble()));
  return castLanes(k.b, k.loc, value, DType::f64, type);
}

/// Maps a position in the reshaped tensor `to` to a position in `from`. Both shapes are cut where the dimensions before
/// have the same number of elements, so that only dimensions that are split or joined need arithmetic.
SmallVector<Index> ElementEmitter::throughReshape(ArrayRef<Index> at, ArrayRef<Dim> to, ArrayRef<Dim> from,
                                                  const passes::SizeClasses &classes) {
  SmallVector<Index> inner(from.size(), Index{k.constant(0)});
  size_t i = 0, o = 0;
  while (i < from.size()) {
    // The shortest runs of dimensions from here on with equal numbers of elements; sizes of 1 are skipped.
    size_t endI = i, endO = o;
    SmallVector<size_t> run;
    Shape split, joined;
    SmallVector<Index> place;
    Dim countI = 1, countO = 1;
    auto takeTo = [&] {
      if (to[endO] != Dim(1)) {
        joined.push_back(to[endO]);
        place.push_back(at[endO]);
        countO = countO * to[endO];
      }
      ++endO;
    };
    auto isCut = [&] { return classes.areSame(countI, countO); };
    while (endI < from.size() && (run.empty() || !isCut())) {
      if (from[endI] != Dim(1)) {
        run.push_back(endI);
        split.push_back(from[endI]);
        countI = countI * from[endI];
      }
      ++endI;
      size_t begin = endO;
      auto saved = std::tuple(joined, place, countO);
      while (endO < to.size() && !isCut())
        takeTo();
      if (!isCut() && endI < from.size()) {
        endO = begin;
        std::tie(joined, place, countO) = saved;
      }
    }
    for (auto [d, index] : llvm::zip_equal(run, delinearize(k.linear(joined, place), split)))
      inner[d] = index;
    i = endI, o = endO;
  }
  return inner;
}

const passes::SizeClasses &ElementEmitter::classesAround(Operation *op) {
  if (!classes)
    classes.emplace(op);
  return *classes;
}

// Memory has no dimensions: the row-major position is the same in both shapes.
Value ElementEmitter::reshaped(Operation *op, ArrayRef<Index> at) {
  Value source = op->getOperand(0);
  Shape from = shapeOf(source), to = shapeOf(op->getResult(0));
  if (auto memory = memoryOf(source))
    return k.load(*memory, k.linear(to, at), k.width, mask);
  const bool isStatic = llvm::all_of(to, [](const Dim &size) { return size.isStatic(); });
  return element(source, throughReshape(at, to, from, isStatic ? passes::SizeClasses() : classesAround(op)));
}

} // namespace burin::codegen
