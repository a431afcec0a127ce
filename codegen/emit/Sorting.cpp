#include "codegen/emit/Sorting.h"
#include "codegen/scalar/base/Scalar.h"

using namespace mlir;

namespace burin::codegen {
namespace {

constexpr int64_t kBuckets = 256;     // one per value of a byte
constexpr int64_t kFewEnough = 48;    // sorted by insertion; clearing the buckets would cost more
constexpr int64_t kPairBytes = 8 + 8; // key, position

} // namespace

// 16-bit floats are compared as f32.
unsigned keyBytes(DType type) { return isFloat(type) && type != DType::f64 ? 4 : unsigned(byteWidth(type)); }

Memory memoryAt(KernelBuilder &k, Value pointer, Value bytes, DType dtype, const Dim &count) {
  Value start = LLVM::GEPOp::create(k.b, k.loc, pointer.getType(), k.b.getI8Type(), pointer, bytes);
  return {start, dtype, {count}};
}

Value sortKey(KernelBuilder &k, Value element, DType type, bool descending) {
  OpBuilder &b = k.b;
  auto lanesAs = [&](Type integer) -> Type {
    auto vector = dyn_cast<VectorType>(element.getType());
    return vector ? Type(VectorType::get(vector.getShape(), integer)) : integer;
  };
  Value key = element;
  auto bitsOf = [&] { return getElementTypeOrSelf(key).getIntOrFloatBitWidth(); };
  auto number = [&](uint64_t n) -> Value {
    APInt bits(bitsOf(), n, /*isSigned=*/false, /*implicitTrunc=*/true);
    if (auto vector = dyn_cast<VectorType>(key.getType()))
      return arith::ConstantOp::create(b, k.loc, DenseElementsAttr::get(vector, bits));
    return arith::ConstantOp::create(b, k.loc, b.getIntegerAttr(key.getType(), bits));
  };
  if (isFloat(type)) {
    Scalar x = Scalar(b, k.loc, element, type).to(type == DType::f64 ? type : DType::f32);
    Value isNan = (x != x).value();
    key = select(x == 0, x.constant(0), x).bitcast(type == DType::f64 ? DType::i64 : DType::i32).value();
    Value largest = number((uint64_t(1) << (bitsOf() - 1)) - 1);
    Value sign = arith::ShRSIOp::create(b, k.loc, key, number(bitsOf() - 1));
    // The bits of a float are a sign and a magnitude: inverts the magnitude of negative ones, as two's complement
    // orders integers.
    key = arith::XOrIOp::create(b, k.loc, key, arith::AndIOp::create(b, k.loc, sign, largest));
    key = arith::SelectOp::create(b, k.loc, isNan, largest, key);
  } else if (isBool(type)) {
    key = arith::ExtUIOp::create(b, k.loc, lanesAs(b.getI8Type()), key);
  }
  bool isSigned = isFloat(type) || !(isBool(type) || type == DType::u8);
  // The unsigned order of signed integers needs an inverted sign bit.
  uint64_t flipped = (isSigned ? uint64_t(1) << (bitsOf() - 1) : 0) ^ (descending ? ~uint64_t(0) : 0);
  if (flipped)
    key = arith::XOrIOp::create(b, k.loc, key, number(flipped));
  return bitsOf() == 64 ? key : Value(arith::ExtUIOp::create(b, k.loc, lanesAs(b.getI64Type()), key));
}

Sorter::Sorter(KernelBuilder &k, Value start, const Dim &most) : k(k) {
  Value column = k.mul(k.dim(most), k.constant(8)), at = k.constant(kBuckets * 8);
  buckets = memoryAt(k, start, k.constant(0), DType::i64, kBuckets);
  for (Memory *memory : {&front.keys, &front.places, &back.keys, &back.places}) {
    *memory = memoryAt(k, start, at, DType::i64, most);
    at = k.add(at, column);
  }
}

Dim Sorter::scratchBytes(const Dim &most) { return most * Dim(2 * kPairBytes) + Dim(kBuckets * 8); }

void Sorter::put(Value at, Value key, Value place) {
  k.store(front.keys, {at}, key, 1, {});
  k.store(front.places, {at}, place, 1, {});
}
Value Sorter::key(Value at) { return k.load(front.keys, {at}, 1, {}); }
Value Sorter::place(Value at) { return k.load(front.places, {at}, 1, {}); }

void Sorter::move(const Pairs &from, Value at, const Pairs &to, Value target) {
  k.store(to.keys, {target}, k.load(from.keys, {at}, 1, {}), 1, {});
  k.store(to.places, {target}, k.load(from.places, {at}, 1, {}), 1, {});
}

void Sorter::sort(Value count, unsigned keyBytes) {
  Value few = k.compare(arith::CmpIPredicate::sle, count, k.constant(kFewEnough));
  k.when(few, [&] { insertionSort(count); });
  k.when(arith::XOrIOp::create(k.b, k.loc, few, arith::ConstantIntOp::create(k.b, k.loc, k.b.getI1Type(), 1)), [&] {
    for (unsigned byte = 0; byte < keyBytes; ++byte)
      radixPass(byte % 2 ? back : front, byte % 2 ? front : back, count, byte * 8);
    if (keyBytes % 2) // the last pass wrote to `back`
      k.loop(k.constant(0), count, k.constant(1), [&](Value i) { move(back, i, front, i); });
  });
}

void Sorter::insertionSort(Value count) {
  k.loop(k.constant(1), count, k.constant(1), [&](Value i) {
    Value key = k.load(front.keys, {i}, 1, {}), place = k.load(front.places, {i}, 1, {});
    Value one = k.constant(1);
    SmallVector<Value> at = k.loopWhile(
        ValueRange{i},
        [&](ValueRange v) -> Value {
          Value isInside = k.compare(arith::CmpIPredicate::sgt, v[0], k.constant(0));
          Value before = k.maximum(k.sub(v[0], one), k.constant(0)); // the load is unconditional
          Value isLarger = k.compare(arith::CmpIPredicate::ugt, k.load(front.keys, {before}, 1, {}), key);
          return arith::AndIOp::create(k.b, k.loc, isInside, isLarger);
        },
        [&](ValueRange v) -> SmallVector<Value> {
          Value before = k.sub(v[0], one);
          move(front, before, front, v[0]);
          return {before};
        });
    put(at[0], key, place);
  });
}

// A counting sort by one byte of the keys: counts the keys per bucket, replaces the counts by their prefix sums, and
// moves each pair to the next position of its bucket.
void Sorter::radixPass(const Pairs &from, const Pairs &to, Value count, unsigned shift) {
  Value zero = k.constant(0), one = k.constant(1);
  auto bucketOf = [&](Value i) -> Value {
    Value digits = arith::ShRUIOp::create(k.b, k.loc, k.load(from.keys, {i}, 1, {}), k.constant(shift));
    return arith::AndIOp::create(k.b, k.loc, digits, k.constant(kBuckets - 1));
  };
  k.loop(zero, k.constant(kBuckets), one, [&](Value i) { k.store(buckets, {i}, zero, 1, {}); });
  k.loop(zero, count, one, [&](Value i) {
    Value bucket = bucketOf(i);
    k.store(buckets, {bucket}, k.add(k.load(buckets, {bucket}, 1, {}), one), 1, {});
  });
  k.loop(zero, k.constant(kBuckets), one, ValueRange{zero}, [&](Value i, ValueRange first) {
    Value size = k.load(buckets, {i}, 1, {});
    k.store(buckets, {i}, first[0], 1, {});
    return SmallVector<Value>{k.add(first[0], size)};
  });
  k.loop(zero, count, one, [&](Value i) {
    Value bucket = bucketOf(i), target = k.load(buckets, {bucket}, 1, {});
    k.store(buckets, {bucket}, k.add(target, one), 1, {});
    move(from, i, to, target);
  });
}

} // namespace burin::codegen
