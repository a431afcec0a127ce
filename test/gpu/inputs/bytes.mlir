func.func @main(%x: tensor<128x256xui8>, %zero: tensor<ui8>, %w: tensor<256x128xi8>) -> tensor<128x128xi32> {
  %0 = burin.cast %x {dtype = i32} : (tensor<128x256xui8>) -> tensor<128x256xi32>
  %1 = burin.cast %zero {dtype = i32} : (tensor<ui8>) -> tensor<i32>
  %2 = burin.broadcast_to %1 {shape = [128, 256]} : (tensor<i32>) -> tensor<128x256xi32>
  %3 = burin.sub %0, %2 : (tensor<128x256xi32>, tensor<128x256xi32>) -> tensor<128x256xi32>
  %4 = burin.cast %w {dtype = i32} : (tensor<256x128xi8>) -> tensor<256x128xi32>
  %5 = burin.matmul %3, %4 : (tensor<128x256xi32>, tensor<256x128xi32>) -> tensor<128x128xi32>
  return %5 : tensor<128x128xi32>
}
