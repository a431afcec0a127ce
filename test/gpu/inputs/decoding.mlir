func.func @main(%q: tensor<12x1x64xbf16>, %k: tensor<12x512x64xbf16>, %v: tensor<12x512x64xbf16>) -> tensor<12x1x64xbf16> {
  %r = burin.scaled_dot_product_attention %q, %k, %v : (tensor<12x1x64xbf16>, tensor<12x512x64xbf16>, tensor<12x512x64xbf16>) -> tensor<12x1x64xbf16>
  return %r : tensor<12x1x64xbf16>
}
