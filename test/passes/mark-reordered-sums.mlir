// RUN: burin-opt %s --burin-mark-reordered-sums | FileCheck %s --check-prefix=MARK
// RUN: burin-opt %s --burin-mark-reordered-sums --burin-fuse | FileCheck %s --check-prefix=MERGED
// RUN: burin-opt %s --burin-fuse | FileCheck %s --check-prefix=APART

// Sums over several dimensions are marked, and their kernels read transposed values in place. Without the mark the
// transposed value is stored.
// MARK-LABEL: func.func @both(
// MARK: burin.reduce_sum {{.*}}burin.memory_order
// MERGED-LABEL: func.func @both(
// MERGED: burin.kernel "transpose+reduce_sum"
// MERGED-NOT: burin.memory_order
// APART-LABEL: func.func @both(
// APART: burin.kernel "transpose"
// APART: burin.kernel "reduce_sum"
func.func @both(%x: tensor<2x5x4xf32>) -> tensor<4xf32> {
  %0 = burin.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<2x5x4xf32>) -> tensor<2x4x5xf32>
  %1 = burin.reduce_sum %0 {axes = array<i64: 0, 2>} : (tensor<2x4x5xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// The elements of a sum over one dimension keep their order.
// MARK-LABEL: func.func @one(
// MARK-NOT: burin.memory_order
// MERGED-LABEL: func.func @one(
// MERGED: burin.kernel "transpose+reduce_sum"
// APART-LABEL: func.func @one(
// APART: burin.kernel "transpose+reduce_sum"
func.func @one(%x: tensor<2x5x4xf32>) -> tensor<2x4xf32> {
  %0 = burin.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<2x5x4xf32>) -> tensor<2x4x5xf32>
  %1 = burin.reduce_sum %0 {axes = array<i64: 2>} : (tensor<2x4x5xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// Also where the sum is in the kernel first, and a transposed operand of a later op would join.
// MARK-LABEL: func.func @later(
// MARK: burin.reduce_sum {{.*}}burin.memory_order
// APART-LABEL: func.func @later(
// APART: burin.kernel "transpose"
// APART: burin.kernel "reduce_sum
// APART-NOT: burin.transpose
// APART: return
func.func @later(%x: tensor<2x4x5xf32>, %y: tensor<2x5x4xf32>) -> tensor<2x4x5xf32> {
  %0 = burin.reduce_sum %x {axes = array<i64: 0, 2>, keepdims = true} : (tensor<2x4x5xf32>) -> tensor<1x4x1xf32>
  %1 = burin.transpose %y {perm = array<i64: 0, 2, 1>} : (tensor<2x5x4xf32>) -> tensor<2x4x5xf32>
  %2 = burin.broadcast_to %0 {shape = [2, 4, 5]} : (tensor<1x4x1xf32>) -> tensor<2x4x5xf32>
  %3 = burin.add %2, %1 : (tensor<2x4x5xf32>, tensor<2x4x5xf32>) -> tensor<2x4x5xf32>
  return %3 : tensor<2x4x5xf32>
}

// A transposed value that is stored anyway is summed where it is stored, with and without the mark.
// MERGED-LABEL: func.func @stored(
// MERGED: burin.kernel "transpose"
// MERGED: burin.kernel "reduce_sum"
// APART-LABEL: func.func @stored(
// APART: burin.kernel "transpose"
// APART: burin.kernel "reduce_sum"
func.func @stored(%x: tensor<2x4x5xf32>) -> (tensor<2x5x4xf32>, tensor<4xf32>) {
  %0 = burin.transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<2x4x5xf32>) -> tensor<2x5x4xf32>
  %1 = burin.reduce_sum %0 {axes = array<i64: 0, 1>} : (tensor<2x5x4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<2x5x4xf32>, tensor<4xf32>
}
