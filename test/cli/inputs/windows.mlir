// Convolutions followed by pooling, some of which does not read the last rows or columns.
func.func @main(%x: tensor<?x3x13x16xf32, ["n"]> {burin.name = "x"}, %v: tensor<4x5x2x2xf32> {burin.name = "v"}) -> (tensor<?x4x2x3xf32, ["n"]>, tensor<?x4x2x3xf32, ["n"]>, tensor<?x4x1x1xf32, ["n"]>, tensor<?x4x1x2xf32, ["n"]>, tensor<?x4x2x2xf32, ["n"]>, tensor<?x4x2x3xf32, ["n"]>, tensor<?x4x3x3xf32, ["n"]>) {
  %w0 = burin.random_uniform {shape = [5, 3, 3, 3], seed = 0, low = -1.0, dtype = f32} : () -> tensor<5x3x3x3xf32>
  %c0 = burin.conv %x, %w0 {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x3x13x16xf32, ["n"]>, tensor<5x3x3x3xf32>) -> tensor<?x5x11x14xf32, ["n"]>
  %t0 = burin.sin %c0 : (tensor<?x5x11x14xf32, ["n"]>) -> tensor<?x5x11x14xf32, ["n"]>
  %p0 = burin.max_pool %t0 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x5x11x14xf32, ["n"]>) -> tensor<?x5x5x7xf32, ["n"]>
  %d0 = burin.conv %p0, %v {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x5x5x7xf32, ["n"]>, tensor<4x5x2x2xf32>) -> tensor<?x4x4x6xf32, ["n"]>
  %r0 = burin.max_pool %d0 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x4x4x6xf32, ["n"]>) -> tensor<?x4x2x3xf32, ["n"]>
  %w1 = burin.random_uniform {shape = [5, 3, 3, 3], seed = 1, low = -1.0, dtype = f32} : () -> tensor<5x3x3x3xf32>
  %c1 = burin.conv %x, %w1 {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<?x3x13x16xf32, ["n"]>, tensor<5x3x3x3xf32>) -> tensor<?x5x13x16xf32, ["n"]>
  %t1 = burin.sin %c1 : (tensor<?x5x13x16xf32, ["n"]>) -> tensor<?x5x13x16xf32, ["n"]>
  %p1 = burin.max_pool %t1 {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x5x13x16xf32, ["n"]>) -> tensor<?x5x6x7xf32, ["n"]>
  %d1 = burin.conv %p1, %v {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x5x6x7xf32, ["n"]>, tensor<4x5x2x2xf32>) -> tensor<?x4x5x6xf32, ["n"]>
  %r1 = burin.max_pool %d1 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x4x5x6xf32, ["n"]>) -> tensor<?x4x2x3xf32, ["n"]>
  %w2 = burin.random_uniform {shape = [5, 3, 5, 5], seed = 2, low = -1.0, dtype = f32} : () -> tensor<5x3x5x5xf32>
  %c2 = burin.conv %x, %w2 {strides = array<i64: 2, 2>, padding = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>} : (tensor<?x3x13x16xf32, ["n"]>, tensor<5x3x5x5xf32>) -> tensor<?x5x7x8xf32, ["n"]>
  %t2 = burin.sin %c2 : (tensor<?x5x7x8xf32, ["n"]>) -> tensor<?x5x7x8xf32, ["n"]>
  %p2 = burin.avg_pool %t2 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x5x7x8xf32, ["n"]>) -> tensor<?x5x3x4xf32, ["n"]>
  %d2 = burin.conv %p2, %v {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x5x3x4xf32, ["n"]>, tensor<4x5x2x2xf32>) -> tensor<?x4x2x3xf32, ["n"]>
  %r2 = burin.max_pool %d2 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x4x2x3xf32, ["n"]>) -> tensor<?x4x1x1xf32, ["n"]>
  %w3 = burin.random_uniform {shape = [5, 3, 2, 2], seed = 3, low = -1.0, dtype = f32} : () -> tensor<5x3x2x2xf32>
  %c3 = burin.conv %x, %w3 {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 1, 1>, dilations = array<i64: 2, 2>} : (tensor<?x3x13x16xf32, ["n"]>, tensor<5x3x2x2xf32>) -> tensor<?x5x12x15xf32, ["n"]>
  %t3 = burin.sin %c3 : (tensor<?x5x12x15xf32, ["n"]>) -> tensor<?x5x12x15xf32, ["n"]>
  %p3 = burin.max_pool %t3 {kernel = array<i64: 2, 2>, strides = array<i64: 3, 3>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x5x12x15xf32, ["n"]>) -> tensor<?x5x4x5xf32, ["n"]>
  %d3 = burin.conv %p3, %v {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x5x4x5xf32, ["n"]>, tensor<4x5x2x2xf32>) -> tensor<?x4x3x4xf32, ["n"]>
  %r3 = burin.max_pool %d3 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x4x3x4xf32, ["n"]>) -> tensor<?x4x1x2xf32, ["n"]>
  %w4 = burin.random_uniform {shape = [5, 3, 3, 3], seed = 4, low = -1.0, dtype = f32} : () -> tensor<5x3x3x3xf32>
  %c4 = burin.conv %x, %w4 {strides = array<i64: 1, 1>, padding = array<i64: 2, 2, 2, 2>, dilations = array<i64: 1, 1>} : (tensor<?x3x13x16xf32, ["n"]>, tensor<5x3x3x3xf32>) -> tensor<?x5x15x18xf32, ["n"]>
  %t4 = burin.sin %c4 : (tensor<?x5x15x18xf32, ["n"]>) -> tensor<?x5x15x18xf32, ["n"]>
  %p4 = burin.avg_pool %t4 {kernel = array<i64: 3, 3>, strides = array<i64: 3, 3>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<?x5x15x18xf32, ["n"]>) -> tensor<?x5x5x6xf32, ["n"]>
  %d4 = burin.conv %p4, %v {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x5x5x6xf32, ["n"]>, tensor<4x5x2x2xf32>) -> tensor<?x4x4x5xf32, ["n"]>
  %r4 = burin.max_pool %d4 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x4x4x5xf32, ["n"]>) -> tensor<?x4x2x2xf32, ["n"]>
  %w5 = burin.random_uniform {shape = [5, 3, 1, 1], seed = 5, low = -1.0, dtype = f32} : () -> tensor<5x3x1x1xf32>
  %c5 = burin.conv %x, %w5 {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x3x13x16xf32, ["n"]>, tensor<5x3x1x1xf32>) -> tensor<?x5x13x16xf32, ["n"]>
  %t5 = burin.sin %c5 : (tensor<?x5x13x16xf32, ["n"]>) -> tensor<?x5x13x16xf32, ["n"]>
  %p5 = burin.avg_pool %t5 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, count_include_pad = false} : (tensor<?x5x13x16xf32, ["n"]>) -> tensor<?x5x6x8xf32, ["n"]>
  %d5 = burin.conv %p5, %v {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x5x6x8xf32, ["n"]>, tensor<4x5x2x2xf32>) -> tensor<?x4x5x7xf32, ["n"]>
  %r5 = burin.max_pool %d5 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x4x5x7xf32, ["n"]>) -> tensor<?x4x2x3xf32, ["n"]>
  %w6 = burin.random_uniform {shape = [5, 3, 3, 3], seed = 6, low = -1.0, dtype = f32} : () -> tensor<5x3x3x3xf32>
  %c6 = burin.conv %x, %w6 {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<?x3x13x16xf32, ["n"]>, tensor<5x3x3x3xf32>) -> tensor<?x5x13x16xf32, ["n"]>
  %t6 = burin.sin %c6 : (tensor<?x5x13x16xf32, ["n"]>) -> tensor<?x5x13x16xf32, ["n"]>
  %p6 = burin.max_pool %t6 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, ceil_mode = true} : (tensor<?x5x13x16xf32, ["n"]>) -> tensor<?x5x7x8xf32, ["n"]>
  %d6 = burin.conv %p6, %v {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x5x7x8xf32, ["n"]>, tensor<4x5x2x2xf32>) -> tensor<?x4x6x7xf32, ["n"]>
  %r6 = burin.max_pool %d6 {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x4x6x7xf32, ["n"]>) -> tensor<?x4x3x3xf32, ["n"]>
  return %r0, %r1, %r2, %r3, %r4, %r5, %r6 : tensor<?x4x2x3xf32, ["n"]>, tensor<?x4x2x3xf32, ["n"]>, tensor<?x4x1x1xf32, ["n"]>, tensor<?x4x1x2xf32, ["n"]>, tensor<?x4x2x2xf32, ["n"]>, tensor<?x4x2x3xf32, ["n"]>, tensor<?x4x3x3xf32, ["n"]>
}
