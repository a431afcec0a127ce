// Normalisation of a sum, and the embedding layer of BERT (domain com.microsoft).
#include "frontend/onnx/import/domains/contrib/Contrib.h"

namespace burin::onnx {

namespace {

/// RMS or layer normalisation over the last dimension, in f32.
Tensor normalized(Node &n, const Tensor &x, const Tensor &scale, const Tensor &shift, bool isSimplified) {
  double epsilon = n.attribute("epsilon", isSimplified ? 1e-5 : 1e-12);
  Tensor wide = x.to(x.dtype() == DType::f64 ? DType::f64 : DType::f32);
  if (!scale.defined() || scale.shape() != Shape{x.shape().back()})
    n.fail("the scale must have one number for each of " + x.shape().back().str() + " columns");
  std::optional<Tensor> weight = scale.to(wide.dtype()), bias;
  if (shift.defined())
    bias = shift.to(wide.dtype());
  Tensor y = isSimplified ? rms_norm(wide, weight, -1, epsilon) : layer_norm(wide, weight, bias, -1, epsilon);
  return y.to(x.dtype());
}

/// Appends mean and inverse deviation of the last dimension if the node has these outputs.
void addStatistics(Node &n, const Tensor &x, bool isSimplified, Values &results) {
  double epsilon = n.attribute("epsilon", isSimplified ? 1e-5 : 1e-12);
  Tensor wide = x.to(DType::f32), variance;
  if (n.wants(1) || n.wants(2))
    variance = isSimplified ? reduce_mean(wide * wide, {-1}, true) : reduce_var(wide, {-1}, true, 0);
  results.push_back(n.wants(1) ? Value(reduce_mean(wide, {-1}, true)) : Value());
  results.push_back(n.wants(2) ? Value(rsqrt(variance + epsilon)) : Value());
}

/// Inputs: x, skip, scale, [shift,] bias. The last output is the sum.
Values skipNorm(Node &n) {
  bool isSimplified = n.op() == "SkipSimplifiedLayerNormalization";
  size_t bias = isSimplified ? 3 : 4;
  Tensor sum = n[0] + n[1];
  if (n.has(bias))
    sum = sum + n[bias];
  Values results{normalized(n, sum, n[2], !isSimplified && n.has(3) ? n[3] : Tensor(), isSimplified)};
  addStatistics(n, sum, isSimplified, results);
  results.push_back(sum);
  return results;
}

/// ONNX Runtime's optimiser creates this op in the standard domain.
Values simplifiedNorm(Node &n) {
  Tensor x = n[0];
  if (n.axis(n.attribute("axis", int64_t(-1))) != x.rank() - 1)
    n.unsupported("another axis than the last");
  Values results{normalized(n, x, n[1], Tensor(), true)};
  if (n.wants(1))
    results.push_back(rsqrt(reduce_mean(x * x, {-1}, true) + n.attribute("epsilon", 1e-5)));
  return results;
}

/// Inputs: tokens, segments, words, positions, segment embedding, scale, shift, mask, position numbers.
Values embedNorm(Node &n) {
  Tensor tokens = n[0], sum = take(n[2], tokens, 0);
  Shape shape = tokens.shape();
  sum = sum + take(n[3], n.has(8) ? n[8] : iota({shape[1]}, DType::i64), 0);
  if (n.has(1) && n.has(4))
    sum = sum + take(n[4], n[1], 0);
  Tensor lengths = n.has(7) ? reduce_sum((n[7] == 1).to(DType::i32), {1}).to(DType::i32)
                            : broadcast_to(zeros({1}, DType::i32), {shape[0]});
  return Values({normalized(n, sum, n[5], n[6], false), lengths, sum});
}

constexpr std::string_view kDomain = "com.microsoft";
constexpr OpEntry table[] = {
    {"EmbedLayerNormalization", embedNorm, {2, 0, 2, 2}, kDomain},
    {"SimplifiedLayerNormalization", simplifiedNorm, {1}},
    {"SkipLayerNormalization", skipNorm, {1}, kDomain},
    {"SkipSimplifiedLayerNormalization", skipNorm, {1}, kDomain},
};

} // namespace

std::span<const OpEntry> skipNormOps() { return table; }

} // namespace burin::onnx
