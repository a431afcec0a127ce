func.func @main(%x: tensor<65x257xf32>, %w: tensor<257x131xf32>) -> (tensor<65x257xf32>, tensor<65x131xf32>) {
  %y = burin.softmax %x {axis = 1 : i64} : (tensor<65x257xf32>) -> tensor<65x257xf32>
  %z = burin.matmul %x, %w : (tensor<65x257xf32>, tensor<257x131xf32>) -> tensor<65x131xf32>
  return %y, %z : tensor<65x257xf32>, tensor<65x131xf32>
}
