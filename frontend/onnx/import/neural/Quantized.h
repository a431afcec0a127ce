// Quantised values: small integers with a scale and a zero point.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

/// x - zero as i32; an undefined zero point is 0.
Tensor centered(const Tensor &x, const Tensor &zero);
/// x as an 8-bit float; with `saturate`, infinities and numbers out of range become the largest finite number.
Tensor toFloat8(const Tensor &x, DType to, bool saturate);
/// (x - zero) * scale.
Tensor dequantized(const Tensor &x, const Tensor &scale, const Tensor &zero);
/// round(x / scale) + zero, with the type of `zero`.
Tensor requantized(const Tensor &x, const Tensor &scale, const Tensor &zero);

/// Scales or zero points of blocks of `block` numbers along `axis`, repeated for each of the `size` numbers.
Tensor repeatBlocks(const Tensor &x, int64_t axis, int64_t block, const Dim &size);

/// The result of DynamicQuantizeLinear: u8, scale, zero point.
struct Rounded {
  Tensor x, scale, zero;
};
Rounded roundDynamically(const Tensor &x);

} // namespace burin::onnx
