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
  boolean = 9
};
inline constexpr int kNumDTypes = 10;

// Short names for users: TensorSpec{f32, …}.
inline constexpr DType f32 = DType::f32, f64 = DType::f64, f16 = DType::f16, bf16 = DType::bf16, i8 = DType::i8,
                       u8 = DType::u8, i16 = DType::i16, i32 = DType::i32, i64 = DType::i64, boolean = DType::boolean;

/// Bytes of one element; a bool takes one byte, 0 or 1.
constexpr size_t byteWidth(DType t) {
  constexpr size_t widths[kNumDTypes] = {4, 8, 2, 2, 1, 1, 2, 4, 8, 1};
  return widths[static_cast<size_t>(t)];
}
constexpr std::string_view name(DType t) {
  constexpr std::string_view names[kNumDTypes] = {"f32", "f64", "f16", "bf16", "i8", "u8", "i16", "i32", "i64", "bool"};
  return names[static_cast<size_t>(t)];
}
constexpr bool isFloat(DType t) { return t <= DType::bf16; }
constexpr bool isInteger(DType t) { return t >= DType::i8 && t <= DType::i64; }
constexpr bool isBool(DType t) { return t == DType::boolean; }

} // namespace burin
