// RUN: burin-opt --burin-shrink-to-demand --split-input-file %s | FileCheck %s

// A pool over 9 columns reads 8 of them, so the convolution before it, its bias and activation compute 8. They read 12
// of the 13 columns of their input, so the pool before them computes 12, and its convolution 24 of 26.
// CHECK-LABEL: func.func @lenet(
// CHECK: burin.contract %arg0, %{{.*}} {{.*}}padding [0, 0, 0, 0, -2, -2]{{.*}} -> tensor<?x24x24x20xf32, ["n"]>
// CHECK: burin.avg_pool {{.*}}padding = array<i64: 0, 0, 0, 0>{{.*}} -> tensor<?x12x12x20xf32, ["n"]>
// CHECK: burin.contract {{.*}}padding [0, 0, 0, 0, 0, 0]{{.*}} -> tensor<?x8x8x50xf32, ["n"]>
// CHECK: burin.broadcast_to %arg1 {shape = ["n", 8, 8, 50]}
// CHECK: burin.add {{.*}} -> tensor<?x8x8x50xf32, ["n"]>
// CHECK: burin.relu {{.*}} -> tensor<?x8x8x50xf32, ["n"]>
// CHECK: burin.max_pool {{.*}}padding = array<i64: 0, 0, 0, 0>{{.*}} : (tensor<?x8x8x50xf32, ["n"]>) -> tensor<?x4x4x50xf32, ["n"]>
func.func @lenet(%x: tensor<?x28x28x1xf32, ["n"]>, %b: tensor<1x1x1x50xf32>, %v: tensor<1x9x32xf32>, %w: tensor<2x500x32xf32>) -> tensor<?x4x4x50xf32, ["n"]> {
  %0 = burin.contract %x, %v kernel [1, 3, 3] : (tensor<?x28x28x1xf32, ["n"]>, tensor<1x9x32xf32>) -> tensor<?x26x26x20xf32, ["n"]>
  %1 = burin.avg_pool %0 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, layout = "nhwc"} : (tensor<?x26x26x20xf32, ["n"]>) -> tensor<?x13x13x20xf32, ["n"]>
  %2 = burin.contract %1, %w kernel [1, 5, 5] : (tensor<?x13x13x20xf32, ["n"]>, tensor<2x500x32xf32>) -> tensor<?x9x9x50xf32, ["n"]>
  %3 = burin.broadcast_to %b {shape = ["n", 9, 9, 50]} : (tensor<1x1x1x50xf32>) -> tensor<?x9x9x50xf32, ["n"]>
  %4 = burin.add %2, %3 : (tensor<?x9x9x50xf32, ["n"]>, tensor<?x9x9x50xf32, ["n"]>) -> tensor<?x9x9x50xf32, ["n"]>
  %5 = burin.relu %4 : (tensor<?x9x9x50xf32, ["n"]>) -> tensor<?x9x9x50xf32, ["n"]>
  %6 = burin.max_pool %5 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, layout = "nhwc"} : (tensor<?x9x9x50xf32, ["n"]>) -> tensor<?x4x4x50xf32, ["n"]>
  return %6 : tensor<?x4x4x50xf32, ["n"]>
}

// -----

// With padding: a pool reads 11 of 12 columns, which need all 12 input columns, but one column less of the padding.
// CHECK-LABEL: func.func @padded(
// CHECK: burin.contract {{.*}}padding [0, 1, 1, 0, 0, 0]{{.*}} -> tensor<2x11x11x8xf32>
// CHECK: burin.max_pool {{.*}} : (tensor<2x11x11x8xf32>) -> tensor<2x5x5x8xf32>
func.func @padded(%x: tensor<2x12x12x4xf32>, %w: tensor<1x36x32xf32>) -> tensor<2x5x5x8xf32> {
  %0 = burin.contract %x, %w kernel [1, 3, 3] padding [0, 1, 1, 0, 1, 1] : (tensor<2x12x12x4xf32>, tensor<1x36x32xf32>) -> tensor<2x12x12x8xf32>
  %1 = burin.max_pool %0 {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, layout = "nhwc"} : (tensor<2x12x12x8xf32>) -> tensor<2x5x5x8xf32>
  return %1 : tensor<2x5x5x8xf32>
}

// -----

// Not shrunk: values with other users, inputs, and values that a partial window reads.
// CHECK-LABEL: func.func @shared(
// CHECK-NOT: tensor<2x8x8
func.func @shared(%x: tensor<2x9x9x4xf32>, %w: tensor<1x4x32xf32>) -> (tensor<2x4x4x8xf32>, tensor<2x9x9x8xf32>, tensor<2x4x4x4xf32>) {
  %0 = burin.contract %x, %w : (tensor<2x9x9x4xf32>, tensor<1x4x32xf32>) -> tensor<2x9x9x8xf32>
  %1 = burin.max_pool %0 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, layout = "nhwc"} : (tensor<2x9x9x8xf32>) -> tensor<2x4x4x8xf32>
  %2 = burin.relu %0 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %3 = burin.max_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, layout = "nhwc"} : (tensor<2x9x9x4xf32>) -> tensor<2x4x4x4xf32>
  return %1, %2, %3 : tensor<2x4x4x8xf32>, tensor<2x9x9x8xf32>, tensor<2x4x4x4xf32>
}

// CHECK-LABEL: func.func @partial(
// CHECK: -> tensor<2x5x5x8xf32>
// CHECK-NOT: tensor<2x8x8
func.func @partial(%x: tensor<2x9x9x4xf32>, %w: tensor<1x4x32xf32>) -> tensor<2x5x5x8xf32> {
  %0 = burin.contract %x, %w : (tensor<2x9x9x4xf32>, tensor<1x4x32xf32>) -> tensor<2x9x9x8xf32>
  %1 = burin.max_pool %0 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, ceil_mode = true, layout = "nhwc"} : (tensor<2x9x9x8xf32>) -> tensor<2x5x5x8xf32>
  return %1 : tensor<2x5x5x8xf32>
}

// A long chain of elementwise ops takes a time that is linear in its length.
// CHECK-LABEL: func.func @chain(
// CHECK-COUNT-40: burin.exp {{.*}} -> tensor<2x8x8x8xf32>
func.func @chain(%x: tensor<2x9x9x4xf32>, %w: tensor<1x4x32xf32>) -> tensor<2x4x4x8xf32> {
  %0 = burin.contract %x, %w : (tensor<2x9x9x4xf32>, tensor<1x4x32xf32>) -> tensor<2x9x9x8xf32>
  %1 = burin.exp %0 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %2 = burin.exp %1 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %3 = burin.exp %2 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %4 = burin.exp %3 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %5 = burin.exp %4 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %6 = burin.exp %5 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %7 = burin.exp %6 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %8 = burin.exp %7 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %9 = burin.exp %8 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %10 = burin.exp %9 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %11 = burin.exp %10 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %12 = burin.exp %11 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %13 = burin.exp %12 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %14 = burin.exp %13 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %15 = burin.exp %14 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %16 = burin.exp %15 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %17 = burin.exp %16 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %18 = burin.exp %17 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %19 = burin.exp %18 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %20 = burin.exp %19 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %21 = burin.exp %20 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %22 = burin.exp %21 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %23 = burin.exp %22 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %24 = burin.exp %23 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %25 = burin.exp %24 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %26 = burin.exp %25 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %27 = burin.exp %26 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %28 = burin.exp %27 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %29 = burin.exp %28 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %30 = burin.exp %29 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %31 = burin.exp %30 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %32 = burin.exp %31 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %33 = burin.exp %32 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %34 = burin.exp %33 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %35 = burin.exp %34 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %36 = burin.exp %35 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %37 = burin.exp %36 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %38 = burin.exp %37 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %39 = burin.exp %38 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %40 = burin.exp %39 : (tensor<2x9x9x8xf32>) -> tensor<2x9x9x8xf32>
  %y = burin.max_pool %40 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, layout = "nhwc"} : (tensor<2x9x9x8xf32>) -> tensor<2x4x4x8xf32>
  return %y : tensor<2x4x4x8xf32>
}
