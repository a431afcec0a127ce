// An expansion (a product of pixels with a matrix) or a depthwise convolution, and its activation, of several layers.
func.func @main(%x0: tensor<3136x24xf32>, %w0: tensor<24x144xf32>, %x1: tensor<12544x16xf32>, %w1: tensor<16x96xf32>, %x2: tensor<3136x24xf32>, %w2: tensor<24x72xf32>, %x3: tensor<1x56x56x144xf32>, %w3: tensor<3x3x1x144xf32>, %b3: tensor<144xf32>, %x4: tensor<1x28x28x240xf32>, %w4: tensor<5x5x1x240xf32>, %b4: tensor<240xf32>, %x5: tensor<1x14x14x672xf32>, %w5: tensor<5x5x1x672xf32>, %b5: tensor<672xf32>) -> (tensor<3136x144xf32>, tensor<12544x96xf32>, tensor<3136x72xf32>, tensor<1x28x28x144xf32>, tensor<1x28x28x240xf32>, tensor<1x14x14x672xf32>) {
  %y0 = burin.matmul %x0, %w0 : (tensor<3136x24xf32>, tensor<24x144xf32>) -> tensor<3136x144xf32>
  %z0 = burin.silu %y0 : (tensor<3136x144xf32>) -> tensor<3136x144xf32>
  %y1 = burin.matmul %x1, %w1 : (tensor<12544x16xf32>, tensor<16x96xf32>) -> tensor<12544x96xf32>
  %z1 = burin.silu %y1 : (tensor<12544x96xf32>) -> tensor<12544x96xf32>
  %y2 = burin.matmul %x2, %w2 : (tensor<3136x24xf32>, tensor<24x72xf32>) -> tensor<3136x72xf32>
  %z2 = burin.relu %y2 : (tensor<3136x72xf32>) -> tensor<3136x72xf32>
  %y3 = burin.conv %x3, %w3, %b3 {strides = array<i64: 2, 2>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 144 : i64, layout = "nhwc"} : (tensor<1x56x56x144xf32>, tensor<3x3x1x144xf32>, tensor<144xf32>) -> tensor<1x28x28x144xf32>
  %z3 = burin.silu %y3 : (tensor<1x28x28x144xf32>) -> tensor<1x28x28x144xf32>
  %y4 = burin.conv %x4, %w4, %b4 {strides = array<i64: 1, 1>, padding = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, groups = 240 : i64, layout = "nhwc"} : (tensor<1x28x28x240xf32>, tensor<5x5x1x240xf32>, tensor<240xf32>) -> tensor<1x28x28x240xf32>
  %z4 = burin.silu %y4 : (tensor<1x28x28x240xf32>) -> tensor<1x28x28x240xf32>
  %y5 = burin.conv %x5, %w5, %b5 {strides = array<i64: 1, 1>, padding = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>, groups = 672 : i64, layout = "nhwc"} : (tensor<1x14x14x672xf32>, tensor<5x5x1x672xf32>, tensor<672xf32>) -> tensor<1x14x14x672xf32>
  %z5 = burin.silu %y5 : (tensor<1x14x14x672xf32>) -> tensor<1x14x14x672xf32>
  return %z0, %z1, %z2, %z3, %z4, %z5 : tensor<3136x144xf32>, tensor<12544x96xf32>, tensor<3136x72xf32>, tensor<1x28x28x144xf32>, tensor<1x28x28x240xf32>, tensor<1x14x14x672xf32>
}
