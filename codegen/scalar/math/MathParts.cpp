// Building blocks of the f32 functions; AVX-512 instructions are used where they exist.
#include "codegen/scalar/math/MathParts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <bit>

namespace burin::codegen {

Scalar polynomial(Scalar x, llvm::ArrayRef<double> c) {
  Scalar sum = x.constant(c.back());
  for (double next : llvm::reverse(c.drop_back()))
    sum = fma(sum, x, x.constant(next));
  return sum;
}

WholeNumber roundedProduct(Scalar x, double factor) {
  // Adding 1.5 * 2^23 rounds to an integer, which is then in the low bits.
  constexpr double shift = 0x1.8p23;
  Scalar shifted = fma(x, x.constant(factor), x.constant(shift));
  return {shifted - shift, shifted.bitcast(DType::i32)};
}

Scalar powerOfTwo(Scalar k) { return (shiftLeft(k, 23) + 0x3f800000).bitcast(DType::f32); }

// ---- AVX-512

static constexpr llvm::StringLiteral kAvx512 = "burin.avx512";

void declareAvx512(mlir::ModuleOp module) { module->setAttr(kAvx512, mlir::UnitAttr::get(module.getContext())); }

static constexpr llvm::StringLiteral kGpu = "burin.gpu";

void declareGpu(mlir::ModuleOp module) { module->setAttr(kGpu, mlir::UnitAttr::get(module.getContext())); }

static bool isDeclared(Scalar x, llvm::StringRef attribute) {
  mlir::Operation *around = x.getBuilder().getInsertionBlock()->getParentOp();
  auto module = around ? around->getParentOfType<mlir::ModuleOp>() : mlir::ModuleOp();
  return module && module->hasAttr(attribute);
}
static bool mayUseAvx512(Scalar x) { return isDeclared(x, kAvx512); }

bool isOnGpu(Scalar x) { return isDeclared(x, kGpu); }
bool mayApproximate(Scalar x) { return x.roundedTo16Bits() && isOnGpu(x); }

// On GPUs min.NaN.f32 and max.NaN.f32; arith's ops would become a comparison and a select.
Scalar atMost(Scalar x, double bound) {
  if (isOnGpu(x))
    return x.with(mlir::LLVM::MinimumOp::create(x.getBuilder(), x.getLoc(), x.value(), x.constant(bound).value()));
  return select(x > bound, x.constant(bound), x);
}
Scalar atLeast(Scalar x, double bound) {
  if (isOnGpu(x))
    return x.with(mlir::LLVM::MaximumOp::create(x.getBuilder(), x.getLoc(), x.value(), x.constant(bound).value()));
  return select(x < bound, x.constant(bound), x);
}

static int64_t lanesIn(Scalar x) {
  auto vector = mlir::dyn_cast<mlir::VectorType>(x.value().getType());
  return vector ? vector.getNumElements() : 1;
}

static mlir::Value callIntrinsic(Scalar x, llvm::StringRef name, mlir::Type result, mlir::ValueRange operands) {
  mlir::OpBuilder &b = x.getBuilder();
  return mlir::LLVM::CallIntrinsicOp::create(b, x.getLoc(), result, b.getStringAttr(name), operands).getResult(0);
}

/// Calls an intrinsic of a GPU for each lane.
static Scalar callForLanes(Scalar x, llvm::StringRef name) {
  mlir::OpBuilder &b = x.getBuilder();
  auto vector = mlir::dyn_cast<mlir::VectorType>(x.value().getType());
  if (!vector)
    return x.with(callIntrinsic(x, name, x.value().getType(), x.value()));
  llvm::SmallVector<mlir::Value> lanes;
  for (mlir::Value lane : mlir::vector::ToElementsOp::create(b, x.getLoc(), x.value()).getElements())
    lanes.push_back(callIntrinsic(x, name, lane.getType(), lane));
  return x.with(mlir::vector::FromElementsOp::create(b, x.getLoc(), vector, lanes));
}

Scalar exp2Approximately(Scalar x) { return callForLanes(x, "llvm.nvvm.ex2.approx.ftz"); }
Scalar reciprocalApproximately(Scalar x) { return callForLanes(x, "llvm.nvvm.rcp.approx.ftz.f"); }

Scalar quotient(Scalar x, Scalar y) {
  if (!isOnGpu(x))
    return x / y;
  Scalar inverse = reciprocalApproximately(y), near = x * inverse;
  return mayApproximate(x) ? near : fma(fma(-y, near, x), inverse, near);
}

/// Uses AVX-512's vscalef, which takes the exponent as a float; vectors of other lengths use LLVM's ldexp, which takes
/// an integer.
static Scalar scaled(Scalar x, const WholeNumber &k) {
  mlir::Type type = x.value().getType();
  if (lanesIn(x) == 16) {
    auto constant = [&](int64_t value, unsigned bits) -> mlir::Value {
      mlir::OpBuilder &b = x.getBuilder();
      mlir::Type type = b.getIntegerType(bits);
      return mlir::LLVM::ConstantOp::create(b, x.getLoc(), type, b.getIntegerAttr(type, value));
    };
    constexpr int64_t allLanes = -1, currentRounding = 4;
    return x.with(
        callIntrinsic(x, "llvm.x86.avx512.mask.scalef.ps.512", type,
                      {x.value(), k.value.value(), x.value(), constant(allLanes, 16), constant(currentRounding, 32)}));
  }
  constexpr int64_t bitsOfZero = 0x4b400000; // see roundedProduct
  return x.with(callIntrinsic(x, "llvm.ldexp", type, {x.value(), (k.bits - k.bits.constant(bitsOfZero)).value()}));
}

Scalar timesPowerOfTwo(Scalar x, const WholeNumber &k) {
  if (mayUseAvx512(x))
    return scaled(x, k);
  // Two factors, of which only the second rounds.
  Scalar half = shiftRight(k.bits, 1), rest = k.bits - half;
  return x * powerOfTwo(half) * powerOfTwo(rest);
}

// ---- tables

static mlir::Value vectorOf(Scalar x, llvm::ArrayRef<float> values) {
  mlir::OpBuilder &b = x.getBuilder();
  auto type = mlir::VectorType::get(int64_t(values.size()), b.getF32Type());
  return mlir::arith::ConstantOp::create(b, x.getLoc(), mlir::DenseElementsAttr::get(type, values));
}

/// Extracts table entries lane by lane.
static mlir::Value extracted(Scalar index, llvm::ArrayRef<float> table) {
  mlir::OpBuilder &b = index.getBuilder();
  mlir::Location loc = index.getLoc();
  mlir::Value entries = vectorOf(index, table), places = (index & index.constant(15)).value();
  auto entry = [&](mlir::Value place) -> mlir::Value {
    return mlir::vector::ExtractOp::create(
        b, loc, entries, mlir::arith::IndexCastOp::create(b, loc, b.getIndexType(), place).getResult());
  };
  if (!mlir::isa<mlir::VectorType>(places.getType()))
    return entry(places);
  llvm::SmallVector<mlir::Value> lanes;
  for (int64_t lane = 0; lane < lanesIn(index); ++lane)
    lanes.push_back(entry(mlir::vector::ExtractOp::create(b, loc, places, lane)));
  auto type = mlir::VectorType::get(int64_t(lanes.size()), b.getF32Type());
  return mlir::vector::FromElementsOp::create(b, loc, type, lanes);
}

/// Selects by the bits of the index: GPUs have no indexed access to registers.
static Scalar selected(Scalar index, llvm::ArrayRef<float> table) {
  llvm::SmallVector<Scalar> entries;
  for (float entry : table)
    entries.push_back(index.bitcast(DType::f32).constant(entry));
  for (int64_t bit = 1; entries.size() > 1; bit *= 2) {
    Scalar isSet = (index & index.constant(double(bit))) != 0;
    for (size_t i = 0; i < entries.size() / 2; ++i)
      entries[i] = select(isSet, entries[2 * i + 1], entries[2 * i]);
    entries.truncate(entries.size() / 2);
  }
  return entries[0];
}

/// 16 lanes at once with AVX-512; 8 with AVX2, from the lower and the upper half of the table.
Scalar lookup(Scalar index, llvm::ArrayRef<float> table) {
  auto result = [&](mlir::Value value) { return index.with(value, DType::f32); };
  auto permuted = [&](llvm::StringRef intrinsic, mlir::ValueRange operands) {
    return result(callIntrinsic(index, intrinsic, operands.front().getType(), operands));
  };
  if (isDeclared(index, kGpu))
    return selected(index, table);
  int64_t lanes = lanesIn(index);
  if (lanes == 16 && mayUseAvx512(index))
    return permuted("llvm.x86.avx512.permvar.sf.512", {vectorOf(index, table), index.value()});
  if (lanes == 8) {
    // The entries of the lower half, xor-ed with the difference to the upper half where bit 3 of the index is set.
    llvm::SmallVector<float> lower(table.take_front(8)), difference;
    for (auto [low, high] : llvm::zip(lower, table.take_back(8)))
      difference.push_back(std::bit_cast<float>(std::bit_cast<uint32_t>(low) ^ std::bit_cast<uint32_t>(high)));
    auto bitsAt = [&](llvm::ArrayRef<float> entries) {
      return permuted("llvm.x86.avx2.permps", {vectorOf(index, entries), index.value()}).bitcast(DType::i32);
    };
    Scalar isUpper = shiftRight(shiftLeft(index, 28), 31);
    return (bitsAt(lower) ^ (bitsAt(difference) & isUpper)).bitcast(DType::f32);
  }
  if (lanes < 8)
    return result(extracted(index, table));
  auto shuffled = [&](mlir::Value a, mlir::Value b, int64_t from, int64_t to) -> mlir::Value {
    return mlir::vector::ShuffleOp::create(index.getBuilder(), index.getLoc(), a, b,
                                           llvm::to_vector(llvm::seq(from, to)));
  };
  auto half = [&](int64_t from) {
    return lookup(index.with(shuffled(index.value(), index.value(), from, from + lanes / 2)), table).value();
  };
  return result(shuffled(half(0), half(lanes / 2), 0, lanes));
}

} // namespace burin::codegen
