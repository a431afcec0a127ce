func.func @main(%x: tensor<64x8xf32>, %y: tensor<8xf32>, %z: tensor<50x3x12xf32>, %w: tensor<3x1xf32>, %h: tensor<300x24xf16>, %s: tensor<?x1000xf32, ["rows"]>, %t: tensor<37x?xf32, ["columns"]>, %u: tensor<37x208xf32>) -> (tensor<64x8xf32>, tensor<50x3x12xf32>, tensor<300x24xf16>, tensor<1000xf32>, tensor<?xf32, ["columns"]>, tensor<208xf32>, tensor<24xf16>, tensor<208xi64>) {
  %a = burin.broadcast_to %y {shape = [64, 8]} : (tensor<8xf32>) -> tensor<64x8xf32>
  %0 = burin.mul %x, %a : (tensor<64x8xf32>, tensor<64x8xf32>) -> tensor<64x8xf32>
  %b = burin.broadcast_to %w {shape = [50, 3, 12]} : (tensor<3x1xf32>) -> tensor<50x3x12xf32>
  %1 = burin.mul %z, %b : (tensor<50x3x12xf32>, tensor<50x3x12xf32>) -> tensor<50x3x12xf32>
  %6 = burin.reduce_sum %h {axes = array<i64: 0>, keepdims = false} : (tensor<300x24xf16>) -> tensor<24xf16>
  %c = burin.broadcast_to %6 {shape = [300, 24]} : (tensor<24xf16>) -> tensor<300x24xf16>
  %2 = burin.sub %h, %c : (tensor<300x24xf16>, tensor<300x24xf16>) -> tensor<300x24xf16>
  %3 = burin.reduce_sum %s {axes = array<i64: 0>, keepdims = false} : (tensor<?x1000xf32, ["rows"]>) -> tensor<1000xf32>
  %4 = burin.reduce_max %t {axes = array<i64: 0>, keepdims = false} : (tensor<37x?xf32, ["columns"]>) -> tensor<?xf32, ["columns"]>
  %5 = burin.reduce_sum %u {axes = array<i64: 0>, keepdims = false} : (tensor<37x208xf32>) -> tensor<208xf32>
  %7 = burin.argmax %u {axis = 0 : i64, keepdims = false} : (tensor<37x208xf32>) -> tensor<208xi64>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<64x8xf32>, tensor<50x3x12xf32>, tensor<300x24xf16>, tensor<1000xf32>, tensor<?xf32, ["columns"]>, tensor<208xf32>, tensor<24xf16>, tensor<208xi64>
}
