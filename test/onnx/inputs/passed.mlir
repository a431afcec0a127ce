// A graph after passes, which the exporter must accept.
func.func @main(%x: tensor<4x8xf32>) -> tensor<1x4x8xf32> {
  %0 = burin.pack %x {width = 8 : i64} : (tensor<4x8xf32>) -> tensor<1x4x8xf32>
  return %0 : tensor<1x4x8xf32>
}
