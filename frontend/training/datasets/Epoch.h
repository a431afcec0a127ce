// An epoch of a loader: batches that worker threads make ahead and the loop takes in order.
#pragma once
#include "burin/training/dataset.h"
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

namespace burin::data {

class Epoch {
public:
  /// The batches of this order of indices, from batch `first` on.
  Epoch(DatasetRef dataset, const LoaderOptions &options, uint64_t number, std::vector<int64_t> order, int64_t first,
        const Location &where);
  /// The batches of a stream, whose examples before batch `first` are dropped.
  Epoch(IterableDataset::Stream stream, const LoaderOptions &options, uint64_t number, int64_t first,
        const Location &where);
  ~Epoch();
  Epoch(const Epoch &) = delete;

  /// The next batch in order; nullopt at the end. Throws what making it has thrown.
  std::optional<Example> take();

private:
  struct Result {
    Example batch;
    std::exception_ptr error;
    size_t bytes = 0;
  };
  /// What is read for a batch before a worker makes it: the examples of a stream. `index` is that of the batch.
  struct Ticket {
    int64_t index = 0;
    std::vector<Example> examples;
  };

  const DatasetRef dataset;
  const LoaderOptions &options;
  const uint64_t number;
  const std::vector<int64_t> order;
  const Location where; // of the loader, which errors of examples name
  std::vector<std::thread> workers;

  std::mutex reading; // guards the members below, and is locked before `mutex`
  const IterableDataset::Stream stream;
  int64_t position = 0; // of the stream

  std::mutex mutex; // guards the members below
  std::condition_variable changed;
  int64_t taken;   // the next batch to be made
  int64_t wanted;  // the next batch that the loop takes
  int64_t batches; // in the epoch; of a stream the largest number until it has ended
  std::map<int64_t, Result> ready;
  size_t readyBytes = 0;
  bool isOver = false;

  void start();
  void work();
  /// Takes the number of the next batch and what it needs of the stream; nullopt at the end.
  std::optional<Ticket> next(bool isAhead);
  bool read(Ticket &ticket);
  std::optional<Example> readExample();
  void endAt(int64_t count);
  Result resultOf(Ticket ticket) const;
  Example make(Ticket ticket) const;
  Example transformed(Example example, int64_t index) const;
};

/// Copies examples of equal shapes into one tensor for each of their tensors.
Example stacked(const std::vector<Example> &examples);
/// An error of an example that cannot be loaded.
[[noreturn]] void failExample(int64_t index, const std::exception &error);

} // namespace burin::data
