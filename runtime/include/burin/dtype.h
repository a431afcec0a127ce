// Element types, shared by the compiler, the runtime and the public API.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace burin {

/// Element type of a tensor. The values are part of the artifact format: append, never renumber.
enum class DType : uint8_t {
  f32 = 0,
  f64 = 1,
  f16 = 2,
  bf16 = 3,
  i8 = 4,
  u8 = 5,
  i16 = 6,
  i32 = 7,
  i64 = 8,
  boolean = 9,
  f8e4m3fn = 10, // 4 bits of exponent, 3 of mantissa, no infinities: up to 448
  f8e5m2 = 11    // 5 bits of exponent, 2 of mantissa: up to 57344
};
inline constexpr int kNumDTypes = 12;

// Short names for users: TensorSpec{f32, …}.
inline constexpr DType f32 = DType::f32, f64 = DType::f64, f16 = DType::f16, bf16 = DType::bf16, i8 = DType::i8,
                       u8 = DType::u8, i16 = DType::i16, i32 = DType::i32, i64 = DType::i64, boolean = DType::boolean,
                       f8e4m3fn = DType::f8e4m3fn, f8e5m2 = DType::f8e5m2;

/// Name of an element type, and what other formats call it.
struct DTypeInfo {
  DType dtype;
  std::string_view name;
  uint8_t bytes; // of one element
  std::string_view safetensors;
  std::string_view npy; // without byte order; for bf16 and 8-bit floats as the ml_dtypes package writes them
  uint8_t dlpack;       // DLDataTypeCode
  uint8_t onnx;         // TensorProto.DataType
};
/// One row per element type, in the order of their values.
inline constexpr DTypeInfo kDTypes[kNumDTypes] = {
    {f32, "f32", 4, "F32", "f4", 2, 1},
    {f64, "f64", 8, "F64", "f8", 2, 11},
    {f16, "f16", 2, "F16", "f2", 2, 10},
    {bf16, "bf16", 2, "BF16", "V2", 4, 16},
    {i8, "i8", 1, "I8", "i1", 0, 3},
    {u8, "u8", 1, "U8", "u1", 1, 2},
    {i16, "i16", 2, "I16", "i2", 0, 5},
    {i32, "i32", 4, "I32", "i4", 0, 6},
    {i64, "i64", 8, "I64", "i8", 0, 7},
    {boolean, "bool", 1, "BOOL", "b1", 6, 9},
    {f8e4m3fn, "f8e4m3fn", 1, "F8_E4M3", "V1", 10, 17},
    {f8e5m2, "f8e5m2", 1, "F8_E5M2", "f1", 12, 19},
};
static_assert([] {
  for (int i = 0; i < kNumDTypes; ++i)
    if (int(kDTypes[i].dtype) != i)
      return false;
  return true;
}());

constexpr const DTypeInfo &infoOf(DType t) { return kDTypes[static_cast<size_t>(t)]; }
/// Bytes of one element; a bool takes one byte, 0 or 1.
constexpr size_t byteWidth(DType t) { return infoOf(t).bytes; }
constexpr std::string_view name(DType t) { return infoOf(t).name; }
/// Floats of 8 bits store numbers: they are moved and converted, but not computed with.
constexpr bool isFloat8(DType t) { return t == DType::f8e4m3fn || t == DType::f8e5m2; }
constexpr bool isFloat(DType t) { return t <= DType::bf16 || isFloat8(t); }
constexpr bool isInteger(DType t) { return t >= DType::i8 && t <= DType::i64; }
constexpr bool isBool(DType t) { return t == DType::boolean; }

} // namespace burin
