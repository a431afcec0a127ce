// RUN: burin-opt %s --burin-attention-gradients | FileCheck %s
// RUN: burin-opt %s --burin-attention-gradients="on-gpus=true" | FileCheck %s --check-prefix=GPU
// RUN: burin-opt %s --burin-attention-gradients="on-gpus=true rounds-f32=true" | FileCheck %s --check-prefix=ROUNDED

// The rule of attention: masked rows as a whole give zeros. The factors of queries and keys stay in the graph.
// CHECK-LABEL: @masked
// CHECK-NEXT: %[[ALL:.*]] = burin.attention_gradient %arg0, %arg1, %arg2, %arg3, %arg4 {scale = 2.500000e-01 : f64} : ({{.*}}) -> tensor<4x4x448x16xf32>
// CHECK-DAG: %[[Q:.*]] = burin.slice %[[ALL]] {starts = [0, 0, 0, 0], {{.*}}stops = [4, 4, 128, 16]
// CHECK-DAG: %[[K:.*]] = burin.slice %[[ALL]] {starts = [0, 0, 128, 0], {{.*}}stops = [4, 4, 288, 16]
// CHECK-DAG: %[[V:.*]] = burin.slice %[[ALL]] {starts = [0, 0, 288, 0], {{.*}}stops = [4, 4, 448, 16]
// CHECK: return %[[Q]], %[[K]], %[[V]]
func.func @masked(%q: tensor<4x4x128x16xf32>, %k: tensor<4x4x160x16xf32>, %v: tensor<4x4x160x16xf32>, %g: tensor<4x4x128x16xf32>, %m: tensor<128x160xi1>) -> (tensor<4x4x128x16xf32>, tensor<4x4x160x16xf32>, tensor<4x4x160x16xf32>) {
  %kt = burin.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x160x16xf32>) -> tensor<4x4x16x160xf32>
  %products = burin.matmul %q, %kt : (tensor<4x4x128x16xf32>, tensor<4x4x16x160xf32>) -> tensor<4x4x128x160xf32>
  %scales = burin.full {shape = [4, 4, 128, 160], value = 2.500000e-01 : f64, dtype = f32} : () -> tensor<4x4x128x160xf32>
  %scaled = burin.mul %products, %scales : (tensor<4x4x128x160xf32>, tensor<4x4x128x160xf32>) -> tensor<4x4x128x160xf32>
  %never = burin.full {shape = [4, 4, 128, 160], value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<4x4x128x160xf32>
  %mask = burin.broadcast_to %m {shape = [4, 4, 128, 160]} : (tensor<128x160xi1>) -> tensor<4x4x128x160xi1>
  %seen = burin.where %mask, %scaled, %never : (tensor<4x4x128x160xi1>, tensor<4x4x128x160xf32>, tensor<4x4x128x160xf32>) -> tensor<4x4x128x160xf32>
  %softmax = burin.softmax %seen {axis = 3 : i64} : (tensor<4x4x128x160xf32>) -> tensor<4x4x128x160xf32>
  %top = burin.reduce_max %seen {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x128x160xf32>) -> tensor<4x4x128x1xf32>
  %least = burin.full {shape = [4, 4, 128, 1], value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<4x4x128x1xf32>
  %none = burin.eq %top, %least : (tensor<4x4x128x1xf32>, tensor<4x4x128x1xf32>) -> tensor<4x4x128x1xi1>
  %nones = burin.broadcast_to %none {shape = [4, 4, 128, 160]} : (tensor<4x4x128x1xi1>) -> tensor<4x4x128x160xi1>
  %zeros = burin.full {shape = [4, 4, 128, 160], value = 0.000000e+00 : f64, dtype = f32} : () -> tensor<4x4x128x160xf32>
  %weights = burin.where %nones, %zeros, %softmax : (tensor<4x4x128x160xi1>, tensor<4x4x128x160xf32>, tensor<4x4x128x160xf32>) -> tensor<4x4x128x160xf32>
  %vt = burin.transpose %v {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x160x16xf32>) -> tensor<4x4x16x160xf32>
  %dp = burin.matmul %g, %vt : (tensor<4x4x128x16xf32>, tensor<4x4x16x160xf32>) -> tensor<4x4x128x160xf32>
  %terms = burin.mul %dp, %weights : (tensor<4x4x128x160xf32>, tensor<4x4x128x160xf32>) -> tensor<4x4x128x160xf32>
  %sum = burin.reduce_sum %terms {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x128x160xf32>) -> tensor<4x4x128x1xf32>
  %sums = burin.broadcast_to %sum {shape = [4, 4, 128, 160]} : (tensor<4x4x128x1xf32>) -> tensor<4x4x128x160xf32>
  %d = burin.sub %dp, %sums : (tensor<4x4x128x160xf32>, tensor<4x4x128x160xf32>) -> tensor<4x4x128x160xf32>
  %ds = burin.mul %weights, %d : (tensor<4x4x128x160xf32>, tensor<4x4x128x160xf32>) -> tensor<4x4x128x160xf32>
  %dst = burin.transpose %ds {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x160xf32>) -> tensor<4x4x160x128xf32>
  %pt = burin.transpose %weights {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x160xf32>) -> tensor<4x4x160x128xf32>
  %dq = burin.matmul %ds, %k : (tensor<4x4x128x160xf32>, tensor<4x4x160x16xf32>) -> tensor<4x4x128x16xf32>
  %dk = burin.matmul %dst, %q : (tensor<4x4x160x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x160x16xf32>
  %dv = burin.matmul %pt, %g : (tensor<4x4x160x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x160x16xf32>
  return %dq, %dk, %dv : tensor<4x4x128x16xf32>, tensor<4x4x160x16xf32>, tensor<4x4x160x16xf32>
}

// A mask that is added.
// CHECK-LABEL: @added
// CHECK: burin.attention_gradient %arg0, %arg1, %arg2, %arg3, %arg4 {scale
// CHECK-NOT: burin.softmax
func.func @added(%q: tensor<4x4x128x16xf32>, %k: tensor<4x4x160x16xf32>, %v: tensor<4x4x160x16xf32>, %g: tensor<4x4x128x16xf32>, %m: tensor<128x160xf32>) -> (tensor<4x4x128x16xf32>, tensor<4x4x160x16xf32>, tensor<4x4x160x16xf32>) {
  %kt = burin.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x160x16xf32>) -> tensor<4x4x16x160xf32>
  %products = burin.matmul %q, %kt : (tensor<4x4x128x16xf32>, tensor<4x4x16x160xf32>) -> tensor<4x4x128x160xf32>
  %scales = burin.full {shape = [4, 4, 128, 160], value = 2.500000e-01 : f64, dtype = f32} : () -> tensor<4x4x128x160xf32>
  %scaled = burin.mul %products, %scales : (tensor<4x4x128x160xf32>, tensor<4x4x128x160xf32>) -> tensor<4x4x128x160xf32>
  %never = burin.full {shape = [4, 4, 128, 160], value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<4x4x128x160xf32>
  %mask = burin.broadcast_to %m {shape = [4, 4, 128, 160]} : (tensor<128x160xf32>) -> tensor<4x4x128x160xf32>
  %seen = burin.add %scaled, %mask : (tensor<4x4x128x160xf32>, tensor<4x4x128x160xf32>) -> tensor<4x4x128x160xf32>
  %softmax = burin.softmax %seen {axis = 3 : i64} : (tensor<4x4x128x160xf32>) -> tensor<4x4x128x160xf32>
  %top = burin.reduce_max %seen {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x128x160xf32>) -> tensor<4x4x128x1xf32>
  %least = burin.full {shape = [4, 4, 128, 1], value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<4x4x128x1xf32>
  %none = burin.eq %top, %least : (tensor<4x4x128x1xf32>, tensor<4x4x128x1xf32>) -> tensor<4x4x128x1xi1>
  %nones = burin.broadcast_to %none {shape = [4, 4, 128, 160]} : (tensor<4x4x128x1xi1>) -> tensor<4x4x128x160xi1>
  %zeros = burin.full {shape = [4, 4, 128, 160], value = 0.000000e+00 : f64, dtype = f32} : () -> tensor<4x4x128x160xf32>
  %weights = burin.where %nones, %zeros, %softmax : (tensor<4x4x128x160xi1>, tensor<4x4x128x160xf32>, tensor<4x4x128x160xf32>) -> tensor<4x4x128x160xf32>
  %vt = burin.transpose %v {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x160x16xf32>) -> tensor<4x4x16x160xf32>
  %dp = burin.matmul %g, %vt : (tensor<4x4x128x16xf32>, tensor<4x4x16x160xf32>) -> tensor<4x4x128x160xf32>
  %terms = burin.mul %dp, %weights : (tensor<4x4x128x160xf32>, tensor<4x4x128x160xf32>) -> tensor<4x4x128x160xf32>
  %sum = burin.reduce_sum %terms {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x128x160xf32>) -> tensor<4x4x128x1xf32>
  %sums = burin.broadcast_to %sum {shape = [4, 4, 128, 160]} : (tensor<4x4x128x1xf32>) -> tensor<4x4x128x160xf32>
  %d = burin.sub %dp, %sums : (tensor<4x4x128x160xf32>, tensor<4x4x128x160xf32>) -> tensor<4x4x128x160xf32>
  %ds = burin.mul %weights, %d : (tensor<4x4x128x160xf32>, tensor<4x4x128x160xf32>) -> tensor<4x4x128x160xf32>
  %dst = burin.transpose %ds {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x160xf32>) -> tensor<4x4x160x128xf32>
  %pt = burin.transpose %weights {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x160xf32>) -> tensor<4x4x160x128xf32>
  %dq = burin.matmul %ds, %k : (tensor<4x4x128x160xf32>, tensor<4x4x160x16xf32>) -> tensor<4x4x128x16xf32>
  %dk = burin.matmul %dst, %q : (tensor<4x4x160x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x160x16xf32>
  %dv = burin.matmul %pt, %g : (tensor<4x4x160x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x160x16xf32>
  return %dq, %dk, %dv : tensor<4x4x128x16xf32>, tensor<4x4x160x16xf32>, tensor<4x4x160x16xf32>
}

// CHECK-LABEL: @causal
// CHECK: burin.attention_gradient %arg0, %arg1, %arg2, %arg3 {is_causal = true, scale
// CHECK-NOT: burin.softmax
func.func @causal(%q: tensor<4x4x?x16xf32, ["n"]>, %k: tensor<4x4x?x16xf32, ["n"]>, %v: tensor<4x4x?x16xf32, ["n"]>, %g: tensor<4x4x?x16xf32, ["n"]>) -> (tensor<4x4x?x16xf32, ["n"]>, tensor<4x4x?x16xf32, ["n"]>, tensor<4x4x?x16xf32, ["n"]>) {
  %kt = burin.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x?x16xf32, ["n"]>) -> tensor<4x4x16x?xf32, ["n"]>
  %products = burin.matmul %q, %kt : (tensor<4x4x?x16xf32, ["n"]>, tensor<4x4x16x?xf32, ["n"]>) -> tensor<4x4x?x?xf32, ["n", "n"]>
  %scales = burin.full {shape = [4, 4, "n", "n"], value = 2.500000e-01 : f64, dtype = f32} : () -> tensor<4x4x?x?xf32, ["n", "n"]>
  %scaled = burin.mul %products, %scales : (tensor<4x4x?x?xf32, ["n", "n"]>, tensor<4x4x?x?xf32, ["n", "n"]>) -> tensor<4x4x?x?xf32, ["n", "n"]>
  %never = burin.full {shape = [4, 4, "n", "n"], value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<4x4x?x?xf32, ["n", "n"]>
  %rows = burin.iota {shape = ["n", "n"], dtype = i64, axis = 0 : i64} : () -> tensor<?x?xi64, ["n", "n"]>
  %columns = burin.iota {shape = ["n", "n"], dtype = i64, axis = 1 : i64} : () -> tensor<?x?xi64, ["n", "n"]>
  %before = burin.ge %rows, %columns : (tensor<?x?xi64, ["n", "n"]>, tensor<?x?xi64, ["n", "n"]>) -> tensor<?x?xi1, ["n", "n"]>
  %mask = burin.broadcast_to %before {shape = [4, 4, "n", "n"]} : (tensor<?x?xi1, ["n", "n"]>) -> tensor<4x4x?x?xi1, ["n", "n"]>
  %seen = burin.where %mask, %scaled, %never : (tensor<4x4x?x?xi1, ["n", "n"]>, tensor<4x4x?x?xf32, ["n", "n"]>, tensor<4x4x?x?xf32, ["n", "n"]>) -> tensor<4x4x?x?xf32, ["n", "n"]>
  %softmax = burin.softmax %seen {axis = 3 : i64} : (tensor<4x4x?x?xf32, ["n", "n"]>) -> tensor<4x4x?x?xf32, ["n", "n"]>
  %top = burin.reduce_max %seen {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x?x?xf32, ["n", "n"]>) -> tensor<4x4x?x1xf32, ["n"]>
  %least = burin.full {shape = [4, 4, "n", 1], value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<4x4x?x1xf32, ["n"]>
  %none = burin.eq %top, %least : (tensor<4x4x?x1xf32, ["n"]>, tensor<4x4x?x1xf32, ["n"]>) -> tensor<4x4x?x1xi1, ["n"]>
  %nones = burin.broadcast_to %none {shape = [4, 4, "n", "n"]} : (tensor<4x4x?x1xi1, ["n"]>) -> tensor<4x4x?x?xi1, ["n", "n"]>
  %zeros = burin.full {shape = [4, 4, "n", "n"], value = 0.000000e+00 : f64, dtype = f32} : () -> tensor<4x4x?x?xf32, ["n", "n"]>
  %weights = burin.where %nones, %zeros, %softmax : (tensor<4x4x?x?xi1, ["n", "n"]>, tensor<4x4x?x?xf32, ["n", "n"]>, tensor<4x4x?x?xf32, ["n", "n"]>) -> tensor<4x4x?x?xf32, ["n", "n"]>
  %vt = burin.transpose %v {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x?x16xf32, ["n"]>) -> tensor<4x4x16x?xf32, ["n"]>
  %dp = burin.matmul %g, %vt : (tensor<4x4x?x16xf32, ["n"]>, tensor<4x4x16x?xf32, ["n"]>) -> tensor<4x4x?x?xf32, ["n", "n"]>
  %terms = burin.mul %dp, %weights : (tensor<4x4x?x?xf32, ["n", "n"]>, tensor<4x4x?x?xf32, ["n", "n"]>) -> tensor<4x4x?x?xf32, ["n", "n"]>
  %sum = burin.reduce_sum %terms {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x?x?xf32, ["n", "n"]>) -> tensor<4x4x?x1xf32, ["n"]>
  %sums = burin.broadcast_to %sum {shape = [4, 4, "n", "n"]} : (tensor<4x4x?x1xf32, ["n"]>) -> tensor<4x4x?x?xf32, ["n", "n"]>
  %d = burin.sub %dp, %sums : (tensor<4x4x?x?xf32, ["n", "n"]>, tensor<4x4x?x?xf32, ["n", "n"]>) -> tensor<4x4x?x?xf32, ["n", "n"]>
  %ds = burin.mul %weights, %d : (tensor<4x4x?x?xf32, ["n", "n"]>, tensor<4x4x?x?xf32, ["n", "n"]>) -> tensor<4x4x?x?xf32, ["n", "n"]>
  %dst = burin.transpose %ds {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x?x?xf32, ["n", "n"]>) -> tensor<4x4x?x?xf32, ["n", "n"]>
  %pt = burin.transpose %weights {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x?x?xf32, ["n", "n"]>) -> tensor<4x4x?x?xf32, ["n", "n"]>
  %dq = burin.matmul %ds, %k : (tensor<4x4x?x?xf32, ["n", "n"]>, tensor<4x4x?x16xf32, ["n"]>) -> tensor<4x4x?x16xf32, ["n"]>
  %dk = burin.matmul %dst, %q : (tensor<4x4x?x?xf32, ["n", "n"]>, tensor<4x4x?x16xf32, ["n"]>) -> tensor<4x4x?x16xf32, ["n"]>
  %dv = burin.matmul %pt, %g : (tensor<4x4x?x?xf32, ["n", "n"]>, tensor<4x4x?x16xf32, ["n"]>) -> tensor<4x4x?x16xf32, ["n"]>
  return %dq, %dk, %dv : tensor<4x4x?x16xf32, ["n"]>, tensor<4x4x?x16xf32, ["n"]>, tensor<4x4x?x16xf32, ["n"]>
}

// Attention that the program composes: its output and its gradients share the weights. The factor of the scores is one of
// the results.
// CHECK-LABEL: @composed
// CHECK-DAG: burin.scaled_dot_product_attention %arg0, %arg1, %arg2 {scale = 2.500000e-01 : f64}
// CHECK-DAG: %[[ALL:.*]] = burin.attention_gradient %arg0, %arg1, %arg2, %arg3 {scale
// CHECK-DAG: %[[Q:.*]] = burin.slice %[[ALL]] {starts = [0, 0, 0, 0]
// CHECK-DAG: burin.mul %[[Q]],
// CHECK-NOT: burin.softmax
func.func @composed(%q: tensor<4x4x128x16xf32>, %k: tensor<4x4x128x16xf32>, %v: tensor<4x4x128x16xf32>, %g: tensor<4x4x128x16xf32>) -> (tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>) {
  %kt = burin.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x16xf32>) -> tensor<4x4x16x128xf32>
  %products = burin.matmul %q, %kt : (tensor<4x4x128x16xf32>, tensor<4x4x16x128xf32>) -> tensor<4x4x128x128xf32>
  %scales = burin.full {shape = [4, 4, 128, 128], value = 2.500000e-01 : f64, dtype = f32} : () -> tensor<4x4x128x128xf32>
  %scaled = burin.mul %products, %scales : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %never = burin.full {shape = [4, 4, 128, 128], value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<4x4x128x128xf32>
  %softmax = burin.softmax %scaled {axis = 3 : i64} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %y = burin.matmul %softmax, %v : (tensor<4x4x128x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x128x16xf32>
  %vt = burin.transpose %v {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x16xf32>) -> tensor<4x4x16x128xf32>
  %dp = burin.matmul %g, %vt : (tensor<4x4x128x16xf32>, tensor<4x4x16x128xf32>) -> tensor<4x4x128x128xf32>
  %terms = burin.mul %dp, %softmax : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %sum = burin.reduce_sum %terms {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x1xf32>
  %sums = burin.broadcast_to %sum {shape = [4, 4, 128, 128]} : (tensor<4x4x128x1xf32>) -> tensor<4x4x128x128xf32>
  %d = burin.sub %dp, %sums : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %ds = burin.mul %softmax, %d : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %dss = burin.mul %ds, %scales : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %dst = burin.transpose %dss {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %pt = burin.transpose %softmax {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %dq = burin.matmul %dss, %k : (tensor<4x4x128x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x128x16xf32>
  %dk = burin.matmul %dst, %q : (tensor<4x4x128x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x128x16xf32>
  %dv = burin.matmul %pt, %g : (tensor<4x4x128x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x128x16xf32>
  return %y, %dq, %dk, %dv : tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>
}

// Something else reads the weights.
// CHECK-LABEL: @weights
// CHECK-NOT: burin.attention_gradient
func.func @weights(%q: tensor<4x4x128x16xf32>, %k: tensor<4x4x128x16xf32>, %v: tensor<4x4x128x16xf32>, %g: tensor<4x4x128x16xf32>) -> (tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>, tensor<4x4x128x128xf32>) {
  %kt = burin.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x16xf32>) -> tensor<4x4x16x128xf32>
  %products = burin.matmul %q, %kt : (tensor<4x4x128x16xf32>, tensor<4x4x16x128xf32>) -> tensor<4x4x128x128xf32>
  %scales = burin.full {shape = [4, 4, 128, 128], value = 2.500000e-01 : f64, dtype = f32} : () -> tensor<4x4x128x128xf32>
  %scaled = burin.mul %products, %scales : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %never = burin.full {shape = [4, 4, 128, 128], value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<4x4x128x128xf32>
  %softmax = burin.softmax %scaled {axis = 3 : i64} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %top = burin.reduce_max %scaled {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x1xf32>
  %least = burin.full {shape = [4, 4, 128, 1], value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<4x4x128x1xf32>
  %none = burin.eq %top, %least : (tensor<4x4x128x1xf32>, tensor<4x4x128x1xf32>) -> tensor<4x4x128x1xi1>
  %nones = burin.broadcast_to %none {shape = [4, 4, 128, 128]} : (tensor<4x4x128x1xi1>) -> tensor<4x4x128x128xi1>
  %zeros = burin.full {shape = [4, 4, 128, 128], value = 0.000000e+00 : f64, dtype = f32} : () -> tensor<4x4x128x128xf32>
  %weights = burin.where %nones, %zeros, %softmax : (tensor<4x4x128x128xi1>, tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %vt = burin.transpose %v {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x16xf32>) -> tensor<4x4x16x128xf32>
  %dp = burin.matmul %g, %vt : (tensor<4x4x128x16xf32>, tensor<4x4x16x128xf32>) -> tensor<4x4x128x128xf32>
  %terms = burin.mul %dp, %weights : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %sum = burin.reduce_sum %terms {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x1xf32>
  %sums = burin.broadcast_to %sum {shape = [4, 4, 128, 128]} : (tensor<4x4x128x1xf32>) -> tensor<4x4x128x128xf32>
  %d = burin.sub %dp, %sums : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %ds = burin.mul %weights, %d : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %dst = burin.transpose %ds {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %pt = burin.transpose %weights {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %dq = burin.matmul %ds, %k : (tensor<4x4x128x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x128x16xf32>
  %dk = burin.matmul %dst, %q : (tensor<4x4x128x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x128x16xf32>
  %dv = burin.matmul %pt, %g : (tensor<4x4x128x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x128x16xf32>
  return %dq, %dk, %dv, %weights : tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>, tensor<4x4x128x128xf32>
}

// The mask, or something else, has a gradient.
// CHECK-LABEL: @scores
// CHECK-NOT: burin.attention_gradient
func.func @scores(%q: tensor<4x4x128x16xf32>, %k: tensor<4x4x128x16xf32>, %v: tensor<4x4x128x16xf32>, %g: tensor<4x4x128x16xf32>) -> (tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>, tensor<4x4x128x128xf32>) {
  %kt = burin.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x16xf32>) -> tensor<4x4x16x128xf32>
  %products = burin.matmul %q, %kt : (tensor<4x4x128x16xf32>, tensor<4x4x16x128xf32>) -> tensor<4x4x128x128xf32>
  %scales = burin.full {shape = [4, 4, 128, 128], value = 2.500000e-01 : f64, dtype = f32} : () -> tensor<4x4x128x128xf32>
  %scaled = burin.mul %products, %scales : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %never = burin.full {shape = [4, 4, 128, 128], value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<4x4x128x128xf32>
  %softmax = burin.softmax %scaled {axis = 3 : i64} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %top = burin.reduce_max %scaled {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x1xf32>
  %least = burin.full {shape = [4, 4, 128, 1], value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<4x4x128x1xf32>
  %none = burin.eq %top, %least : (tensor<4x4x128x1xf32>, tensor<4x4x128x1xf32>) -> tensor<4x4x128x1xi1>
  %nones = burin.broadcast_to %none {shape = [4, 4, 128, 128]} : (tensor<4x4x128x1xi1>) -> tensor<4x4x128x128xi1>
  %zeros = burin.full {shape = [4, 4, 128, 128], value = 0.000000e+00 : f64, dtype = f32} : () -> tensor<4x4x128x128xf32>
  %weights = burin.where %nones, %zeros, %softmax : (tensor<4x4x128x128xi1>, tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %vt = burin.transpose %v {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x16xf32>) -> tensor<4x4x16x128xf32>
  %dp = burin.matmul %g, %vt : (tensor<4x4x128x16xf32>, tensor<4x4x16x128xf32>) -> tensor<4x4x128x128xf32>
  %terms = burin.mul %dp, %weights : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %sum = burin.reduce_sum %terms {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x1xf32>
  %sums = burin.broadcast_to %sum {shape = [4, 4, 128, 128]} : (tensor<4x4x128x1xf32>) -> tensor<4x4x128x128xf32>
  %d = burin.sub %dp, %sums : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %ds = burin.mul %weights, %d : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %dst = burin.transpose %ds {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %pt = burin.transpose %weights {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %dq = burin.matmul %ds, %k : (tensor<4x4x128x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x128x16xf32>
  %dk = burin.matmul %dst, %q : (tensor<4x4x128x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x128x16xf32>
  %dv = burin.matmul %pt, %g : (tensor<4x4x128x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x128x16xf32>
  return %dq, %dk, %dv, %ds : tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>, tensor<4x4x128x128xf32>
}

// Rows that see nothing have NaN weights in this formula, but zeros in the op.
// CHECK-LABEL: @nan
// CHECK-NOT: burin.attention_gradient
func.func @nan(%q: tensor<4x4x128x16xf32>, %k: tensor<4x4x128x16xf32>, %v: tensor<4x4x128x16xf32>, %g: tensor<4x4x128x16xf32>, %m: tensor<128x128xi1>) -> (tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>) {
  %kt = burin.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x16xf32>) -> tensor<4x4x16x128xf32>
  %products = burin.matmul %q, %kt : (tensor<4x4x128x16xf32>, tensor<4x4x16x128xf32>) -> tensor<4x4x128x128xf32>
  %scales = burin.full {shape = [4, 4, 128, 128], value = 2.500000e-01 : f64, dtype = f32} : () -> tensor<4x4x128x128xf32>
  %scaled = burin.mul %products, %scales : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %never = burin.full {shape = [4, 4, 128, 128], value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<4x4x128x128xf32>
  %mask = burin.broadcast_to %m {shape = [4, 4, 128, 128]} : (tensor<128x128xi1>) -> tensor<4x4x128x128xi1>
  %seen = burin.where %mask, %scaled, %never : (tensor<4x4x128x128xi1>, tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %softmax = burin.softmax %seen {axis = 3 : i64} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %vt = burin.transpose %v {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x16xf32>) -> tensor<4x4x16x128xf32>
  %dp = burin.matmul %g, %vt : (tensor<4x4x128x16xf32>, tensor<4x4x16x128xf32>) -> tensor<4x4x128x128xf32>
  %terms = burin.mul %dp, %softmax : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %sum = burin.reduce_sum %terms {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x1xf32>
  %sums = burin.broadcast_to %sum {shape = [4, 4, 128, 128]} : (tensor<4x4x128x1xf32>) -> tensor<4x4x128x128xf32>
  %d = burin.sub %dp, %sums : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %ds = burin.mul %softmax, %d : (tensor<4x4x128x128xf32>, tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %dst = burin.transpose %ds {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %pt = burin.transpose %softmax {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x128xf32>) -> tensor<4x4x128x128xf32>
  %dq = burin.matmul %ds, %k : (tensor<4x4x128x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x128x16xf32>
  %dk = burin.matmul %dst, %q : (tensor<4x4x128x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x128x16xf32>
  %dv = burin.matmul %pt, %g : (tensor<4x4x128x128xf32>, tensor<4x4x128x16xf32>) -> tensor<4x4x128x16xf32>
  return %dq, %dk, %dv : tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>, tensor<4x4x128x16xf32>
}

// No kernel for f64.
// CHECK-LABEL: @wide
// CHECK-NOT: burin.attention_gradient
func.func @wide(%q: tensor<4x4x128x16xf64>, %k: tensor<4x4x128x16xf64>, %v: tensor<4x4x128x16xf64>, %g: tensor<4x4x128x16xf64>) -> (tensor<4x4x128x16xf64>, tensor<4x4x128x16xf64>, tensor<4x4x128x16xf64>) {
  %kt = burin.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x16xf64>) -> tensor<4x4x16x128xf64>
  %products = burin.matmul %q, %kt : (tensor<4x4x128x16xf64>, tensor<4x4x16x128xf64>) -> tensor<4x4x128x128xf64>
  %scales = burin.full {shape = [4, 4, 128, 128], value = 2.500000e-01 : f64, dtype = f64} : () -> tensor<4x4x128x128xf64>
  %scaled = burin.mul %products, %scales : (tensor<4x4x128x128xf64>, tensor<4x4x128x128xf64>) -> tensor<4x4x128x128xf64>
  %never = burin.full {shape = [4, 4, 128, 128], value = 0xFFF0000000000000 : f64, dtype = f64} : () -> tensor<4x4x128x128xf64>
  %softmax = burin.softmax %scaled {axis = 3 : i64} : (tensor<4x4x128x128xf64>) -> tensor<4x4x128x128xf64>
  %top = burin.reduce_max %scaled {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x128x128xf64>) -> tensor<4x4x128x1xf64>
  %least = burin.full {shape = [4, 4, 128, 1], value = 0xFFF0000000000000 : f64, dtype = f64} : () -> tensor<4x4x128x1xf64>
  %none = burin.eq %top, %least : (tensor<4x4x128x1xf64>, tensor<4x4x128x1xf64>) -> tensor<4x4x128x1xi1>
  %nones = burin.broadcast_to %none {shape = [4, 4, 128, 128]} : (tensor<4x4x128x1xi1>) -> tensor<4x4x128x128xi1>
  %zeros = burin.full {shape = [4, 4, 128, 128], value = 0.000000e+00 : f64, dtype = f64} : () -> tensor<4x4x128x128xf64>
  %weights = burin.where %nones, %zeros, %softmax : (tensor<4x4x128x128xi1>, tensor<4x4x128x128xf64>, tensor<4x4x128x128xf64>) -> tensor<4x4x128x128xf64>
  %vt = burin.transpose %v {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x16xf64>) -> tensor<4x4x16x128xf64>
  %dp = burin.matmul %g, %vt : (tensor<4x4x128x16xf64>, tensor<4x4x16x128xf64>) -> tensor<4x4x128x128xf64>
  %terms = burin.mul %dp, %weights : (tensor<4x4x128x128xf64>, tensor<4x4x128x128xf64>) -> tensor<4x4x128x128xf64>
  %sum = burin.reduce_sum %terms {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x128x128xf64>) -> tensor<4x4x128x1xf64>
  %sums = burin.broadcast_to %sum {shape = [4, 4, 128, 128]} : (tensor<4x4x128x1xf64>) -> tensor<4x4x128x128xf64>
  %d = burin.sub %dp, %sums : (tensor<4x4x128x128xf64>, tensor<4x4x128x128xf64>) -> tensor<4x4x128x128xf64>
  %ds = burin.mul %weights, %d : (tensor<4x4x128x128xf64>, tensor<4x4x128x128xf64>) -> tensor<4x4x128x128xf64>
  %dst = burin.transpose %ds {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x128xf64>) -> tensor<4x4x128x128xf64>
  %pt = burin.transpose %weights {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x128x128xf64>) -> tensor<4x4x128x128xf64>
  %dq = burin.matmul %ds, %k : (tensor<4x4x128x128xf64>, tensor<4x4x128x16xf64>) -> tensor<4x4x128x16xf64>
  %dk = burin.matmul %dst, %q : (tensor<4x4x128x128xf64>, tensor<4x4x128x16xf64>) -> tensor<4x4x128x16xf64>
  %dv = burin.matmul %pt, %g : (tensor<4x4x128x128xf64>, tensor<4x4x128x16xf64>) -> tensor<4x4x128x16xf64>
  return %dq, %dk, %dv : tensor<4x4x128x16xf64>, tensor<4x4x128x16xf64>, tensor<4x4x128x16xf64>
}

// Products of bf16 are faster than the kernel, unless that computes half of the scores.
// GPU-LABEL: @half
// GPU: burin.attention_gradient
// ROUNDED-LABEL: @half
// ROUNDED: burin.attention_gradient
// CHECK-LABEL: @half
// CHECK-NOT: burin.attention_gradient
func.func @half(%q: tensor<4x4x512x16xbf16>, %k: tensor<4x4x512x16xbf16>, %v: tensor<4x4x512x16xbf16>, %g: tensor<4x4x512x16xbf16>) -> (tensor<4x4x512x16xbf16>, tensor<4x4x512x16xbf16>, tensor<4x4x512x16xbf16>) {
  %kt = burin.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x512x16xbf16>) -> tensor<4x4x16x512xbf16>
  %products = burin.matmul %q, %kt : (tensor<4x4x512x16xbf16>, tensor<4x4x16x512xbf16>) -> tensor<4x4x512x512xbf16>
  %scales = burin.full {shape = [4, 4, 512, 512], value = 2.500000e-01 : f64, dtype = bf16} : () -> tensor<4x4x512x512xbf16>
  %scaled = burin.mul %products, %scales : (tensor<4x4x512x512xbf16>, tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %never = burin.full {shape = [4, 4, 512, 512], value = 0xFFF0000000000000 : f64, dtype = bf16} : () -> tensor<4x4x512x512xbf16>
  %softmax = burin.softmax %scaled {axis = 3 : i64} : (tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %top = burin.reduce_max %scaled {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x512x512xbf16>) -> tensor<4x4x512x1xbf16>
  %least = burin.full {shape = [4, 4, 512, 1], value = 0xFFF0000000000000 : f64, dtype = bf16} : () -> tensor<4x4x512x1xbf16>
  %none = burin.eq %top, %least : (tensor<4x4x512x1xbf16>, tensor<4x4x512x1xbf16>) -> tensor<4x4x512x1xi1>
  %nones = burin.broadcast_to %none {shape = [4, 4, 512, 512]} : (tensor<4x4x512x1xi1>) -> tensor<4x4x512x512xi1>
  %zeros = burin.full {shape = [4, 4, 512, 512], value = 0.000000e+00 : f64, dtype = bf16} : () -> tensor<4x4x512x512xbf16>
  %weights = burin.where %nones, %zeros, %softmax : (tensor<4x4x512x512xi1>, tensor<4x4x512x512xbf16>, tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %vt = burin.transpose %v {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x512x16xbf16>) -> tensor<4x4x16x512xbf16>
  %dp = burin.matmul %g, %vt : (tensor<4x4x512x16xbf16>, tensor<4x4x16x512xbf16>) -> tensor<4x4x512x512xbf16>
  %terms = burin.mul %dp, %weights : (tensor<4x4x512x512xbf16>, tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %sum = burin.reduce_sum %terms {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x512x512xbf16>) -> tensor<4x4x512x1xbf16>
  %sums = burin.broadcast_to %sum {shape = [4, 4, 512, 512]} : (tensor<4x4x512x1xbf16>) -> tensor<4x4x512x512xbf16>
  %d = burin.sub %dp, %sums : (tensor<4x4x512x512xbf16>, tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %ds = burin.mul %weights, %d : (tensor<4x4x512x512xbf16>, tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %dst = burin.transpose %ds {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %pt = burin.transpose %weights {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %dq = burin.matmul %ds, %k : (tensor<4x4x512x512xbf16>, tensor<4x4x512x16xbf16>) -> tensor<4x4x512x16xbf16>
  %dk = burin.matmul %dst, %q : (tensor<4x4x512x512xbf16>, tensor<4x4x512x16xbf16>) -> tensor<4x4x512x16xbf16>
  %dv = burin.matmul %pt, %g : (tensor<4x4x512x512xbf16>, tensor<4x4x512x16xbf16>) -> tensor<4x4x512x16xbf16>
  return %dq, %dk, %dv : tensor<4x4x512x16xbf16>, tensor<4x4x512x16xbf16>, tensor<4x4x512x16xbf16>
}

// CHECK-LABEL: @half_causal
// CHECK: burin.attention_gradient
func.func @half_causal(%q: tensor<4x4x512x16xbf16>, %k: tensor<4x4x512x16xbf16>, %v: tensor<4x4x512x16xbf16>, %g: tensor<4x4x512x16xbf16>) -> (tensor<4x4x512x16xbf16>, tensor<4x4x512x16xbf16>, tensor<4x4x512x16xbf16>) {
  %kt = burin.transpose %k {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x512x16xbf16>) -> tensor<4x4x16x512xbf16>
  %products = burin.matmul %q, %kt : (tensor<4x4x512x16xbf16>, tensor<4x4x16x512xbf16>) -> tensor<4x4x512x512xbf16>
  %scales = burin.full {shape = [4, 4, 512, 512], value = 2.500000e-01 : f64, dtype = bf16} : () -> tensor<4x4x512x512xbf16>
  %scaled = burin.mul %products, %scales : (tensor<4x4x512x512xbf16>, tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %never = burin.full {shape = [4, 4, 512, 512], value = 0xFFF0000000000000 : f64, dtype = bf16} : () -> tensor<4x4x512x512xbf16>
  %rows = burin.iota {shape = [512, 512], dtype = i64, axis = 0 : i64} : () -> tensor<512x512xi64>
  %columns = burin.iota {shape = [512, 512], dtype = i64, axis = 1 : i64} : () -> tensor<512x512xi64>
  %before = burin.ge %rows, %columns : (tensor<512x512xi64>, tensor<512x512xi64>) -> tensor<512x512xi1>
  %mask = burin.broadcast_to %before {shape = [4, 4, 512, 512]} : (tensor<512x512xi1>) -> tensor<4x4x512x512xi1>
  %seen = burin.where %mask, %scaled, %never : (tensor<4x4x512x512xi1>, tensor<4x4x512x512xbf16>, tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %softmax = burin.softmax %seen {axis = 3 : i64} : (tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %top = burin.reduce_max %seen {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x512x512xbf16>) -> tensor<4x4x512x1xbf16>
  %least = burin.full {shape = [4, 4, 512, 1], value = 0xFFF0000000000000 : f64, dtype = bf16} : () -> tensor<4x4x512x1xbf16>
  %none = burin.eq %top, %least : (tensor<4x4x512x1xbf16>, tensor<4x4x512x1xbf16>) -> tensor<4x4x512x1xi1>
  %nones = burin.broadcast_to %none {shape = [4, 4, 512, 512]} : (tensor<4x4x512x1xi1>) -> tensor<4x4x512x512xi1>
  %zeros = burin.full {shape = [4, 4, 512, 512], value = 0.000000e+00 : f64, dtype = bf16} : () -> tensor<4x4x512x512xbf16>
  %weights = burin.where %nones, %zeros, %softmax : (tensor<4x4x512x512xi1>, tensor<4x4x512x512xbf16>, tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %vt = burin.transpose %v {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x512x16xbf16>) -> tensor<4x4x16x512xbf16>
  %dp = burin.matmul %g, %vt : (tensor<4x4x512x16xbf16>, tensor<4x4x16x512xbf16>) -> tensor<4x4x512x512xbf16>
  %terms = burin.mul %dp, %weights : (tensor<4x4x512x512xbf16>, tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %sum = burin.reduce_sum %terms {axes = array<i64: 3>, keepdims = true} : (tensor<4x4x512x512xbf16>) -> tensor<4x4x512x1xbf16>
  %sums = burin.broadcast_to %sum {shape = [4, 4, 512, 512]} : (tensor<4x4x512x1xbf16>) -> tensor<4x4x512x512xbf16>
  %d = burin.sub %dp, %sums : (tensor<4x4x512x512xbf16>, tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %ds = burin.mul %weights, %d : (tensor<4x4x512x512xbf16>, tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %dst = burin.transpose %ds {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %pt = burin.transpose %weights {perm = array<i64: 0, 1, 3, 2>} : (tensor<4x4x512x512xbf16>) -> tensor<4x4x512x512xbf16>
  %dq = burin.matmul %ds, %k : (tensor<4x4x512x512xbf16>, tensor<4x4x512x16xbf16>) -> tensor<4x4x512x16xbf16>
  %dk = burin.matmul %dst, %q : (tensor<4x4x512x512xbf16>, tensor<4x4x512x16xbf16>) -> tensor<4x4x512x16xbf16>
  %dv = burin.matmul %pt, %g : (tensor<4x4x512x512xbf16>, tensor<4x4x512x16xbf16>) -> tensor<4x4x512x16xbf16>
  return %dq, %dk, %dv : tensor<4x4x512x16xbf16>, tensor<4x4x512x16xbf16>, tensor<4x4x512x16xbf16>
}

// Too few heads for the threads, not for the blocks of a GPU; its tensor cores may be faster with f32.
// GPU-LABEL: @two
// GPU: burin.attention_gradient
// ROUNDED-LABEL: @two
// ROUNDED-NOT: burin.attention_gradient
// CHECK-LABEL: @two
// CHECK-NOT: burin.attention_gradient
func.func @two(%q: tensor<2x128x16xf32>, %k: tensor<2x128x16xf32>, %v: tensor<2x128x16xf32>, %g: tensor<2x128x16xf32>) -> (tensor<2x128x16xf32>, tensor<2x128x16xf32>, tensor<2x128x16xf32>) {
  %kt = burin.transpose %k {perm = array<i64: 0, 2, 1>} : (tensor<2x128x16xf32>) -> tensor<2x16x128xf32>
  %products = burin.matmul %q, %kt : (tensor<2x128x16xf32>, tensor<2x16x128xf32>) -> tensor<2x128x128xf32>
  %scales = burin.full {shape = [2, 128, 128], value = 2.500000e-01 : f64, dtype = f32} : () -> tensor<2x128x128xf32>
  %scaled = burin.mul %products, %scales : (tensor<2x128x128xf32>, tensor<2x128x128xf32>) -> tensor<2x128x128xf32>
  %never = burin.full {shape = [2, 128, 128], value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<2x128x128xf32>
  %softmax = burin.softmax %scaled {axis = 2 : i64} : (tensor<2x128x128xf32>) -> tensor<2x128x128xf32>
  %top = burin.reduce_max %scaled {axes = array<i64: 2>, keepdims = true} : (tensor<2x128x128xf32>) -> tensor<2x128x1xf32>
  %least = burin.full {shape = [2, 128, 1], value = 0xFFF0000000000000 : f64, dtype = f32} : () -> tensor<2x128x1xf32>
  %none = burin.eq %top, %least : (tensor<2x128x1xf32>, tensor<2x128x1xf32>) -> tensor<2x128x1xi1>
  %nones = burin.broadcast_to %none {shape = [2, 128, 128]} : (tensor<2x128x1xi1>) -> tensor<2x128x128xi1>
  %zeros = burin.full {shape = [2, 128, 128], value = 0.000000e+00 : f64, dtype = f32} : () -> tensor<2x128x128xf32>
  %weights = burin.where %nones, %zeros, %softmax : (tensor<2x128x128xi1>, tensor<2x128x128xf32>, tensor<2x128x128xf32>) -> tensor<2x128x128xf32>
  %vt = burin.transpose %v {perm = array<i64: 0, 2, 1>} : (tensor<2x128x16xf32>) -> tensor<2x16x128xf32>
  %dp = burin.matmul %g, %vt : (tensor<2x128x16xf32>, tensor<2x16x128xf32>) -> tensor<2x128x128xf32>
  %terms = burin.mul %dp, %weights : (tensor<2x128x128xf32>, tensor<2x128x128xf32>) -> tensor<2x128x128xf32>
  %sum = burin.reduce_sum %terms {axes = array<i64: 2>, keepdims = true} : (tensor<2x128x128xf32>) -> tensor<2x128x1xf32>
  %sums = burin.broadcast_to %sum {shape = [2, 128, 128]} : (tensor<2x128x1xf32>) -> tensor<2x128x128xf32>
  %d = burin.sub %dp, %sums : (tensor<2x128x128xf32>, tensor<2x128x128xf32>) -> tensor<2x128x128xf32>
  %ds = burin.mul %weights, %d : (tensor<2x128x128xf32>, tensor<2x128x128xf32>) -> tensor<2x128x128xf32>
  %dst = burin.transpose %ds {perm = array<i64: 0, 2, 1>} : (tensor<2x128x128xf32>) -> tensor<2x128x128xf32>
  %pt = burin.transpose %weights {perm = array<i64: 0, 2, 1>} : (tensor<2x128x128xf32>) -> tensor<2x128x128xf32>
  %dq = burin.matmul %ds, %k : (tensor<2x128x128xf32>, tensor<2x128x16xf32>) -> tensor<2x128x16xf32>
  %dk = burin.matmul %dst, %q : (tensor<2x128x128xf32>, tensor<2x128x16xf32>) -> tensor<2x128x16xf32>
  %dv = burin.matmul %pt, %g : (tensor<2x128x128xf32>, tensor<2x128x16xf32>) -> tensor<2x128x16xf32>
  return %dq, %dk, %dv : tensor<2x128x16xf32>, tensor<2x128x16xf32>, tensor<2x128x16xf32>
}
