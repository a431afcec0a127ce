// RUN: burin-opt --burin-fuse %s | FileCheck %s

// Light ops are computed again from values that are stored anyway, instead of being stored.

// x - mean, which the softmax and a later kernel need.
// CHECK-LABEL: func.func @centred(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<64x33xf32>
// CHECK: %[[MEAN:.*]]:2 = burin.kernel "reduce_mean+sub+exp"({{.*}}) : (tensor<64x33xf32>) -> (tensor<64x1xf32>, tensor<64x33xf32>)
// CHECK: %[[SUM:.*]] = burin.kernel "cumsum"
// CHECK: burin.kernel "sub+mul"({{.*}}, {{.*}}, {{.*}}) : (tensor<64x33xf32>, tensor<64x1xf32>, tensor<64x33xf32>)
// CHECK: burin.sub
func.func @centred(%x: tensor<64x33xf32>) -> tensor<64x33xf32> {
  %m = burin.reduce_mean %x {axes = array<i64: 1>, keepdims = true} : (tensor<64x33xf32>) -> tensor<64x1xf32>
  %mb = burin.broadcast_to %m {shape = [64, 33]} : (tensor<64x1xf32>) -> tensor<64x33xf32>
  %c = burin.sub %x, %mb : (tensor<64x33xf32>, tensor<64x33xf32>) -> tensor<64x33xf32>
  %e = burin.exp %c : (tensor<64x33xf32>) -> tensor<64x33xf32>
  %s = burin.cumsum %e {axis = 0 : i64} : (tensor<64x33xf32>) -> tensor<64x33xf32>
  %y = burin.mul %c, %s : (tensor<64x33xf32>, tensor<64x33xf32>) -> tensor<64x33xf32>
  return %y : tensor<64x33xf32>
}

// The sum of two large values would be read twice instead of once.
// CHECK-LABEL: func.func @large(
// CHECK: burin.kernel "add+exp"({{.*}}) : {{.*}} -> (tensor<64x33xf32>, tensor<64x33xf32>)
// CHECK: burin.kernel "cumsum"
// CHECK: burin.kernel "mul"
func.func @large(%x: tensor<64x33xf32>, %z: tensor<64x33xf32>) -> tensor<64x33xf32> {
  %c = burin.add %x, %z : (tensor<64x33xf32>, tensor<64x33xf32>) -> tensor<64x33xf32>
  %e = burin.exp %c : (tensor<64x33xf32>) -> tensor<64x33xf32>
  %s = burin.cumsum %e {axis = 0 : i64} : (tensor<64x33xf32>) -> tensor<64x33xf32>
  %y = burin.mul %c, %s : (tensor<64x33xf32>, tensor<64x33xf32>) -> tensor<64x33xf32>
  return %y : tensor<64x33xf32>
}

// A kernel that reads one of them anyway reads no more.
// CHECK-LABEL: func.func @read(
// CHECK: burin.kernel "add+exp"({{.*}}) : {{.*}} -> tensor<64x33xf32>
// CHECK: burin.kernel "cumsum"
// CHECK: burin.kernel "add+mul+sub"
func.func @read(%x: tensor<64x33xf32>, %z: tensor<64x33xf32>) -> tensor<64x33xf32> {
  %c = burin.add %x, %z : (tensor<64x33xf32>, tensor<64x33xf32>) -> tensor<64x33xf32>
  %e = burin.exp %c : (tensor<64x33xf32>) -> tensor<64x33xf32>
  %s = burin.cumsum %e {axis = 0 : i64} : (tensor<64x33xf32>) -> tensor<64x33xf32>
  %y = burin.mul %c, %s : (tensor<64x33xf32>, tensor<64x33xf32>) -> tensor<64x33xf32>
  %w = burin.sub %y, %z : (tensor<64x33xf32>, tensor<64x33xf32>) -> tensor<64x33xf32>
  return %w : tensor<64x33xf32>
}

// Exponentials are not light, and a value that is stored anyway is read.
// CHECK-LABEL: func.func @stored(
// CHECK: burin.kernel "neg+exp"({{.*}}) : {{.*}} -> (tensor<64x33xf32>, tensor<64x33xf32>)
// CHECK: burin.kernel "cumsum"
// CHECK: burin.kernel "mul+mul"
func.func @stored(%x: tensor<64x33xf32>) -> (tensor<64x33xf32>, tensor<64x33xf32>) {
  %n = burin.neg %x : (tensor<64x33xf32>) -> tensor<64x33xf32>
  %e = burin.exp %n : (tensor<64x33xf32>) -> tensor<64x33xf32>
  %s = burin.cumsum %e {axis = 0 : i64} : (tensor<64x33xf32>) -> tensor<64x33xf32>
  %y = burin.mul %n, %s : (tensor<64x33xf32>, tensor<64x33xf32>) -> tensor<64x33xf32>
  %w = burin.mul %y, %e : (tensor<64x33xf32>, tensor<64x33xf32>) -> tensor<64x33xf32>
  return %w, %n : tensor<64x33xf32>, tensor<64x33xf32>
}

// x + max broadcasts along the rows of a sum over both dimensions: computed in the kernel of the sum, it would change the
// order of additions.
// CHECK-LABEL: func.func @sum_of_broadcast(
// CHECK: burin.kernel "reduce_max+add"
// CHECK: burin.kernel "reduce_sum"
func.func @sum_of_broadcast(%x: tensor<64x33xf32>) -> tensor<1x1xf32> {
  %m = burin.reduce_max %x {axes = array<i64: 0>, keepdims = true} : (tensor<64x33xf32>) -> tensor<1x33xf32>
  %b = burin.broadcast_to %m {shape = [64, 33]} : (tensor<1x33xf32>) -> tensor<64x33xf32>
  %c = burin.add %x, %b : (tensor<64x33xf32>, tensor<64x33xf32>) -> tensor<64x33xf32>
  %y = burin.reduce_sum %c {axes = array<i64: 0, 1>, keepdims = true} : (tensor<64x33xf32>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}

// The means of channels are the same along the summed positions of an image.
// CHECK-LABEL: func.func @sums_of_channels(
// CHECK: burin.kernel "reduce_mean+sub+exp"
// CHECK: burin.kernel "cumsum"
// CHECK: burin.kernel "sub+mul+reduce_sum"
func.func @sums_of_channels(%x: tensor<4x8x9x9xf32>) -> tensor<1x8x1x1xf32> {
  %m = burin.reduce_mean %x {axes = array<i64: 0, 2, 3>, keepdims = true} : (tensor<4x8x9x9xf32>) -> tensor<1x8x1x1xf32>
  %b = burin.broadcast_to %m {shape = [4, 8, 9, 9]} : (tensor<1x8x1x1xf32>) -> tensor<4x8x9x9xf32>
  %c = burin.sub %x, %b : (tensor<4x8x9x9xf32>, tensor<4x8x9x9xf32>) -> tensor<4x8x9x9xf32>
  %e = burin.exp %c : (tensor<4x8x9x9xf32>) -> tensor<4x8x9x9xf32>
  %s = burin.cumsum %e {axis = 3 : i64} : (tensor<4x8x9x9xf32>) -> tensor<4x8x9x9xf32>
  %p = burin.mul %c, %s : (tensor<4x8x9x9xf32>, tensor<4x8x9x9xf32>) -> tensor<4x8x9x9xf32>
  %y = burin.reduce_sum %p {axes = array<i64: 0, 2, 3>, keepdims = true} : (tensor<4x8x9x9xf32>) -> tensor<1x8x1x1xf32>
  return %y : tensor<1x8x1x1xf32>
}
