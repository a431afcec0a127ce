func.func @main(%x: tensor<128x256xf8E4M3FN>, %w: tensor<256x128xf8E5M2>) -> tensor<128x128xbf16> {
  %0 = burin.matmul %x, %w : (tensor<128x256xf8E4M3FN>, tensor<256x128xf8E5M2>) -> tensor<128x128xf32>
  %1 = burin.cast %0 {dtype = bf16} : (tensor<128x128xf32>) -> tensor<128x128xbf16>
  return %1 : tensor<128x128xbf16>
}
