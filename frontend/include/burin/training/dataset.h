// Training data: sets of examples, and a loader that makes batches of them.
//
//   data::DataLoader loader(data::fashion_mnist(data::Split::Train), {.batch_size = 64, .shuffle = true, .workers =
//   2}); for (int epoch = 0; epoch < 10; ++epoch)
//     for (const std::vector<Tensor> &batch : loader) // one epoch: {images, labels}
//       step(batch[0], batch[1]);
//
// Order and augmentation depend only on the seed, the epoch and the index of an example, not on the number of workers.
#pragma once
#include "burin/nn/module.h"
#include <functional>
#include <memory>

namespace burin::data {

/// The tensors of one example, such as an image and its class; for a batch, with one more dimension in front.
using Example = std::vector<Tensor>;

/// Random numbers for one example.
class BURIN_API Random {
public:
  Random(uint64_t seed, uint64_t epoch, uint64_t index);
  /// Uniform in [0, 1).
  double uniform();
  /// Uniform in [low, high).
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// An integer in [low, high).
  int64_t integer(int64_t low, int64_t high);
  /// From the normal distribution with mean 0 and deviation 1.
  double normal();

private:
  uint64_t key, drawn = 0;
};

/// Examples by index; called by several threads concurrently. Derive from it, or use one of the sets below.
class BURIN_API Dataset {
public:
  virtual ~Dataset();
  virtual int64_t size() const = 0;
  virtual Example get(int64_t index) const = 0;
  /// Several examples at once; by default the stacked results of get().
  virtual Example batch(std::span<const int64_t> indices) const;
};
using DatasetRef = std::shared_ptr<const Dataset>;

/// Examples in an order of their own, such as the lines of a file that is too large for memory, or of a network
/// connection. Derive from it.
class BURIN_API IterableDataset {
public:
  /// Returns the next example, or nullopt at the end.
  using Stream = std::function<std::optional<Example>()>;
  virtual ~IterableDataset();
  /// Starts an epoch. The loader calls the stream from one thread at a time, whatever the number of workers.
  virtual Stream open(uint64_t epoch) const = 0;
};
using IterableDatasetRef = std::shared_ptr<const IterableDataset>;

/// Rows of tensors in memory, which must have equal sizes of dimension 0. Tensors of load_safetensors() are read from
/// the mapped file when a batch needs them.
BURIN_API DatasetRef tensor_dataset(std::vector<Tensor> tensors, Location where = Location::current());
/// Some examples of another set.
BURIN_API DatasetRef subset(DatasetRef dataset, std::vector<int64_t> indices, Location where = Location::current());
/// The examples of several sets, one set after the other.
BURIN_API DatasetRef concat_dataset(std::vector<DatasetRef> datasets, Location where = Location::current());
/// Random parts of these sizes, which must add up to the size of the set.
BURIN_API std::vector<DatasetRef> random_split(DatasetRef dataset, const std::vector<int64_t> &sizes, uint64_t seed,
                                               Location where = Location::current());

/// Changes a loaded example or batch; random numbers must come from `random`, so that they depend on the seed, the
/// epoch and the index alone. transforms.h has some.
using Transform = std::function<Example(Example example, Random &random)>;

/// Options of DataLoader.
struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  bool drop_last = false; ///< skip the last batch of an epoch if it is smaller
  uint64_t seed = 0;
  int workers = 0;                          ///< threads that load ahead; 0: batches are made on request
  size_t prefetch_bytes = size_t(64) << 20; ///< bytes of batches loaded ahead, in addition to one batch
  Transform transform = nullptr;            ///< applied to each example
  /// Makes a batch of examples, in the worker; by default it stacks them, and their shapes must be equal.
  std::function<Example(std::vector<Example> examples)> collate = nullptr;
  Transform batch_transform = nullptr; ///< applied to each batch, with random numbers by the index of the batch
  /// The indices of an epoch; by default all of them, in order or shuffled.
  std::function<std::vector<int64_t>(uint64_t epoch)> sampler = nullptr;
  /// Put batches into pinned memory, from which a GPU copies at full speed and without the CPU. It applies once the
  /// process has used a GPU; before, and without one, it has no effect.
  bool pin_memory = true;
};

/// `count` indices drawn with these weights, with replacement: a sampler for LoaderOptions.
BURIN_API std::function<std::vector<int64_t>(uint64_t epoch)>
weighted_sampler(std::vector<double> weights, int64_t count, uint64_t seed, Location where = Location::current());

/// Batches of a set, epoch by epoch. A handle; one loop at a time.
class BURIN_API DataLoader {
public:
  DataLoader(DatasetRef dataset, LoaderOptions options = {}, Location where = Location::current());
  /// Batches in the order of the stream; transforms and collation run in the workers. The index of an example, for its
  /// random numbers and in errors, is its position in the epoch. `shuffle` and `sampler` are errors. An exception of
  /// the stream ends the epoch.
  DataLoader(IterableDatasetRef dataset, LoaderOptions options = {}, Location where = Location::current());

  /// The next batch; nullopt once after each epoch. Exceptions from loading an example are thrown here, with its index
  /// and the line of the loader.
  std::optional<Example> next(Location where = Location::current());
  /// Batches per epoch. Throws for an IterableDataset, whose size is not known.
  int64_t size(Location where = Location::current()) const;
  int64_t epoch() const;

  /// "epoch" and "batch": the position of the next batch, to resume in another process. A position behind the end of
  /// the epoch is an error of next(). An IterableDataset is then read from the start of the epoch, and the examples
  /// before the position are dropped.
  StateDict state_dict() const;
  void load_state_dict(const StateDict &state, Location where = Location::current());

  /// Iterates over the rest of the current epoch.
  class Iterator {
  public:
    Iterator() = default;
    explicit Iterator(DataLoader *loader, Location where = Location()) : loader(loader), where(where) { ++*this; }
    const Example &operator*() const { return *batch; }
    Iterator &operator++() {
      batch = loader->next(where);
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !batch; }

  private:
    DataLoader *loader = nullptr;
    Location where; // of the loop
    std::optional<Example> batch;
  };
  Iterator begin(Location where = Location::current()) { return Iterator(this, where); }
  std::default_sentinel_t end() const { return {}; }

  struct State;

private:
  std::shared_ptr<State> state;
};

} // namespace burin::data
