// Numbers stored as small integers with a scale and a zero point.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

/// x - zero as i32; an undefined zero is 0.
Tensor centered(const Tensor &x, const Tensor &zero);
/// (x - zero) * scale.
Tensor dequantized(const Tensor &x, const Tensor &scale, const Tensor &zero);
/// round(x / scale) + zero, of the type of `zero`.
Tensor requantized(const Tensor &x, const Tensor &scale, const Tensor &zero);

/// x as DynamicQuantizeLinear gives it: u8, scale, zero.
struct Rounded {
  Tensor x, scale, zero;
};
Rounded roundDynamically(const Tensor &x);

} // namespace burin::onnx
