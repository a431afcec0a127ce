// Element rules of ops that select by position: pad, concat, take, gather, tril, triu, pack, bf16_pairs; what they
// share: conditions on indices, branches for vectors that need no masks, and errors of indices out of range.
#include "codegen/emit/element/ElementEmitter.h"

using namespace mlir;
using namespace burin::ir;
using arith::CmpIPredicate;

namespace burin::codegen {

Index ElementEmitter::select(Value condition, const Index &x, const Index &y) {
  if (x.uniform() && y.uniform() && !isa<VectorType>(condition.getType()))
    return {arith::SelectOp::create(k.b, k.loc, condition, x.base, y.base)};
  return {{}, 0, arith::SelectOp::create(k.b, k.loc, condition, k.lanesOf(x, k.width), k.lanesOf(y, k.width))};
}

/// Clamps an index to [0, size); 0 if the dimension is empty.
Index ElementEmitter::clampIndex(const Index &i, Value size) {
  Value zero = k.constant(0), last = k.sub(size, k.constant(1));
  if (i.uniform())
    return {k.maximum(k.minimum(i.base, last), zero)};
  Value lanes = k.lanesOf(i, k.width);
  lanes = arith::MinSIOp::create(k.b, k.loc, lanes, k.broadcast(last, k.width));
  return {{}, 0, arith::MaxSIOp::create(k.b, k.loc, lanes, k.broadcast(zero, k.width))};
}

std::optional<ElementEmitter::Range> ElementEmitter::rangeOf(const Index &i) {
  if (i.lanes || !i.offsets.empty() || !i.terms.empty() || (i.stride != 0 && i.stride != 1))
    return std::nullopt;
  auto [rest, distance] = k.splitConstant(i.base);
  if (!rest)
    return Range{i.base, Dim(distance), Dim(distance + (i.stride ? k.width : 1))};
  for (const Range &range : ranges)
    if (auto [base, constant] = k.splitConstant(range.base); base == rest)
      return Range{i.base, range.from + Dim(distance - constant), range.to + Dim(distance - constant)};
  return std::nullopt;
}
bool ElementEmitter::isWithin(const Index &i, const Dim &from, const Dim &to) {
  auto range = rangeOf(i);
  return range && isAtMost(from, range->from) && isAtMost(range->to, to);
}
bool ElementEmitter::isOutside(const Index &i, const Dim &from, const Dim &to) {
  auto range = rangeOf(i);
  return range && (isAtMost(range->to, from) || isAtMost(to, range->from));
}

/// Scalar i1: from <= i < to for all lanes. Null if that needs arithmetic per lane.
Value ElementEmitter::allInRange(const Index &i, Value from, Value to) {
  if (!i.hasKnownOffsets())
    return {};
  SmallVector<int64_t> offsets = k.offsetsOf(i, k.width);
  auto [least, most] = std::minmax_element(offsets.begin(), offsets.end());
  Value first = k.add(i.base, k.constant(*least)), last = k.add(i.base, k.constant(*most));
  auto isBelow = [&](Value x, Value y) -> Value {
    auto knownX = k.constantOf(x), knownY = k.constantOf(y);
    if (knownX && knownY)
      return arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(*knownX < *knownY));
    return k.compare(CmpIPredicate::slt, x, y);
  };
  Value isAbove = isBelow(k.sub(from, k.constant(1)), first), isUnder = isBelow(last, to);
  if (auto known = k.constantOf(isAbove)) // a true i1 is -1
    return *known ? isUnder : isAbove;
  if (auto known = k.constantOf(isUnder))
    return *known ? isAbove : isUnder;
  return arith::AndIOp::create(k.b, k.loc, isAbove, isUnder);
}

/// Number of ops emitted for an element of `v`; ops that are used at several places count as often.
int64_t ElementEmitter::codeOf(Value v) {
  constexpr int64_t kMost = int64_t(1) << 20; // a value that each level uses twice would overflow
  Operation *op = v.getDefiningOp();
  if (!op || memoryOf(v))
    return 1;
  if (auto known = codeSizes.find(v); known != codeSizes.end())
    return known->second;
  int64_t code = 1;
  for (Value operand : op->getOperands())
    code = std::min(code + codeOf(operand), kMost);
  return codeSizes[v] = code;
}

Value ElementEmitter::either(Value condition, DType type, llvm::function_ref<Value()> fast,
                             llvm::function_ref<Value()> slow) {
  if (!condition)
    return slow();
  if (auto known = k.constantOf(condition))
    return *known ? fast() : slow();
  Type result = k.storageType(type);
  if (k.width > 1)
    result = VectorType::get({k.width}, result);
  auto branch = scf::IfOp::create(k.b, k.loc, TypeRange{result}, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(k.b);
  auto fill = [&](Block *block, llvm::function_ref<Value()> body) {
    k.b.setInsertionPointToStart(block);
    scoped([&] { scf::YieldOp::create(k.b, k.loc, k.broadcast(body(), k.width)); });
  };
  fill(branch.thenBlock(), fast);
  fill(branch.elseBlock(), slow);
  return branch.getResult(0);
}

/// Reflects indices outside [0, size) at the first and the last element.
Index ElementEmitter::reflect(const Index &i, Value size) {
  auto absolute = [&](const Index &x) {
    return select(inRange(x, k.constant(0), k.constant(INT64_MAX)), x, k.scale(x, k.constant(-1)));
  };
  Index last{k.sub(size, k.constant(1))};
  Index fromEnd = absolute(k.add(last, k.scale(absolute(i), k.constant(-1))));
  return clampIndex(k.add(last, k.scale(fromEnd, k.constant(-1))), size);
}

Value ElementEmitter::padding(PadOp pad) {
  Value fill = arith::ConstantOp::create(k.b, k.loc, k.b.getF64FloatAttr(pad.getValue().convertToDouble()));
  return castLanes(k.b, k.loc, fill, DType::f64, dtypeOf(pad.getX()));
}

/// Most vectors lie inside of x and are loaded without masks.
Value ElementEmitter::padded(Operation *op, ArrayRef<Index> at) {
  auto pad = cast<PadOp>(op);
  Shape from = shapeOf(pad.getX());
  Value allInside;
  SmallVector<Index> inner(at);
  bool isCheap = !mask && mayBranch(pad.getResult()), isInsideAll = true;
  for (size_t d = 0; d < from.size() && isCheap; ++d) {
    inner[d] = k.shift(at[d], k.constant(-pad.getLow()[d]));
    isCheap &= pad.getInterior().empty() || pad.getInterior()[d] == 0;
    if (!isCheap || (pad.getLow()[d] <= 0 && pad.getHigh()[d] <= 0))
      continue;
    if (pad.getMode() == "constant" && isOutside(inner[d], Dim(0), from[d]))
      return padding(pad);
    if (isWithin(inner[d], Dim(0), from[d]))
      continue;
    isInsideAll = false;
    Value isInside = allInRange(inner[d], k.constant(0), k.dim(from[d]));
    isCheap &= bool(isInside);
    allInside = allInside && isInside ? Value(arith::AndIOp::create(k.b, k.loc, allInside, isInside)) : isInside;
  }
  if (isCheap && isInsideAll)
    return element(pad.getX(), inner);
  bool hasLanes = llvm::any_of(at, [](const Index &i) { return !i.uniform(); });
  if (!isCheap || !hasLanes)
    return paddedAnywhere(pad, at);
  return either(
      allInside, dtypeOf(pad.getX()), [&] { return element(pad.getX(), inner); },
      [&] { return paddedAnywhere(pad, at); });
}

Value ElementEmitter::paddedAnywhere(PadOp pad, ArrayRef<Index> at) {
  Shape from = shapeOf(pad.getX());
  SmallVector<Index> inner;
  Value inside;
  auto andAlso = [&](Value condition) {
    if (!inside) {
      inside = condition;
      return;
    }
    bool lanes = isa<VectorType>(inside.getType()) || isa<VectorType>(condition.getType());
    if (lanes) {
      inside = k.broadcast(inside, k.width);
      condition = k.broadcast(condition, k.width);
    }
    inside = arith::AndIOp::create(k.b, k.loc, inside, condition);
  };
  for (size_t d = 0; d < from.size(); ++d) {
    int64_t low = pad.getLow()[d], high = pad.getHigh()[d];
    int64_t gap = pad.getInterior().empty() ? 0 : pad.getInterior()[d];
    Value size = k.dim(from[d]);
    Index i = k.shift(at[d], k.constant(-low));
    if (!gap && isWithin(i, Dim(0), from[d])) {
      inner.push_back(i);
      continue;
    }
    if (!gap && pad.getMode() == "constant" && isOutside(i, Dim(0), from[d]))
      return padding(pad);
    if (pad.getMode() != "constant") {
      bool untouched = low == 0 && high == 0;
      inner.push_back(untouched ? i : pad.getMode() == "edge" ? clampIndex(i, size) : reflect(i, size));
      continue;
    }
    if (gap) {
      // Only every (gap + 1)-th position has an element.
      Value zero = k.constant(0), spread = k.constant(gap + 1);
      andAlso(inRange(i, zero, k.mul(size, spread)));
      Index quotient, remainder;
      if (i.uniform()) {
        remainder = {k.rem(i.base, spread)};
        quotient = {k.div(i.base, spread)};
      } else {
        Value lanes = k.lanesOf(i, k.width), by = k.broadcast(spread, k.width);
        remainder = {{}, 0, arith::RemSIOp::create(k.b, k.loc, lanes, by)};
        quotient = {{}, 0, arith::DivSIOp::create(k.b, k.loc, lanes, by)};
      }
      andAlso(inRange(remainder, zero, k.constant(1)));
      i = quotient;
    } else if (low > 0 || high > 0) {
      andAlso(inRange(i, k.constant(0), size));
    }
    // Uniform positions are loaded regardless of the mask, so they must be valid.
    inner.push_back(i.uniform() && (low > 0 || high > 0 || gap) ? clampIndex(i, size) : i);
  }
  if (!inside)
    return element(pad.getX(), inner);
  // If x may be empty, the clamped positions are invalid, too: each lane needs its own condition to load nothing.
  if (lowerBound(elements(from)).value_or(0) < 1)
    inside = k.broadcast(inside, k.width);
  Value fill = padding(pad);
  bool isMask = isa<VectorType>(inside.getType()) || k.width == 1;
  Value value = isMask ? masked(inside, [&] { return element(pad.getX(), inner); }) : element(pad.getX(), inner);
  if (isa<VectorType>(inside.getType()) || isa<VectorType>(value.getType())) {
    value = k.broadcast(value, k.width);
    fill = k.broadcast(fill, k.width);
  }
  return arith::SelectOp::create(k.b, k.loc, inside, value, fill);
}

Value ElementEmitter::concatenated(Operation *op, ArrayRef<Index> at) {
  auto concat = cast<ConcatOp>(op);
  int64_t axis = concat.getAxis();
  SmallVector<Value> ends; // end of each operand along the axis
  SmallVector<Dim> sizes{Dim(0)};
  for (Value x : concat.getXs()) {
    ends.push_back(k.add(ends.empty() ? k.constant(0) : ends.back(), k.dim(shapeOf(x)[axis])));
    sizes.push_back(sizes.back() + shapeOf(x)[axis]);
  }
  auto piece = [&](size_t n) {
    SmallVector<Index> inner(at);
    if (n)
      inner[axis] = k.shift(at[axis], k.sub(k.constant(0), ends[n - 1]));
    return element(concat.getXs()[n], inner);
  };
  for (size_t n = 0; n < ends.size(); ++n)
    if (isWithin(at[axis], sizes[n], sizes[n + 1]))
      return piece(n);
  if (!at[axis].uniform()) {
    auto mixed = [&] {
      Value result;
      for (size_t n = 0; n < ends.size(); ++n) {
        Value here = inRange(at[axis], n ? ends[n - 1] : k.constant(0), ends[n]);
        Value value = masked(here, [&] { return k.broadcast(piece(n), k.width); });
        result = result ? Value(arith::SelectOp::create(k.b, k.loc, here, value, result)) : value;
      }
      return result;
    };
    // Most vectors lie in one operand and are loaded without masks.
    std::function<Value(size_t)> choose = [&](size_t n) -> Value {
      if (n == ends.size() || mask || !mayBranch(concat.getResult()))
        return mixed();
      Value isHere = allInRange(at[axis], n ? ends[n - 1] : k.constant(0), ends[n]);
      return either(
          isHere, dtypeOf(concat.getResult()), [&] { return piece(n); },
          [&] { return isHere ? choose(n + 1) : mixed(); });
    };
    return choose(0);
  }
  // Only the operand that contains the position is read; others may be empty.
  std::function<Value(size_t)> choose = [&](size_t n) -> Value {
    if (n + 1 == ends.size())
      return k.broadcast(piece(n), k.width);
    Value isHere = k.compare(CmpIPredicate::slt, at[axis].base, ends[n]);
    return either(isHere, dtypeOf(concat.getResult()), [&] { return piece(n); }, [&] { return choose(n + 1); });
  };
  return choose(0);
}

Index ElementEmitter::fromStart(const Index &i, Value size) {
  Value position = i.uniform() ? i.base : k.lanesOf(i, k.width);
  Value zero = i.uniform() ? k.constant(0) : k.broadcast(k.constant(0), k.width);
  return select(k.compare(CmpIPredicate::slt, position, zero), k.shift(i, size), i);
}

void ElementEmitter::require(Value isGood, const Shape &shape, ArrayRef<Index> at, Operation *check) {
  Value one = arith::ConstantOp::create(k.b, k.loc, k.b.getBoolAttr(true));
  const Index position = k.linear(shape, at);
  const bool isPerLane = k.laneCount(isGood) > 1 || mask || !position.uniform();
  auto lanes = [&](Value v) { return isPerLane ? k.broadcast(v, k.width) : v; };
  Value isBad = arith::XOrIOp::create(k.b, k.loc, lanes(isGood), lanes(one));
  if (mask)
    isBad = arith::AndIOp::create(k.b, k.loc, isBad, lanes(mask));
  k.reportWhere(isBad, position, check);
}

void ElementEmitter::require(CheckOp op, Value condition, ArrayRef<Index> at) {
  Value zero = zeroOf(DType::boolean);
  if (isa<VectorType>(condition.getType()))
    zero = k.broadcast(zero, k.laneCount(condition));
  require(k.compare(CmpIPredicate::ne, condition, zero), shapeOf(op.getResult()), at, op);
}

static int64_t axisOfTaken(Operation *op) {
  auto take = dyn_cast<TakeOp>(op);
  return take ? take.getAxis() : cast<GatherOp>(op).getAxis();
}

Index ElementEmitter::takenAt(Operation *op, ArrayRef<Index> where) {
  for (auto &scope : positions)
    for (const KnownPosition &entry : scope)
      if (entry.op == op && llvm::equal(entry.where, where) && entry.mask == mask && entry.width == k.width)
        return entry.position;
  Value indices = op->getOperand(1), size = k.dim(shapeOf(op->getOperand(0))[axisOfTaken(op)]);
  Index i = fromStart(asIndex(element(indices, where), dtypeOf(indices)), size);
  if (!op->hasAttr(kCheckedAttr))
    require(inRange(i, k.constant(0), size), shapeOf(indices), where, op);
  i = clampIndex(i, size); // an error discards the results, but the load must stay in bounds
  positions.back().push_back({op, SmallVector<Index>(where), mask, k.width, i});
  return i;
}

Value ElementEmitter::taken(Operation *op, ArrayRef<Index> at) {
  Value x = op->getOperand(0), indices = op->getOperand(1);
  bool take = isa<TakeOp>(op);
  int64_t axis = axisOfTaken(op);
  size_t rank = shapeOf(indices).size();
  Index i = takenAt(op, take ? at.slice(axis, rank) : at);
  SmallVector<Index> inner(at);
  if (take) {
    inner.erase(inner.begin() + axis, inner.begin() + axis + rank);
    inner.insert(inner.begin() + axis, i);
  } else {
    inner[axis] = i;
  }
  return element(x, inner);
}

Value ElementEmitter::triangle(Operation *op, ArrayRef<Index> at, bool lower) {
  int64_t diagonal = lower ? cast<TrilOp>(op).getDiagonal() : cast<TriuOp>(op).getDiagonal();
  const Index &row = at[at.size() - 2], &column = at[at.size() - 1];
  Index distance = k.shift(k.add(column, k.scale(row, k.constant(-1))), k.constant(-diagonal));
  bool lanes = !distance.uniform();
  Value d = lanes ? k.lanesOf(distance, k.width) : distance.base;
  Value zero = lanes ? k.broadcast(k.constant(0), k.width) : k.constant(0);
  Value keep = k.compare(lower ? CmpIPredicate::sle : CmpIPredicate::sge, d, zero);
  Value value = element(op->getOperand(0), at), none = zeroOf(dtypeOf(op->getOperand(0)));
  if (lanes || isa<VectorType>(value.getType())) {
    value = k.broadcast(value, k.width);
    none = k.broadcast(none, k.width);
  }
  return arith::SelectOp::create(k.b, k.loc, keep, value, none);
}

Value ElementEmitter::packed(Operation *op, ArrayRef<Index> at) {
  auto pack = cast<PackOp>(op);
  Shape from = shapeOf(pack.getX());
  const Dim &columns = from.back();
  size_t batch = from.size() - 2;
  Index column = k.add(k.scale(at[batch], k.constant(pack.getWidth())), at[batch + 2]);
  SmallVector<Index> inner(at.begin(), at.begin() + batch);
  inner.push_back(at[batch + 1]);
  inner.push_back(column);
  if (isMultipleOf(columns, pack.getWidth()) || isWithin(at[batch], Dim(0), floordiv(columns, Dim(pack.getWidth()))))
    return element(pack.getX(), inner);
  Value size = k.dim(columns);
  Value inside = inRange(column, k.constant(0), size);
  if (column.uniform())
    inner.back() = clampIndex(column, size);
  Value none = zeroOf(dtypeOf(pack.getX()));
  Value value = column.uniform() ? element(pack.getX(), inner)
                                 : masked(inside, [&] { return k.broadcast(element(pack.getX(), inner), k.width); });
  if (isa<VectorType>(value.getType()))
    none = k.broadcast(none, k.width);
  return arith::SelectOp::create(k.b, k.loc, inside, value, none);
}

Value ElementEmitter::pairsOf(Operation *op, ArrayRef<Index> at) {
  auto pairs = cast<Bf16PairsOp>(op);
  Value x = pairs.getX();
  const size_t axis = at.size() - size_t(pairs.getAxis()); // the attribute counts from the end
  const Dim size = shapeOf(x)[axis];
  SmallVector<Index> inner(at);
  auto half = [&](const Index &position) {
    inner[axis] = position;
    Value bits = k.broadcast(element(x, inner), k.width);
    auto vector = dyn_cast<VectorType>(bits.getType());
    Type type = vector ? Type(VectorType::get(vector.getShape(), k.b.getI32Type())) : Type(k.b.getI32Type());
    return Value(arith::ExtUIOp::create(k.b, k.loc, type, bits));
  };
  Index first = k.scale(at[axis], k.constant(2)), second = k.shift(first, k.constant(1));
  Value low = half(first), high;
  if (isMultipleOf(size, 2)) {
    high = half(second);
  } else {
    Value isInside = inRange(second, k.constant(0), k.dim(size));
    high = half(clampIndex(second, k.dim(size)));
    Value none = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(high.getType()));
    high = arith::SelectOp::create(k.b, k.loc, isInside, high, none);
  }
  Value sixteen = k.broadcast(arith::ConstantOp::create(k.b, k.loc, k.b.getI32IntegerAttr(16)), k.width);
  return arith::OrIOp::create(k.b, k.loc, low, arith::ShLIOp::create(k.b, k.loc, high, sixteen));
}

} // namespace burin::codegen
