// What surrounds a training: checkpoints, a progress bar, metrics.
#pragma once
#include "burin/data.h"
#include <chrono>
#include <deque>
#include <memory>

namespace burin {

/// Options of Checkpoint.
struct CheckpointOptions {
  int64_t keep_last = 3; ///< older checkpoints are removed
  bool keep_best = true; ///< the one with the lowest metric stays
};
/// Checkpoints of a training in a folder: one safetensors file each, `step-<number>.safetensors`. A file is written
/// beside its place and renamed when it is whole and on disk, so that there are whole files only, whenever the process
/// ends.
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
/// Tensors never change, so what is saved is the state of the moment of the call, also while the training goes on and a
/// thread writes.
class BURIN_API Checkpoint {
public:
  /// Makes the folder, and removes from it what a process left that ended while it saved; so a folder serves one
  /// training at a time. Throws if the folder cannot be made.
  explicit Checkpoint(std::string folder, CheckpointOptions options = {}, Location where = Location::current());

  /// Begins to write, after the one before has been written; what went wrong with that is thrown here. `metric`: the
  /// lower the better, for keep_best.
  void save(int64_t step, const StateDict &state, std::optional<double> metric = std::nullopt,
            Location where = Location::current());
  /// Waits for the last save; throws what went wrong.
  void wait(Location where = Location::current());
  /// The steps that there are checkpoints of, in order.
  std::vector<int64_t> steps() const;
  /// The one of the highest step; nullopt if there is none.
  std::optional<StateDict> load_latest(int64_t *step = nullptr, Location where = Location::current());
  /// The one with the lowest metric; nullopt if none was saved with a metric.
  std::optional<StateDict> load_best(int64_t *step = nullptr, Location where = Location::current());

private:
  struct State;
  std::shared_ptr<State> state;
};

/// A line on a terminal that shows how far a loop is. Prints nothing if stderr is no terminal.
class BURIN_API ProgressBar {
public:
  explicit ProgressBar(int64_t total, std::string title = "");
  ~ProgressBar();
  ProgressBar(const ProgressBar &) = delete;
  ProgressBar &operator=(const ProgressBar &) = delete;
  /// One more step is done; `note` is shown behind the bar, such as the loss.
  void step(const std::string &note = "");
  /// The line as it would be shown after `seconds`.
  std::string line(double seconds) const;

private:
  int64_t total, done = 0;
  std::string title, note;
  bool isTerminal;
  std::chrono::steady_clock::time_point start, shown;
};

/// Sums on the device: what is added is not waited for until the result is read.
class BURIN_API Mean {
public:
  /// Adds the mean of `count` values.
  void add(const Tensor &mean, int64_t count = 1, Location where = Location::current());
  /// The mean of all values; NaN if there are none.
  double value(Location where = Location::current()) const;

private:
  Tensor sum;
  int64_t count = 0;
};

/// The part of the rows of `scores` [N, C] whose largest (or k largest) elements are at the class in `target` [N]:
/// f32[].
BURIN_API Tensor accuracy(const Tensor &scores, const Tensor &target, int64_t top_k = 1,
                          Location where = Location::current());
/// How often class i (row) was taken for class j (column): i64[classes, classes].
BURIN_API Tensor confusion_matrix(const Tensor &predicted, const Tensor &target, int64_t classes,
                                  Location where = Location::current());
/// Of each class, from a confusion matrix: f64[classes]. 0 where a class was never predicted, or does not occur.
struct ClassScores {
  Tensor precision, recall, f1;
};
BURIN_API ClassScores class_scores(const Tensor &confusion, Location where = Location::current());

} // namespace burin
