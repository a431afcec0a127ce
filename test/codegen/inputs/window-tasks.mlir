func.func @main(%x: tensor<1x9x9x520xf32>, %w: tensor<3x3x1x520xf32>, %y: tensor<1x30x9x72xf32>, %v: tensor<9x9x1x72xf32>, %p: tensor<3x7x14x14xf32>) -> (tensor<1x9x9x520xf32>, tensor<1x30x9x72xf32>, tensor<3x7x6x6xf32>, tensor<3x7x6x6xf32>) {
  %0 = burin.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 520 : i64, layout = "nhwc"} : (tensor<1x9x9x520xf32>, tensor<3x3x1x520xf32>) -> tensor<1x9x9x520xf32>
  %1 = burin.conv %y, %v {strides = array<i64: 1, 1>, padding = array<i64: 4, 4, 4, 4>, dilations = array<i64: 1, 1>, groups = 72 : i64, layout = "nhwc"} : (tensor<1x30x9x72xf32>, tensor<9x9x1x72xf32>) -> tensor<1x30x9x72xf32>
  %2 = burin.max_pool %p {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>} : (tensor<3x7x14x14xf32>) -> tensor<3x7x6x6xf32>
  %3 = burin.avg_pool %p {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>} : (tensor<3x7x14x14xf32>) -> tensor<3x7x6x6xf32>
  return %0, %1, %2, %3 : tensor<1x9x9x520xf32>, tensor<1x30x9x72xf32>, tensor<3x7x6x6xf32>, tensor<3x7x6x6xf32>
}
