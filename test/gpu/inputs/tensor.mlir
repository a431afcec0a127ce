func.func @main(%x: tensor<128x256xbf16>, %w: tensor<256x64xbf16>, %y: tensor<128x64xbf16>) -> tensor<128x64xbf16> {
  %z = burin.matmul %x, %w : (tensor<128x256xbf16>, tensor<256x64xbf16>) -> tensor<128x64xbf16>
  %s = burin.add %z, %y : (tensor<128x64xbf16>, tensor<128x64xbf16>) -> tensor<128x64xbf16>
  %r = burin.relu %s : (tensor<128x64xbf16>) -> tensor<128x64xbf16>
  return %r : tensor<128x64xbf16>
}
