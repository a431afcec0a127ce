// The data loader and its samplers.
#include "burin/tensor/creation.h"
#include "burin/training/dataset.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/training/datasets/Epoch.h"
#include "frontend/training/datasets/Shuffle.h"
#include "ir/reference/ops/ReferenceRandom.h"
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

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
  if (low >= high)
    throw Error(inScope({}), "Random",
                "there is no integer in [" + std::to_string(low) + ", " + std::to_string(high) + ")");
  return low + int64_t((__uint128_t(word(key, drawn++)) * uint64_t(high - low)) >> 64);
}
double Random::normal() { // Box and Muller 1958
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
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
  if (sums.empty() || !(sums.back() > 0) || !std::isfinite(sums.back()) || count < 0 ||
      std::ranges::any_of(weights, [](double w) { return !(w >= 0); }))
    throw Error(inScope(where), "weighted_sampler",
                "weights must be finite and not negative, and one positive; count must not be negative");
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

Dataset::~Dataset() = default;
IterableDataset::~IterableDataset() = default;

Example Dataset::batch(std::span<const int64_t> indices) const {
  std::vector<Example> examples;
  for (int64_t index : indices)
    try {
      examples.push_back(get(index));
    } catch (const std::exception &error) {
      failExample(index, error);
    }
  return stacked(examples);
}

// ---- the loader

struct DataLoader::State {
  DatasetRef dataset; // or
  IterableDatasetRef stream;
  LoaderOptions options;
  int64_t epoch = 0, batch = 0; // of the next batch
  std::unique_ptr<Epoch> current;
  Location made; // of the loader, for errors of workers

  std::vector<int64_t> orderOf(int64_t number, const Location &where) const;
  void open(const Location &where);
};

static void check(bool isThere, const LoaderOptions &options, const Location &where) {
  if (!isThere || options.batch_size < 1 || options.workers < 0)
    throw Error(where, "DataLoader", "it needs a dataset, a positive batch size and no negative number of workers");
}

DataLoader::DataLoader(DatasetRef dataset, LoaderOptions options, Location where) : state(new State) {
  check(dataset != nullptr, options, inScope(where));
  if (options.shuffle && options.sampler)
    throw Error(inScope(where), "DataLoader", "a sampler decides the order: give it without shuffle");
  state->dataset = std::move(dataset);
  state->options = std::move(options);
  state->made = inScope(where);
}

DataLoader::DataLoader(IterableDatasetRef dataset, LoaderOptions options, Location where) : state(new State) {
  check(dataset != nullptr, options, inScope(where));
  if (options.shuffle || options.sampler)
    throw Error(inScope(where), "DataLoader",
                "an IterableDataset has an order of its own: shuffle in its open(epoch), without shuffle and sampler");
  state->stream = std::move(dataset);
  state->options = std::move(options);
  state->made = inScope(where);
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
  if (stream) {
    IterableDataset::Stream opened = stream->open(uint64_t(epoch));
    if (!opened)
      throw Error(where, "DataLoader", "open() of the set has returned no stream");
    current = std::make_unique<Epoch>(std::move(opened), options, uint64_t(epoch), batch, made);
    return;
  }
  std::vector<int64_t> order = orderOf(epoch, where);
  const int64_t n = int64_t(order.size()), all = (n + options.batch_size - 1) / options.batch_size;
  if (batch > all)
    throw Error(where, "DataLoader",
                "the place in the data is batch " + std::to_string(batch) + ", but the epoch has " +
                    std::to_string(all) + " batches; load the state of a loader of the same set and batch size");
  current = std::make_unique<Epoch>(dataset, options, uint64_t(epoch), std::move(order), batch, made);
}

std::optional<Example> DataLoader::next(Location where) {
  if (!state->current)
    state->open(inScope(where));
  ++state->batch; // a batch that cannot be made is passed over
  std::optional<Example> batch = state->current->take();
  if (!batch) {
    state->current.reset();
    state->batch = 0;
    ++state->epoch;
  }
  return batch;
}

int64_t DataLoader::size(Location where) const {
  if (state->stream)
    throw Error(inScope(where), "DataLoader::size", "the number of batches of an IterableDataset is not known");
  const int64_t size = state->options.batch_size;
  const int64_t n =
      state->options.sampler ? int64_t(state->orderOf(state->epoch, inScope(where)).size()) : state->dataset->size();
  return state->options.drop_last ? n / size : (n + size - 1) / size;
}
int64_t DataLoader::epoch() const { return state->epoch; }

StateDict DataLoader::state_dict() const {
  return {{"epoch", from_vector(std::vector{state->epoch}, Shape{})},
          {"batch", from_vector(std::vector{state->batch}, Shape{})},
          {"batch_size", from_vector(std::vector{state->options.batch_size}, Shape{})}};
}
void DataLoader::load_state_dict(const StateDict &given, Location where) {
  const Location place = inScope(where);
  const int64_t epoch = given.at("epoch", place).item<int64_t>(place),
                batch = given.at("batch", place).item<int64_t>(place);
  if (epoch < 0 || batch < 0)
    throw Error(place, "load_state_dict", "the place in the data is negative");
  const Tensor *size = given.find("batch_size");
  if (size && batch > 0 && size->item<int64_t>(place) != state->options.batch_size)
    throw Error(place, "load_state_dict",
                "the place in the data is batch " + std::to_string(batch) + " of " +
                    std::to_string(size->item<int64_t>(place)) + " examples each, but this loader has batches of " +
                    std::to_string(state->options.batch_size) +
                    "; make it with the same batch_size, or change that at the end of an epoch");
  state->current.reset();
  state->epoch = epoch;
  state->batch = batch;
}

} // namespace burin::data
