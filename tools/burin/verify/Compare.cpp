#include "tools/burin/verify/Compare.h"
#include <algorithm>

namespace burin::cli {

void ToleranceArguments::addTo(CLI::App &command) {
  command.add_option("--rtol", rtol, "Allowed: atol + rtol * |reference|; default by element type")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--atol", atol, "See --rtol")->check(CLI::NonNegativeNumber);
}

/// Tolerances for the rounding of sums of some thousands of terms around 1.
static Tolerance defaultTolerance(DType dtype) {
  switch (dtype) {
  case DType::f64:
    return {1e-10, 1e-10};
  case DType::f32:
    return {1e-4, 1e-4};
  case DType::f16:
    return {1e-2, 1e-2};
  case DType::bf16:
    return {5e-2, 5e-2};
  case DType::f8e4m3fn: // one unit in the last place
    return {0.13, 2e-3};
  case DType::f8e5m2:
    return {0.26, 2e-5};
  default:
    return {0, 0};
  }
}

Tolerance ToleranceArguments::of(DType dtype) const {
  Tolerance t = defaultTolerance(dtype);
  return {rtol >= 0 ? rtol : t.rtol, atol >= 0 ? atol : t.atol};
}

run::Values valuesOf(const rt::NpyArray &array) { return {array.dtype, array.shape, array.data.data()}; }

ir::RefTensor toReference(const run::Values &v) {
  auto *data = reinterpret_cast<const char *>(v.data);
  return ir::RefTensor::fromBytes(v.dtype, {v.shape.begin(), v.shape.end()},
                                  {data, size_t(v.count()) * byteWidth(v.dtype)});
}

rt::NpyArray copyOf(const run::Values &v) {
  return {v.dtype, {v.shape.begin(), v.shape.end()}, {v.data, v.data + size_t(v.count()) * byteWidth(v.dtype)}};
}

run::Difference compare(const run::Values &got, const ir::RefTensor &expected, Tolerance tolerance) {
  bool isReal = expected.data.index() == 0;
  auto *data = isReal ? reinterpret_cast<const std::byte *>(expected.reals().data())
                      : reinterpret_cast<const std::byte *>(expected.ints().data());
  run::Values reference{isReal ? DType::f64 : DType::i64, expected.shape, data};
  return run::compare(got, reference, tolerance.rtol, tolerance.atol);
}

bool sameType(const run::Values &v, const ir::RefTensor &t) {
  return v.dtype == t.dtype && std::equal(v.shape.begin(), v.shape.end(), t.shape.begin(), t.shape.end());
}

std::string scientific(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2e", x);
  return text;
}

std::string exact(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", x);
  return text;
}

} // namespace burin::cli
