// Folders of elementwise ops that are exact for every value, -0 and NaN included. Computing with constants is a
// separate pass.
#include "ir/dialect/Burin.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>

using namespace mlir;

namespace burin::ir {

/// `value` rounded to a float type; nullopt if an integer type does not hold it exactly.
static std::optional<double> rounded(double value, DType dtype, Type type) {
  if (auto floatType = dyn_cast<FloatType>(type)) {
    llvm::APFloat v(value);
    bool losesInfo;
    v.convert(floatType.getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    v.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return v.convertToDouble();
  }
  constexpr double kExact = 1LL << 53;
  double low = dtype == DType::u8 || dtype == DType::boolean ? 0 : -std::ldexp(1, 8 * byteWidth(dtype) - 1);
  double high = dtype == DType::boolean ? 1 : dtype == DType::u8 ? 255 : -low - 1;
  bool fits = value == std::trunc(value) && value >= low && value <= high && std::abs(value) <= kExact;
  return fits ? std::optional(value + 0.0) : std::nullopt;
}

static std::optional<double> splatValue(DenseElementsAttr dense) {
  if (!dense.isSplat())
    return std::nullopt;
  if (isa<FloatType>(dense.getElementType())) {
    llvm::APFloat v = dense.getSplatValue<llvm::APFloat>();
    bool losesInfo;
    v.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    return v.convertToDouble();
  }
  DType dtype = *dtypeOf(dense.getElementType());
  llvm::APInt v = dense.getSplatValue<llvm::APInt>();
  bool isUnsigned = dtype == DType::u8 || isBool(dtype);
  double value = static_cast<double>(isUnsigned ? static_cast<int64_t>(v.getZExtValue()) : v.getSExtValue());
  return rounded(value, dtype, dense.getElementType());
}

std::optional<double> uniformValue(Value v) {
  while (isa_and_present<BroadcastToOp, ReshapeOp, TransposeOp, SliceOp, FlipOp>(v.getDefiningOp()))
    v = v.getDefiningOp()->getOperand(0);
  if (auto full = v.getDefiningOp<FullOp>())
    return rounded(full.getValue().convertToDouble(), dtypeOf(v), cast<RankedTensorType>(v.getType()).getElementType());
  auto constant = v.getDefiningOp<ConstantOp>();
  auto dense = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
  return dense ? splatValue(dense) : std::nullopt;
}

static bool isUniform(Value v, double value) {
  auto uniform = uniformValue(v);
  return uniform && *uniform == value && std::signbit(*uniform) == std::signbit(value);
}
/// Whether adding or subtracting v changes nothing: 0 for integers; for floats, the zero with the sign of `floatZero`.
static bool isNeutralZero(Value v, double floatZero) { return isUniform(v, isFloat(dtypeOf(v)) ? floatZero : 0.0); }

OpFoldResult AddOp::fold(FoldAdaptor) {
  if (isNeutralZero(getY(), -0.0))
    return getX();
  return isNeutralZero(getX(), -0.0) ? getY() : Value();
}
OpFoldResult SubOp::fold(FoldAdaptor) { return isNeutralZero(getY(), 0.0) ? getX() : Value(); }
OpFoldResult MulOp::fold(FoldAdaptor) {
  bool isInteger = !isFloat(dtypeOf(getResult()));
  for (auto [a, b] : {std::pair(getX(), getY()), std::pair(getY(), getX())}) {
    if (isUniform(b, 1))
      return a;
    if (isInteger && isUniform(b, 0))
      return b;
  }
  return {};
}
OpFoldResult DivOp::fold(FoldAdaptor) { return isUniform(getY(), 1) ? getX() : Value(); }
OpFoldResult PowOp::fold(FoldAdaptor) { return isUniform(getY(), 1) ? getX() : Value(); }

OpFoldResult MaximumOp::fold(FoldAdaptor) { return getX() == getY() ? getX() : Value(); }
OpFoldResult MinimumOp::fold(FoldAdaptor) { return getX() == getY() ? getX() : Value(); }

OpFoldResult NegOp::fold(FoldAdaptor) {
  auto inner = getX().getDefiningOp<NegOp>();
  return inner ? inner.getX() : Value();
}

// f(f(x)) == f(x)
template <class Op> static Value foldIdempotent(Op op) {
  return op.getX().template getDefiningOp<Op>() ? op.getX() : Value();
}
template <class Op> static Value foldRounding(Op op) {
  return isFloat(dtypeOf(op.getX())) ? foldIdempotent(op) : op.getX();
}
OpFoldResult ReluOp::fold(FoldAdaptor) { return foldIdempotent(*this); }
OpFoldResult AbsOp::fold(FoldAdaptor) { return foldIdempotent(*this); }
OpFoldResult FloorOp::fold(FoldAdaptor) { return foldRounding(*this); }
OpFoldResult CeilOp::fold(FoldAdaptor) { return foldRounding(*this); }
OpFoldResult RoundOp::fold(FoldAdaptor) { return foldRounding(*this); }
OpFoldResult TruncOp::fold(FoldAdaptor) { return foldRounding(*this); }

OpFoldResult WhereOp::fold(FoldAdaptor) {
  if (getX() == getY())
    return getX();
  auto condition = uniformValue(getCondition());
  return !condition ? Value() : *condition != 0 ? getX() : getY();
}

OpFoldResult DropoutOp::fold(FoldAdaptor) { return getX(); }

// ---- casts

/// Whether every value of `from` is a value of `to`.
static bool isLossless(DType from, DType to) {
  if (from == to || isBool(from))
    return true;
  if (isBool(to) || (isFloat(from) && !isFloat(to)))
    return false;
  size_t fromBytes = byteWidth(from), toBytes = byteWidth(to);
  if (isFloat(from) || !isFloat(to))
    return fromBytes < toBytes && (to != DType::u8);
  return (fromBytes == 1 && toBytes >= 2) || (fromBytes == 2 && toBytes >= 4) || (fromBytes == 4 && to == DType::f64);
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  DType to = dtypeOf(getResult());
  if (dtypeOf(getX()) == to)
    return getX();
  auto inner = getX().getDefiningOp<CastOp>();
  if (!inner)
    return {};
  DType from = dtypeOf(inner.getX()), via = dtypeOf(getX());
  // Floats saturate, integers wrap: a cast through a float equals the direct one only if nothing is out of range.
  bool sameRule = isFloat(from) == isFloat(via) || isFloat(to) || isBool(to) || isLossless(from, to);
  if (!isLossless(from, via) || !sameRule)
    return {};
  if (from == to)
    return inner.getX();
  getXMutable().assign(inner.getX());
  return getResult();
}

} // namespace burin::ir
