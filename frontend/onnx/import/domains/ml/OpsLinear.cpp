// Linear models of the domain ai.onnx.ml.
#include "frontend/onnx/import/domains/ml/Scores.h"

namespace burin::onnx {

namespace {

/// x times the transposed coefficients of `count` outputs, and the intercepts.
Tensor linearScores(Node &n, int64_t count) {
  Tensor x = featuresOf(n);
  Tensor y = matmul(x, transpose(matrixOf(n, "coefficients", count, x.dtype())));
  std::vector<double> intercepts = n.attributeReals("intercepts");
  if (intercepts.empty())
    return y;
  if (int64_t(intercepts.size()) != count)
    n.fail("it has " + std::to_string(intercepts.size()) + " intercepts for " + std::to_string(count) + " outputs");
  return y + from_vector(intercepts).to(x.dtype());
}

Values linearRegressor(Node &n) {
  return transformed(n, linearScores(n, n.attribute("targets", int64_t(1)))).to(DType::f32);
}

/// One score for two classes is that of the second one.
Values linearClassifier(Node &n) {
  ClassLabels labels(n, "classlabels_ints", "classlabels_strings");
  const int64_t count = int64_t(n.attributeReals("intercepts").size());
  if (count < 1)
    n.unsupported("a classifier without intercepts");
  const bool isBinary = count == 1 && labels.count() == 2;
  if (!isBinary && count != labels.count())
    n.fail("it has " + std::to_string(count) + " intercepts for " + std::to_string(labels.count()) + " classes");
  Tensor scores = linearScores(n, count);
  if (isBinary) {
    Tensor isSecond = squeeze(scores > 0, {1}).to(DType::i64);
    return Values({labels.of(n, isSecond), bothClasses(n, scores, true).to(DType::f32)});
  }
  return Values({labels.of(n, argmax(scores, 1)), transformed(n, scores).to(DType::f32)});
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr OpEntry table[] = {
    {"LinearClassifier", linearClassifier, {1}, kDomain},
    {"LinearRegressor", linearRegressor, {1}, kDomain},
};

} // namespace

std::span<const OpEntry> linearOps() { return table; }

} // namespace burin::onnx
