// Conversion of elements on the host, by the rules of the `cast` op.
#include "burin/narrow_float.h"
#include "frontend/tensor/core/TensorState.h"
#include "ir/reference/ReferenceTensor.h"
#include <cmath>

namespace burin::detail {

static double loadReal(const void *from, DType type, size_t i) {
  switch (type) {
  case DType::f32:
    return static_cast<const float *>(from)[i];
  case DType::f64:
    return static_cast<const double *>(from)[i];
  case DType::f16:
  case DType::bf16:
    return fromNarrowFloat(type, static_cast<const uint16_t *>(from)[i]);
  default:
    return fromNarrowFloat(type, static_cast<const uint8_t *>(from)[i]);
  }
}
static int64_t loadInteger(const void *from, DType type, size_t i) {
  switch (type) {
  case DType::i8:
    return static_cast<const int8_t *>(from)[i];
  case DType::i16:
    return static_cast<const int16_t *>(from)[i];
  case DType::i32:
    return static_cast<const int32_t *>(from)[i];
  case DType::i64:
    return static_cast<const int64_t *>(from)[i];
  default:
    return static_cast<const uint8_t *>(from)[i]; // u8 and bool
  }
}
static void storeReal(void *to, DType type, size_t i, double value) {
  switch (type) {
  case DType::f32:
    static_cast<float *>(to)[i] = float(value);
    break;
  case DType::f64:
    static_cast<double *>(to)[i] = value;
    break;
  case DType::f16:
  case DType::bf16:
    static_cast<uint16_t *>(to)[i] = toNarrowFloat(type, value);
    break;
  default:
    static_cast<uint8_t *>(to)[i] = uint8_t(toNarrowFloat(type, value));
  }
}
static void storeInteger(void *to, DType type, size_t i, int64_t value) {
  switch (byteWidth(type)) {
  case 1:
    static_cast<int8_t *>(to)[i] = int8_t(value);
    break;
  case 2:
    static_cast<int16_t *>(to)[i] = int16_t(value);
    break;
  case 4:
    static_cast<int32_t *>(to)[i] = int32_t(value);
    break;
  default:
    static_cast<int64_t *>(to)[i] = value;
  }
}

void convertElements(const void *from, DType fromType, void *to, DType toType, size_t count) {
  if (fromType == toType) {
    if (count)
      std::memcpy(to, from, count * byteWidth(toType));
    return;
  }
  for (size_t i = 0; i < count; ++i)
    if (isFloat(fromType)) {
      double value = loadReal(from, fromType, i);
      isFloat(toType) ? storeReal(to, toType, i, value) : storeInteger(to, toType, i, ir::saturateTo(toType, value));
    } else {
      int64_t value = loadInteger(from, fromType, i);
      isFloat(toType) ? storeReal(to, toType, i, double(value))
                      : storeInteger(to, toType, i, ir::wrapTo(toType, value));
    }
}

void scalarBytes(const TensorState &scalar, DType dtype, char *bytes, const Location &where, std::string_view op) {
  std::memset(bytes, 0, 8);
  ScalarValue value = std::get<ScalarValue>(scalar.value);
  if (isFloat(scalar.spec.dtype))
    return convertElements(&value.real, DType::f64, bytes, dtype, 1);
  if (isInteger(dtype) && ir::wrapTo(dtype, value.integer) != value.integer)
    throw Error(where, op,
                "the number " + std::to_string(value.integer) + " does not fit " + std::string(name(dtype)) +
                    "; convert the tensor to a wider type first");
  convertElements(&value.integer, DType::i64, bytes, dtype, 1);
}

} // namespace burin::detail
