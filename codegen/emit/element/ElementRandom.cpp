// Element rules of random ops; the formulas are those of ir/reference/ops/ReferenceRandom.h.
#include "codegen/emit/element/ElementEmitter.h"
#include "codegen/scalar/base/Scalar.h"
#include "codegen/scalar/math/Math.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>
#include <numbers>

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

/// Philox random words for positions (i64 lanes) of a tensor. Consecutive lanes that begin at a multiple of the block
/// size share blocks; otherwise each lane computes its own block.
class Philox {
public:
  /// `consecutive` is the first position if all are consecutive, else null.
  Philox(KernelBuilder &k, Value key, Value position, Value consecutive)
      : k(k), i(number(position)), first(consecutive), lanes(k.laneCount(position)) {
    Value mask = k.constant(0xFFFFFFFF), low = bitAnd(key, mask), high = shiftRight(key, 32);
    for (uint32_t round = 0; round < kRounds; ++round) {
      keys[round][0] = bitAnd(k.add(low, k.constant(round * int64_t(0x9E3779B9))), mask);
      keys[round][1] = bitAnd(k.add(high, k.constant(round * int64_t(0xBB67AE85))), mask);
    }
  }

  /// A uniform number in [0, 1), f32 or f64, for each position.
  Scalar unit(DType type) { return unitOf(type, words(type == DType::f64)); }
  /// The uniform numbers of the (even, odd) pair that each position belongs to.
  std::pair<Scalar, Scalar> pair(DType type) {
    bool wide = type == DType::f64;
    auto one = [&](Scalar at) { return scattered(wide, at).value(); };
    auto each = [&]() -> SmallVector<Value> {
      Scalar even = i & constant(~int64_t(1));
      return {one(even), one(even + constant(1))};
    };
    auto together = [&]() -> SmallVector<Value> {
      SmallVector<int64_t> evens, odds;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        evens.push_back(lane & ~int64_t(1));
        odds.push_back(lane | 1);
      }
      Value all = blockwise(wide);
      return {shuffle(all, all, evens), shuffle(all, all, odds)};
    };
    SmallVector<Value> both = whereAligned(wide, together, each);
    return {unitOf(type, number(both[0])), unitOf(type, number(both[1]))};
  }
  /// The random words of the positions, 32 or 64 bits, as i64.
  Scalar words(bool wide) {
    auto each = [&]() -> SmallVector<Value> { return {scattered(wide, i).value()}; };
    auto together = [&]() -> SmallVector<Value> { return {blockwise(wide)}; };
    return number(whereAligned(wide, together, each)[0]);
  }
  /// The first 64 bits of block number `i`.
  Scalar firstOfBlock() {
    SmallVector<Scalar, 4> block = philox(i);
    return block[0] | shiftLeft(block[1], 32);
  }

  Scalar isOdd() { return (i & constant(1)) != 0.0; }
  Scalar constant(int64_t n) { return number(k.broadcast(k.constant(n), lanes)); }

private:
  static constexpr uint32_t kRounds = 10, kM0 = 0xD2511F53, kM1 = 0xCD9E8D57;
  static int64_t perBlock(bool wide) { return wide ? 2 : 4; }

  Scalar number(Value v) { return Scalar(k.b, k.loc, v, DType::i64); }
  Value bitAnd(Value x, Value y) { return arith::AndIOp::create(k.b, k.loc, x, y); }
  Value bitXor(Value x, Value y) { return arith::XOrIOp::create(k.b, k.loc, x, y); }
  Value shiftRight(Value x, int64_t by) {
    return arith::ShRUIOp::create(k.b, k.loc, x, repeated(k.constant(by), x.getType()));
  }
  Value shuffle(Value x, Value y, ArrayRef<int64_t> lanes) {
    return vector::ShuffleOp::create(k.b, k.loc, x, y, lanes);
  }
  /// Broadcasts a scalar to the type, which may be scalar.
  Value repeated(Value scalar, Type type) {
    return isa<VectorType>(type) ? Value(vector::BroadcastOp::create(k.b, k.loc, type, scalar)) : scalar;
  }

  Scalar unitOf(DType type, Scalar word) {
    return type == DType::f64 ? number(shiftRight(word.value(), 11)).to(DType::f64) * 0x1p-53
                              : number(shiftRight(word.value(), 8)).to(DType::i32).to(DType::f32) * 0x1p-24;
  }

  /// The values of `together` if the positions are consecutive and begin at a block, else of `each`.
  SmallVector<Value> whereAligned(bool wide, llvm::function_ref<SmallVector<Value>()> together,
                                  llvm::function_ref<SmallVector<Value>()> each) {
    if (!first || lanes % perBlock(wide) != 0)
      return each();
    Value rest = bitAnd(first, k.constant(perBlock(wide) - 1));
    Value isAligned = k.compare(arith::CmpIPredicate::eq, rest, k.constant(0));
    auto inside = [&](llvm::function_ref<SmallVector<Value>()> values) {
      return [this, values](OpBuilder &b, Location loc) {
        OpBuilder::InsertionGuard guard(k.b);
        k.b.restoreInsertionPoint(b.saveInsertionPoint());
        scf::YieldOp::create(k.b, loc, values());
      };
    };
    auto branches = scf::IfOp::create(k.b, k.loc, isAligned, inside(together), inside(each));
    return SmallVector<Value>(branches.getResults());
  }

  /// Words of consecutive positions that begin at a block. One vector has words 0 and 2 of each block, side by side,
  /// another one words 1 and 3, so that a round is one vector product. Both are swapped after each odd number of
  /// rounds, which leaves the only shuffle of a round outside the chain from product to product.
  Value blockwise(bool wide) {
    const int64_t n = lanes / perBlock(wide);
    auto some = VectorType::get({n}, k.b.getI64Type()), all = VectorType::get({2 * n}, k.b.getI64Type());
    SmallVector<int64_t> interleaved, swapped;
    for (int64_t lane = 0; lane < 2 * n; ++lane) {
      interleaved.push_back(lane / 2 + lane % 2 * n);
      swapped.push_back(lane ^ 1);
    }
    auto sideBySide = [&](Value x, Value y) { return shuffle(repeated(x, some), repeated(y, some), interleaved); };
    Value blocks = repeated(shiftRight(first, wide ? 1 : 2), some);
    blocks = arith::AddIOp::create(k.b, k.loc, blocks, k.iota(n));
    blocks = shuffle(blocks, repeated(k.constant(0), some), interleaved);
    Value mask = repeated(k.constant(0xFFFFFFFF), all), factors = sideBySide(k.constant(kM0), k.constant(kM1));
    Value a = blocks, b = shiftRight(blocks, 32), swappedFactors = shuffle(factors, factors, swapped);
    for (uint32_t round = 0; round < kRounds; ++round) {
      const bool isSwapped = round % 2;
      Value product = arith::MulIOp::create(k.b, k.loc, bitAnd(a, mask), isSwapped ? swappedFactors : factors);
      Value key = sideBySide(keys[round][!isSwapped], keys[round][isSwapped]);
      a = bitXor(shiftRight(product, 32), bitXor(shuffle(b, b, swapped), key));
      b = bitAnd(product, mask);
    }
    Value high = arith::ShLIOp::create(k.b, k.loc, b, repeated(k.constant(32), all));
    Value words = arith::OrIOp::create(k.b, k.loc, bitAnd(a, mask), high);
    if (wide)
      return words;
    Value narrow = vector::BitCastOp::create(k.b, k.loc, VectorType::get({lanes}, k.b.getI32Type()), words);
    return arith::ExtUIOp::create(k.b, k.loc, VectorType::get({lanes}, k.b.getI64Type()), narrow);
  }

  /// Words of arbitrary positions.
  Scalar scattered(bool wide, Scalar at) {
    Scalar inBlock = at & constant(perBlock(wide) - 1);
    SmallVector<Scalar, 4> word = philox(number(shiftRight(at.value(), wide ? 1 : 2)));
    if (!wide)
      return select(inBlock == 0.0, word[0], select(inBlock == 1.0, word[1], select(inBlock == 2.0, word[2], word[3])));
    Scalar low = select(inBlock == 0.0, word[0], word[2]), high = select(inBlock == 0.0, word[1], word[3]);
    return low | shiftLeft(high, 32);
  }

  SmallVector<Scalar, 4> philox(Scalar block) {
    auto high = [&](Scalar x) { return number(shiftRight(x.value(), 32)); };
    auto repeatedKey = [&](Value key) { return number(k.broadcast(key, lanes)); };
    Scalar low = constant(0xFFFFFFFF), zero = constant(0);
    Scalar x0 = block & low, x1 = high(block), x2 = zero, x3 = zero;
    for (auto &key : keys) {
      Scalar p0 = constant(kM0) * x0, p1 = constant(kM1) * x2;
      Scalar y0 = high(p1) ^ x1 ^ repeatedKey(key[0]), y2 = high(p0) ^ x3 ^ repeatedKey(key[1]);
      x1 = p1 & low;
      x3 = p0 & low;
      x0 = y0;
      x2 = y2;
    }
    return {x0, x1, x2, x3};
  }

  KernelBuilder &k;
  Scalar i;
  Value first;
  int64_t lanes;
  Value keys[kRounds][2]; // per round, 32 bits
};

/// sin(2 pi x) in f32 for |x| < 1 with an error below 2^-22. The argument is reduced exactly to |x| <= 1/4 around 0 or
/// 1/2.
Scalar sineOfTurns(Scalar x) {
  Scalar halves = round(x + x), r = x - halves * 0.5, square = r * r;
  // sin(2 pi r) / r as a polynomial in r^2, interpolated at the Chebyshev nodes of [0, 1/16].
  static constexpr double coefficients[] = {0x1.921fb6p+2, -0x1.4abbc4p+5, 0x1.4668fp+6, -0x1.32531ep+6, 0x1.3e142p+5};
  Scalar sum = x.constant(coefficients[4]);
  for (int i = 4; i-- > 0;)
    sum = fma(sum, square, x.constant(coefficients[i]));
  Scalar sine = sum * r;
  return select(abs(halves) == 1.0, -sine, sine);
}

/// The largest value of the float type that is smaller than `x`.
double below(double x, DType type) {
  const llvm::fltSemantics &semantics = type == DType::f64   ? llvm::APFloat::IEEEdouble()
                                        : type == DType::f32 ? llvm::APFloat::IEEEsingle()
                                        : type == DType::f16 ? llvm::APFloat::IEEEhalf()
                                                             : llvm::APFloat::BFloat();
  llvm::APFloat value(x);
  bool inexact;
  value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &inexact);
  if (value.convertToDouble() >= x)
    value.next(/*nextDown=*/true);
  return value.convertToDouble();
}

/// low + floor(word * (high - low) / 2^64) in 32-bit halves: word = (w1, w0), range = (r1, r0).
Scalar scaled(Scalar word, int64_t low, int64_t high) {
  OpBuilder &b = word.getBuilder();
  Location loc = word.getLoc();
  uint64_t range = uint64_t(high) - uint64_t(low), r1 = range >> 32, r0 = range & 0xFFFFFFFF;
  auto constant = [&](uint64_t n) -> Value {
    Type type = word.value().getType();
    Attribute value = b.getI64IntegerAttr(int64_t(n));
    if (auto vector = dyn_cast<VectorType>(type))
      value = DenseElementsAttr::get(vector, value);
    return arith::ConstantOp::create(b, loc, type, cast<TypedAttr>(value));
  };
  auto high32 = [&](Value v) -> Value { return arith::ShRUIOp::create(b, loc, v, constant(32)); };
  auto low32 = [&](Value v) -> Value { return arith::AndIOp::create(b, loc, v, constant(0xFFFFFFFF)); };
  auto product = [&](Value x, uint64_t y) -> Value { return arith::MulIOp::create(b, loc, x, constant(y)); };
  auto sum = [&](Value x, Value y) -> Value { return arith::AddIOp::create(b, loc, x, y); };
  Value w1 = high32(word.value()), w0 = low32(word.value());
  Value middle = sum(product(w1, r0), high32(product(w0, r0))); // no sum overflows
  Value result = high32(middle);
  if (r1 != 0)
    result = sum(sum(product(w1, r1), result), high32(sum(product(w0, r1), low32(middle))));
  return word.with(sum(result, constant(uint64_t(low))));
}

} // namespace

Value ElementEmitter::random(Operation *op, ArrayRef<Index> at) {
  if (auto draw = dyn_cast<RandomKeyOp>(op)) {
    Value seed = element(draw.getGenerator(), {Index{k.constant(0)}});
    Value draws = element(draw.getGenerator(), {Index{k.constant(1)}});
    return Philox(k, seed, draws, {}).firstOfBlock().value();
  }
  DType type = dtypeOf(op->getResult(0)), computed = type == DType::f64 ? DType::f64 : DType::f32;
  Index linear = k.linear(shapeOf(op->getResult(0)), at);
  Value position = linear.uniform() ? linear.base : k.lanesOf(linear, k.width);
  Value key = k.constant(op->getAttrOfType<IntegerAttr>("seed").getInt());
  if (Value given = operandsOf(op)[isa<BernoulliOp>(op) ? 1 : 0])
    key = k.add(key, element(given, {}));
  Philox numbers(k, key, position, linear.hasKnownOffsets() && linear.stride == 1 ? linear.base : Value());

  if (auto uniform = dyn_cast<RandomUniformOp>(op)) {
    double low = uniform.getLow().convertToDouble(), high = uniform.getHigh().convertToDouble();
    Scalar unit = numbers.unit(computed);
    Scalar x = (unit * unit.constant(high - low) + unit.constant(low)).to(type).to(computed);
    if (low < high)
      x = burin::codegen::select(x >= high, x.constant(below(high, type)), x);
    return x.to(type).value();
  }
  if (auto normal = dyn_cast<RandomNormalOp>(op)) {
    double mean = normal.getMean().convertToDouble(), stddev = normal.getStddev().convertToDouble();
    auto [first, second] = numbers.pair(computed);
    Scalar radius = sqrt(logOfNormal(first + (type == DType::f64 ? 0x1p-53 : 0x1p-24)) * -2.0);
    // Even elements use the cosine, which is the sine a quarter period later, minus a whole period.
    Scalar turns = burin::codegen::select(numbers.isOdd(), second, second - 0.75);
    Scalar part = computed == DType::f32 ? sineOfTurns(turns) : sin(turns * (2 * std::numbers::pi));
    return (radius * part * stddev + mean).to(type).value();
  }
  if (auto integers = dyn_cast<RandomIntegersOp>(op))
    return scaled(numbers.words(/*wide=*/true), int64_t(integers.getLow()), int64_t(integers.getHigh()))
        .to(type)
        .value();
  Value probability = element(op->getOperand(0), at);
  Scalar p = Scalar(k.b, k.loc, k.broadcast(probability, k.laneCount(position)), type).to(computed);
  return (numbers.unit(computed) < p).to(type).value();
}

} // namespace burin::codegen
