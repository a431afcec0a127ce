func.func @main(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
  %y = burin.softmax %x {axis = 1 : i64} : (tensor<64x1024xf32>) -> tensor<64x1024xf32>
  return %y : tensor<64x1024xf32>
}
