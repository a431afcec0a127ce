func.func @main(%x: tensor<?x96xf32, ["n"]>) -> tensor<?x256xf32, ["n"]> {
  %w = burin.constant dense<0.5> : tensor<96x256xf32>
  %y = burin.matmul %x, %w : (tensor<?x96xf32, ["n"]>, tensor<96x256xf32>) -> tensor<?x256xf32, ["n"]>
  %s = burin.silu %y : (tensor<?x256xf32, ["n"]>) -> tensor<?x256xf32, ["n"]>
  return %s : tensor<?x256xf32, ["n"]>
}
