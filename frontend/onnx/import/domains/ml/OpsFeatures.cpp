// Ops of the domain ai.onnx.ml that prepare features. None of them takes or gives strings or maps.
#include "burin/graph/control.h"
#include "frontend/onnx/import/domains/ml/Scores.h"
#include <cmath>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

/// Elements of the last dimension; a vector is a row.
Values arrayFeatureExtractor(Node &n) {
  Tensor x = n[0].rank() == 1 ? unsqueeze(n[0], {0}) : n[0];
  return take(x, reshape(n[1], {elements(n.shape(1))}), x.rank() - 1);
}

Values binarizer(Node &n) { return (n[0] > n.attribute("threshold", 0.0)).to(n.dtype()); }

Values featureVectorizer(Node &n) {
  std::vector<Tensor> parts;
  for (const Tensor &x : n.tensors())
    parts.push_back((x.rank() == 1 ? unsqueeze(x, {0}) : x).to(DType::f32));
  return concat(parts, 1);
}

/// An attribute with one number per column, or one for all.
Tensor columnsOf(Node &n, const char *attribute, const std::vector<double> &numbers, DType dtype) {
  Dim columns = n.shape().back();
  if (numbers.size() != 1 && columns != Dim(int64_t(numbers.size())))
    n.fail("its attribute " + quoted(attribute) + " has " + std::to_string(numbers.size()) + " elements for " +
           columns.str() + " columns");
  return from_vector(numbers).to(dtype);
}

Values imputer(Node &n) {
  Tensor x = n[0];
  if (isFloat(x.dtype())) {
    Tensor replacement = columnsOf(n, "imputed_value_floats", n.attributeReals("imputed_value_floats"), x.dtype());
    const double replaced = n.attribute("replaced_value_float", 0.0);
    return where(std::isnan(replaced) ? is_nan(x) : x == replaced, replacement, x);
  }
  Ints integers = n.attribute("imputed_value_int64s", Ints());
  Tensor replacement = columnsOf(n, "imputed_value_int64s", {integers.begin(), integers.end()}, x.dtype());
  return where(x == n.attribute("replaced_value_int64", int64_t(0)), replacement, x);
}

/// Rows with a norm of 0 stay as they are.
Values normalizer(Node &n) {
  Tensor x = n[0].to(DType::f32);
  const std::string kind = n.attribute("norm", "MAX");
  const Ints axes{x.rank() - 1};
  Tensor norm;
  if (kind == "MAX")
    norm = reduce_max(x, axes, true);
  else if (kind == "L1")
    norm = reduce_sum(abs(x), axes, true);
  else if (kind == "L2")
    norm = sqrt(reduce_sum(x * x, axes, true));
  else
    n.fail("unknown norm " + quoted(kind));
  return where(norm == 0, x, x / norm);
}

Values scaler(Node &n) {
  Tensor x = n[0].to(DType::f32);
  std::vector<double> offset = n.attributeReals("offset"), scale = n.attributeReals("scale");
  if (!offset.empty())
    x = x - columnsOf(n, "offset", offset, DType::f32);
  return scale.empty() ? x : x * columnsOf(n, "scale", scale, DType::f32);
}

/// Which of the keys [k] each element equals, [..., k]; NaN equals NaN.
Tensor matches(const Tensor &x, const Tensor &keys) {
  Tensor column = unsqueeze(x, {x.rank()}), isEqual = column == keys;
  return isFloat(x.dtype()) ? logical_or(isEqual, logical_and(is_nan(column), is_nan(keys))) : isEqual;
}

Values oneHotEncoder(Node &n) {
  Ints categories = n.attribute("cats_int64s", Ints());
  if (categories.empty())
    n.unsupported("categories that are strings");
  Tensor isOne = matches(n[0].to(DType::i64), from_vector(categories));
  if (!n.attribute("zeros", int64_t(1)))
    check(reduce_all(reduce_any(isOne, {isOne.rank() - 1})), "an element is in no category");
  return isOne.to(DType::f32);
}

/// The keys, values and default of a LabelEncoder: lists of a type that the attribute's name ends in, or tensors.
Tensor labelsOf(Node &n, const std::string &prefix) {
  if (n.hasAttribute(prefix + "_tensor"))
    return n.attributeTensor(prefix + "_tensor");
  if (n.hasAttribute(prefix + "_int64s"))
    return from_vector(n.attribute(prefix + "_int64s", Ints()));
  if (!n.hasAttribute(prefix + "_floats"))
    n.unsupported("strings");
  return from_vector(n.attributeReals(prefix + "_floats")).to(DType::f32);
}
Tensor defaultOf(Node &n, DType dtype) {
  if (n.hasAttribute("default_tensor"))
    return reshape(n.attributeTensor("default_tensor"), {}).to(dtype);
  return isFloat(dtype) ? full({}, n.attribute("default_float", -0.0), dtype)
                        : reshape(from_vector(Ints{n.attribute("default_int64", int64_t(-1))}), {}).to(dtype);
}

/// The first key that equals an element decides.
Values labelEncoder(Node &n) {
  Tensor keys = labelsOf(n, "keys"), values = labelsOf(n, "values");
  if (keys.rank() != 1 || keys.shape() != values.shape() || keys.dtype() != n.dtype())
    n.fail("keys and values must be as many, and keys have the element type of its input");
  Tensor isMatch = matches(n[0], keys);
  Tensor found = take(values, argmax(isMatch.to(DType::i32), isMatch.rank() - 1), 0);
  return where(reduce_any(isMatch, {isMatch.rank() - 1}), found, defaultOf(n, values.dtype()));
}

/// A sequence of maps from labels to a row's numbers is represented by the matrix of the numbers.
Values zipMap(Node &n) {
  n.warn("its result is a sequence of maps; burin gives the matrix of their values instead");
  return n[0];
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr OpEntry table[] = {
    {"ArrayFeatureExtractor", arrayFeatureExtractor, {1}, kDomain},
    {"Binarizer", binarizer, {}, kDomain},
    {"FeatureVectorizer", featureVectorizer, {1}, kDomain},
    {"Imputer", imputer, {1}, kDomain},
    {"LabelEncoder", labelEncoder, {}, kDomain},
    {"Normalizer", normalizer, {1}, kDomain},
    {"OneHotEncoder", oneHotEncoder, {}, kDomain},
    {"Scaler", scaler, {1}, kDomain},
    {"ZipMap", zipMap, {1}, kDomain},
};

} // namespace

std::span<const OpEntry> featureOps() { return table; }

} // namespace burin::onnx
