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
  /// An integer in [low, high).
  int64_t integer(int64_t low, int64_t high);

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

/// Rows of tensors in memory, which must have equal sizes of dimension 0.
BURIN_API DatasetRef tensor_dataset(std::vector<Tensor> tensors, Location where = Location::current());
/// Some examples of another set.
BURIN_API DatasetRef subset(DatasetRef dataset, std::vector<int64_t> indices, Location where = Location::current());
/// Random parts of these sizes, which must add up to the size of the set.
BURIN_API std::vector<DatasetRef> random_split(DatasetRef dataset, const std::vector<int64_t> &sizes, uint64_t seed,
                                               Location where = Location::current());

/// Transforms a loaded example; random numbers must come from `random`.
using Transform = std::function<Example(Example example, Random &random)>;
/// Applies transforms in order.
BURIN_API Transform compose(std::vector<Transform> transforms);
/// (x - mean[c]) / deviation[c] of the first tensor, f32 [C, H, W] or [H, W].
BURIN_API Transform normalize(std::vector<double> mean, std::vector<double> deviation);
/// Pads the first tensor with `padding` zeros on each side, and crops it to its size at a random position.
BURIN_API Transform random_crop(int64_t padding);
/// Mirrors the first tensor with probability p.
BURIN_API Transform random_horizontal_flip(double p = 0.5);

// ---- files

enum class Split { Train, Test };
/// An IDX file (MNIST's format), possibly compressed by gzip. Element types are u8, i8, i16, i32, f32 and f64.
BURIN_API Tensor load_idx(const std::string &path, Location where = Location::current());
/// Images f32[1, 28, 28] in [0, 1] and classes i64[]. `folder` has the four IDX files, with or without .gz; the default
/// is that of Debian's package dataset-fashion-mnist.
BURIN_API DatasetRef fashion_mnist(Split split, const std::string &folder = "/usr/share/datasets/fashion-mnist",
                                   Location where = Location::current());
/// The same for the digits of MNIST.
BURIN_API DatasetRef mnist(Split split, const std::string &folder, Location where = Location::current());
/// The binary form of CIFAR-10 (data_batch_1.bin … test_batch.bin): images f32[3, 32, 32] in [0, 1], classes i64[].
BURIN_API DatasetRef cifar10(Split split, const std::string &folder, Location where = Location::current());

// ---- loading

/// Options of DataLoader.
struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  bool drop_last = false; ///< skip the last batch of an epoch if it is smaller
  uint64_t seed = 0;
  int workers = 0;                          ///< threads that load ahead; 0: batches are made on request
  size_t prefetch_bytes = size_t(64) << 20; ///< bytes of batches loaded ahead, in addition to one batch
  Transform transform = nullptr;            ///< applied to each example
  std::function<Example(Example)> batch_transform = nullptr; ///< applied to each batch
  /// The indices of an epoch; by default all of them, in order or shuffled.
  std::function<std::vector<int64_t>(uint64_t epoch)> sampler = nullptr;
};

/// `count` indices drawn with these weights, with replacement: a sampler for LoaderOptions.
BURIN_API std::function<std::vector<int64_t>(uint64_t epoch)>
weighted_sampler(std::vector<double> weights, int64_t count, uint64_t seed, Location where = Location::current());

/// Batches of a set, epoch by epoch. A handle; one loop at a time.
class BURIN_API DataLoader {
public:
  DataLoader(DatasetRef dataset, LoaderOptions options = {}, Location where = Location::current());

  /// The next batch; nullopt once after each epoch. Exceptions from loading an example are thrown here, with its index.
  std::optional<Example> next(Location where = Location::current());
  /// Batches per epoch.
  int64_t size() const;
  int64_t epoch() const;

  /// "epoch" and "batch": the position of the next batch, to resume in another process.
  StateDict state_dict() const;
  void load_state_dict(const StateDict &state, Location where = Location::current());

  /// Iterates over the rest of the current epoch.
  class Iterator {
  public:
    Iterator() = default;
    explicit Iterator(DataLoader *loader) : loader(loader) { ++*this; }
    const Example &operator*() const { return *batch; }
    Iterator &operator++() {
      batch = loader->next();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !batch; }

  private:
    DataLoader *loader = nullptr;
    std::optional<Example> batch;
  };
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }

  struct State;

private:
  std::shared_ptr<State> state;
};

} // namespace burin::data
