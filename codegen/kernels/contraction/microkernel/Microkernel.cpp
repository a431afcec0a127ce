#include "codegen/kernels/contraction/microkernel/Microkernel.h"
#include "codegen/scalar/Elementwise.h"

using namespace mlir;

namespace burin::codegen {

static constexpr int64_t kOtherLoads = 5; // loads of a step besides those of rows: two vectors, and prefetches

Microkernel::Microkernel(KernelBuilder &k, Left side, DType sumType, int64_t vectors, Right right, Fetch fetch)
    : k(k), left(std::move(side.memory)), rows(std::move(side.rows)), stride(std::move(side.stride)),
      pairs(std::move(side.pairs)), isScattered(side.isScattered), sumType(sumType), vectors(vectors),
      lanes(k.target.lanes(byteWidth(sumType))), right(right), fetch(fetch) {}

SmallVector<Value> Microkernel::zeros() {
  auto type = VectorType::get({lanes}, k.storageType(sumType));
  Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(type));
  return SmallVector<Value>(rows.size() * size_t(vectors), zero);
}

SmallVector<Value> Microkernel::add(Value leftAt, Value step, Value count, ValueRange sums, Rows seeing,
                                    int64_t unrolled) {
  SmallVector<Value> carried(sums);
  auto run = [&](Value from, Value to, int64_t some) {
    carried = k.loop(from, to, k.constant(some), carried, [&](Value i, ValueRange values) {
      return addSome(k.add(leftAt, k.mul(i, k.dim(stride))), k.add(step, i), some, values, seeing);
    });
  };
  Value whole = k.mul(k.div(count, k.constant(unrolled)), k.constant(unrolled));
  run(k.constant(0), whole, unrolled);
  if (auto known = k.constantOf(count))
    run(whole, count, std::max<int64_t>(1, *known % unrolled));
  else if (unrolled > 1)
    run(whole, count, 1);
  return carried;
}

SmallVector<Value> Microkernel::addSome(Value leftAt, Value step, int64_t count, ValueRange sums, Rows seeing) {
  SmallVector<Memory> names = namesFrom(leftAt);
  SmallVector<Value> carried(sums);
  for (int64_t ahead = 0; ahead < count; ++ahead)
    carried = addStep(names, ahead, k.add(step, k.constant(ahead)), carried, seeing);
  return carried;
}

SmallVector<Value> Microkernel::addSingle(Value leftAt, Value step, ValueRange sums, Rows seeing) {
  return addStep(namesFrom(leftAt), 0, step, sums, seeing, /*isSingle=*/true);
}

SmallVector<Value> Microkernel::addStep(ArrayRef<Memory> names, int64_t ahead, Value step, ValueRange sums, Rows seeing,
                                        bool isSingle) {
  SmallVector<Value> columns, next(sums);
  if (fetch)
    fetch(ahead, step);
  for (int64_t v = 0; v < vectors; ++v)
    columns.push_back(right(v, step));
  if (pairs && !k.target.avx512)
    return addHalves(names.front(), ahead, columns, sums, seeing, isSingle);
  for (int64_t r = seeing.first; r < seeing.second; ++r) {
    Value at = k.add(rows[r], k.mul(k.constant(ahead), k.dim(stride)));
    SmallVector<Value> elements;
    for (const Memory &name : names.take_front(loadsOf(r, names.size())))
      elements.push_back(k.broadcast(leftElement(name, at, isSingle), lanes));
    for (int64_t v = 0; v < vectors; ++v) {
      Value &sum = next[r * vectors + v], element = elements[v % elements.size()];
      sum = pairs ? k.multiplyAddPairs(element, columns[v], sum) : k.multiplyAdd(sumType, element, columns[v], sum);
    }
  }
  return next;
}

/// AVX2 has too few registers for both halves of a row and of the columns: all rows multiply the second halves, then
/// the first ones.
SmallVector<Value> Microkernel::addHalves(const Memory &name, int64_t ahead, ArrayRef<Value> columns, ValueRange sums,
                                          Rows seeing, bool isSingle) {
  SmallVector<Value> next(sums);
  for (int64_t second = isSingle ? 0 : 1; second >= 0; --second) {
    SmallVector<Value> halves;
    for (Value column : columns) {
      auto all = [&](uint32_t value) {
        auto type = cast<VectorType>(column.getType());
        return arith::ConstantOp::create(k.b, k.loc, DenseElementsAttr::get(type, APInt(32, value)));
      };
      Value bits = second ? arith::AndIOp::create(k.b, k.loc, column, all(0xffff0000)).getResult()
                          : arith::ShLIOp::create(k.b, k.loc, column, all(16)).getResult();
      halves.push_back(arith::BitcastOp::create(k.b, k.loc, sums[0].getType(), bits));
    }
    for (int64_t r = seeing.first; r < seeing.second; ++r) {
      Value at = k.add(rows[r], k.mul(k.constant(ahead), k.dim(stride)));
      Value bf16 = k.load(name, {k.add(at, k.mul(k.constant(second), k.dim(*pairs)))}, 1, {});
      Value element = k.broadcast(castLanes(k.b, k.loc, bf16, left.dtype, sumType), lanes);
      for (int64_t v = 0; v < vectors; ++v) {
        Value &sum = next[r * vectors + v];
        sum = k.multiplyAdd(sumType, element, halves[v], sum);
      }
    }
  }
  return next;
}

Value Microkernel::leftElement(const Memory &name, Value at, bool isSingle) {
  return pairs ? pairAt(name, at, isSingle) : castLanes(k.b, k.loc, k.load(name, {at}, 1, {}), left.dtype, sumType);
}

/// Two bf16 as an i32, the first one in its low half. A row may start at an odd element.
Value Microkernel::pairAt(const Memory &name, Value at, bool isSingle) {
  Type type = k.b.getI32Type();
  if (!isSingle && *pairs == Dim(1))
    return LLVM::LoadOp::create(k.b, k.loc, type, k.elementPointer(name, at), unsigned(byteWidth(name.dtype)));
  auto half = [&](Value position) {
    return arith::ExtUIOp::create(k.b, k.loc, type, k.load(name, {position}, 1, {})).getResult();
  };
  if (isSingle)
    return half(at);
  Value sixteen = arith::ConstantOp::create(k.b, k.loc, k.b.getI32IntegerAttr(16));
  Value second = arith::ShLIOp::create(k.b, k.loc, half(k.add(at, k.dim(*pairs))), sixteen);
  return arith::OrIOp::create(k.b, k.loc, half(at), second);
}

/// With AVX-512 an FMA can load and broadcast one operand from memory, which saves an instruction. That needs one
/// opaque alias per vector, and addresses without an index. An alias also hides from LLVM that scattered rows are
/// addressed from the start of other memory, and with many vectors spares its loop strength reduction most addresses.
SmallVector<Memory> Microkernel::namesFrom(Value leftAt) {
  if (k.target.avx512 && k.target.machine.memoryBroadcasts && vectors <= 2 && left.dtype == sumType && isFloat(sumType))
    return k.opaqueAliases(left, leftAt, vectors);
  if (isScattered || vectors > 2)
    return k.opaqueAliases(left, leftAt, 1);
  Memory first = left;
  first.pointer = k.elementPointer(left, leftAt);
  return {first};
}

/// A cycle can issue as many loads as multiplications. One load per row and kOtherLoads leave some unused, so that many
/// rows of a tall tile are loaded through every alias.
size_t Microkernel::loadsOf(int64_t row, size_t names) const {
  auto count = int64_t(rows.size()), twice = std::max<int64_t>(count - kOtherLoads, 0);
  return (row + 1) * twice / count > row * twice / count ? names : 1;
}

} // namespace burin::codegen
