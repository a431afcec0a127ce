// RUN: burin-opt %s --split-input-file --verify-diagnostics

func.func @operands(%x: tensor<4x8xf32>, %w: tensor<1x8x32xf32>) {
  // expected-error@+1 {{has 2 operands and a result, but its type is}}
  %0 = burin.contract %x, %w : (tensor<4x8xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @rank(%x: tensor<f32>, %w: tensor<1x8x32xf32>) {
  // expected-error@+1 {{needs tensors of one and more dimensions besides the batch}}
  %0 = burin.contract %x, %w : (tensor<f32>, tensor<1x8x32xf32>) -> tensor<4x5xf32>
  return
}
