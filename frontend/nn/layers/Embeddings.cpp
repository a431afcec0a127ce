// Embeddings: rows of a table, and bags of them.
#include "burin/functional.h"
#include "burin/tensor/creation.h"
#include "burin/tensor/indexing.h"
#include "burin/training/gradients.h"
#include "frontend/autodiff/tape/RowGradient.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include <limits>

namespace burin::nn {

Embedding::Embedding(int64_t count, int64_t size, EmbeddingOptions given, Location where)
    : Module("Embedding", where), options(given) {
  requireSize(count, 1, "the number of rows", "Embedding", where);
  requireSize(size, 1, "the size", "Embedding", where);
  describe(listed(count, size));
  Tensor table = randn({count, size}, DType::f32, where);
  if (auto &row = options.padding_idx) {
    if (*row < -count || *row >= count)
      throw Error(detail::inScope(where), "Embedding",
                  "padding_idx " + std::to_string(*row) + " is none of the " + std::to_string(count) + " rows");
    *row = *row < 0 ? *row + count : *row;
    table = burin::where(eq(iota({count, 1}, DType::i64, 0, where), *row, where), 0.0, table, where);
  }
  weight = register_parameter("weight", table, where);
}

Tensor Embedding::operator()(const Tensor &indices, Location where) const {
  ModuleScope inModule(*this);
  if (options.sparse)
    detail::keepRows(weight);
  Tensor rows = take(weight, indices, 0, where);
  if (!options.padding_idx)
    return rows;
  Tensor isPadding = unsqueeze(eq(indices, *options.padding_idx, where), {-1}, where);
  return burin::where(isPadding, detach(rows, where), rows, where);
}

static void requireMode(const std::string &mode, const char *op, const Location &where) {
  if (mode != "mean" && mode != "sum" && mode != "max")
    throw Error(where, op, "the mode is \"" + mode + "\", but must be \"mean\", \"sum\" or \"max\"");
}

EmbeddingBag::EmbeddingBag(int64_t count, int64_t size, std::string mode, Location where)
    : Module("EmbeddingBag", where), mode(std::move(mode)) {
  requireMode(this->mode, "EmbeddingBag", detail::inScope(where));
  requireSize(count, 1, "the number of rows", "EmbeddingBag", where);
  requireSize(size, 1, "the size", "EmbeddingBag", where);
  describe(listed(count, size) + ", mode=" + this->mode);
  weight = register_parameter("weight", randn({count, size}, DType::f32, where), where);
}

static void checkWeights(const std::string &mode, const Tensor &indices, const std::optional<Tensor> &weights,
                         const Location &where) {
  if (weights && mode != "sum")
    throw Error(where, "EmbeddingBag", "weights are for mode \"sum\" only, but the mode is \"" + mode + "\"");
  if (weights && weights->shape(where) != indices.shape(where))
    throw Error(where, "EmbeddingBag",
                "the weights " + burin::str(weights->spec(where)) + " must have the shape of the indices " +
                    burin::str(indices.spec(where)));
}

/// One bag per row of the indices.
static Tensor bagsOfRows(const Tensor &indices, const Tensor &weight, const std::optional<Tensor> &weights,
                         const std::string &mode, const Location &place) {
  checkWeights(mode, indices, weights, place);
  if (indices.rank() != 2)
    throw Error(place, "EmbeddingBag",
                "the indices are " + burin::str(indices.spec()) +
                    ", but must be [bags, length]; for bags of different lengths give their offsets");
  Tensor rows = take(weight, indices, 0);
  if (weights)
    rows = rows * unsqueeze(*weights, {2});
  return mode == "mean" ? reduce_mean(rows, {1}) : mode == "sum" ? reduce_sum(rows, {1}) : reduce_max(rows, {1});
}

/// Throws, or makes the run fail, unless the offsets begin with 0, ascend, and are at most `count`.
static Tensor checkedOffsets(const Tensor &offsets, const Dim &count, const Location &where) {
  if (offsets.shape(where)[0] == Dim(0))
    return offsets;
  Tensor before = pad(offsets, {1}, {-1}, "constant", 0.0); // 0 before the first
  Tensor isFirst = iota(offsets.shape(), DType::i64) == 0;
  return check((offsets >= before) & (offsets <= detail::sizeTensor(count)) & (!isFirst | (offsets == 0)), offsets,
               "EmbeddingBag: offsets must begin with 0, ascend, and be at most the number of indices, " + count.str(),
               where);
}

/// Bags between offsets.
static Tensor bagsOfOffsets(const Tensor &indices, const Tensor &offsets, const Tensor &weight,
                            const std::optional<Tensor> &weights, const std::string &mode, const Location &place) {
  checkWeights(mode, indices, weights, place);
  if (indices.rank() != 1 || offsets.rank() != 1)
    throw Error(place, "EmbeddingBag",
                "indices [n] and offsets [bags] must have one dimension; they are " + burin::str(indices.spec()) +
                    " and " + burin::str(offsets.spec()));
  if (!isInteger(offsets.dtype()))
    throw Error(place, "EmbeddingBag", "the offsets are " + burin::str(offsets.spec()) + ", but must be integers");
  Tensor rows = take(weight, indices, 0);
  if (weights)
    rows = rows * unsqueeze(*weights, {1});
  const Dim count = indices.shape()[0], bags = offsets.shape()[0], size = weight.shape()[1];
  const Tensor starts = checkedOffsets(offsets.to(DType::i64), count, place);
  // The bag of each index: the number of bags that start at or before it, minus 1.
  Tensor isBegun = iota({count, 1}, DType::i64, 0) >= unsqueeze(starts, {0});
  Tensor bag = reduce_sum(isBegun, {1}) - 1;
  Tensor target = broadcast_to(unsqueeze(bag, {1}), {count, size});
  Tensor zero = full({bags, size}, 0, rows.dtype());
  Tensor sizes = scatter(full({bags}, 0, rows.dtype()), bag, full({count}, 1, rows.dtype()), 0, "add");
  sizes = unsqueeze(sizes, {1});
  if (mode == "max") {
    Tensor least = full({bags, size}, -std::numeric_limits<double>::infinity(), rows.dtype());
    return burin::where(sizes == 0.0, zero, scatter(least, target, rows, 0, "max"));
  }
  Tensor sum = scatter(zero, target, rows, 0, "add");
  return mode == "sum" ? sum : sum / maximum(sizes, 1.0);
}

Tensor EmbeddingBag::operator()(const Tensor &indices, const std::optional<Tensor> &weights, Location where) const {
  ModuleScope inModule(*this);
  LocationScope scope(where);
  return bagsOfRows(indices, weight, weights, mode, detail::inScope(where));
}
Tensor EmbeddingBag::forward(const Tensor &indices, const Tensor &offsets, const std::optional<Tensor> &weights,
                             Location where) const {
  LocationScope scope(where);
  return bagsOfOffsets(indices, offsets, weight, weights, mode, detail::inScope(where));
}

} // namespace burin::nn

burin::Tensor burin::embedding_bag(const Tensor &indices, const Tensor &weight, const std::optional<Tensor> &offsets,
                                   const std::string &mode, const std::optional<Tensor> &weights, Location where) {
  LocationScope scope(detail::inScope(where));
  const Location place = detail::inScope(where);
  nn::requireMode(mode, "embedding_bag", place);
  return offsets ? nn::bagsOfOffsets(indices, *offsets, weight, weights, mode, place)
                 : nn::bagsOfRows(indices, weight, weights, mode, place);
}
