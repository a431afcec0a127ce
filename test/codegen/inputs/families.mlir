func.func @main(%x: tensor<4x32xf32>, %i: tensor<2x32xi64>, %w: tensor<32x64xf32>, %q: tensor<2x16x8xf32>,
                %p: tensor<1x3x32x32xf32>, %c: tensor<1x16x16x32xf32>, %t: tensor<64x48xf32>, %u: tensor<48x64xf32>, %n: tensor<16xi64>,
                %l: tensor<2x17x8xf32>)
    -> (tensor<4x32xf32>, tensor<4x32xi64>, tensor<4x32xf32>, tensor<4x64xf32>, tensor<2x16x8xf32>,
        tensor<1x8x8x32xf32>, tensor<1x3x30x30xf32>, tensor<1x3x30x30xf32>, tensor<48x64xf32>, tensor<48x64xf32>,
        tensor<4x32xf32>, tensor<4x16xf32>, tensor<2x17x8xf32>) {
  %running = burin.cumsum %x {axis = 1 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
  %sorted = burin.argsort %x {axis = 1 : i64} : (tensor<4x32xf32>) -> tensor<4x32xi64>
  %rows = burin.slice %x {starts = [0, 0], stops = [2, 32], steps = array<i64: 1, 1>} : (tensor<4x32xf32>) -> tensor<2x32xf32>
  %scattered = burin.scatter %x, %i, %rows : (tensor<4x32xf32>, tensor<2x32xi64>, tensor<2x32xf32>) -> tensor<4x32xf32>
  %product = burin.matmul %x, %w : (tensor<4x32xf32>, tensor<32x64xf32>) -> tensor<4x64xf32>
  %relu = burin.relu %product : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %attention = burin.scaled_dot_product_attention %q, %q, %q : (tensor<2x16x8xf32>, tensor<2x16x8xf32>, tensor<2x16x8xf32>) -> tensor<2x16x8xf32>
  %window = burin.max_pool %c {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, layout = "nhwc"} : (tensor<1x16x16x32xf32>) -> tensor<1x8x8x32xf32>
  %most = burin.max_pool %p {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>} : (tensor<1x3x32x32xf32>) -> tensor<1x3x30x30xf32>
  %mean = burin.avg_pool %p {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>} : (tensor<1x3x32x32xf32>) -> tensor<1x3x30x30xf32>
  %turned = burin.transpose %t {perm = array<i64: 1, 0>} : (tensor<64x48xf32>) -> tensor<48x64xf32>
  %half = burin.mul %t, %t : (tensor<64x48xf32>, tensor<64x48xf32>) -> tensor<64x48xf32>
  %read = burin.transpose %half {perm = array<i64: 1, 0>} : (tensor<64x48xf32>) -> tensor<48x64xf32>
  %added = burin.add %read, %u : (tensor<48x64xf32>, tensor<48x64xf32>) -> tensor<48x64xf32>
  %softmax = burin.softmax %x {axis = 1 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
  %taken = burin.take %x, %n {axis = 1 : i64} : (tensor<4x32xf32>, tensor<16xi64>) -> tensor<4x16xf32>
  %long = burin.scaled_dot_product_attention %l, %l, %l : (tensor<2x17x8xf32>, tensor<2x17x8xf32>, tensor<2x17x8xf32>) -> tensor<2x17x8xf32>
  return %running, %sorted, %scattered, %relu, %attention, %window, %most, %mean, %turned, %added, %softmax, %taken, %long
    : tensor<4x32xf32>, tensor<4x32xi64>, tensor<4x32xf32>, tensor<4x64xf32>, tensor<2x16x8xf32>,
      tensor<1x8x8x32xf32>, tensor<1x3x30x30xf32>, tensor<1x3x30x30xf32>, tensor<48x64xf32>, tensor<48x64xf32>,
      tensor<4x32xf32>, tensor<4x16xf32>, tensor<2x17x8xf32>
}
