func.func @main(%x: tensor<128x512xf32>) -> tensor<128x512xf32> {
  %w = burin.constant dense<1.5> : tensor<512x512xf32>
  %y = burin.matmul %x, %w : (tensor<128x512xf32>, tensor<512x512xf32>) -> tensor<128x512xf32>
  return %y : tensor<128x512xf32>
}
