// Training utilities: checkpoints, a progress bar, metrics.
#pragma once
#include "burin/training/data.h"
#include <chrono>
#include <deque>
#include <memory>

namespace burin {

/// Options of Checkpoint.
struct CheckpointOptions {
  int64_t keep_last = 3; ///< older checkpoints are deleted
  bool keep_best = true; ///< also keep the one with the lowest metric
};
/// Checkpoints of a training in a folder: one safetensors file each, `step-<number>.safetensors`. A file is written
/// under another name and renamed when it is complete and on disk, so that only complete files exist, even if the
/// process is killed.
///
///   Checkpoint checkpoint("runs/lenet");
///   if (auto saved = checkpoint.load_latest()) { net.load_state_dict(saved->part("model.")); … }
///   …
///   StateDict state;
///   state.add("model.", net.state_dict());
///   state.add("optimizer.", optimizer.state_dict());
///   state.add("loader.", loader.state_dict());
///   checkpoint.save(step, state);
///
/// Tensors are immutable, so the saved state is that at the time of the call, although a thread writes it while
/// training continues.
class BURIN_API Checkpoint {
public:
  /// Creates the folder, and deletes incomplete files from it; so a folder serves one training at a time. Throws if the
  /// folder cannot be created.
  explicit Checkpoint(std::string folder, CheckpointOptions options = {}, Location where = Location::current());

  /// Starts to write, after the previous write has ended; throws if that one has failed. `metric`: lower is better, for
  /// keep_best; NaN is never the best.
  void save(int64_t step, const StateDict &state, std::optional<double> metric = std::nullopt,
            Location where = Location::current());
  /// Waits for the last save; throws if it has failed.
  void wait(Location where = Location::current());
  /// The steps of the existing checkpoints, ascending.
  std::vector<int64_t> steps() const;
  /// The checkpoint with the highest step; nullopt if there is none.
  std::optional<StateDict> load_latest(int64_t *step = nullptr, Location where = Location::current());
  /// The checkpoint with the lowest metric; nullopt if none was saved with a metric that is a number.
  std::optional<StateDict> load_best(int64_t *step = nullptr, Location where = Location::current());

private:
  struct State;
  std::shared_ptr<State> state;
};

/// A line on a terminal that shows the progress of a loop. Prints nothing if stderr is not a terminal.
class BURIN_API ProgressBar {
public:
  explicit ProgressBar(int64_t total, std::string title = "");
  ~ProgressBar();
  ProgressBar(const ProgressBar &) = delete;
  ProgressBar &operator=(const ProgressBar &) = delete;
  /// Counts a step; `note`, for example the loss, is printed after the bar.
  void step(const std::string &note = "");
  /// The line after `seconds`.
  std::string line(double seconds) const;

private:
  int64_t total, done = 0;
  std::string title, note;
  bool isTerminal;
  std::chrono::steady_clock::time_point start, shown;
};

/// A sum on the device, which is not waited for until the result is read.
class BURIN_API Mean {
public:
  /// Adds the mean of `count` values, one element.
  void add(const Tensor &mean, int64_t count = 1, Location where = Location::current());
  /// The mean of all values; NaN without values.
  double value(Location where = Location::current()) const;

private:
  Tensor sum;
  int64_t count = 0;
};

/// The perplexity of a language model: e to the mean of its cross-entropies (natural logarithm) over tokens. Sums stay
/// on the device and are not waited for until the result is read.
class BURIN_API Perplexity {
public:
  /// `scores` [N, C] or [N, L, C] (not normalised, floats) and the classes in `target` [N] or [N, L], of which
  /// `ignore_index` does not count.
  void add(const Tensor &scores, const Tensor &target, int64_t ignore_index = -100,
           Location where = Location::current());
  /// Of all tokens so far; NaN without any.
  double value(Location where = Location::current()) const;

private:
  Tensor sum, count; // f64[]
};

/// Fraction of the rows of `scores` [N, C] of which the largest (or one of the k largest) elements is at the class in
/// `target` [N]: f32[].
BURIN_API Tensor accuracy(const Tensor &scores, const Tensor &target, int64_t top_k = 1,
                          Location where = Location::current());
/// Number of times that class i (row) was predicted as class j (column): i64[classes, classes]. Classes outside of
/// [0, classes) are an error where the result is read.
BURIN_API Tensor confusion_matrix(const Tensor &predicted, const Tensor &target, int64_t classes,
                                  Location where = Location::current());
/// Scores per class from a confusion matrix: f64[classes]. 0 if a class was never predicted, or does not occur.
struct ClassScores {
  Tensor precision, recall, f1;
};
BURIN_API ClassScores class_scores(const Tensor &confusion, Location where = Location::current());

} // namespace burin
