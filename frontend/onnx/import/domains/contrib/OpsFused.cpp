// Fused ops of ONNX Runtime's optimiser (domain com.microsoft), decomposed again.
// https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
#include "burin/tensor/math/linalg.h"
#include "frontend/onnx/import/Node.h"
#include "frontend/onnx/import/domains/contrib/Contrib.h"
#include <algorithm>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

// ---- activations

Values biasGelu(Node &n) { return gelu(n[0] + n[1]); }
Values exactGelu(Node &n) { return gelu(n[0]); }
Values fastGelu(Node &n) { return gelu(n.has(1) ? n[0] + n[1] : n[0], "tanh"); }
Values quickGelu(Node &n) {
  Tensor x = n[0];
  return x * sigmoid(x * n.attribute("alpha", 1.702));
}

/// One half of the last dimension multiplied by gelu of the other.
Values biasSplitGelu(Node &n) {
  Tensor x = n[0] + n[1];
  int64_t last = x.rank() - 1;
  Dim whole = x.shape().back(), half = floordiv(whole, 2);
  return part(x, last, 0, half) * gelu(part(x, last, half, whole));
}

/// The activation of a fused product.
Tensor activate(Node &n, const Tensor &x, const std::vector<double> &parameters) {
  std::string name = n.attribute("activation", "");
  auto parameter = [&](size_t i, double fallback) { return i < parameters.size() ? parameters[i] : fallback; };
  if (name.empty())
    return x;
  if (name == "Relu")
    return relu(x);
  if (name == "Tanh")
    return tanh(x);
  if (name == "Sigmoid")
    return sigmoid(x);
  if (name == "LeakyRelu")
    return leaky_relu(x, parameter(0, 0.01));
  if (name == "Clip")
    return clamp(x, parameter(0, -kInfinity), parameter(1, kInfinity));
  if (name == "HardSigmoid")
    return clamp(x * parameter(0, 0.2) + parameter(1, 0.5), 0.0, 1.0);
  n.unsupported("the activation \"" + name + "\"");
}

// ---- products

/// An operand of FusedMatMul: first, its first dimension moves to the position before the last; then the last two are
/// swapped. Each is optional.
Tensor operandOf(Node &n, size_t input, const char *isTransposed, const char *isBatchTransposed) {
  Tensor x = n[input];
  int64_t rank = x.rank();
  Ints order(size_t(std::max<int64_t>(rank, 0)));
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = int64_t(i);
  if (rank > 2 && n.attribute(isBatchTransposed, int64_t(0)))
    std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  if (rank > 1 && n.attribute(isTransposed, int64_t(0)))
    std::swap(order[order.size() - 2], order.back());
  return std::is_sorted(order.begin(), order.end()) ? x : transpose(x, order);
}

Values fusedMatMul(Node &n) {
  Tensor y = matmul(operandOf(n, 0, "transA", "transBatchA"), operandOf(n, 1, "transB", "transBatchB"));
  double alpha = n.attribute("alpha", 1.0);
  return alpha == 1 ? y : y * alpha;
}

Values fusedGemm(Node &n) {
  Tensor y = standard(n, "Gemm");
  return activate(n, y, {n.attribute("activation_alpha", 0.01), n.attribute("activation_beta", 0.0)});
}

Values gemmFastGelu(Node &n) {
  Tensor y = matmul(n[0], n[1]);
  return gelu(n.has(2) ? y + n[2] : y, "tanh");
}

Values fusedConv(Node &n) {
  Tensor y = standard(n, "Conv");
  return activate(n, n.has(3) ? y + n[3] : y, n.attributeReals("activation_params"));
}

Values inverse(Node &n) { return linalg::inv_ex(n[0]).result; }

/// Pairwise distances of rows.
Values distances(Node &n) {
  std::string metric = n.attribute("metric", "sqeuclidean");
  if (metric != "sqeuclidean" && metric != "euclidean")
    n.unsupported("the metric \"" + metric + "\"");
  Tensor difference = unsqueeze(n[0], {1}) - unsqueeze(n[1], {0}), squares = reduce_sum(difference * difference, {2});
  return metric == "euclidean" ? sqrt(squares) : squares;
}

// ---- channels-last image ops

Tensor channelsFirst(const Tensor &x) {
  Ints order{0, x.rank() - 1};
  for (int64_t i = 1; i < x.rank() - 1; ++i)
    order.push_back(i);
  return transpose(x, order);
}
Tensor channelsLast(const Tensor &x) {
  Ints order{0};
  for (int64_t i = 2; i < x.rank(); ++i)
    order.push_back(i);
  order.push_back(1);
  return transpose(x, order);
}

Values maxPoolNhwc(Node &n) {
  n.replace(0, channelsFirst(n[0]));
  return channelsLast(standard(n, "MaxPool"));
}

/// GroupNorm of the sum of x, `skip` and `bias`.
Values groupNorm(Node &n) {
  Tensor x = n[0];
  bool isLast = n.attribute("channels_last", int64_t(1)), hasSkip = n.op() == "SkipGroupNorm";
  Tensor sum = x;
  if (hasSkip) {
    Tensor skip = n[3];
    if (skip.rank() == 2)
      skip = unsqueeze(skip, {1, 2});
    sum = sum + skip;
    if (n.has(4))
      sum = sum + n[4];
  }
  Tensor wide = sum.to(DType::f32);
  Tensor y = group_norm(isLast ? channelsFirst(wide) : wide, n.attribute("groups", int64_t(32)), n[1].to(DType::f32),
                        n[2].to(DType::f32), n.attribute("epsilon", 1e-5));
  if (n.attribute("activation", int64_t(0)))
    y = silu(y);
  y = (isLast ? channelsLast(y) : y).to(x.dtype());
  return Values({y, sum});
}

Values standardOp(Node &n) { return findOp("", n.op())->handler(n); }

constexpr std::string_view kDomain = "com.microsoft";
constexpr OpEntry table[] = {
    {"BiasGelu", biasGelu, {}, kDomain},
    {"BiasSplitGelu", biasSplitGelu, {1, 1}, kDomain},
    {"CDist", distances, {2, 2}, kDomain},
    {"FastGelu", fastGelu, {}, kDomain},
    {"FusedConv", fusedConv, {3, 3}, kDomain},
    {"FusedGemm", fusedGemm, {2, 2}, kDomain},
    {"FusedMatMul", fusedMatMul, {1, 1}, kDomain},
    {"GatherND", standardOp, {}, kDomain},
    {"Gelu", exactGelu, {}, kDomain},
    {"GemmFastGelu", gemmFastGelu, {1, 1}, kDomain},
    {"GridSample", standardOp, {}, kDomain},
    {"GroupNorm", groupNorm, {3, 1, 1}, kDomain},
    {"Inverse", inverse, {2}, kDomain},
    {"NhwcMaxPool", maxPoolNhwc, {3}, kDomain},
    {"Pad", standardOp, {}, kDomain},
    {"QuickGelu", quickGelu, {}, kDomain},
    {"Range", standardOp, {}, kDomain},
    {"SkipGroupNorm", groupNorm, {3, 1, 1, 2}, kDomain},
    {"TransposeMatMul", fusedMatMul, {1, 1}, kDomain},
    {"Trilu", standardOp, {2}, kDomain},
};

} // namespace

Tensor standard(Node &n, std::string_view op) { return tensorOf(findOp("", op)->handler(n).at(0)); }

std::span<const OpEntry> fusedOps() { return table; }

} // namespace burin::onnx
