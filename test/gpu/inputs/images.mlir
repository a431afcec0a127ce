func.func @main(%x: tensor<64x64x64x4xf32>) -> tensor<64x16x16x4xf32> {
  %0 = burin.max_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, layout = "nhwc"} : (tensor<64x64x64x4xf32>) -> tensor<64x32x32x4xf32>
  %1 = burin.max_pool %0 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, layout = "nhwc"} : (tensor<64x32x32x4xf32>) -> tensor<64x16x16x4xf32>
  return %1 : tensor<64x16x16x4xf32>
}
