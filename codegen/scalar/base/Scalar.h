// An element, or a vector of elements, during computation in a kernel: an SSA value, scalar or 1-D vector, with its
// burin element type. Operators have the semantics of docs/numerics.md; results never depend on the vector length.
#pragma once
#include "burin/dtype.h"
#include "mlir/IR/Builders.h"

namespace burin::codegen {

/// Lane type of an element type: f32, f64 and f16 as they are; integers as signless iN (u8 as i8); bool as i1; bf16 and
/// 8-bit floats as their bits in an i16 or i8, because targets without instructions for them treat even a select as a
/// conversion, and call a support library.
mlir::Type laneType(mlir::MLIRContext *, DType);

class Scalar {
public:
  /// `builder` must outlive the Scalar; derived values are inserted at its insertion point.
  Scalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value value, DType dtype)
      : builder(&builder), loc(loc), lane(value), type(dtype) {}

  mlir::Value value() const { return lane; }
  DType dtype() const { return type; }
  mlir::OpBuilder &getBuilder() const { return *builder; }
  mlir::Location getLoc() const { return loc; }

  bool isFloat() const { return burin::isFloat(type); }
  bool isBool() const { return burin::isBool(type); }
  bool isUnsigned() const { return type == DType::u8 || isBool(); }

  /// `c` in this element type and vector length.
  Scalar constant(double c) const;
  /// The same builder, location and precision with another value.
  Scalar with(mlir::Value value, DType dtype) const {
    Scalar result(*builder, loc, value, dtype);
    result.isFor16Bits = isFor16Bits;
    return result;
  }
  Scalar with(mlir::Value value) const { return with(value, type); }
  /// Converted as burin.cast does.
  Scalar to(DType) const;
  /// Reinterprets the bits as another type of the same width.
  Scalar bitcast(DType) const;
  /// Converts to bool: not equal to zero (NaN counts as non-zero).
  Scalar nonZero() const;

  /// The value is f32, but the result that it is used for is rounded to 16 bits: functions for GPUs are then accurate
  /// to 2^-16.
  Scalar for16Bits() const {
    Scalar result = *this;
    result.isFor16Bits = true;
    return result;
  }
  bool roundedTo16Bits() const { return isFor16Bits; }

private:
  bool isFor16Bits = false;
  mlir::OpBuilder *builder;
  mlir::Location loc;
  mlir::Value lane;
  DType type;
};

// ---- arithmetic; bools count as i32
Scalar operator+(Scalar, Scalar);
Scalar operator-(Scalar, Scalar);
Scalar operator*(Scalar, Scalar);
/// Floats only; see floorDivide for integers.
Scalar operator/(Scalar, Scalar);
Scalar operator-(Scalar);
Scalar fma(Scalar a, Scalar b, Scalar c);
Scalar abs(Scalar);
Scalar floorDivide(Scalar, Scalar);
Scalar remainder(Scalar, Scalar);
Scalar fmod(Scalar, Scalar);
Scalar pow(Scalar, Scalar);
/// NaN if either is NaN. Of equal numbers the first: max(-0, +0) is -0.
Scalar max(Scalar, Scalar);
Scalar min(Scalar, Scalar);

// ---- comparisons: ordered, except that NaN differs from everything
Scalar operator<(Scalar, Scalar);
Scalar operator<=(Scalar, Scalar);
Scalar operator>(Scalar, Scalar);
Scalar operator>=(Scalar, Scalar);
Scalar operator==(Scalar, Scalar);
Scalar operator!=(Scalar, Scalar);
Scalar isInf(Scalar);

// ---- bits and selection
Scalar operator&(Scalar, Scalar);
Scalar operator|(Scalar, Scalar);
Scalar operator^(Scalar, Scalar);
Scalar operator~(Scalar);
Scalar operator!(Scalar);
Scalar shiftLeft(Scalar, Scalar);
Scalar shiftRight(Scalar, Scalar);
/// Shift by a constant below the width; signed types shift in the sign.
Scalar shiftLeft(Scalar, unsigned);
Scalar shiftRight(Scalar, unsigned);
Scalar select(Scalar condition, Scalar ifTrue, Scalar ifFalse);
Scalar copysign(Scalar magnitude, Scalar sign);

// ---- rounding; integers are unchanged
Scalar floor(Scalar);
Scalar ceil(Scalar);
Scalar round(Scalar);
Scalar trunc(Scalar);
Scalar sqrt(Scalar);

// ---- with a constant on one side
#define BURIN_SCALAR_CONSTANT_OPERAND(op)                                                                              \
  inline Scalar operator op(Scalar x, double c) { return x op x.constant(c); }                                         \
  inline Scalar operator op(double c, Scalar x) { return x.constant(c) op x; }
BURIN_SCALAR_CONSTANT_OPERAND(+)
BURIN_SCALAR_CONSTANT_OPERAND(-)
BURIN_SCALAR_CONSTANT_OPERAND(*)
BURIN_SCALAR_CONSTANT_OPERAND(/)
BURIN_SCALAR_CONSTANT_OPERAND(<)
BURIN_SCALAR_CONSTANT_OPERAND(<=)
BURIN_SCALAR_CONSTANT_OPERAND(>)
BURIN_SCALAR_CONSTANT_OPERAND(>=)
BURIN_SCALAR_CONSTANT_OPERAND(==)
BURIN_SCALAR_CONSTANT_OPERAND(!=)
#undef BURIN_SCALAR_CONSTANT_OPERAND

} // namespace burin::codegen
