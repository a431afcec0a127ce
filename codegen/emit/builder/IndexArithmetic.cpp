// Arithmetic of lane positions. As long as the distances of the lanes from the first one are known at compile time, a
// position is a scalar and a list of constants. Loads then become contiguous loads and shuffles (see KernelMemory.cpp),
// and index arithmetic is done once per vector.
#include "codegen/emit/builder/KernelBuilder.h"
#include <numeric>

using namespace mlir;

namespace burin::codegen {

static int64_t floorDivide(int64_t x, int64_t y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); }
static int64_t floorModulo(int64_t x, int64_t y) { return x - floorDivide(x, y) * y; }

Value KernelBuilder::lanesOf(const Index &i, int64_t width) {
  if (i.lanes && !i.base)
    return i.lanes;
  Value base = broadcast(i.base, width);
  if (i.lanes)
    return arith::AddIOp::create(b, loc, base, i.lanes);
  if (i.uniform())
    return base;
  auto known = [&](ArrayRef<int64_t> numbers) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI64VectorAttr(numbers));
  };
  Value lanes = arith::AddIOp::create(b, loc, base, known(offsetsOf(i, width)));
  for (const Index::Term &term : i.terms) {
    Value distance = arith::MulIOp::create(b, loc, broadcast(term.factor, width), known(term.multiples));
    lanes = arith::AddIOp::create(b, loc, lanes, distance);
  }
  return lanes;
}

SmallVector<int64_t> KernelBuilder::offsetsOf(const Index &i, int64_t width) {
  if (!i.offsets.empty())
    return SmallVector<int64_t>(i.offsets.begin(), i.offsets.end());
  SmallVector<int64_t> offsets;
  for (int64_t lane = 0; lane < width; ++lane)
    offsets.push_back(lane * i.stride);
  return offsets;
}

Index KernelBuilder::indexAt(Value base, ArrayRef<int64_t> offsets) {
  int64_t first = offsets[0], stride = offsets.size() > 1 ? offsets[1] - first : 0;
  Index result{add(base, constant(first))};
  bool isRegular = true;
  for (auto [lane, offset] : llvm::enumerate(offsets))
    isRegular &= offset - first == int64_t(lane) * stride;
  if (isRegular)
    result.stride = stride;
  else
    for (int64_t offset : offsets)
      result.offsets.push_back(offset - first);
  return result;
}

Index KernelBuilder::add(const Index &x, const Index &y) {
  if (x.lanes && y.uniform())
    return {x.base ? add(x.base, y.base) : y.base, 0, x.lanes};
  if (y.lanes && x.uniform())
    return add(y, x);
  if (x.lanes || y.lanes)
    return {{}, 0, arith::AddIOp::create(b, loc, lanesOf(x, width), lanesOf(y, width))};
  Index sum{add(x.base, y.base), x.stride + y.stride};
  if (!x.offsets.empty() || !y.offsets.empty()) {
    SmallVector<int64_t> offsets = offsetsOf(x, width);
    for (auto [offset, more] : llvm::zip_equal(offsets, offsetsOf(y, width)))
      offset += more;
    sum = indexAt(sum.base, offsets);
  }
  sum.terms.append(x.terms);
  sum.terms.append(y.terms);
  return sum;
}

Index KernelBuilder::scale(const Index &x, Value factor) {
  if (x.uniform())
    return {mul(x.base, factor)};
  auto known = constantOf(factor);
  if (x.lanes && known == 1)
    return x;
  if (x.lanes)
    return {{}, 0, arith::MulIOp::create(b, loc, lanesOf(x, width), broadcast(factor, width))};
  Index result{mul(x.base, factor)};
  if (known == 0)
    return result;
  for (Index::Term term : x.terms) {
    term.factor = known ? term.factor : mul(term.factor, factor);
    for (int64_t &multiple : term.multiples)
      multiple *= known.value_or(1);
    result.terms.push_back(std::move(term));
  }
  bool hasOffsets = x.stride || !x.offsets.empty();
  if (!known && hasOffsets)
    result.terms.push_back({factor, llvm::SmallVector<int64_t, 0>(offsetsOf(x, width))});
  if (!known)
    return result;
  result.stride = x.stride * *known;
  for (int64_t offset : x.offsets)
    result.offsets.push_back(offset * *known);
  return result;
}

Index KernelBuilder::linear(const Shape &shape, ArrayRef<Index> at) {
  if (shape.empty())
    return {constant(0)};
  Index position = at[0];
  for (size_t i = 1; i < shape.size(); ++i)
    position = add(scale(position, dim(shape[i])), at[i]);
  return position;
}

KernelBuilder::Congruence KernelBuilder::congruence(Value x, int depth) {
  constexpr int kDeepest = 12;
  if (auto known = constantOf(x))
    return {0, *known};
  auto of = [](int64_t factor, int64_t rest) -> Congruence {
    return {std::abs(factor), factor ? floorModulo(rest, std::abs(factor)) : rest};
  };
  if (auto factor = sizeFactors.find(x); factor != sizeFactors.end())
    return {factor->second, 0};
  if (depth == kDeepest)
    return {1, 0};
  if (auto argument = dyn_cast<BlockArgument>(x)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    auto step = loop && argument == loop.getInductionVar() ? constantOf(loop.getStep()) : std::nullopt;
    if (!step)
      return {1, 0};
    auto [factor, rest] = congruence(loop.getLowerBound(), depth + 1);
    return of(std::gcd(factor, *step), rest);
  }
  Operation *op = x.getDefiningOp();
  if (!isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::DivUIOp>(op))
    return {1, 0};
  auto [factor, rest] = congruence(op->getOperand(0), depth + 1);
  auto [otherFactor, otherRest] = congruence(op->getOperand(1), depth + 1);
  int64_t total;
  if (isa<arith::AddIOp, arith::SubIOp>(op))
    return of(std::gcd(factor, otherFactor), isa<arith::AddIOp>(op) ? rest + otherRest : rest - otherRest);
  if (otherFactor) // only products and quotients by a constant
    return {1, 0};
  if (isa<arith::DivUIOp>(op))
    return otherRest > 0 && factor && factor % otherRest == 0 ? of(factor / otherRest, rest / otherRest)
                                                              : Congruence{1, 0};
  return __builtin_mul_overflow(factor, otherRest, &total) || __builtin_mul_overflow(rest, otherRest, &total)
             ? Congruence{1, 0}
             : of(factor * otherRest, rest * otherRest);
}

/// Whether a position is known to be non-negative.
bool KernelBuilder::isNonNegative(Value x, int depth) {
  constexpr int kDeepest = 12;
  if (auto known = constantOf(x))
    return *known >= 0;
  if (nonNegatives.contains(x))
    return true;
  if (depth == kDeepest)
    return false;
  if (auto argument = dyn_cast<BlockArgument>(x)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    bool counts = loop && argument == loop.getInductionVar();
    return x == lo || x == hi || (counts && isNonNegative(loop.getLowerBound(), depth + 1));
  }
  Operation *op = x.getDefiningOp();
  if (isa<arith::AddIOp, arith::MulIOp, arith::MinSIOp>(op))
    return isNonNegative(op->getOperand(0), depth + 1) && isNonNegative(op->getOperand(1), depth + 1);
  return isa<arith::DivUIOp, arith::RemUIOp>(op) ||
         llvm::any_of(sizeValues, [&](auto &size) { return size.second == x; });
}

/// Quotient, rounded down, and non-negative remainder. The base of a vector may be negative although the active lanes
/// are not.
std::pair<Value, Value> KernelBuilder::floorSplit(Value x, Value size) {
  if (isNonNegative(x))
    return {div(x, size), rem(x, size)};
  constexpr int64_t kFarthest = int64_t(1) << 40;
  auto known = constantOf(size);
  int64_t runs = known ? kFarthest / *known : int64_t(1) << 20;
  Value moved = add(x, mul(size, constant(runs)));
  return {sub(div(moved, size), constant(runs)), rem(moved, size)};
}

std::pair<Index, Index> KernelBuilder::split(const Index &x, Value size) {
  if (x.uniform())
    return {{div(x.base, size)}, {rem(x.base, size)}};
  if (x.hasKnownOffsets())
    if (auto known = constantOf(size); known && *known > 0)
      if (auto parts = splitKnown(x, *known))
        return *parts;
  if (x.hasKnownOffsets() && llvm::all_of(offsetsOf(x, width), [](int64_t offset) { return offset >= 0; }))
    return splitByCompare(x, size);
  Value lanes = lanesOf(x, width), by = broadcast(size, width);
  return {{{}, 0, arith::DivUIOp::create(b, loc, lanes, by)}, {{}, 0, arith::RemUIOp::create(b, loc, lanes, by)}};
}

/// Splits without arithmetic per lane if the position of each lane within `size` is known, or all lanes share a
/// quotient; else nullopt.
std::optional<std::pair<Index, Index>> KernelBuilder::splitKnown(const Index &x, int64_t size) {
  SmallVector<int64_t> offsets = offsetsOf(x, width), quotients, remainders;
  auto [factor, rest] = congruence(x.base);
  int64_t unit = std::gcd(factor, size), first = floorModulo(rest, unit);
  Value by = constant(size);
  if (unit == size) {
    for (int64_t offset : offsets) {
      quotients.push_back(floorDivide(first + offset, size));
      remainders.push_back(floorModulo(first + offset, size));
    }
    return std::pair{indexAt(floorSplit(x.base, by).first, quotients), indexAt(constant(0), remainders)};
  }
  bool isInOne = llvm::all_of(offsets, [&](int64_t offset) { return first + offset >= 0 && first + offset < unit; });
  if (!isInOne)
    return std::nullopt;
  auto [quotient, remainder] = floorSplit(x.base, by);
  return std::pair{Index{quotient}, indexAt(remainder, offsets)};
}

/// Splits without division per lane if the lanes span at most two quotients, which is the common case.
std::pair<Index, Index> KernelBuilder::splitByCompare(const Index &x, Value size) {
  SmallVector<int64_t> offsets = offsetsOf(x, width);
  auto [first, rest] = floorSplit(x.base, size);
  Value quotient = broadcast(first, width), by = broadcast(size, width);
  Value distance = lanesOf(indexAt(rest, offsets), width);
  auto none = [&]() -> Value { return arith::ConstantOp::create(b, loc, b.getZeroAttr(distance.getType())); };
  auto near = [&]() -> SmallVector<Value> {
    Value isNext = compare(arith::CmpIPredicate::uge, distance, by);
    Value one = broadcast(constant(1), width);
    Value more = arith::SelectOp::create(b, loc, isNext, one, none());
    Value less = arith::SelectOp::create(b, loc, isNext, by, none());
    return {arith::AddIOp::create(b, loc, quotient, more), arith::SubIOp::create(b, loc, distance, less)};
  };
  auto far = [&]() -> SmallVector<Value> {
    Value more = arith::DivUIOp::create(b, loc, distance, by), rest = arith::RemUIOp::create(b, loc, distance, by);
    return {arith::AddIOp::create(b, loc, quotient, more), rest};
  };
  int64_t reach = *llvm::max_element(offsets);
  SmallVector<Value> parts;
  if (auto known = constantOf(size)) {
    parts = reach <= *known ? near() : far();
  } else {
    Value isNear = compare(arith::CmpIPredicate::sge, size, constant(reach));
    auto branch = scf::IfOp::create(b, loc, TypeRange{distance.getType(), distance.getType()}, isNear, true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, loc, near());
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, loc, far());
    parts.append(branch.getResults().begin(), branch.getResults().end());
  }
  return {{{}, 0, parts[0]}, {{}, 0, parts[1]}};
}

} // namespace burin::codegen
