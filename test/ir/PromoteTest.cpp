#include "ir/infer/OpInfo.h"
#include <catch2/catch.hpp>

using namespace burin;

static DType both(DType a, DType b) {
  DType types[] = {a, b};
  return ir::promote(types, {});
}
static DType withScalar(DType strong, DType weak) {
  DType types[] = {strong, weak};
  bool isWeak[] = {false, true};
  return ir::promote(types, isWeak);
}

TEST_CASE("element types promote as in PyTorch") {
  CHECK(both(f32, f32) == f32);
  CHECK(both(f32, f64) == f64);
  CHECK(both(f16, bf16) == f32);
  CHECK(both(f16, f32) == f32);
  CHECK(both(i64, f16) == f16);
  CHECK(both(boolean, u8) == u8);
  CHECK(both(u8, i8) == i16);
  CHECK(both(u8, i32) == i32);
  CHECK(both(i16, i8) == i16);
  CHECK(both(boolean, boolean) == boolean);
  for (int a = 0; a < kNumDTypes; ++a)
    for (int b = 0; b < kNumDTypes; ++b)
      CHECK(both(DType(a), DType(b)) == both(DType(b), DType(a)));
}

TEST_CASE("a scalar written in the source raises the class, never the width") {
  CHECK(withScalar(f16, f64) == f16);
  CHECK(withScalar(f32, i64) == f32);
  CHECK(withScalar(i8, i64) == i8);
  CHECK(withScalar(i8, f64) == f32);
  CHECK(withScalar(boolean, i64) == i64);
  CHECK(withScalar(boolean, f64) == f32);
  DType scalars[] = {i64, f64};
  bool weak[] = {true, true};
  CHECK(ir::promote(scalars, weak) == f32);
}
