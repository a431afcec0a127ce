module {
  func.func @main(%x: tensor<?x4x24x24xf32, ["batch"]> {burin.name = "x"}, %b: tensor<12xf32> {burin.name = "b"}) -> (tensor<?x12x12x12xf32, ["batch"]> {burin.name = "features"}, tensor<?x12xf32, ["batch"]> {burin.name = "y"}) {
    %v = burin.constant dense<0.1> : tensor<12x4x3x3xf32>
    %w = burin.constant dense<0.05> : tensor<12x12x3x3xf32>
    %c = burin.conv %x, %v, %b {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<?x4x24x24xf32, ["batch"]>, tensor<12x4x3x3xf32>, tensor<12xf32>) -> tensor<?x12x24x24xf32, ["batch"]>
    %t = burin.tanh %c : (tensor<?x12x24x24xf32, ["batch"]>) -> tensor<?x12x24x24xf32, ["batch"]>
    %p = burin.max_pool %t {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<?x12x24x24xf32, ["batch"]>) -> tensor<?x12x12x12xf32, ["batch"]>
    %d = burin.conv %p, %w {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64} : (tensor<?x12x12x12xf32, ["batch"]>, tensor<12x12x3x3xf32>) -> tensor<?x12x12x12xf32, ["batch"]>
    %s = burin.add %d, %p : (tensor<?x12x12x12xf32, ["batch"]>, tensor<?x12x12x12xf32, ["batch"]>) -> tensor<?x12x12x12xf32, ["batch"]>
    %m = burin.reduce_mean %s {axes = array<i64: 2, 3>, keepdims = false} : (tensor<?x12x12x12xf32, ["batch"]>) -> tensor<?x12xf32, ["batch"]>
    %y = burin.cumsum %m {axis = 0 : i64} : (tensor<?x12xf32, ["batch"]>) -> tensor<?x12xf32, ["batch"]>
    return %s, %y : tensor<?x12x12x12xf32, ["batch"]>, tensor<?x12xf32, ["batch"]>
  }
}
