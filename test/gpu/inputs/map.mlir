func.func @main(%x: tensor<512x1024xf32>, %y: tensor<512x1024xf32>) -> tensor<512x1024xf32> {
  %s = burin.add %x, %y : (tensor<512x1024xf32>, tensor<512x1024xf32>) -> tensor<512x1024xf32>
  %t = burin.tanh %s : (tensor<512x1024xf32>) -> tensor<512x1024xf32>
  return %t : tensor<512x1024xf32>
}
