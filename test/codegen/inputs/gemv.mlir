func.func @main(%x: tensor<1x768xf32>) -> (tensor<1x2304xf32>, tensor<1x128xf32>) {
  %w = burin.constant dense<0.5> : tensor<768x2304xf32>
  %y = burin.matmul %x, %w : (tensor<1x768xf32>, tensor<768x2304xf32>) -> tensor<1x2304xf32>
  %v = burin.constant dense<0.5> : tensor<768x128xf32>
  %z = burin.matmul %x, %v : (tensor<1x768xf32>, tensor<768x128xf32>) -> tensor<1x128xf32>
  return %y, %z : tensor<1x2304xf32>, tensor<1x128xf32>
}
