func.func @main(%x: tensor<?x4xf32, ["batch"]> {burin.name = "x"}) -> (tensor<?x3xf32, ["batch"]> {burin.name = "y"}) {
  %w = burin.constant {name = "weight"} dense<[[1.0, 2.0, 3.0], [-1.0, 0.5, 2.0], [0.0, 1.0, -2.0], [4.0, -3.0, 1.5]]> : tensor<4x3xf32> loc("mlp.cpp":3:1)
  %b = burin.constant {name = "bias"} dense<[0.5, -0.5, 1.0]> : tensor<3xf32> loc("mlp.cpp":3:1)
  %m = burin.matmul %x, %w : (tensor<?x4xf32, ["batch"]>, tensor<4x3xf32>) -> tensor<?x3xf32, ["batch"]> loc("mlp.cpp":7:1)
  %c = burin.broadcast_to %b {shape = ["batch", 3]} : (tensor<3xf32>) -> tensor<?x3xf32, ["batch"]> loc("mlp.cpp":7:1)
  %s = burin.add %m, %c : (tensor<?x3xf32, ["batch"]>, tensor<?x3xf32, ["batch"]>) -> tensor<?x3xf32, ["batch"]> loc("mlp.cpp":7:1)
  %r = burin.relu %s : (tensor<?x3xf32, ["batch"]>) -> tensor<?x3xf32, ["batch"]> loc("mlp.cpp":8:1)
  %p = burin.softmax %r {axis = 1} : (tensor<?x3xf32, ["batch"]>) -> tensor<?x3xf32, ["batch"]> loc("mlp.cpp":9:1)
  return %p : tensor<?x3xf32, ["batch"]>
}
