#include "frontend/training/datasets/Epoch.h"
#include "burin/tensor/creation.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/core/TensorState.h"
#include <algorithm>
#include <limits>

namespace burin::data {

using detail::inScope;

namespace {

size_t bytesOf(const Example &batch) {
  size_t bytes = 0;
  for (const Tensor &tensor : batch)
    bytes += detail::byteCount(tensor.spec());
  return bytes;
}

std::string listed(int64_t first, size_t count, std::span<const int64_t> indices) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(count, kMost); ++i)
    text += (i ? ", " : "") + std::to_string(indices.empty() ? first + int64_t(i) : indices[i]);
  return text + (count > kMost ? ", …" : "");
}

} // namespace

void failExample(int64_t index, const std::exception &error) {
  throw Error(inScope({}), "DataLoader", "example " + std::to_string(index) + " cannot be loaded: " + error.what());
}

Example stacked(const std::vector<Example> &examples) {
  Example batch;
  const Location place = inScope({});
  for (const Example &example : examples)
    if (example.size() != examples[0].size())
      throw Error(place, "DataLoader",
                  "the examples of a batch have " + std::to_string(examples[0].size()) + " and " +
                      std::to_string(example.size()) + " tensors");
  for (size_t t = 0; t < examples.at(0).size(); ++t) {
    TensorSpec spec = examples[0][t].spec(place);
    std::vector<std::byte> elements;
    elements.reserve(detail::byteCount(spec) * examples.size());
    for (const Example &example : examples) {
      if (example[t].spec(place) != spec)
        throw Error(place, "DataLoader",
                    "the examples of a batch differ: " + str(example[t].spec(place)) + " and " + str(spec) +
                        "; bring them to one shape in a transform, or make the batch in `collate`");
      auto bytes = example[t].bytes(place);
      elements.insert(elements.end(), bytes.begin(), bytes.end());
    }
    spec.shape.insert(spec.shape.begin(), int64_t(examples.size()));
    batch.push_back(from_bytes(elements.data(), spec, place));
  }
  return batch;
}

Epoch::Epoch(DatasetRef dataset, const LoaderOptions &options, uint64_t number, std::vector<int64_t> order,
             int64_t first, const Location &where)
    : dataset(std::move(dataset)), options(options), number(number), order(std::move(order)), where(where),
      taken(first), wanted(first) {
  const int64_t n = int64_t(this->order.size()), size = options.batch_size;
  batches = options.drop_last ? n / size : (n + size - 1) / size;
  start();
}

Epoch::Epoch(IterableDataset::Stream stream, const LoaderOptions &options, uint64_t number, int64_t first,
             const Location &where)
    : options(options), number(number), where(where), stream(std::move(stream)), taken(first), wanted(first),
      batches(std::numeric_limits<int64_t>::max()) {
  start();
}

void Epoch::start() {
  for (int i = 0; i < options.workers; ++i)
    workers.emplace_back([this] { work(); });
}

Epoch::~Epoch() {
  {
    std::lock_guard lock(mutex);
    isOver = true;
  }
  changed.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

std::optional<Example> Epoch::take() {
  if (workers.empty()) {
    auto ticket = next(false);
    if (!ticket)
      return std::nullopt;
    ++wanted;
    return make(std::move(*ticket));
  }
  std::unique_lock lock(mutex);
  const int64_t index = wanted++;
  changed.notify_all(); // this one may be made now, even if the limit of ready bytes is reached
  changed.wait(lock, [&] { return ready.contains(index) || index >= batches; });
  if (index >= batches)
    return std::nullopt;
  Result result = std::move(ready.at(index));
  ready.erase(index);
  readyBytes -= result.bytes;
  lock.unlock();
  changed.notify_all();
  if (result.error)
    std::rethrow_exception(result.error);
  return std::move(result.batch);
}

// ---- workers

void Epoch::work() {
  while (true) {
    Result result;
    int64_t index = 0;
    try {
      auto ticket = next(true);
      if (!ticket)
        return;
      index = ticket->index;
      result = resultOf(std::move(*ticket));
    } catch (...) { // of the stream, which ends there
      result.error = std::current_exception();
      std::lock_guard lock(mutex);
      index = batches - 1;
    }
    {
      std::lock_guard lock(mutex);
      readyBytes += result.bytes;
      ready.emplace(index, std::move(result));
    }
    changed.notify_all();
  }
}

Epoch::Result Epoch::resultOf(Ticket ticket) const {
  Result result;
  try {
    result.batch = make(std::move(ticket));
    result.bytes = bytesOf(result.batch);
  } catch (...) {
    result.error = std::current_exception();
  }
  return result;
}

std::optional<Epoch::Ticket> Epoch::next(bool isAhead) {
  LocationScope scope(where);
  std::unique_lock readLock(reading, std::defer_lock);
  if (stream)
    readLock.lock();
  std::unique_lock lock(mutex);
  if (isAhead)
    changed.wait(lock,
                 [&] { return isOver || taken >= batches || taken < wanted || readyBytes < options.prefetch_bytes; });
  if (isOver || taken >= batches)
    return std::nullopt;
  Ticket ticket{taken++, {}};
  lock.unlock();
  return !stream || read(ticket) ? std::optional(std::move(ticket)) : std::nullopt;
}

/// Reads the examples of a batch; returns false at the end of the stream.
bool Epoch::read(Ticket &ticket) {
  const size_t size = size_t(options.batch_size);
  try {
    while (position < ticket.index * options.batch_size)
      if (!readExample()) { // the stream is shorter than it was
        endAt(0);
        return false;
      }
    while (ticket.examples.size() < size) {
      auto example = readExample();
      if (!example) {
        const bool isBatch = !ticket.examples.empty() && !options.drop_last;
        endAt(ticket.index + isBatch);
        return isBatch;
      }
      ticket.examples.push_back(std::move(*example));
    }
  } catch (const std::exception &error) {
    endAt(ticket.index + 1);
    failExample(position, error);
  } catch (...) {
    endAt(ticket.index + 1);
    throw;
  }
  return true;
}

std::optional<Example> Epoch::readExample() {
  auto example = stream();
  position += example.has_value();
  return example;
}

void Epoch::endAt(int64_t count) {
  {
    std::lock_guard lock(mutex);
    batches = count;
  }
  changed.notify_all();
}

// ---- a batch

Example Epoch::transformed(Example example, int64_t index) const {
  if (!options.transform)
    return example;
  Random random(options.seed, number, uint64_t(index));
  return options.transform(std::move(example), random);
}

Example Epoch::make(Ticket ticket) const {
  LocationScope scope(where);
  const size_t size = size_t(options.batch_size), begin = size_t(ticket.index) * size;
  std::span<const int64_t> indices;
  if (!stream)
    indices = std::span(order).subspan(begin, std::min(size, order.size() - begin));
  const size_t count = stream ? ticket.examples.size() : indices.size();
  Example batch;
  std::vector<Example> examples = std::move(ticket.examples);
  const bool isByExample = stream || options.transform || options.collate;
  for (size_t i = 0; i < count && isByExample; ++i) {
    const int64_t index = stream ? int64_t(begin + i) : indices[i];
    try {
      if (!stream)
        examples.push_back(dataset->get(index));
      examples[i] = transformed(std::move(examples[i]), index);
    } catch (const std::exception &error) {
      failExample(index, error);
    }
  }
  try {
    batch = !isByExample      ? dataset->batch(indices)
            : options.collate ? options.collate(std::move(examples))
                              : stacked(examples);
    if (options.batch_transform) {
      Random random(options.seed, number, uint64_t(ticket.index) | uint64_t(1) << 63); // indices are less than 2^63
      batch = options.batch_transform(std::move(batch), random);
    }
  } catch (const Error &) {
    throw; // which says what is wrong
  } catch (const std::exception &error) {
    throw Error(inScope({}), "DataLoader",
                "the batch of the examples " + listed(int64_t(begin), count, indices) +
                    " cannot be made: " + error.what());
  }
  if (options.pin_memory)
    for (Tensor &tensor : batch)
      tensor = detail::pinned(tensor, inScope({}));
  return batch;
}

} // namespace burin::data
