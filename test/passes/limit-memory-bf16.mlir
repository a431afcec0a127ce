// A value that cannot be recomputed, here because its kernel can fail, is stored in bf16 if that is allowed.
// RUN: burin-opt %s --burin-fuse --burin-decompose-in-kernels --burin-in-place-results "--burin-limit-memory=bytes=40000 allow-bf16" --burin-in-place-results | FileCheck %s
// RUN: not burin-opt %s --burin-fuse --burin-decompose-in-kernels --burin-in-place-results --burin-limit-memory=bytes=40000 2>&1 | FileCheck %s --check-prefix=ERROR

// CHECK: kept in bf16: take f32[1024]
// CHECK: [[TAKEN:%.*]] = burin.kernel "take"
// CHECK: [[NARROW:%.*]] = burin.kernel "cast"({{.*}} = [[TAKEN]]) : (tensor<1024xf32>) -> tensor<1024xbf16>
// CHECK: [[WIDE:%.*]] = burin.kernel "cast"({{.*}} = [[NARROW]]) : (tensor<1024xbf16>) -> tensor<1024xf32>
// CHECK: burin.kernel "add"({{.*}}[[WIDE]]
// ERROR: error: cannot run in 0.040 MB
func.func @main(%x: tensor<4096xf32>, %i: tensor<1024xi64>) -> tensor<1024xf32> {
  %0 = burin.take %x, %i {axis = 0 : i64} : (tensor<4096xf32>, tensor<1024xi64>) -> tensor<1024xf32>
  %1 = burin.cumsum %0 {axis = 0 : i64} : (tensor<1024xf32>) -> tensor<1024xf32>
  %2 = burin.cumsum %1 {axis = 0 : i64} : (tensor<1024xf32>) -> tensor<1024xf32>
  %3 = burin.cumsum %2 {axis = 0 : i64} : (tensor<1024xf32>) -> tensor<1024xf32>
  %4 = burin.cumsum %3 {axis = 0 : i64} : (tensor<1024xf32>) -> tensor<1024xf32>
  %5 = burin.add %4, %0 : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  return %5 : tensor<1024xf32>
}
