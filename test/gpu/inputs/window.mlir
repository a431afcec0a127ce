func.func @main(%x: tensor<2x3x20xf32>) -> tensor<2x3x33xf32> {
  %y = burin.adaptive_avg_pool %x {output_size = array<i64: 33>} : (tensor<2x3x20xf32>) -> tensor<2x3x33xf32>
  return %y : tensor<2x3x33xf32>
}
