#include "codegen/emit/element/PointEmitter.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {

Index PointEmitter::position(Value v, ArrayRef<Index> point) {
  ArrayRef<int> dims = alignment.dims.find(v)->second;
  Shape shape;
  SmallVector<Index> at;
  for (size_t d = 0; d < dims.size(); ++d) {
    // Skips dimensions of size 1, and all but the first of those that are merged into one dimension of the space.
    if (dims[d] < 0 || (!at.empty() && d && llvm::is_contained(dims.take_front(d), dims[d])))
      continue;
    shape.push_back(alignment.space[dims[d]]);
    at.push_back(point[dims[d]]);
  }
  return k.linear(shape, at);
}

Value PointEmitter::bound(Value v) {
  for (auto &scope : llvm::reverse(known))
    if (Value found = scope.lookup(v))
      return found;
  return {};
}

Value PointEmitter::at(Value v) {
  if (Value found = bound(v))
    return found;
  if (auto memory = e.memoryOf(passes::skipReshapes(v))) {
    // Loaded once: a result may share this memory and be stored at this point before another result is computed.
    Index from = position(v, point);
    prefetch(v, *memory, from);
    Value loaded = k.load(*memory, from, k.width, e.mask);
    bind(v, loaded);
    return loaded;
  }
  Operation *op = v.getDefiningOp();
  auto where = [&] {
    SmallVector<Index> indices;
    for (int d : alignment.dims.find(v)->second)
      indices.push_back(d < 0 ? Index{k.constant(0)} : point[d]);
    return indices;
  };
  Value result;
  if (auto check = dyn_cast<CheckOp>(op)) {
    e.require(check, at(check.getCondition()), where());
    result = at(check.getX());
  } else if (op->hasTrait<ir::Elementwise>()) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(at(operand));
    // Elements that are equal for all lanes are scalars; an op needs vectors of one length.
    if (llvm::any_of(operands, [](Value x) { return isa<VectorType>(x.getType()); }))
      for (Value &operand : operands)
        operand = k.broadcast(operand, k.width);
    result = emitElementwise(k.b, k.loc, op, operands);
  } else if (passes::isAtPoint(alignment, op)) {
    result = at(op->getOperand(0));
  } else { // movement, as of a slice: reads its operand at other positions
    result = e.element(v, where());
  }
  bind(v, result);
  return result;
}

void PointEmitter::prefetch(Value v, const Memory &memory, const Index &from) {
  bool isRow = k.width > 1 && from.stride == 1 && from.hasKnownOffsets();
  if (!isRow || (!streamed && later.empty()))
    return;
  Value at = later.empty()
                 ? k.add(from.base, k.constant(k.target.machine.prefetchBytes / int64_t(byteWidth(dtypeOf(v)))))
                 : position(v, later).base;
  // Rows that are reduced are prefetched to L2, whose fills do not block those of L1.
  int hint = streamed && !later.empty() && llvm::is_contained(alignment.reduced, true) ? 2 : 3;
  if (at != from.base)
    LLVM::Prefetch::create(k.b, k.loc, k.elementPointer(memory, at), 0, hint, 1);
}

void PointEmitter::store(Value v, Value element, Value pointer) {
  k.store({pointer, dtypeOf(v), {}, streamed}, position(v, point), element, k.width, e.mask);
}

void PointEmitter::goTo(Value v, ArrayRef<Index> at) {
  for (auto [dim, index] : llvm::zip(alignment.dims.find(v)->second, at))
    if (dim >= 0)
      point[dim] = index;
}

void PointEmitter::finish(Value main, ArrayRef<Index> at, Value element, Block &body, ArrayRef<Value> results) {
  goTo(main, at);
  scoped([&] {
    bind(main, element);
    storeResults(body, results);
  });
}

void PointEmitter::finishAll(Value main, ArrayRef<SmallVector<Index>> positions,
                             llvm::function_ref<Value(size_t)> element, Block &body, ArrayRef<Value> results) {
  SmallVector<llvm::DenseMap<Value, Value>> loaded;
  for (ArrayRef<Index> position : positions) {
    Scope scope(*this);
    goTo(main, position);
    for (BlockArgument operand : body.getArguments())
      if (alignment.contains(operand))
        at(operand);
    loaded.push_back(std::move(known.back()));
  }
  for (auto [i, position] : llvm::enumerate(positions)) {
    Scope scope(*this);
    known.back() = std::move(loaded[i]);
    finish(main, position, element(i), body, results);
  }
}

void PointEmitter::storeResults(Block &body, ArrayRef<Value> results) {
  // Computes all results before the first store, which may overwrite memory that they are computed from.
  for (Value yielded : body.getTerminator()->getOperands())
    at(shown(yielded));
  for (auto [yielded, pointer] : llvm::zip(body.getTerminator()->getOperands(), results))
    store(shown(yielded), at(shown(yielded)), pointer);
}

void PointEmitter::fetchResults(Value main, ArrayRef<Index> at, Block &body, ArrayRef<Value> results) {
  goTo(main, at);
  for (auto [yielded, pointer] : llvm::zip(body.getTerminator()->getOperands(), results)) {
    Value element = position(shown(yielded), point).base;
    LLVM::Prefetch::create(k.b, k.loc, k.elementPointer({pointer, dtypeOf(yielded), {}}, element), /*write=*/1, 3, 1);
  }
}

DType narrowest(Block &body, DType type) {
  for (Value yielded : body.getTerminator()->getOperands())
    if (byteWidth(dtypeOf(yielded)) < byteWidth(type))
      type = dtypeOf(yielded);
  return type;
}

} // namespace burin::codegen
