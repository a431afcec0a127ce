func.func @main(%x: tensor<1x2048xbf16>, %w: tensor<2048x64xbf16>) -> tensor<1x64xbf16> {
  %z = burin.matmul %x, %w : (tensor<1x2048xbf16>, tensor<2048x64xbf16>) -> tensor<1x64xbf16>
  return %z : tensor<1x64xbf16>
}
