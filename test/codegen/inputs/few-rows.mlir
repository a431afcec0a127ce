func.func @main(%x: tensor<4x256xf32>, %w: tensor<256x256xf32>) -> tensor<4x256xf32> {
  %y = burin.matmul %x, %w : (tensor<4x256xf32>, tensor<256x256xf32>) -> tensor<4x256xf32>
  return %y : tensor<4x256xf32>
}
