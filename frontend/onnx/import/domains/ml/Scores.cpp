#include "frontend/onnx/import/domains/ml/Scores.h"
#include "burin/tensor/math/special.h"

namespace burin::onnx {

namespace {

/// As a list of names in quotes, of which the first ones are given.
std::string listOf(const std::vector<std::string> &texts) {
  constexpr size_t kMost = 3;
  std::string list;
  for (size_t i = 0; i < texts.size() && i < kMost; ++i)
    list += (i ? ", " : "") + quoted(texts[i]);
  return texts.size() > kMost ? list + ", …" : list;
}

/// Zeros stay as they are, up to the factor of all.
Tensor softmaxOfOthers(const Tensor &x) {
  Tensor largest = reduce_max(x, {1}, true), power = exp(x - largest);
  Tensor isZero = abs(x) <= 1e-7;
  Tensor sum = reduce_sum(where(isZero, zeros({}, x.dtype()), power), {1}, true);
  return where(isZero, x * exp(-largest), power) / sum;
}

} // namespace

Tensor featuresOf(Node &n) {
  Tensor x = n[0].to(n.dtype() == DType::f64 ? DType::f64 : DType::f32);
  if (x.rank() == 1)
    x = unsqueeze(x, {0});
  if (x.rank() != 2)
    n.fail("its input must be a matrix of rows of features");
  return x;
}

std::vector<double> realsOf(Node &n, const std::string &attribute) {
  const std::string asTensor = attribute + "_as_tensor";
  return n.hasAttribute(asTensor) ? n.attributeTensor(asTensor).to_vector<double>() : n.attributeReals(attribute);
}

Tensor matrixOf(Node &n, const char *attribute, int64_t rows, DType dtype) {
  std::vector<double> elements = n.attributeReals(attribute);
  if (rows < 1 || elements.empty() || int64_t(elements.size()) % rows)
    n.fail("its attribute " + quoted(attribute) + " has " + std::to_string(elements.size()) + " elements for " +
           std::to_string(rows) + " rows");
  return from_vector(elements, Shape{rows, int64_t(elements.size()) / rows}).to(dtype);
}

ClassLabels::ClassLabels(Node &n, std::string_view integers, std::string_view strings)
    : numbers(n.attribute(integers, std::vector<int64_t>())), texts(n.attributeStrings(strings)) {
  if (numbers.empty() == texts.empty())
    n.fail("it needs one of the attributes " + quoted(integers) + " and " + quoted(strings));
  for (size_t i = 0; i < texts.size(); ++i)
    numbers.push_back(int64_t(i));
}

Value ClassLabels::of(Node &n, const Tensor &classes) const {
  bool areInOrder = true;
  for (size_t i = 0; i < numbers.size(); ++i)
    areInOrder = areInOrder && numbers[i] == int64_t(i);
  Value labels = areInOrder ? classes : take(from_vector(numbers), classes, 0);
  if (!texts.empty() && n.wants(0)) {
    n.warn("its labels are strings; burin gives their numbers instead, from 0: " + listOf(texts));
    labels.narrow = DataType::String;
  }
  return labels;
}

Tensor transformed(Node &n, const Tensor &scores) {
  return transformed(n, n.attribute("post_transform", "NONE"), scores);
}
Tensor transformed(Node &n, const std::string &name, const Tensor &scores) {
  const bool isOne = scores.shape()[1] == Dim(1);
  if (name == "PROBIT")
    return special::ndtri(scores);
  if (name == "LOGISTIC")
    return isOne ? scores : sigmoid(scores);
  if (name == "SOFTMAX")
    return isOne ? scores : softmax(scores, 1);
  if (name == "SOFTMAX_ZERO")
    return isOne ? scores : softmaxOfOthers(scores);
  if (name != "NONE")
    n.fail("unknown post_transform " + quoted(name));
  return scores;
}

Tensor bothClasses(Node &n, const Tensor &score, bool isProbability) {
  const std::string name = n.attribute("post_transform", "NONE");
  if (name == "PROBIT")
    n.unsupported("PROBIT of the score of one class");
  if (name == "LOGISTIC")
    return sigmoid(concat({-score, score}, 1));
  return concat({isProbability ? 1 - score : -score, score}, 1);
}

} // namespace burin::onnx
