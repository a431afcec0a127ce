#include "codegen/kernels/contraction/microkernel/TailColumns.h"
#include "codegen/scalar/Elementwise.h"
#include "passes/Passes.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace burin::codegen {

constexpr int64_t kMostRows = 4;

TailColumns::TailColumns(KernelBuilder &k, Memory left, Dim leftStride, Memory right, DType sumType, int64_t columns,
                         Dim depth, int64_t length)
    : k(k), left(left), right(right), leftStride(leftStride), depth(depth), sumType(sumType), columns(columns),
      length(length), lanes(k.target.lanes(byteWidth(sumType))), group(passes::kPanelBytes / byteWidth(sumType)),
      vectors((std::min(group, length) + lanes - 1) / lanes) {}

/// Limited by the registers for operands.
int64_t TailColumns::rows() const {
  int64_t sums = k.target.tileRows * k.target.tileVectors * 2 / 3 / (columns * vectors), rows = kMostRows;
  while (rows > 1 && rows > sums)
    rows /= 2;
  return rows;
}

SmallVector<Value> TailColumns::zeros(int64_t rows) {
  auto type = VectorType::get({lanes}, k.storageType(sumType));
  Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(type));
  return SmallVector<Value>(rows * columns * vectors, zero);
}

SmallVector<Value> TailColumns::add(Value at, Value from, Value rowStride, ValueRange sums) {
  int64_t whole = length / group * group;
  SmallVector<Value> now =
      k.loop(k.constant(0), k.constant(whole), k.constant(group), sums, [&](Value c, ValueRange s) {
        return addGroup(k.add(at, k.mul(c, k.dim(leftStride))), k.add(from, c), rowStride, s, group);
      });
  if (whole == length)
    return now;
  Value c = k.constant(whole);
  return addGroup(k.add(at, k.mul(c, k.dim(leftStride))), k.add(from, c), rowStride, now, length - whole);
}

SmallVector<Value> TailColumns::addGroup(Value at, Value from, Value rowStride, ValueRange sums, int64_t count) {
  int64_t rows = int64_t(sums.size()) / (columns * vectors);
  SmallVector<Value> next(sums);
  for (int64_t v = 0; v * lanes < count; ++v) {
    Value first = k.constant(v * lanes);
    int64_t live = std::min(lanes, count - v * lanes);
    SmallVector<Value> weights;
    for (int64_t c = 0; c < columns; ++c)
      weights.push_back(lanesAt(right, k.add(k.add(from, first), k.mul(k.constant(c), k.dim(depth))), 1, live));
    for (int64_t r = 0; r < rows; ++r) {
      Value start = k.add(at, k.mul(k.constant(r), rowStride));
      Value x = lanesAt(left, k.add(start, k.mul(first, k.dim(leftStride))), leftStride, live);
      for (int64_t c = 0; c < columns; ++c) {
        Value &sum = next[(r * columns + c) * vectors + v];
        sum = k.multiplyAdd(sumType, x, weights[c], sum);
      }
    }
  }
  return next;
}

/// Loads lanes; those from `live` on are zero.
Value TailColumns::lanesAt(const Memory &memory, Value at, Dim stride, int64_t live) {
  llvm::SaveAndRestore inLanes(k.width, lanes);
  Index position = k.scale({k.constant(0), 1}, k.dim(stride));
  Value mask;
  if (live < lanes)
    mask = k.compare(arith::CmpIPredicate::slt, k.iota(lanes), k.broadcast(k.maskBound(live, memory.dtype), lanes));
  Value loaded = k.load(memory, k.shift(position, at), lanes, mask);
  return castLanes(k.b, k.loc, loaded, memory.dtype, sumType);
}

SmallVector<Value> TailColumns::finish(ArrayRef<Value> sums) {
  SmallVector<Value> results;
  for (size_t at = 0; at < sums.size();) {
    Value row = zeros(1)[0];
    for (int64_t c = 0; c < columns; ++c, at += vectors)
      row = vector::InsertOp::create(k.b, k.loc, joined(sums.slice(at, vectors)), row, c);
    results.push_back(row);
  }
  return results;
}

/// Adds the halves of the vectors, then of the lanes, until one sum is left.
Value TailColumns::joined(ArrayRef<Value> sums) {
  auto plus = [&](Value x, Value y) -> Value {
    if (isFloat(sumType))
      return arith::AddFOp::create(k.b, k.loc, x, y);
    return arith::AddIOp::create(k.b, k.loc, x, y);
  };
  SmallVector<Value> parts(sums);
  for (size_t half = llvm::bit_ceil(parts.size()) / 2; half > 0; half /= 2) {
    for (size_t i = 0; i + half < parts.size(); ++i)
      parts[i] = plus(parts[i], parts[i + half]);
    parts.resize(std::min(parts.size(), half));
  }
  Value sum = parts[0];
  while (k.laneCount(sum) > 1) {
    auto [low, high] = k.halves(sum);
    sum = plus(low, high);
  }
  return vector::ExtractOp::create(k.b, k.loc, sum, 0);
}

} // namespace burin::codegen
