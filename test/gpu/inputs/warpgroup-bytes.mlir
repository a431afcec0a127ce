func.func @main(%x: tensor<4096x1024xui8>, %w: tensor<4096x1024xi8>) -> tensor<4096x4096xi32> {
  %0 = burin.transpose %w {perm = array<i64: 1, 0>} : (tensor<4096x1024xi8>) -> tensor<1024x4096xi8>
  %1 = burin.cast %x {dtype = i32} : (tensor<4096x1024xui8>) -> tensor<4096x1024xi32>
  %2 = burin.cast %0 {dtype = i32} : (tensor<1024x4096xi8>) -> tensor<1024x4096xi32>
  %3 = burin.matmul %1, %2 : (tensor<4096x1024xi32>, tensor<1024x4096xi32>) -> tensor<4096x4096xi32>
  return %3 : tensor<4096x4096xi32>
}
