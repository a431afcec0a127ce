// Support vector machines of the domain ai.onnx.ml.
#include "burin/graph/control.h"
#include "frontend/onnx/import/domains/ml/Scores.h"
#include <algorithm>
#include <numeric>
#include <tuple>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

/// Support vectors [vectors, features] and coefficients [vectors, outputs], by rows.
struct Machine {
  std::vector<double> vectors, coefficients;
  int64_t count = 0, outputs = 1;
};

/// The coefficients of a linear function, [features, outputs], which a machine with a linear kernel is.
std::vector<double> linearCoefficients(const Machine &machine) {
  const size_t count = size_t(machine.count), outputs = size_t(machine.outputs),
               features = machine.vectors.size() / count;
  std::vector<double> sums(features * outputs);
  for (size_t v = 0; v < count; ++v)
    for (size_t f = 0; f < features; ++f)
      for (size_t o = 0; o < outputs; ++o)
        sums[f * outputs + o] += machine.vectors[v * features + f] * machine.coefficients[v * outputs + o];
  return sums;
}

/// Small whole powers are products.
Tensor powerOf(const Tensor &x, double exponent) {
  if (exponent != 1 && exponent != 2 && exponent != 3)
    return pow(x, exponent);
  Tensor power = x;
  for (int i = 1; i < int(exponent); ++i)
    power = power * x;
  return power;
}

/// The values of the machine for each row of x, [n, outputs]: sums of kernel functions of the row and each vector.
Tensor valuesOf(Node &n, const Tensor &x, const Machine &machine) {
  if (machine.count < 1 || machine.vectors.empty() || int64_t(machine.vectors.size()) % machine.count)
    n.fail("it has " + std::to_string(machine.vectors.size()) + " elements of " + std::to_string(machine.count) +
           " support vectors");
  const std::string kind = n.attribute("kernel_type", "LINEAR");
  const int64_t features = int64_t(machine.vectors.size()) / machine.count;
  auto matrix = [&](const std::vector<double> &elements, int64_t rows) {
    return from_vector(elements, Shape{rows, int64_t(elements.size()) / rows}).to(x.dtype());
  };
  if (kind == "LINEAR") // sums in f64, as they may be much larger than the result
    return matmul(x, matrix(linearCoefficients(machine), features));
  std::vector<double> parameters = n.attributeReals("kernel_params");
  parameters.resize(3);
  const double gamma = parameters[0], offset = parameters[1], degree = parameters[2];
  Tensor vectors = matrix(machine.vectors, machine.count), kernel;
  if (kind == "RBF") {
    Tensor difference = unsqueeze(x, {1}) - vectors; // |x|² - 2 x v + |v|² would lose digits
    kernel = exp(reduce_sum(difference * difference, {2}) * -gamma);
  } else if (kind == "POLY") {
    kernel = powerOf(matmul(x, transpose(vectors)) * gamma + offset, degree);
  } else if (kind == "SIGMOID") {
    kernel = tanh(matmul(x, transpose(vectors)) * gamma + offset);
  } else {
    n.fail("unknown kernel_type " + quoted(kind));
  }
  return matmul(kernel, matrix(machine.coefficients, machine.count));
}

/// Without support vectors the coefficients are those of a linear function.
Values vectorRegressor(Node &n) {
  Tensor x = featuresOf(n), y;
  Machine machine{n.attributeReals("support_vectors"), n.attributeReals("coefficients"),
                  n.attribute("n_supports", int64_t(0))};
  if (machine.count && int64_t(machine.coefficients.size()) != machine.count)
    n.fail("it has " + std::to_string(machine.coefficients.size()) + " coefficients for " +
           std::to_string(machine.count) + " support vectors");
  y = machine.count ? valuesOf(n, x, machine) : matmul(x, transpose(matrixOf(n, "coefficients", 1, x.dtype())));
  if (std::vector<double> rho = n.attributeReals("rho"); !rho.empty())
    y = y + rho[0];
  if (n.attribute("one_class", int64_t(0)))
    y = where(y > 0, ones({}, y.dtype()), -ones({}, y.dtype()));
  return transformed(n, y).to(DType::f32);
}

// ---- classification, by a function for each pair of classes, which is positive for the first one

struct Pair {
  int64_t first, second;
};
std::vector<Pair> pairsOf(int64_t classes) {
  std::vector<Pair> pairs;
  for (int64_t i = 0; i < classes; ++i)
    for (int64_t j = i + 1; j < classes; ++j)
      pairs.push_back({i, j});
  return pairs;
}

/// The values of the functions, [n, pairs]. The vectors of a class have one coefficient for each other class.
Tensor pairScores(Node &n, const Tensor &x, const Ints &counts, const std::vector<Pair> &pairs) {
  std::vector<double> given = n.attributeReals("coefficients"), rho = n.attributeReals("rho");
  for (int64_t count : counts)
    if (count < 0 || count > int64_t(given.size()))
      n.fail("a class cannot have " + std::to_string(count) + " support vectors");
  const int64_t vectors = std::reduce(counts.begin(), counts.end());
  if (int64_t(given.size()) != vectors * (int64_t(counts.size()) - 1))
    n.fail("it has " + std::to_string(given.size()) + " coefficients for " + std::to_string(vectors) + " vectors and " +
           std::to_string(counts.size()) + " classes");
  Machine machine{n.attributeReals("support_vectors"), std::vector<double>(size_t(vectors) * pairs.size()), vectors,
                  int64_t(pairs.size())};
  for (size_t p = 0; p < pairs.size(); ++p)
    for (auto [mine, other] : {pairs[p], Pair{pairs[p].second, pairs[p].first}}) {
      const int64_t row = other - (other > mine), begin = std::reduce(counts.begin(), counts.begin() + mine);
      for (int64_t v = begin; v < begin + counts[size_t(mine)]; ++v)
        machine.coefficients[size_t(v) * pairs.size() + p] = given[size_t(row * vectors + v)];
    }
  return valuesOf(n, x, machine) + from_vector(rho).to(x.dtype());
}

Tensor column(const Tensor &x, int64_t i) { return part(x, 1, i, i + 1); }

/// Probabilities of classes [n, classes] from those of the first class of each pair, [n, pairs]: the second method of
/// Wu, Lin and Weng (Probability Estimates for Multi-class Classification by Pairwise Coupling, 2004), which stops, row
/// by row, at an error of 0.005 / classes, after at most max(100, classes) iterations.
Tensor coupled(const Tensor &first, const std::vector<Pair> &pairs, int64_t classes) {
  const Dim examples = first.shape()[0];
  const DType dtype = first.dtype();
  std::vector<int64_t> places(size_t(classes * classes), 2 * int64_t(pairs.size())); // of a 0, for the diagonal
  for (size_t p = 0; p < pairs.size(); ++p) {
    places[size_t(pairs[p].first * classes + pairs[p].second)] = int64_t(p);
    places[size_t(pairs[p].second * classes + pairs[p].first)] = int64_t(p + pairs.size());
  }
  Tensor all = concat({first, 1 - first, broadcast_to(zeros({1, 1}, dtype), {examples, 1})}, 1);
  Tensor r = reshape(take(all, from_vector(places), 1), {examples, classes, classes}); // of class i against j
  Tensor identity = eye(classes, classes, DType::boolean), squares = reduce_sum(r * r, {1});
  Tensor matrix = where(identity, unsqueeze(squares, {1}), -(r * transpose(r, {0, 2, 1})));
  const double limit = 0.005 / double(classes);
  using State = std::tuple<Tensor, Tensor, Tensor>; // probabilities; bool [n, 1]: is the row not done; iterations
  auto step = [&](const Tensor &old, const Tensor &isOpen, const Tensor &count) -> State {
    Tensor p = old, qp = reduce_sum(matrix * unsqueeze(old, {1}), {2}), pqp = reduce_sum(p * qp, {1}, true);
    Tensor stays = logical_and(isOpen, reduce_max(abs(qp - pqp), {1}, true) >= limit);
    for (int64_t t = 0; t < classes; ++t) {
      Tensor mine = column(squares, t), change = (pqp - column(qp, t)) / mine, scale = 1 + change;
      pqp = (pqp + change * (change * mine + column(qp, t) * 2)) / (scale * scale);
      qp = (qp + change * squeeze(part(matrix, 1, t, t + 1), {1})) / scale;
      p = where(iota({classes}, DType::i64) == t, p + change, p) / scale;
    }
    return {where(stays, p, old), stays, count + 1};
  };
  State start{broadcast_to(full({}, 1.0 / double(classes), dtype), {examples, classes}),
              broadcast_to(full({}, true, DType::boolean), {examples, 1}), zeros({}, DType::i64)};
  auto areOpen = [&](const Tensor &, const Tensor &isOpen, const Tensor &count) {
    return logical_and(reduce_any(isOpen, {0, 1}), count < std::max<int64_t>(100, classes));
  };
  return std::get<0>(while_loop(areOpen, step, start));
}

/// The probabilities of all classes, by a logistic function of the value of each pair.
Tensor probabilitiesOf(Node &n, const Tensor &scores, const std::vector<Pair> &pairs, int64_t classes) {
  std::vector<double> a = n.attributeReals("prob_a"), b = n.attributeReals("prob_b");
  if (a.size() != pairs.size() || b.size() != pairs.size())
    n.fail("prob_a and prob_b must have one number per pair of classes");
  constexpr double kLeast = 1e-7;
  auto numbers = [&](const std::vector<double> &list) { return from_vector(list).to(scores.dtype()); };
  Tensor first = clamp(sigmoid(-(scores * numbers(a) + numbers(b))), kLeast, 1 - kLeast);
  return coupled(first, pairs, classes);
}

/// The class with the most votes of pairs; the first one of equals.
Tensor winners(const Tensor &scores, const std::vector<Pair> &pairs, int64_t classes) {
  std::vector<double> forFirst(pairs.size() * size_t(classes)), forSecond = forFirst;
  for (size_t p = 0; p < pairs.size(); ++p) {
    forFirst[p * size_t(classes) + size_t(pairs[p].first)] = 1;
    forSecond[p * size_t(classes) + size_t(pairs[p].second)] = 1;
  }
  const Shape shape{int64_t(pairs.size()), classes};
  Tensor isFirst = (scores > 0).to(DType::f32);
  Tensor votes = matmul(isFirst, from_vector(forFirst, shape).to(DType::f32)) +
                 matmul(1 - isFirst, from_vector(forSecond, shape).to(DType::f32));
  return argmax(votes, 1);
}

Values vectorClassifier(Node &n) {
  ClassLabels labels(n, "classlabels_ints", "classlabels_strings");
  Ints counts = n.attribute("vectors_per_class", Ints());
  const int64_t classes = labels.count();
  if (int64_t(counts.size()) != classes || classes < 2)
    n.unsupported(std::to_string(counts.size()) + " vectors_per_class for " + std::to_string(classes) + " classes");
  constexpr int64_t kMostClasses = 256; // every pair has its column
  if (classes > kMostClasses)
    n.unsupported("more than " + std::to_string(kMostClasses) + " classes");
  if (int64_t(n.attributeReals("rho").size()) != classes * (classes - 1) / 2)
    n.fail("its attribute 'rho' must have one number per pair of " + std::to_string(classes) + " classes");
  const std::vector<Pair> pairs = pairsOf(classes);
  Tensor pairValues = pairScores(n, featuresOf(n), counts, pairs), scores;
  if (n.hasAttribute("prob_a"))
    scores = transformed(n, probabilitiesOf(n, pairValues, pairs, classes));
  else if (classes > 2)
    scores = transformed(n, pairValues);
  else if (const std::string name = n.attribute("post_transform", "NONE"); name == "NONE" || name == "LOGISTIC")
    scores = bothClasses(n, pairValues, false);
  else
    n.unsupported("the post_transform " + quoted(name) + " of one score");
  return Values({labels.of(n, winners(pairValues, pairs, classes)), scores.to(DType::f32)});
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr OpEntry table[] = {
    {"SVMClassifier", vectorClassifier, {1}, kDomain},
    {"SVMRegressor", vectorRegressor, {1}, kDomain},
};

} // namespace

std::span<const OpEntry> vectorMachineOps() { return table; }

} // namespace burin::onnx
