func.func @main(%x: tensor<300x?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {
  %y = burin.reduce_sum %x {axes = array<i64: 0>, keepdims = false} : (tensor<300x?xf32, ["n"]>) -> tensor<?xf32, ["n"]>
  return %y : tensor<?xf32, ["n"]>
}
