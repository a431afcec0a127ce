func.func @main(%x: tensor<3xf32> {burin.name = "x"}) -> (tensor<3xf32> {burin.name = "y"}) {
  %y = burin.host_call 0(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
