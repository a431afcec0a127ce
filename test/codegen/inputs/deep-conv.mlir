func.func @main(%x: tensor<1x1024x9x9xf32>, %w: tensor<64x1024x3x3xf32>) -> tensor<1x64x7x7xf32> {
  %y = burin.conv %x, %w {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1024x9x9xf32>, tensor<64x1024x3x3xf32>) -> tensor<1x64x7x7xf32>
  return %y : tensor<1x64x7x7xf32>
}
