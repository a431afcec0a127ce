// Data sets in memory, and parts and sums of others.
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "burin/tensor/indexing.h"
#include "burin/training/dataset.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/training/datasets/Checks.h"
#include "frontend/training/datasets/Shuffle.h"
#include <algorithm>
#include <numeric>

namespace burin::data {

using detail::inScope;

namespace {

class TensorDataset : public Dataset {
public:
  TensorDataset(std::vector<Tensor> given, const Location &where) : tensors(std::move(given)), place(where) {
    if (tensors.empty())
      throw Error(where, "tensor_dataset", "there are no tensors");
    for (const Tensor &tensor : tensors)
      if (tensor.rank(where) < 1 || tensor.shape(where)[0] != tensors[0].shape(where)[0])
        throw Error(where, "tensor_dataset",
                    "the tensors have different numbers of rows: " + str(tensors[0].spec(where)) + " and " +
                        str(tensor.spec(where)));
  }
  int64_t size() const override { return tensors[0].shape()[0].value(); }
  Example get(int64_t index) const override {
    Example example = batch({&index, 1});
    for (Tensor &tensor : example)
      tensor = squeeze(tensor, {0}, place);
    return example;
  }
  Example batch(std::span<const int64_t> indices) const override {
    Example result;
    for (const Tensor &tensor : tensors) {
      TensorSpec spec = tensor.spec(place);
      std::span<const std::byte> all = tensor.bytes(place);
      const size_t row = spec.shape[0].value() ? all.size() / size_t(spec.shape[0].value()) : 0;
      std::vector<std::byte> rows(indices.size() * row);
      for (int64_t index : indices)
        requireExample(index, spec.shape[0].value(), "tensor_dataset", place);
      for (size_t i = 0; i < indices.size(); ++i)
        std::copy_n(all.data() + size_t(indices[i]) * row, row, rows.data() + i * row);
      spec.shape[0] = int64_t(indices.size());
      result.push_back(from_bytes(rows.data(), spec, place));
    }
    return result;
  }

private:
  std::vector<Tensor> tensors;
  Location place;
};

class Subset : public Dataset {
public:
  Subset(DatasetRef dataset, std::vector<int64_t> indices, const char *op, const Location &where)
      : dataset(std::move(dataset)), indices(std::move(indices)), op(op), place(where) {}
  int64_t size() const override { return int64_t(indices.size()); }
  Example get(int64_t index) const override { return dataset->get(indexOf(index)); }
  Example batch(std::span<const int64_t> list) const override {
    std::vector<int64_t> inner;
    for (int64_t index : list)
      inner.push_back(indexOf(index));
    return dataset->batch(inner);
  }

private:
  DatasetRef dataset;
  std::vector<int64_t> indices;
  const char *op;
  Location place;

  int64_t indexOf(int64_t index) const {
    requireExample(index, size(), op, place);
    return indices[size_t(index)];
  }
};

class ConcatDataset : public Dataset {
public:
  ConcatDataset(std::vector<DatasetRef> given, const Location &where) : parts(std::move(given)), place(where) {
    for (const DatasetRef &part : parts)
      ends.push_back((ends.empty() ? 0 : ends.back()) + part->size());
  }
  int64_t size() const override { return ends.back(); }
  Example get(int64_t index) const override {
    const auto [part, inner] = find(index);
    return parts[part]->get(inner);
  }
  /// At once, as far as the examples are of one part.
  Example batch(std::span<const int64_t> indices) const override {
    std::vector<int64_t> inner;
    size_t first = 0;
    for (int64_t index : indices) {
      const auto [part, at] = find(index);
      if (!inner.empty() && part != first)
        return Dataset::batch(indices);
      first = part;
      inner.push_back(at);
    }
    return parts[first]->batch(inner);
  }

private:
  std::vector<DatasetRef> parts;
  std::vector<int64_t> ends; // of the parts
  Location place;

  std::pair<size_t, int64_t> find(int64_t index) const {
    requireExample(index, size(), "concat_dataset", place);
    const size_t part = size_t(std::ranges::upper_bound(ends, index) - ends.begin());
    return {part, part ? index - ends[part - 1] : index};
  }
};

} // namespace

DatasetRef tensor_dataset(std::vector<Tensor> tensors, Location where) {
  return std::make_shared<TensorDataset>(std::move(tensors), inScope(where));
}
static void requireSet(const DatasetRef &dataset, const char *op, const Location &where) {
  if (!dataset)
    throw Error(inScope(where), op, "there is no set: the pointer is null");
}
DatasetRef subset(DatasetRef dataset, std::vector<int64_t> indices, Location where) {
  requireSet(dataset, "subset", where);
  for (int64_t index : indices)
    if (index < 0 || index >= dataset->size())
      throw Error(inScope(where), "subset",
                  "there is no example " + std::to_string(index) + " among " + std::to_string(dataset->size()));
  return std::make_shared<Subset>(std::move(dataset), std::move(indices), "subset", inScope(where));
}
DatasetRef concat_dataset(std::vector<DatasetRef> datasets, Location where) {
  if (datasets.empty() || std::ranges::any_of(datasets, [](const DatasetRef &part) { return !part; }))
    throw Error(inScope(where), "concat_dataset", "there are no sets, or one of them is empty");
  return std::make_shared<ConcatDataset>(std::move(datasets), inScope(where));
}
std::vector<DatasetRef> random_split(DatasetRef dataset, const std::vector<int64_t> &sizes, uint64_t seed,
                                     Location where) {
  requireSet(dataset, "random_split", where);
  if (std::accumulate(sizes.begin(), sizes.end(), int64_t(0)) != dataset->size() ||
      std::ranges::any_of(sizes, [](int64_t size) { return size < 0; }))
    throw Error(inScope(where), "random_split",
                "the sizes do not add up to the " + std::to_string(dataset->size()) + " examples");
  std::vector<int64_t> order = shuffled(dataset->size(), seed, 0);
  std::vector<DatasetRef> parts;
  auto at = order.begin();
  for (int64_t size : sizes) {
    parts.push_back(
        std::make_shared<Subset>(dataset, std::vector<int64_t>(at, at + size), "random_split", inScope(where)));
    at += size;
  }
  return parts;
}

} // namespace burin::data
