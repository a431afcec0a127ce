// Losses over classes and over sequences of them.
//
// The log-probability of the target's class is selected by a comparison with all classes, not by gather: the selection
// is then elementwise, forward and backward, and fuses with the softmax.
#include "burin/graph/loops.h"
#include "burin/ops.h"
#include "burin/tensor/indexing.h"
#include "frontend/nn/losses/LossChecks.h"
#include "frontend/tensor/context/AutocastScope.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>
#include <cmath>

namespace burin {

using namespace detail;

namespace {

/// Integer targets compared with the classes of `input` along `axis`.
struct Targets {
  int64_t axis;
  Tensor isClass; // bool, shape of input: whether this is the class of the target; false for ignored targets
  Tensor counts;  // bool, shape of target: not ignored
};

int64_t classAxis(const Tensor &input, const char *op, const Location &where) {
  requireFloat(input, "input", op, where);
  if (input.rank(where) == 0)
    throw Error(where, op, "the input is a scalar, but must be [C], [N, C] or [N, C, d1, …]");
  return input.rank(where) == 1 ? 0 : 1;
}

/// A shape with one number per class that broadcasts to that of input.
Shape alongClasses(const Tensor &input, int64_t axis) {
  Shape shape(input.shape().size(), Dim(1));
  shape[size_t(axis)] = input.shape()[size_t(axis)];
  return shape;
}

/// Checks the values of computed targets; in a trace, each run checks them.
void requireClasses(const Tensor &target, const Dim &classes, int64_t ignored, const char *op, const Location &where) {
  std::vector<int64_t> values = target.to_vector<int64_t>(where);
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != ignored && (values[i] < 0 || Dim(values[i]) == classes || values[i] > classes.value()))
      throw Error(where, op,
                  "target " + std::to_string(values[i]) + " at position " + std::to_string(i) +
                      " is no class: there are " + classes.str() +
                      ", from 0 on; ignore_index marks targets that do not count");
}

Targets compare(const Tensor &input, const Tensor &target, int64_t ignored, const char *op, const Location &where) {
  Targets t{classAxis(input, op, where), {}, {}};
  Shape expected = input.shape();
  Dim classes = expected[size_t(t.axis)];
  expected.erase(expected.begin() + t.axis);
  if (!isInteger(target.dtype(where)))
    throw Error(where, op,
                "the target is " + str(target.spec(where)) +
                    ", but must be integers, the classes; convert it: to(i64)");
  if (target.shape(where) != expected)
    throw Error(where, op,
                "the target is " + str(target.spec(where)) + ", but for the input " + str(input.spec(where)) +
                    " it must be " + str(expected) + ": one class in place of dimension " + std::to_string(t.axis));
  Tensor wide = target.to(DType::i64);
  t.counts = wide != ignored;
  if (target.isTraced() || !classes.isStatic())
    wide = check(!t.counts | ((wide >= 0) & (wide < sizeTensor(classes))), wide,
                 std::string(op) + ": a target is no class: there are " + classes.str() +
                     ", from 0 on; ignore_index marks targets that do not count",
                 where);
  else
    requireClasses(wide, classes, ignored, op, where);
  t.isClass = (unsqueeze(wide, {t.axis}) == iota(alongClasses(input, t.axis), DType::i64, t.axis)) &
              unsqueeze(t.counts, {t.axis});
  return t;
}

std::optional<Tensor> classWeights(const std::optional<Tensor> &weight, const Tensor &input, int64_t axis,
                                   const char *op, const Location &where) {
  if (!weight)
    return std::nullopt;
  Dim classes = input.shape()[size_t(axis)];
  if (weight->shape(where) != Shape{classes})
    throw Error(where, op,
                "the weight is " + str(weight->spec(where)) + ", but must have one factor for each of the " +
                    classes.str() + " classes");
  return reshape(weight->to(input.dtype()), alongClasses(input, axis));
}

/// The sum over the rows divided by the sum of `amounts`: PyTorch's weighted mean.
Tensor reduceRows(const Tensor &loss, const Tensor &amounts, Reduction reduction, const char *op,
                  const Location &where) {
  if (reduction != Reduction::Mean)
    return reduceLoss(loss, reduction, op, where);
  reduceLoss(loss, reduction, op, where); // rejects an empty batch
  return reduce_sum(loss) / reduce_sum(amounts);
}

/// The losses of rows with the log-probabilities `logs`.
Tensor ofClasses(const Tensor &logs, const Tensor &target, const CrossEntropyOptions &options, const char *op,
                 const Location &where) {
  Targets t = compare(logs, target, options.ignore_index, op, where);
  auto weights = classWeights(options.weight, logs, t.axis, op, where);
  Tensor zero = full({}, 0, logs.dtype());
  Tensor weighed = weights ? logs * *weights : logs;
  Tensor loss = -reduce_sum(burin::where(t.isClass, weighed, zero), {t.axis});
  Tensor amounts = weights ? reduce_sum(burin::where(t.isClass, *weights, zero), {t.axis}) : t.counts.to(logs.dtype());
  if (options.label_smoothing > 0) {
    Tensor all = burin::where(t.counts, -reduce_sum(weighed, {t.axis}), zero);
    Tensor classes = sizeTensor(logs.shape()[size_t(t.axis)]).to(logs.dtype());
    loss = loss * (1 - options.label_smoothing) + all * (options.label_smoothing / classes);
  }
  return reduceRows(loss, amounts, options.reduction, op, where);
}

Tensor ofProbabilities(const Tensor &input, const Tensor &target, const CrossEntropyOptions &options, const char *op,
                       const Location &where) {
  int64_t axis = classAxis(input, op, where);
  requireSameShape(input, target, "target (probabilities)", op, where);
  auto weights = classWeights(options.weight, input, axis, op, where);
  Tensor logs = log_softmax(input, axis), wanted = target.to(input.dtype());
  if (options.label_smoothing > 0) {
    Tensor classes = sizeTensor(input.shape()[size_t(axis)]).to(input.dtype());
    wanted = wanted * (1 - options.label_smoothing) + options.label_smoothing / classes;
  }
  Tensor loss = -reduce_sum((weights ? logs * *weights : logs) * wanted, {axis});
  return reduceLoss(loss, options.reduction, op, where);
}

} // namespace

Tensor cross_entropy(const Tensor &given, const Tensor &target, const CrossEntropyOptions &options, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  const Tensor input = castForLoss(given, place);
  constexpr auto op = "cross_entropy";
  if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1))
    throw Error(place, op,
                "label_smoothing is " + std::to_string(options.label_smoothing) + ", but must lie in [0, 1]");
  if (isFloat(target.dtype(place)))
    return ofProbabilities(input, target, options, op, place);
  return ofClasses(log_softmax(input, classAxis(input, op, place)), target, options, op, place);
}

Tensor nll_loss(const Tensor &given, const Tensor &target, const NllOptions &options, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  const Tensor input = castForLoss(given, place);
  return ofClasses(input, target, {options.weight, options.ignore_index, options.reduction, 0}, "nll_loss", place);
}

// ---- connectionist temporal classification

namespace {

/// Replaces log 0. Finite, so that differences are finite, and far below every sum of log-probabilities.
double logOfZero(DType dtype) { return dtype == DType::f64 || dtype == DType::f32 ? -1e30 : -3e4; }

Tensor logSum(const Tensor &a, const Tensor &b) {
  Tensor high = maximum(a, b);
  return high + log1p(exp(minimum(a, b) - high));
}

/// The forward variables of Graves et al.: the probability of all alignments of a prefix of the labels, which are the
/// targets with blanks before, between and after them.
class Alignments {
public:
  Alignments(const Tensor &logProbs, const Tensor &targets, const Tensor &targetLengths, int64_t blank)
      : zero(full({}, logOfZero(logProbs.dtype()), logProbs.dtype())) {
    Dim batch = targets.shape()[0], length = targets.shape()[1];
    Shape flat{batch, length * 2};
    Tensor blanks = broadcast_to(Tensor(blank), targets.shape());
    Tensor last = broadcast_to(Tensor(blank), {batch, 1});
    Tensor labels = concat({reshape(stack({blanks.to(DType::i64), targets}, 2), flat), last.to(DType::i64)}, 1);
    Tensor position = iota({1, length * 2 + 1}, DType::i64, 1), ends = unsqueeze(targetLengths, {1}) * 2;
    Tensor before = pad(labels, {0, 2}, {0, -2}, "constant", double(blank)); // two labels earlier
    maySkip = (labels != blank) & (labels != before) & (position >= 2);
    isFirst = position <= 1;
    isEnd = (position == ends) | (position == ends - 1);
    Dim steps = logProbs.shape()[0];
    emitted = gather(logProbs, broadcast_to(unsqueeze(labels, {0}), {steps, batch, length * 2 + 1}), 2);
  }

  /// -log of the probability of all alignments, [N].
  Tensor loss(const Tensor &inputLengths) const {
    Shape shape(emitted.shape().begin() + 1, emitted.shape().end());
    Tensor start = broadcast_to(zero, shape);
    auto step = [&](const std::vector<Tensor> &states, const std::vector<Tensor> &elements) {
      const Tensor &alpha = states[0], &time = elements[1];
      Tensor one = shifted(alpha, 1), two = burin::where(maySkip, shifted(alpha, 2), zero);
      Tensor sum = logSum(logSum(alpha, one), two);
      Tensor next = burin::where(time == 0, burin::where(isFirst, 0.0, zero), sum) + elements[0];
      next = maximum(next, zero);
      return ScanResult{{burin::where(time < unsqueeze(inputLengths, {1}), next, alpha)}, {}};
    };
    Tensor times = iota({emitted.shape()[0]}, DType::i64);
    Tensor alpha = scan(step, {start}, {emitted, times}).states[0];
    return -logsumexp(burin::where(isEnd, alpha, zero), {1});
  }

  Tensor zero; // log 0

private:
  Tensor maySkip, isFirst, isEnd; // of the labels, [N, 2S + 1]
  Tensor emitted;                 // [T, N, 2S + 1]

  Tensor shifted(const Tensor &alpha, int64_t by) const {
    return pad(alpha, {0, by}, {0, -by}, "constant", logOfZero(alpha.dtype()));
  }
};

void checkCtc(const Tensor &logProbs, const Tensor &targets, const Tensor &inputLengths, const Tensor &targetLengths,
              int64_t blank, const Location &where) {
  requireFloat(logProbs, "log_probs", "ctc_loss", where);
  auto fits = [&](const Tensor &x, size_t rank) {
    return isInteger(x.dtype(where)) && x.shape(where).size() == rank && x.shape(where)[0] == logProbs.shape(where)[1];
  };
  if (logProbs.rank(where) != 3 || !fits(targets, 2) || !fits(inputLengths, 1) || !fits(targetLengths, 1))
    throw Error(where, "ctc_loss",
                "it takes log_probs [T, N, C] and integers: targets [N, S], input_lengths [N] and target_lengths [N]; "
                "they are " +
                    str(logProbs.spec(where)) + ", " + str(targets.spec(where)) + ", " + str(inputLengths.spec(where)) +
                    " and " + str(targetLengths.spec(where)));
  const Dim classes = logProbs.shape(where)[2];
  if (blank < 0 || (classes.isStatic() && blank >= classes.value()))
    throw Error(where, "ctc_loss",
                "blank is " + std::to_string(blank) + ", but there are " + classes.str() + " classes");
}

/// The lengths, whose values are checked now, in a trace in each run.
Tensor checkedLengths(const Tensor &given, const Dim &most, const char *what, const Location &where) {
  Tensor lengths = given.to(DType::i64);
  if (lengths.isTraced() || !most.isStatic())
    return check((lengths >= 0) & (lengths <= sizeTensor(most)), lengths,
                 "ctc_loss: an element of " + std::string(what) + " does not lie in [0, " + most.str() + "]", where);
  for (int64_t length : lengths.to_vector<int64_t>(where))
    if (length < 0 || length > most.value())
      throw Error(where, "ctc_loss",
                  std::string(what) + " has " + std::to_string(length) + ", but must lie in [0, " + most.str() + "]");
  return lengths;
}

} // namespace

Tensor ctc_loss(const Tensor &given, const Tensor &targets, const Tensor &input_lengths, const Tensor &target_lengths,
                const CtcOptions &options, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  const Tensor log_probs = castForLoss(given, place);
  checkCtc(log_probs, targets, input_lengths, target_lengths, options.blank, place);
  Tensor steps = checkedLengths(input_lengths, log_probs.shape()[0], "input_lengths", place);
  Tensor lengths = checkedLengths(target_lengths, targets.shape()[1], "target_lengths", place);
  Alignments alignments(log_probs, targets.to(DType::i64), lengths, options.blank);
  Tensor loss = alignments.loss(steps);
  Tensor none = loss >= -0.5 * logOfZero(loss.dtype());
  loss = burin::where(none, options.zero_infinity ? 0.0 : double(INFINITY), loss);
  if (options.reduction == Reduction::Mean)
    loss = loss / maximum(lengths, 1).to(loss.dtype());
  return reduceLoss(loss, options.reduction, "ctc_loss", place);
}

// ---- modules

namespace nn {

CrossEntropyLoss::CrossEntropyLoss(CrossEntropyOptions given, Location where)
    : Module("CrossEntropyLoss", where), options(std::move(given)) {
  if (options.weight)
    weight = register_buffer("weight", *options.weight, where);
}
Tensor CrossEntropyLoss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  CrossEntropyOptions now = options;
  now.weight = optionally(weight);
  return cross_entropy(input, target, now, where);
}
NLLLoss::NLLLoss(NllOptions given, Location where) : Module("NLLLoss", where), options(std::move(given)) {
  if (options.weight)
    weight = register_buffer("weight", *options.weight, where);
}
Tensor NLLLoss::operator()(const Tensor &input, const Tensor &target, Location where) const {
  ModuleScope inModule(*this);
  NllOptions now = options;
  now.weight = optionally(weight);
  return nll_loss(input, target, now, where);
}
CTCLoss::CTCLoss(CtcOptions options, Location where) : Module("CTCLoss", where), options(options) {}
Tensor CTCLoss::operator()(const Tensor &log_probs, const Tensor &targets, const Tensor &input_lengths,
                           const Tensor &target_lengths, Location where) const {
  ModuleScope inModule(*this);
  return ctc_loss(log_probs, targets, input_lengths, target_lengths, options, where);
}

} // namespace nn
} // namespace burin
