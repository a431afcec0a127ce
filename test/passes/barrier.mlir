// A barrier keeps recomputed values from being merged with earlier ones; it generates no code.
// RUN: burin-opt %s --cse | FileCheck %s --check-prefix=CSE
// RUN: burin-opt %s --cse --burin-fuse | FileCheck %s --check-prefix=KERNELS
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = burin.barrier %x {region = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = burin.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %2 = burin.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}
// CSE-COUNT-2: burin.exp
// KERNELS-NOT: burin.barrier
