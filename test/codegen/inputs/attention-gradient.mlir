func.func @main(%q: tensor<16x40x8xf32>, %k: tensor<16x?x8xf32, ["n"]>, %g: tensor<16x40x8xf32>) -> tensor<16x?x8xf32, ["n*2 + 40"]> {
  %0 = burin.attention_gradient %q, %k, %k, %g {is_causal = true, scale = 5.000000e-01 : f64} : (tensor<16x40x8xf32>, tensor<16x?x8xf32, ["n"]>, tensor<16x?x8xf32, ["n"]>, tensor<16x40x8xf32>) -> tensor<16x?x8xf32, ["n*2 + 40"]>
  return %0 : tensor<16x?x8xf32, ["n*2 + 40"]>
}
