func.func @main(%x: tensor<1x2x?xf32, ["n"]> {burin.name = "x"}) -> (tensor<1x2x?xf32, ["n - 5"]> {burin.name = "y"}) {
  %0 = burin.max_pool %x {kernel = array<i64: 6>, strides = array<i64: 1>, padding = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x2x?xf32, ["n"]>) -> tensor<1x2x?xf32, ["n - 5"]>
  return %0 : tensor<1x2x?xf32, ["n - 5"]>
}
