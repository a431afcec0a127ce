#include "codegen/emit/builder/KernelBuilder.h"
#include "codegen/scalar/base/Scalar.h"
#include "mlir/IR/Matchers.h"
#include "runtime/format/Artifact.h"

using namespace mlir;

namespace burin::codegen {

void KernelBuilder::reportWhere(Value isBad, const Index &position, Operation *check) {
  constexpr int64_t none = std::numeric_limits<int64_t>::max();
  if (!lowestError) {
    OpBuilder::InsertionGuard guard(b);
    Value noError = constant(none), one = constant(1);
    b.setInsertionPointAfterValue(one);
    lowestError = LLVM::AllocaOp::create(b, loc, LLVM::LLVMPointerType::get(b.getContext()), b.getI64Type(), one);
    LLVM::StoreOp::create(b, loc, noError, lowestError);
  }
  const auto number = llvm::find(checks, check) - checks.begin();
  Value first = constant(int64_t(number) << rt::kErrorPositionBits);
  auto report = [&](Value at) {
    Value before = LLVM::LoadOp::create(b, loc, b.getI64Type(), lowestError);
    LLVM::StoreOp::create(b, loc, arith::MinSIOp::create(b, loc, before, at), lowestError);
  };
  const int64_t lanes = laneCount(isBad);
  auto reported = [&] {
    Value at = position.uniform() ? broadcast(position.base, lanes) : lanesOf(position, lanes);
    at = arith::AddIOp::create(b, loc, at, broadcast(first, lanes));
    return Value(arith::SelectOp::create(b, loc, isBad, at, broadcast(constant(none), lanes)));
  };
  if (lanes == 1)
    return report(reported());
  // One branch per vector: the reductions over its lanes run only if there is an error.
  Value any = vector::ReductionOp::create(b, loc, vector::CombiningKind::OR, isBad);
  when(any, [&] { report(vector::ReductionOp::create(b, loc, vector::CombiningKind::MINSI, reported())); });
}

std::optional<int64_t> KernelBuilder::constantOf(Value x) {
  APInt n;
  if (matchPattern(x, m_ConstantInt(&n)))
    return n.getSExtValue();
  return std::nullopt;
}

Value KernelBuilder::constant(int64_t n) {
  Value &value = constants[n];
  if (!value) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getBody().front());
    value = arith::ConstantIntOp::create(b, loc, b.getI64Type(), n);
  }
  return value;
}

// add() keeps the constant of a sum as its right operand. Positions that differ by a constant then share the rest of
// the expression, and the constant becomes the displacement of the memory operand.
std::pair<Value, int64_t> KernelBuilder::splitConstant(Value x) {
  if (auto c = constantOf(x))
    return {Value(), *c};
  if (auto sum = x.getDefiningOp<arith::AddIOp>())
    if (auto c = constantOf(sum.getRhs()))
      return {sum.getLhs(), *c};
  return {x, 0};
}

Value KernelBuilder::add(Value x, Value y) {
  auto [restX, constantX] = splitConstant(x);
  auto [restY, constantY] = splitConstant(y);
  int64_t total = constantX + constantY;
  if (!restX && !restY)
    return constant(total);
  if (!restX && constantX == 0)
    return y;
  if (!restY && constantY == 0)
    return x;
  Value rest = !restX ? restY : !restY ? restX : arith::AddIOp::create(b, loc, restX, restY).getResult();
  return total == 0 ? rest : arith::AddIOp::create(b, loc, rest, constant(total));
}
Value KernelBuilder::sub(Value x, Value y) {
  if (auto c = constantOf(y))
    return add(x, constant(-*c));
  return arith::SubIOp::create(b, loc, x, y);
}
Value KernelBuilder::mul(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy)
    return constant(*cx * *cy);
  if (cx == 0 || cy == 1)
    return x;
  if (cx == 1 || cy == 0)
    return y;
  if (auto [rest, c] = splitConstant(x); cy && c)
    return add(mul(rest, y), constant(c * *cy));
  return arith::MulIOp::create(b, loc, x, y);
}
Value KernelBuilder::div(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy && *cy)
    return constant(*cx / *cy);
  return cy == 1 ? x : arith::DivUIOp::create(b, loc, x, y);
}
Value KernelBuilder::rem(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  if (cx && cy && *cy)
    return constant(*cx % *cy);
  return cy == 1 ? constant(0) : arith::RemUIOp::create(b, loc, x, y);
}
Value KernelBuilder::minimum(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  return cx && cy ? constant(std::min(*cx, *cy)) : arith::MinSIOp::create(b, loc, x, y);
}
Value KernelBuilder::maximum(Value x, Value y) {
  auto cx = constantOf(x), cy = constantOf(y);
  return cx && cy ? constant(std::max(*cx, *cy)) : arith::MaxSIOp::create(b, loc, x, y);
}
Value KernelBuilder::compare(arith::CmpIPredicate predicate, Value x, Value y) {
  return arith::CmpIOp::create(b, loc, predicate, x, y);
}

// Sizes are loaded once, at the top of the function.
Value KernelBuilder::dim(const Dim &size) { return size.isStatic() ? constant(size.value()) : runtimeSize(size); }

Value KernelBuilder::maskBound(const Dim &size, DType stored) {
  return byteWidth(stored) < 4 ? runtimeSize(size) : dim(size);
}

/// A factor of the size that is known at compile time, for congruence(): a product of small primes, at most kLargest.
static int64_t factorOf(const Dim &size) {
  constexpr int64_t kLargest = 4096;
  int64_t factor = 1;
  for (int64_t prime : {2, 3, 5, 7})
    while (factor * prime <= kLargest && isMultipleOf(size, factor * prime))
      factor *= prime;
  return factor;
}

Value KernelBuilder::runtimeSize(const Dim &size) {
  Value &value = sizeValues[size.str()];
  if (!value) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&function.getBody().front());
    auto place = llvm::find(sizes, size);
    if (place == sizes.end())
      place = sizes.insert(place, size);
    Value slot = LLVM::GEPOp::create(b, loc, sizesPointer.getType(), b.getI64Type(), sizesPointer,
                                     LLVM::GEPArg(int32_t(place - sizes.begin())));
    value = LLVM::LoadOp::create(b, loc, b.getI64Type(), slot);
    sizeFactors[value] = factorOf(size);
  }
  return value;
}

int64_t KernelBuilder::laneCount(Value v) {
  auto type = dyn_cast<VectorType>(v.getType());
  return type ? type.getNumElements() : 1;
}

Value KernelBuilder::slice(Value v, int64_t first, int64_t count) {
  if (count == laneCount(v))
    return v;
  return vector::ShuffleOp::create(b, loc, v, v, llvm::to_vector(llvm::seq(first, first + count)));
}

Value KernelBuilder::slideIn(Value x, Value y, int64_t drop) {
  // Both operands of a shuffle must have the same length.
  auto lanes = laneCount(x);
  SmallVector<int64_t> repeated;
  for (int64_t lane = 0; lane < lanes; ++lane)
    repeated.push_back(lane % laneCount(y));
  Value longer = vector::ShuffleOp::create(b, loc, y, y, repeated);
  return vector::ShuffleOp::create(b, loc, x, longer, llvm::to_vector(llvm::seq(drop, drop + lanes)));
}

Value KernelBuilder::concat(ArrayRef<Value> vectors) {
  if (vectors.size() == 1)
    return vectors[0];
  Value low = concat(vectors.take_front(vectors.size() / 2)), high = concat(vectors.drop_front(vectors.size() / 2));
  return vector::ShuffleOp::create(b, loc, low, high, llvm::to_vector(llvm::seq<int64_t>(0, 2 * laneCount(low))));
}

std::pair<Value, Value> KernelBuilder::halves(Value v) {
  int64_t half = laneCount(v) / 2;
  return {slice(v, 0, half), slice(v, half, half)};
}

// Swaps the off-diagonal blocks of 1 × 1, 2 × 2, 4 × 4, … lanes: log2(n) rounds of n shuffles.
void KernelBuilder::transpose(MutableArrayRef<Value> square) {
  auto lanes = int64_t(square.size());
  for (int64_t distance = 1; distance < lanes; distance *= 2)
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & distance)
        continue;
      SmallVector<int64_t> low, high;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        low.push_back(lane & distance ? lanes + lane - distance : lane);
        high.push_back(lane & distance ? lanes + lane : lane + distance);
      }
      Value x = square[i], y = square[i + distance];
      square[i] = vector::ShuffleOp::create(b, loc, x, y, low);
      square[i + distance] = vector::ShuffleOp::create(b, loc, x, y, high);
    }
}

Value KernelBuilder::multiplyAdd(DType type, Value x, Value y, Value sum) {
  if (isFloat(type))
    return vector::FMAOp::create(b, loc, x, y, sum);
  return arith::AddIOp::create(b, loc, sum, arith::MulIOp::create(b, loc, x, y));
}

Value KernelBuilder::multiplyAddPairs(Value x, Value y, Value sum) {
  auto type = cast<VectorType>(x.getType());
  if (target.bf16Pairs && type.getNumElements() * 4 == target.vectorBytes) {
    auto pairs = VectorType::get({type.getNumElements() * 2}, b.getBF16Type());
    auto as = [&](Value v) { return LLVM::BitcastOp::create(b, loc, pairs, v).getResult(); };
    return LLVM::CallIntrinsicOp::create(b, loc, sum.getType(), b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
                                         {sum, as(x), as(y)})
        .getResult(0);
  }
  auto all = [&](uint32_t value) {
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, APInt(32, value)));
  };
  auto floats = [&](Value v) { return arith::BitcastOp::create(b, loc, sum.getType(), v).getResult(); };
  auto low = [&](Value v) { return floats(arith::ShLIOp::create(b, loc, v, all(16))); };
  auto high = [&](Value v) { return floats(arith::AndIOp::create(b, loc, v, all(0xffff0000))); };
  sum = vector::FMAOp::create(b, loc, high(x), high(y), sum);
  return vector::FMAOp::create(b, loc, low(x), low(y), sum);
}

Value KernelBuilder::broadcast(Value v, int64_t width) {
  if (width == 1 || isa<VectorType>(v.getType()))
    return v;
  return vector::BroadcastOp::create(b, loc, VectorType::get({width}, v.getType()), v);
}

Value KernelBuilder::iota(int64_t width) {
  SmallVector<int64_t> steps(width);
  for (int64_t i = 0; i < width; ++i)
    steps[i] = i;
  return arith::ConstantOp::create(b, loc, b.getI64VectorAttr(steps));
}

Value KernelBuilder::below(Value begin, Value end, int64_t width) {
  Value mask = compare(arith::CmpIPredicate::slt, lanesOf({begin, 1}, width), broadcast(end, width));
  bounds[mask] = {begin, end};
  return mask;
}

static Attribute notUnrolled(OpBuilder &b) {
  auto unroll = LLVM::LoopUnrollAttr::get(b.getContext(), /*disable=*/b.getBoolAttr(true), {}, {}, {}, {}, {}, {});
  return LLVM::LoopAnnotationAttr::get(b.getContext(), {}, {}, {}, unroll, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {});
}

SmallVector<Value> KernelBuilder::loop(Value from, Value to, Value step, ValueRange init,
                                       llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto cfrom = constantOf(from), cto = constantOf(to), cstep = constantOf(step);
  if (cfrom && cto && *cto <= *cfrom)
    return SmallVector<Value>(init);
  if (cfrom && cto && cstep && *cto - *cfrom <= *cstep)
    return body(from, init);
  auto loop = scf::ForOp::create(b, loc, from, to, step, init);
  if (keepsRolled)
    loop->setAttr("loop_annotation", notUnrolled(b));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  b.setInsertionPointToEnd(loop.getBody());
  if (!init.empty() || loop.getBody()->empty() || !loop.getBody()->back().hasTrait<OpTrait::IsTerminator>())
    scf::YieldOp::create(b, loc, next);
  return SmallVector<Value>(loop.getResults());
}

void KernelBuilder::loop(Value from, Value to, Value step, llvm::function_ref<void(Value)> body) {
  loop(from, to, step, ValueRange(), [&](Value i, ValueRange) {
    body(i);
    return SmallVector<Value>();
  });
}

void KernelBuilder::eachPosition(Value from, Value to, ArrayRef<Dim> sizes,
                                 llvm::function_ref<void(ArrayRef<Value>)> visit) {
  auto split = [&](Value position) {
    SmallVector<Value> at(sizes.size());
    for (size_t d = sizes.size(); d-- > 0; position = d ? div(position, dim(sizes[d])) : position)
      at[d] = d ? rem(position, dim(sizes[d])) : position;
    return at;
  };
  Value zero = constant(0), one = constant(1);
  if (sizes.empty() || llvm::all_of(sizes.drop_front(), [](const Dim &size) { return size.isStatic(); }))
    return loop(from, to, one, [&](Value position) { visit(split(position)); });
  loop(from, to, one, split(from), [&](Value, ValueRange values) {
    SmallVector<Value> at(values);
    for (Value index : at)
      assumeNonNegative(index);
    visit(at);
    Value carry = one;
    for (size_t d = sizes.size(); d-- > 1;) {
      Value next = add(at[d], carry), isEnd = compare(arith::CmpIPredicate::eq, next, dim(sizes[d]));
      at[d] = arith::SelectOp::create(b, loc, isEnd, zero, next);
      carry = arith::SelectOp::create(b, loc, isEnd, one, zero);
    }
    at[0] = add(at[0], carry);
    return at;
  });
}

SmallVector<Value> KernelBuilder::loopWhile(ValueRange init, llvm::function_ref<Value(ValueRange)> condition,
                                            llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
  OpBuilder::InsertionGuard guard(b);
  auto loop = scf::WhileOp::create(
      b, loc, init.getTypes(), init,
      [&](OpBuilder &inner, Location, ValueRange carried) {
        b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
        Value goOn = condition(carried);
        scf::ConditionOp::create(b, loc, goOn, carried);
      },
      [&](OpBuilder &inner, Location, ValueRange carried) {
        b.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
        SmallVector<Value> next = body(carried);
        scf::YieldOp::create(b, loc, next);
      });
  return SmallVector<Value>(loop.getResults());
}

void KernelBuilder::when(Value condition, llvm::function_ref<void()> body) {
  if (auto known = constantOf(condition)) {
    if (*known)
      body();
    return;
  }
  auto branch = scf::IfOp::create(b, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

SmallVector<Value> KernelBuilder::when(Value condition, ValueRange otherwise,
                                       llvm::function_ref<SmallVector<Value>()> body) {
  auto branch = scf::IfOp::create(b, loc, otherwise.getTypes(), condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, loc, body());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, loc, otherwise);
  return SmallVector<Value>(branch.getResults());
}

static Value negated(OpBuilder &b, mlir::Location loc, Value condition) {
  return arith::XOrIOp::create(b, loc, condition, arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
}

void KernelBuilder::unless(Value condition, llvm::function_ref<void()> body) { when(negated(b, loc, condition), body); }

SmallVector<Value> KernelBuilder::unless(Value condition, ValueRange otherwise,
                                         llvm::function_ref<SmallVector<Value>()> body) {
  return when(negated(b, loc, condition), otherwise, body);
}

Type KernelBuilder::storageType(DType type) { return laneType(b.getContext(), type); }

} // namespace burin::codegen
