func.func @main(%x: tensor<4096x1024xf8E4M3FN>, %w: tensor<4096x1024xf8E5M2>) -> tensor<4096x4096xbf16> {
  %0 = burin.transpose %w {perm = array<i64: 1, 0>} : (tensor<4096x1024xf8E5M2>) -> tensor<1024x4096xf8E5M2>
  %1 = burin.matmul %x, %0 : (tensor<4096x1024xf8E4M3FN>, tensor<1024x4096xf8E5M2>) -> tensor<4096x4096xf32>
  %2 = burin.cast %1 {dtype = bf16} : (tensor<4096x4096xf32>) -> tensor<4096x4096xbf16>
  return %2 : tensor<4096x4096xbf16>
}
