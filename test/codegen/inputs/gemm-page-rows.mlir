func.func @main(%x: tensor<512x1024xf32>, %w: tensor<1024x512xf32>) -> tensor<512x512xf32> {
  %y = burin.matmul %x, %w : (tensor<512x1024xf32>, tensor<1024x512xf32>) -> tensor<512x512xf32>
  return %y : tensor<512x512xf32>
}
