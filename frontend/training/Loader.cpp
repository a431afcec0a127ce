// The data loader: an epoch is a list of batches, which worker threads make ahead and the loop takes in order.
#include "burin/tensor/creation.h"
#include "burin/training/dataset.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include "frontend/training/Shuffle.h"
#include "ir/reference/ops/ReferenceRandom.h"
#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

namespace burin::data {

using detail::inScope;

/// Random words of examples, determined by key and counter.
static uint64_t word(uint64_t key, uint64_t counter) {
  auto words = ir::ref::philox(key, counter);
  return uint64_t(words[0]) | uint64_t(words[1]) << 32;
}

Random::Random(uint64_t seed, uint64_t epoch, uint64_t index) : key(word(word(seed, epoch), index)) {}
double Random::uniform() { return double(word(key, drawn++) >> 11) * 0x1p-53; }
int64_t Random::integer(int64_t low, int64_t high) {
  return low + int64_t((__uint128_t(word(key, drawn++)) * uint64_t(high - low)) >> 64);
}

std::vector<int64_t> shuffled(int64_t n, uint64_t seed, uint64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  Random random(seed, epoch, ~uint64_t(0));
  for (int64_t i = n - 1; i > 0; --i) // Fisher-Yates shuffle
    std::swap(order[size_t(i)], order[size_t(random.integer(0, i + 1))]);
  return order;
}

std::function<std::vector<int64_t>(uint64_t)> weighted_sampler(std::vector<double> weights, int64_t count,
                                                               uint64_t seed, Location where) {
  std::vector<double> sums(weights.size());
  std::partial_sum(weights.begin(), weights.end(), sums.begin());
  if (sums.empty() || !(sums.back() > 0) || std::ranges::any_of(weights, [](double w) { return !(w >= 0); }))
    throw Error(inScope(where), "weighted_sampler", "weights must not be negative, and one must be positive");
  return [=](uint64_t epoch) {
    Random random(seed, epoch, 0);
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < count; ++i) {
      auto at = std::ranges::upper_bound(sums, random.uniform() * sums.back());
      indices.push_back(std::min<int64_t>(at - sums.begin(), int64_t(sums.size()) - 1));
    }
    return indices;
  };
}

// ---- an epoch

namespace {

size_t bytesOf(const Example &batch) {
  size_t bytes = 0;
  for (const Tensor &tensor : batch)
    bytes += detail::byteCount(tensor.spec());
  return bytes;
}

/// The batches of an epoch from a certain one on. Workers make them in order, and put them into `ready`.
class Epoch {
public:
  Epoch(DatasetRef dataset, const LoaderOptions &options, uint64_t number, std::vector<int64_t> order, int64_t first)
      : dataset(std::move(dataset)), options(options), number(number), order(std::move(order)), taken(first),
        wanted(first) {
    for (int i = 0; i < options.workers; ++i)
      workers.emplace_back([this] { work(); });
  }
  ~Epoch() {
    {
      std::lock_guard lock(mutex);
      isOver = true;
    }
    changed.notify_all();
    for (std::thread &worker : workers)
      worker.join();
  }

  /// Returns the next batch in order.
  Example take() {
    if (workers.empty())
      return make(wanted++);
    std::unique_lock lock(mutex);
    const int64_t index = wanted++;
    changed.notify_all(); // this one may be made now, even if the limit of ready bytes is reached
    changed.wait(lock, [&] { return ready.count(index); });
    Result result = std::move(ready.at(index));
    ready.erase(index);
    readyBytes -= result.bytes;
    lock.unlock();
    changed.notify_all();
    if (result.error)
      std::rethrow_exception(result.error);
    return std::move(result.batch);
  }

private:
  struct Result {
    Example batch;
    std::exception_ptr error;
    size_t bytes = 0;
  };

  DatasetRef dataset;
  const LoaderOptions &options;
  const uint64_t number;
  const std::vector<int64_t> order;
  std::vector<std::thread> workers;
  std::mutex mutex; // guards the members below
  std::condition_variable changed;
  int64_t taken;  // the next batch to be made
  int64_t wanted; // the next batch that the loop takes
  std::map<int64_t, Result> ready;
  size_t readyBytes = 0;
  bool isOver = false;

  int64_t batches() const {
    const int64_t n = int64_t(order.size()), size = options.batch_size;
    return options.drop_last ? n / size : (n + size - 1) / size;
  }

  Example make(int64_t batch) const {
    const size_t size = size_t(options.batch_size), begin = size_t(batch) * size;
    std::span<const int64_t> indices(order.data() + begin, std::min(size, order.size() - begin));
    Example result = options.transform ? transformed(indices) : dataset->batch(indices);
    return options.batch_transform ? options.batch_transform(std::move(result)) : result;
  }

  Example transformed(std::span<const int64_t> indices) const {
    std::vector<Example> examples;
    for (int64_t index : indices)
      try {
        Random random(options.seed, number, uint64_t(index));
        examples.push_back(options.transform(dataset->get(index), random));
      } catch (const std::exception &error) {
        throw Error(detail::inScope({}), "DataLoader",
                    "example " + std::to_string(index) + " cannot be loaded: " + error.what());
      }
    return stacked(examples);
  }

  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(
          lock, [&] { return isOver || taken >= batches() || taken < wanted || readyBytes < options.prefetch_bytes; });
      if (isOver || taken >= batches())
        return;
      const int64_t index = taken++;
      lock.unlock();
      Result result;
      try {
        result.batch = make(index);
        result.bytes = bytesOf(result.batch);
      } catch (...) {
        result.error = std::current_exception();
      }
      lock.lock();
      readyBytes += result.bytes;
      ready.emplace(index, std::move(result));
      changed.notify_all();
    }
  }

public:
  static Example stacked(const std::vector<Example> &examples);
};

} // namespace

/// Copies rows of examples into one tensor each.
Example Epoch::stacked(const std::vector<Example> &examples) {
  Example batch;
  const Location place = inScope({});
  for (size_t t = 0; t < examples.at(0).size(); ++t) {
    TensorSpec spec = examples[0][t].spec(place);
    std::vector<std::byte> elements;
    for (const Example &example : examples) {
      if (example.size() != examples[0].size() || example[t].spec(place) != spec)
        throw Error(place, "DataLoader",
                    "the examples of a batch differ: " + str(example.at(t).spec(place)) + " and " + str(spec) +
                        "; bring them to one shape in a transform");
      auto bytes = example[t].bytes(place);
      elements.insert(elements.end(), bytes.begin(), bytes.end());
    }
    spec.shape.insert(spec.shape.begin(), int64_t(examples.size()));
    batch.push_back(from_bytes(elements.data(), spec, place));
  }
  return batch;
}

Dataset::~Dataset() = default;
Example Dataset::batch(std::span<const int64_t> indices) const {
  std::vector<Example> examples;
  for (int64_t index : indices)
    try {
      examples.push_back(get(index));
    } catch (const std::exception &error) {
      throw Error(inScope({}), "DataLoader", "example " + std::to_string(index) + " cannot be loaded: " + error.what());
    }
  return Epoch::stacked(examples);
}

// ---- the loader

struct DataLoader::State {
  DatasetRef dataset;
  LoaderOptions options;
  int64_t epoch = 0, batch = 0; // of the next batch
  int64_t batches = -1;         // of the current epoch, once known
  std::unique_ptr<Epoch> current;

  std::vector<int64_t> orderOf(int64_t number, const Location &where) const;
  void open(const Location &where);
};

DataLoader::DataLoader(DatasetRef dataset, LoaderOptions options, Location where) : state(new State) {
  if (!dataset || options.batch_size < 1 || options.workers < 0)
    throw Error(inScope(where), "DataLoader",
                "it needs a dataset, a positive batch size and no negative number of workers");
  state->dataset = std::move(dataset);
  state->options = std::move(options);
}

std::vector<int64_t> DataLoader::State::orderOf(int64_t number, const Location &where) const {
  const int64_t size = dataset->size();
  if (options.sampler) {
    std::vector<int64_t> order = options.sampler(uint64_t(number));
    for (int64_t index : order)
      if (index < 0 || index >= size)
        throw Error(where, "DataLoader",
                    "the sampler gives the index " + std::to_string(index) + ", but the set has " +
                        std::to_string(size) + " examples");
    return order;
  }
  if (options.shuffle)
    return shuffled(size, options.seed, uint64_t(number));
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

void DataLoader::State::open(const Location &where) {
  std::vector<int64_t> order = orderOf(epoch, where);
  const int64_t n = int64_t(order.size()), size = options.batch_size;
  batches = options.drop_last ? n / size : (n + size - 1) / size;
  current = std::make_unique<Epoch>(dataset, options, uint64_t(epoch), std::move(order), batch);
}

std::optional<Example> DataLoader::next(Location where) {
  const Location place = inScope(where);
  if (!state->current)
    state->open(place);
  if (state->batch >= state->batches) {
    state->current.reset();
    state->batch = 0;
    ++state->epoch;
    return std::nullopt;
  }
  ++state->batch;
  return state->current->take();
}

int64_t DataLoader::size() const {
  if (state->current)
    return state->batches;
  const int64_t n = int64_t(state->orderOf(state->epoch, {}).size()), size = state->options.batch_size;
  return state->options.drop_last ? n / size : (n + size - 1) / size;
}
int64_t DataLoader::epoch() const { return state->epoch; }

StateDict DataLoader::state_dict() const {
  return {{"epoch", from_vector(std::vector{state->epoch}, Shape{})},
          {"batch", from_vector(std::vector{state->batch}, Shape{})}};
}
void DataLoader::load_state_dict(const StateDict &given, Location where) {
  const Location place = inScope(where);
  const int64_t epoch = given.at("epoch", place).item<int64_t>(place),
                batch = given.at("batch", place).item<int64_t>(place);
  if (epoch < 0 || batch < 0)
    throw Error(place, "load_state_dict", "the place in the data is negative");
  state->current.reset();
  state->epoch = epoch;
  state->batch = batch;
}

} // namespace burin::data
