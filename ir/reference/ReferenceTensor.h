// Tensors of the reference interpreter: floats as double, integers and bool as int64_t. No MLIR here.
#pragma once
#include "burin/dtype.h"
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace burin::ir {

struct RefOptions {
  /// Round f32 results to f32 after each op. Otherwise they have the precision and range of f64 until toBytes().
  bool roundF32 = false;
  /// Limit of elements of a tensor, which guards against wrong sizes. The default is 2 GiB per tensor.
  int64_t maxElements = int64_t(1) << 28;
};

struct RefTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  /// Row-major; doubles if and only if isFloat(dtype). Integers are in the range of dtype, bools are 0 or 1.
  std::variant<std::vector<double>, std::vector<int64_t>> data;

  static RefTensor zeros(DType, std::vector<int64_t> shape);
  /// From a buffer: row-major, byteWidth(dtype) bytes per element. `bytes` must have that size.
  static RefTensor fromBytes(DType, std::vector<int64_t> shape, std::span<const char> bytes);
  /// The inverse; floats are rounded to dtype.
  std::vector<char> toBytes() const;

  int64_t size() const;
  std::vector<double> &reals() { return std::get<0>(data); }
  const std::vector<double> &reals() const { return std::get<0>(data); }
  std::vector<int64_t> &ints() { return std::get<1>(data); }
  const std::vector<int64_t> &ints() const { return std::get<1>(data); }
  /// Element i of the row-major order, whatever the type.
  double operator[](size_t i) const { return isFloat(dtype) ? reals()[i] : double(ints()[i]); }

  /// Rounds floats to dtype (f32 only if an option asks for it) and wraps integers.
  void round(const RefOptions &);
};

/// Product of the sizes; nullopt if one is negative or the product exceeds `limit`.
std::optional<int64_t> elementCount(std::span<const int64_t> shape, int64_t limit = INT64_MAX);

/// x rounded to the float type `dtype`, ties to even; overflow gives an infinity, or NaN in types without one.
double roundTo(DType dtype, double x);
/// x modulo 2^width as a value of the integer type `dtype`; bool: non-zero gives 1.
int64_t wrapTo(DType dtype, int64_t x);
/// x truncated and clamped to the range of `dtype`, NaN gives 0; bool: non-zero and NaN give 1.
int64_t saturateTo(DType dtype, double x);
/// Smallest and largest value of an integer type or bool.
int64_t lowest(DType dtype);
int64_t highest(DType dtype);

} // namespace burin::ir
