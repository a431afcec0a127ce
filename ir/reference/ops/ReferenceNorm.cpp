// Composites: softmax, normalisations and attention, directly by their formulas.
#include "ir/reference/ReferenceScalar.h"
#include "ir/reference/ReferenceUtil.h"
#include <algorithm>

namespace burin::ir::ref {

namespace {

/// Calls f with every row along `axis`: element i of the row is elements[i * stride].
template <class F> void forEachRow(std::span<const int64_t> shape, size_t axis, F f) {
  AxisSplit split(shape, axis);
  for (int64_t o = 0; o < split.outer; ++o)
    for (int64_t i = 0; i < split.inner; ++i)
      f(o * split.size * split.inner + i, split.inner, split.size);
}

bool logSoftmax(RefCall &call) {
  const std::vector<double> &x = call.in().reals();
  std::vector<double> &y = call.out().reals();
  if (call.in().shape.empty()) { // one element
    y[0] = x[0] - x[0];          // NOLINT(misc-redundant-expression): NaN for NaN and infinities
    return true;
  }
  size_t axis = axisOf(call.attr<int64_t>("axis"), call.in().shape.size());
  forEachRow(call.in().shape, axis, [&](int64_t start, int64_t stride, int64_t count) {
    double top = -HUGE_VAL, sum = 0;
    for (int64_t i = 0; i < count; ++i)
      top = maximum(top, x[size_t(start + i * stride)]);
    for (int64_t i = 0; i < count; ++i)
      sum += std::exp(x[size_t(start + i * stride)] - top);
    for (int64_t i = 0; i < count; ++i)
      y[size_t(start + i * stride)] = x[size_t(start + i * stride)] - top - std::log(sum);
  });
  return true;
}

bool softmax(RefCall &call) {
  logSoftmax(call);
  for (double &y : call.out().reals())
    y = std::exp(y);
  return true;
}

/// Element i of an optional operand, or `otherwise` if it is absent.
double optional(const RefCall &call, size_t operand, int64_t i, double otherwise) {
  return call.has(operand) ? call.in(operand).reals()[size_t(i)] : otherwise;
}

/// Normalises each run of `length` elements to zero mean and unit variance.
void normalizeRuns(const std::vector<double> &x, std::vector<double> &y, int64_t length, double epsilon) {
  for (size_t start = 0; start < x.size(); start += size_t(length)) {
    double sum = 0, squares = 0;
    for (size_t i = start; i < start + size_t(length); ++i)
      sum += x[i];
    double mean = sum / double(length);
    for (size_t i = start; i < start + size_t(length); ++i)
      squares += (x[i] - mean) * (x[i] - mean);
    double scale = 1 / std::sqrt(squares / double(length) + epsilon);
    for (size_t i = start; i < start + size_t(length); ++i)
      y[i] = (x[i] - mean) * scale;
  }
}

/// y = y * weight + bias, with the optional operands 1 and 2 indexed by f(position).
template <class F> void scaleAndShift(RefCall &call, F f) {
  std::vector<double> &y = call.out().reals();
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = y[i] * optional(call, 1, f(int64_t(i)), 1) + optional(call, 2, f(int64_t(i)), 0);
}

int64_t sizeFromAxis(const RefCall &call) {
  const Sizes &shape = call.in().shape;
  return product(std::span(shape).subspan(axisOf(call.attr<int64_t>("axis"), shape.size())));
}

bool checkSize(RefCall &call, size_t operand, int64_t size) {
  return call.require(!call.has(operand) || call.in(operand).size() == size,
                      std::string(call.info.operands[operand].name) + " has not " + std::to_string(size) + " elements");
}

bool layerNorm(RefCall &call) {
  int64_t length = sizeFromAxis(call);
  if (!checkSize(call, 1, length) || !checkSize(call, 2, length))
    return false;
  normalizeRuns(call.in().reals(), call.out().reals(), length, call.attr<double>("epsilon"));
  scaleAndShift(call, [&](int64_t i) { return i % length; });
  return true;
}

bool rmsNorm(RefCall &call) {
  const std::vector<double> &x = call.in().reals();
  std::vector<double> &y = call.out().reals();
  int64_t length = sizeFromAxis(call);
  if (!checkSize(call, 1, length))
    return false;
  for (size_t start = 0; start < x.size(); start += size_t(length)) {
    double squares = 0;
    for (size_t i = start; i < start + size_t(length); ++i)
      squares += x[i] * x[i];
    double scale = 1 / std::sqrt(squares / double(length) + call.attr<double>("epsilon"));
    for (size_t i = start; i < start + size_t(length); ++i)
      y[i] = x[i] * scale * optional(call, 1, int64_t(i - start), 1);
  }
  return true;
}

bool batchNorm(RefCall &call) {
  const Sizes &shape = call.in().shape;
  AxisSplit split(shape, 1);
  for (size_t operand = 1; operand < 5; ++operand)
    if (!checkSize(call, operand, split.size))
      return false;
  double epsilon = call.attr<double>("epsilon");
  for (size_t i = 0; i < call.in().reals().size(); ++i) {
    size_t c = size_t(int64_t(i) / split.inner % split.size);
    auto of = [&](size_t operand) { return call.in(operand).reals()[c]; };
    call.out().reals()[i] = (call.in().reals()[i] - of(1)) / std::sqrt(of(2) + epsilon) * of(3) + of(4);
  }
  return true;
}

/// Normalises `groups` groups of channels of x [N, C, …], then scales and shifts per channel.
bool normalizeGroups(RefCall &call, int64_t groups) {
  const Sizes &shape = call.in().shape;
  AxisSplit split(shape, 1);
  if (call.in().size() == 0)
    return true;
  if (groups <= 0 || split.size % groups != 0)
    return call.fail(std::to_string(split.size) + " channels in " + std::to_string(groups) + " groups");
  if (!checkSize(call, 1, split.size) || !checkSize(call, 2, split.size))
    return false;
  normalizeRuns(call.in().reals(), call.out().reals(), split.size / groups * split.inner, call.attr<double>("epsilon"));
  scaleAndShift(call, [&](int64_t i) { return i / split.inner % split.size; });
  return true;
}
bool groupNorm(RefCall &call) { return normalizeGroups(call, call.attr<int64_t>("groups")); }
bool instanceNorm(RefCall &call) { return normalizeGroups(call, call.in().shape[1]); }

/// exp(x - max) over its sum; a row of -inf gives zeros.
void softmaxRow(std::span<double> row) {
  double top = -HUGE_VAL, sum = 0;
  for (double x : row)
    top = maximum(top, x);
  for (double &x : row)
    sum += x = top == -HUGE_VAL ? 0 : std::exp(x - top);
  for (double &x : row)
    x = sum == 0 ? 0 : x / sum;
}

/// The mask as numbers to add to each score [..., L, S]: 0 or -inf for a bool mask.
std::optional<std::vector<double>> maskOf(RefCall &call, size_t place, const Sizes &scores) {
  RefTensor to = RefTensor::zeros(DType::f64, scores);
  if (call.has(place)) {
    RefTensor mask = call.in(place);
    if (!isFloat(mask.dtype)) {
      std::vector<double> added(mask.ints().size());
      for (size_t i = 0; i < added.size(); ++i)
        added[i] = mask.ints()[i] ? 0 : -HUGE_VAL;
      mask.dtype = DType::f64;
      mask.data = std::move(added);
    }
    auto view = broadcastView(mask.shape, scores);
    if (!view)
      return std::nullopt;
    move(to, wholeOf(scores), mask, *view);
  }
  return std::move(to.reals());
}

/// The weights of row `at` of all queries, of which a head has l.
void weigh(RefCall &call, std::vector<double> &row, const std::vector<double> &mask, int64_t at, int64_t l) {
  const int64_t e = call.in(0).shape.back(), s = int64_t(row.size());
  const double *q = call.in(0).reals().data() + at * e, *k = call.in(1).reals().data() + at / l * s * e;
  const double given = call.attr<double>("scale"), scale = given == 0 ? 1 / std::sqrt(double(e)) : given;
  const bool causal = call.attr<bool>("is_causal");
  for (int64_t j = 0; j < s; ++j) {
    double score = 0;
    for (int64_t i = 0; i < e; ++i)
      score += q[i] * k[j * e + i];
    row[size_t(j)] = causal && j > at % l ? -HUGE_VAL : score * scale + mask[size_t(at * s + j)];
  }
  softmaxRow(row);
}

bool attention(RefCall &call) {
  const RefTensor &query = call.in(0), &key = call.in(1), &value = call.in(2);
  size_t rank = query.shape.size();
  if (rank < 2 || key.shape.size() != rank || value.shape.size() != rank)
    return call.fail("query, key and value have one rank, at least 2");
  int64_t l = query.shape[rank - 2], e = query.shape[rank - 1], s = key.shape[rank - 2], v = value.shape[rank - 1];
  Sizes scores(query.shape.begin(), query.shape.end() - 1);
  scores.push_back(s);
  int64_t batch = product(std::span(query.shape).first(rank - 2));
  if (key.size() != batch * s * e || value.size() != batch * s * v || call.out().size() != batch * l * v)
    return call.fail("query " + str(query.shape) + ", key " + str(key.shape) + " and value " + str(value.shape) +
                     " do not fit");
  auto mask = maskOf(call, 3, scores);
  if (!mask)
    return call.fail("the mask " + str(call.in(3).shape) + " does not broadcast to " + str(scores));
  std::vector<double> row(static_cast<size_t>(s));
  for (int64_t at = 0; at < batch * l; ++at) {
    weigh(call, row, *mask, at, l);
    for (int64_t j = 0; j < s; ++j)
      for (int64_t i = 0; i < v; ++i)
        call.out().reals()[size_t(at * v + i)] += row[size_t(j)] * value.reals()[size_t((at / l * s + j) * v + i)];
  }
  return true;
}

/// The gradients of scaled queries, scaled keys and values, below each other.
bool attentionGradient(RefCall &call) {
  const Sizes &query = call.in(0).shape, &key = call.in(1).shape;
  size_t rank = query.size();
  int64_t l = query[rank - 2], e = query[rank - 1], s = key[rank - 2];
  Sizes scores(query.begin(), query.end() - 1);
  scores.push_back(s);
  auto mask = maskOf(call, 4, scores);
  if (!mask)
    return call.fail("the mask " + str(call.in(4).shape) + " does not broadcast to " + str(scores));
  std::vector<double> row(static_cast<size_t>(s)), ofRow(static_cast<size_t>(s));
  for (int64_t at = 0; at < product(std::span(query).first(rank - 2)) * l; ++at) {
    weigh(call, row, *mask, at, l);
    const int64_t head = at / l;
    const double *q = call.in(0).reals().data() + at * e, *k = call.in(1).reals().data() + head * s * e;
    const double *v = call.in(2).reals().data() + head * s * e, *g = call.in(3).reals().data() + at * e;
    double *ofQuery = call.out().reals().data() + (head * (l + 2 * s) + at % l) * e;
    double *ofKey = call.out().reals().data() + (head * (l + 2 * s) + l) * e, *ofValue = ofKey + s * e;
    double total = 0;
    for (int64_t j = 0; j < s; ++j) {
      ofRow[size_t(j)] = 0;
      for (int64_t i = 0; i < e; ++i)
        ofRow[size_t(j)] += g[i] * v[j * e + i];
      total += ofRow[size_t(j)] * row[size_t(j)];
    }
    for (int64_t j = 0; j < s; ++j)
      for (int64_t i = 0; i < e; ++i) {
        const double weight = row[size_t(j)], ofScore = weight * (ofRow[size_t(j)] - total);
        ofQuery[i] += ofScore * k[j * e + i];
        ofKey[j * e + i] += ofScore * q[i];
        ofValue[j * e + i] += weight * g[i];
      }
  }
  return true;
}

constexpr RefKernelEntry kNormKernels[] = {
    {"softmax", softmax},
    {"log_softmax", logSoftmax},
    {"layer_norm", layerNorm},
    {"rms_norm", rmsNorm},
    {"batch_norm", batchNorm},
    {"group_norm", groupNorm},
    {"instance_norm", instanceNorm},
    {"scaled_dot_product_attention", attention},
    {"attention_gradient", attentionGradient},
};

} // namespace

std::span<const RefKernelEntry> normKernels() { return kNormKernels; }

} // namespace burin::ir::ref
