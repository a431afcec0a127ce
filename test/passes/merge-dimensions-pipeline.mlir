// RUN: burin compile %s --target x86-64-v3 --emit kernels | FileCheck %s

// Dimensions are merged when it is known that the sum overwrites its second operand.
// CHECK: burin.kernel "slice+add"{{.*}} attributes {in_place = array<i64: 1>} {
// CHECK: burin.slice {{.*}} : (tensor<4x3136xf32>) -> tensor<4x784xf32>
func.func @main(%x: tensor<4x64x7x7xf32>, %w: tensor<4x16x7x7xf32>) -> tensor<4x16x7x7xf32> {
  %z = burin.cumsum %w {axis = 1 : i64} : (tensor<4x16x7x7xf32>) -> tensor<4x16x7x7xf32>
  %1 = burin.slice %x {starts = [0, 8, 0, 0], stops = [4, 24, 7, 7], steps = array<i64: 1, 1, 1, 1>} : (tensor<4x64x7x7xf32>) -> tensor<4x16x7x7xf32>
  %2 = burin.add %1, %z : (tensor<4x16x7x7xf32>, tensor<4x16x7x7xf32>) -> tensor<4x16x7x7xf32>
  %3 = burin.cumsum %2 {axis = 1 : i64} : (tensor<4x16x7x7xf32>) -> tensor<4x16x7x7xf32>
  return %3 : tensor<4x16x7x7xf32>
}
