// Ops that find, select and store elements by index, and ops that rearrange them.
#include "frontend/onnx/import/Node.h"
#include <algorithm>
#include <limits>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

/// The product of sizes from `begin` to `end`.
Dim product(const Shape &shape, int64_t begin, int64_t end) {
  return elements(Shape(shape.begin() + begin, shape.begin() + end));
}

/// The last dimension of `indices` [..., depth] as row-major positions in the first `depth` dimensions of `sizes`;
/// negative indices count from the end.
Tensor flatPositions(Node &n, const Tensor &indices, const Shape &sizes, int64_t depth) {
  Tensor position;
  for (int64_t i = 0; i < depth; ++i) {
    Tensor size = sizeTensor(sizes[size_t(i)]);
    Shape starts(size_t(indices.rank()), Dim(0)), stops = indices.shape();
    starts.back() = i;
    stops.back() = i + 1;
    Tensor at = squeeze(slice(indices, starts, stops, Ints(size_t(indices.rank()), 1)), {-1}).to(DType::i64);
    at = where(at < 0, at + size, at);
    position = position.defined() ? position * size + at : at;
  }
  return position;
}

int64_t depthOf(Node &n, const Shape &indices, int64_t rank) {
  if (indices.empty() || !indices.back().isStatic() || indices.back().value() < 1 || indices.back().value() > rank)
    n.fail("the last dimension of its indices " + str(indices) + " must be from 1 to " + std::to_string(rank));
  return indices.back().value();
}

/// Batch dimensions are merged, and positions are offset by the batch's number of slices.
Values gatherNd(Node &n) {
  Tensor x = n[0], indices = n[1];
  Shape shape = x.shape(), where = indices.shape();
  int64_t batch = n.attribute("batch_dims", int64_t(0)), rank = int64_t(shape.size());
  if (batch < 0 || batch >= rank || batch >= int64_t(where.size()))
    n.fail("batch_dims " + std::to_string(batch) + " does not fit its inputs");
  int64_t depth = depthOf(n, where, rank - batch);
  Dim batches = product(shape, 0, batch), slices = product(shape, batch, batch + depth),
      places = product(where, batch, int64_t(where.size()) - 1);
  Shape inner(shape.begin() + batch, shape.end()), rest(shape.begin() + batch + depth, shape.end());
  Tensor position = reshape(flatPositions(n, indices, inner, depth), {batches, places});
  if (batch > 0)
    position = position + iota({batches, 1}, DType::i64) * sizeTensor(slices);
  Shape flat{batches * slices};
  flat.insert(flat.end(), rest.begin(), rest.end());
  Shape result(where.begin(), where.end() - 1);
  result.insert(result.end(), rest.begin(), rest.end());
  return reshape(take(reshape(x, flat), position, 0), result);
}

/// Slices are written as rows: x and updates become matrices with one row per slice.
Values scatterNd(Node &n) {
  Tensor x = n[0], indices = n[1], updates = n[2];
  Shape shape = x.shape(), where = indices.shape();
  std::string reduction = n.attribute("reduction", "none");
  int64_t rank = int64_t(shape.size()), depth = depthOf(n, where, rank);
  Dim slices = product(shape, 0, depth), width = product(shape, depth, rank),
      places = product(where, 0, int64_t(where.size()) - 1);
  Tensor position = broadcast_to(reshape(flatPositions(n, indices, shape, depth), {places, 1}), {places, width});
  Tensor y = scatter(reshape(x, {slices, width}), position, reshape(updates, {places, width}), 0,
                     reduction == "none" ? "set" : reduction);
  return reshape(y, shape);
}

Values oneHot(Node &n) {
  Tensor indices = n[0], values = n[2];
  Shape shape = indices.shape();
  Dim depth = n.sizes(1).at(0);
  int64_t rank = int64_t(shape.size()) + 1, axis = n.axis(n.attribute("axis", int64_t(-1)), rank);
  shape.insert(shape.begin() + axis, depth);
  Tensor wide = unsqueeze(indices.to(DType::i64), {axis});
  wide = where(wide < 0, wide + sizeTensor(depth), wide);
  auto value = [&](int64_t i) { return reshape(slice(values, {i}, {i + 1}, {1}), {}); };
  return where(iota(shape, DType::i64, axis) == wide, value(1), value(0));
}

Values eyeLike(Node &n) {
  Shape shape = n.shape();
  int64_t offset = n.attribute("k", int64_t(0));
  Tensor row = iota(shape, DType::i64, 0), column = iota(shape, DType::i64, 1);
  return (column - row == offset).to(n.attributeType("dtype", n.dtype()));
}

Values depthToSpace(Node &n) {
  Shape s = n.shape();
  int64_t b = n.attribute("blocksize", int64_t(1));
  if (s.size() != 4 || b < 1)
    n.fail("it needs [N, C, H, W] and a blocksize of at least 1");
  Dim c = floordiv(s[1], b * b);
  Shape result{s[0], c, s[2] * b, s[3] * b};
  if (n.attribute("mode", "DCR") == "DCR")
    return reshape(transpose(reshape(n[0], {s[0], b, b, c, s[2], s[3]}), {0, 3, 4, 1, 5, 2}), result);
  return reshape(transpose(reshape(n[0], {s[0], c, b, b, s[2], s[3]}), {0, 1, 4, 2, 5, 3}), result);
}

Values spaceToDepth(Node &n) {
  Shape s = n.shape();
  int64_t b = n.attribute("blocksize", int64_t(1));
  if (s.size() != 4 || b < 1)
    n.fail("it needs [N, C, H, W] and a blocksize of at least 1");
  Dim h = floordiv(s[2], b), w = floordiv(s[3], b);
  return reshape(transpose(reshape(n[0], {s[0], s[1], h, b, w, b}), {0, 3, 5, 1, 2, 4}), {s[0], s[1] * (b * b), h, w});
}

/// Reverses the first elements of each row, as many as its length.
Values reverseSequence(Node &n) {
  Tensor x = n[0];
  Shape shape = x.shape();
  int64_t batch = n.axis(n.attribute("batch_axis", int64_t(1))), time = n.axis(n.attribute("time_axis", int64_t(0)));
  Shape column(shape.size(), Dim(1));
  column[size_t(batch)] = shape[size_t(batch)];
  Tensor length = reshape(n[1], column), at = iota(shape, DType::i64, time);
  return gather(x, where(at < length, length - 1 - at, at), time);
}

/// Writes a block into a cache, at a separate position per batch.
Values tensorScatter(Node &n) {
  Tensor cache = n[0], update = n[1];
  Shape shape = cache.shape(), block = update.shape();
  int64_t axis = n.axis(n.attribute("axis", int64_t(-2)));
  Tensor at = iota(block, DType::i64, axis);
  if (n.has(2)) {
    Shape column(shape.size(), Dim(1));
    column[0] = n.shape(2)[0];
    at = at + reshape(n[2], column);
  }
  if (n.attribute("mode", "linear") == "circular")
    at = remainder(at, sizeTensor(shape[size_t(axis)]));
  return scatter(cache, at, update, axis);
}

/// Sums windows at their positions in the image, by a transposed convolution with a one-hot weight.
Values columnsToImage(Node &n) {
  Ints image = n.integers(1), block = n.integers(2);
  size_t spatial = image.size();
  Ints strides = n.attribute("strides", Ints(spatial, 1)), dilations = n.attribute("dilations", Ints(spatial, 1)),
       pads = n.attribute("pads", Ints(2 * spatial, 0));
  Shape shape = n.shape();
  if (shape.size() != 3 || block.size() != spatial || strides.size() != spatial || pads.size() != 2 * spatial ||
      dilations.size() != spatial)
    n.fail("its sizes do not fit");
  if (std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride < 1; }))
    n.fail("a stride must be at least 1");
  int64_t count = 1;
  Shape kernel{}, columns{};
  Ints extra;
  for (size_t i = 0; i < spatial; ++i) {
    count *= block[i];
    int64_t span = (block[i] - 1) * dilations[i] + 1, room = image[i] + pads[i] + pads[spatial + i] - span;
    columns.push_back(room / strides[i] + 1);
    extra.push_back(room % strides[i]);
    kernel.push_back(block[i]);
  }
  Dim channels = floordiv(shape[1], count);
  // Per channel: [N * C, window, columns…].
  Shape flat{shape[0] * channels, count}, weight{count, 1}, result{shape[0], channels};
  flat.insert(flat.end(), columns.begin(), columns.end());
  weight.insert(weight.end(), kernel.begin(), kernel.end());
  for (int64_t size : image)
    result.push_back(size);
  Tensor identity =
      reshape((iota({count, count}, DType::i64, 0) == iota({count, count}, DType::i64, 1)).to(n.dtype()), weight);
  return reshape(conv_transpose(reshape(n[0], flat), identity, std::nullopt, strides, pads, dilations, 1, extra),
                 result);
}

constexpr OpEntry table[] = {
    {"Col2Im", columnsToImage},
    {"DepthToSpace", depthToSpace},
    {"EyeLike", eyeLike},
    {"GatherND", gatherNd},
    {"OneHot", oneHot},
    {"ReverseSequence", reverseSequence},
    {"ScatterND", scatterNd},
    {"SpaceToDepth", spaceToDepth},
    {"TensorScatter", tensorScatter, {1, 1, 1}},
};

} // namespace

std::span<const OpEntry> indexOps() { return table; }

} // namespace burin::onnx
