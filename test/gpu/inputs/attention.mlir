func.func @main(%q: tensor<4x256x64xf16>, %k: tensor<4x256x64xf16>, %v: tensor<4x256x64xf16>) -> tensor<4x256x64xf16> {
  %r = burin.scaled_dot_product_attention %q, %k, %v {is_causal = true} : (tensor<4x256x64xf16>, tensor<4x256x64xf16>, tensor<4x256x64xf16>) -> tensor<4x256x64xf16>
  return %r : tensor<4x256x64xf16>
}
