// Scores and class labels, which the classifiers and regressors of the domain ai.onnx.ml share.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

/// Features [n, count] in f32, or in f64 if the input has that type; one of rank 1 is a row.
Tensor featuresOf(Node &n);

/// The attribute of floats, or that of the same name with the suffix _as_tensor, which holds f64.
std::vector<double> realsOf(Node &n, const std::string &attribute);

/// A constant [rows, columns] of an attribute of floats.
Tensor matrixOf(Node &n, const char *attribute, int64_t rows, DType dtype);

/// The labels of a classifier, by one of the attributes `integers` and `strings`.
struct ClassLabels {
  ClassLabels(Node &n, std::string_view integers, std::string_view strings);

  int64_t count() const { return int64_t(numbers.size()); }
  /// The labels of classes i64 [n]. Labels that are strings are represented by the numbers of their classes, with a
  /// warning.
  Value of(Node &n, const Tensor &classes) const;

private:
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
};

/// A post_transform of scores [n, classes], or that of the node. Scores of one column stay as they are, as in ONNX
/// Runtime, except with PROBIT.
Tensor transformed(Node &n, const std::string &name, const Tensor &scores);
Tensor transformed(Node &n, const Tensor &scores);

/// The scores of both classes from that of the second one, [n, 1]: 1 - s and s, or -s and s; the logistic function of
/// the latter if the node's post_transform asks for it. Other transformations do not apply, as in ONNX Runtime.
Tensor bothClasses(Node &n, const Tensor &score, bool isProbability);

} // namespace burin::onnx
