// Quantised values: small integers with a scale and a zero point.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

/// x - zero as i32; an undefined zero point is 0.
Tensor centered(const Tensor &x, const Tensor &zero);
/// (x - zero) * scale.
Tensor dequantized(const Tensor &x, const Tensor &scale, const Tensor &zero);
/// round(x / scale) + zero, with the type of `zero`.
Tensor requantized(const Tensor &x, const Tensor &scale, const Tensor &zero);

/// The result of DynamicQuantizeLinear: u8, scale, zero point.
struct Rounded {
  Tensor x, scale, zero;
};
Rounded roundDynamically(const Tensor &x);

} // namespace burin::onnx
