func.func @main(%x: tensor<128x256xf32>, %w: tensor<256x64xf32>, %y: tensor<128x64xf32>) -> tensor<128x64xf32> {
  %z = burin.matmul %x, %w : (tensor<128x256xf32>, tensor<256x64xf32>) -> tensor<128x64xf32>
  %s = burin.add %z, %y : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<128x64xf32>
  %r = burin.relu %s : (tensor<128x64xf32>) -> tensor<128x64xf32>
  return %r : tensor<128x64xf32>
}
