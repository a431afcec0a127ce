func.func @main(%x: tensor<48x64xf32>, %w: tensor<64x32xf32>) -> tensor<48x32xf32> {
  %y = burin.matmul %x, %w : (tensor<48x64xf32>, tensor<64x32xf32>) -> tensor<48x32xf32>
  return %y : tensor<48x32xf32>
}
