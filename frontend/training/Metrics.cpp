// Metrics and the progress bar.
#include "burin/nn/losses.h"
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "burin/tensor/reductions.h"
#include "burin/tensor/selection.h"
#include "burin/training/checkpoint.h"
#include "burin/training/gradients.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unistd.h>

namespace burin {

using detail::inScope;

void Mean::add(const Tensor &mean, int64_t number, Location where) {
  LocationScope scope(where);
  if (elements(mean.shape()) != Dim(1) || number < 0)
    throw Error(inScope(where), "Mean",
                "it takes the mean of a number of values, one element, not " + str(mean.spec()) + " of " +
                    std::to_string(number));
  NoGrad noGrad;
  Tensor part = detach(mean).to(DType::f64) * double(number);
  sum = sum.defined() ? sum + part : part;
  count += number;
}
double Mean::value(Location where) const { return count ? sum.item(where) / double(count) : double(NAN); }

void Perplexity::add(const Tensor &scores, const Tensor &target, int64_t ignore_index, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  Shape tokens = scores.shape();
  if (!tokens.empty())
    tokens.pop_back();
  if (tokens.empty() || !isFloat(scores.dtype()) || !isInteger(target.dtype()) || target.shape() != tokens)
    throw Error(place, "Perplexity",
                "it takes scores [N, C] or [N, L, C] and classes [N] or [N, L], not " + str(scores.spec()) + " and " +
                    str(target.spec()));
  NoGrad noGrad;
  const Tensor rows = scores.flatten(0, -2), classes = target.flatten().to(DType::i64);
  Tensor loss =
      cross_entropy(rows.to(DType::f32), classes, {.ignore_index = ignore_index, .reduction = Reduction::Sum});
  Tensor part = detach(loss).to(DType::f64), number = reduce_sum((classes != ignore_index).to(DType::f64));
  sum = sum.defined() ? sum + part : part;
  count = count.defined() ? count + number : number;
}
double Perplexity::value(Location where) const {
  return count.defined() ? std::exp(sum.item(where) / count.item(where)) : double(NAN);
}

Tensor accuracy(const Tensor &scores, const Tensor &target, int64_t top_k, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  if (scores.rank() != 2 || !isInteger(target.dtype()) || target.shape() != Shape{scores.shape()[0]})
    throw Error(place, "accuracy",
                "it takes scores [N, C] and classes [N], not " + str(scores.spec()) + " and " + str(target.spec()));
  if (scores.shape()[0] == Dim(0))
    throw Error(place, "accuracy", "the mean over an empty batch " + str(scores.spec()) + " is not a number");
  NoGrad noGrad;
  if (top_k == 1)
    return reduce_mean((argmax(scores, 1) == target).to(DType::f32));
  Tensor best = topk(scores, top_k, 1).indices;
  return reduce_mean(reduce_any(best == unsqueeze(target, {1}), {1}).to(DType::f32));
}

Tensor confusion_matrix(const Tensor &predicted, const Tensor &target, int64_t classes, Location where) {
  LocationScope scope(where);
  const Location place = inScope(where);
  if (classes < 1 || !isInteger(predicted.dtype()) || !isInteger(target.dtype()) ||
      predicted.shape() != target.shape() || target.rank() != 1)
    throw Error(place, "confusion_matrix",
                "it takes classes [N] and [N], not " + str(predicted.spec()) + " and " + str(target.spec()));
  NoGrad noGrad;
  Tensor number = iota({1, classes}, DType::i64, 1);
  auto oneHot = [&](const Tensor &given) {
    Tensor x = given.to(DType::i64);
    x = check((x >= 0) & (x < classes), x,
              "confusion_matrix: a class does not lie in [0, " + std::to_string(classes) + ")", place);
    return (unsqueeze(x, {1}) == number).to(DType::f64);
  };
  return matmul(oneHot(target).t(), oneHot(predicted)).to(DType::i64);
}

ClassScores class_scores(const Tensor &confusion, Location where) {
  LocationScope scope(where);
  Tensor counts = confusion.to(DType::f64);
  Tensor hits = reduce_sum(counts * eye(counts.shape()[0].value(), -1, DType::f64), {1});
  auto over = [&](const Tensor &all) { return burin::where(all > 0.0, hits / maximum(all, 1.0), 0.0); };
  Tensor precision = over(reduce_sum(counts, {0})), recall = over(reduce_sum(counts, {1}));
  Tensor sum = precision + recall;
  Tensor f1 = burin::where(sum > 0.0, precision * recall * 2.0 / burin::where(sum > 0.0, sum, 1.0), 0.0);
  return {precision, recall, f1};
}

// ---- progress

ProgressBar::ProgressBar(int64_t total, std::string title)
    : total(std::max<int64_t>(total, 0)), title(std::move(title)), isTerminal(isatty(STDERR_FILENO)),
      start(std::chrono::steady_clock::now()), shown() {}

ProgressBar::~ProgressBar() {
  if (isTerminal && done)
    std::fputc('\n', stderr);
}

void ProgressBar::step(const std::string &text) {
  ++done;
  note = text;
  if (!isTerminal)
    return;
  const auto now = std::chrono::steady_clock::now();
  if (done < total && now - shown < std::chrono::milliseconds(100))
    return;
  shown = now;
  std::fprintf(stderr, "\r\033[K%s", line(std::chrono::duration<double>(now - start).count()).c_str());
  std::fflush(stderr);
}

std::string ProgressBar::line(double seconds) const {
  constexpr int64_t kWidth = 24;
  const int64_t of = std::max<int64_t>(total, 1), filled = std::min(done, of) * kWidth / of;
  std::string bar;
  for (int64_t i = 0; i < kWidth; ++i)
    bar += i < filled ? "━" : "─";
  char numbers[96];
  std::snprintf(numbers, sizeof numbers, " %lld/%lld  %.0f s, %.1f/s", (long long)done, (long long)total, seconds,
                seconds > 0 ? double(done) / seconds : 0.0);
  return title + (title.empty() ? "" : " ") + bar + numbers + (note.empty() ? "" : "  " + note);
}

} // namespace burin
