#include "passes/lower/contractions/DepthParts.h"
#include "passes/kernels/families/GpuFamilies.h"
#include <optional>

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

namespace {

// Not tuned one by one; docs/gpu.md says what splitting gains on an H200, which has 132 multiprocessors.
constexpr int64_t kTile = 64, kMostTiles = 192; // rows and columns of a tile; tiles of all parts
constexpr int64_t kLeastDepth = 128, kMostParts = 64;
constexpr int64_t kCopied = 16; // bytes that a thread copies at once: a part begins at a multiple of it

/// Costs of a static sum in parts.
struct SumCosts {
  int64_t rows, columns, depth, tiles;

  static std::optional<SumCosts> of(const Sums &s) {
    for (const Dim &d : {s.rows, s.columns, s.kernelPositions, s.channels})
      if (!d.isStatic() || d.value() == 0)
        return {};
    const int64_t rows = s.rows.value(), columns = s.columns.value();
    if (rows <= kMostThinRows)
      return {};
    return SumCosts{rows, columns, s.kernelPositions.value() * s.channels.value(),
                    (rows + kTile - 1) / kTile * ((columns + kTile - 1) / kTile)};
  }
  bool canHave(int64_t parts) const {
    return parts <= kMostParts && parts * tiles <= kMostTiles && depth / parts >= kLeastDepth;
  }
  /// In summed elements of a tile, of which a block multiplies about 100 per microsecond: another kernel adds the
  /// parts, and each result of a part is written and read.
  int64_t cost(int64_t parts) const {
    constexpr int64_t kSumKernel = 256, kResultsPerElement = 5000;
    return depth / parts + kSumKernel + parts * rows * columns / kResultsPerElement;
  }
  DepthSplit whole() const { return {1, depth - depth / 4}; } // splitting must save a quarter
};

} // namespace

DepthSplit splitOfChannels(const Sums &s) {
  const std::optional<SumCosts> costs = SumCosts::of(s);
  if (!costs)
    return {};
  const int64_t aligned = std::max<int64_t>(kCopied / byteWidth(s.type), 1);
  DepthSplit best = costs->whole();
  for (int64_t parts = 2; costs->canHave(parts) && s.channels.value() % (parts * aligned) == 0; parts *= 2)
    if (const int64_t cost = costs->cost(parts); cost < best.cost)
      best = {parts, cost};
  return best;
}

DepthSplit splitOfWindowRows(const Sums &s, int64_t kernelRows) {
  const std::optional<SumCosts> costs = SumCosts::of(s);
  if (!costs)
    return {};
  DepthSplit best = costs->whole();
  for (int64_t parts = 2; parts <= kernelRows && costs->canHave(parts); ++parts)
    if (const int64_t cost = costs->cost(parts); kernelRows % parts == 0 && cost < best.cost)
      best = {parts, cost};
  return best;
}

PartOperands splitDepth(GraphBuilder &g, Value lhs, Value matrix, int64_t parts) {
  Shape left = shapeOf(lhs), right = shapeOf(matrix);
  const Dim channels = floordiv(left.back(), parts), positions = floordiv(right[0], left.back());
  const int64_t last = int64_t(left.size()) - 1;
  left.back() = parts;
  left.push_back(channels);
  std::vector<int64_t> partsFirst{last};
  for (int64_t d = 0; d < last; ++d)
    partsFirst.push_back(d);
  partsFirst.push_back(last + 1);
  lhs = g.transpose(g.reshape(lhs, left), partsFirst);
  if (positions != Dim(1))
    matrix = g.transpose(g.reshape(matrix, {positions, parts, channels, right[1]}), {1, 0, 2, 3});
  return {lhs, g.reshape(matrix, {parts, positions * channels, right[1]})};
}

Value rowsOfParts(GraphBuilder &g, Value x, const WindowRows &w, int64_t parts) {
  const Shape image = shapeOf(x);
  const size_t rank = image.size();
  assert(w.kernelRows % parts == 0);
  const int64_t kernelRows = w.kernelRows / parts,
                step = kernelRows * w.dilation; // of rows, from a part to the next one
  const int64_t seen = (kernelRows - 1) * w.dilation + (w.resultRows - 1) * w.stride + 1;
  // Parts overlap where a part sees more than its step: the rows beyond are those at the beginning of the next parts.
  // Both are the image with padding or without its last rows, in pieces of a step.
  auto pieces = [&](int64_t first, int64_t count) {
    const int64_t begin = std::max<int64_t>(first - w.paddingBefore, 0),
                  low = std::max<int64_t>(w.paddingBefore - first, 0);
    const int64_t end = std::min(first - w.paddingBefore + parts * step, image[1].value());
    Shape starts(rank, Dim(0)), stops = image;
    starts[1] = std::min(begin, end);
    stops[1] = end;
    Value rows = g.slice(x, starts, stops);
    std::vector<int64_t> before(rank, 0), after(rank, 0);
    before[1] = low;
    after[1] = parts * step - low - shapeOf(rows)[1].value();
    rows = g.op<PadOp>({rows}, {{"low", before}, {"high", after}, {"interior", std::vector<int64_t>(rank, 0)}});
    Shape split = image;
    split[1] = step;
    split.insert(split.begin() + 1, Dim(parts));
    rows = g.reshape(rows, split);
    Shape from(rank + 1, Dim(0)), to = split;
    to[2] = count;
    return g.slice(rows, from, to);
  };
  Value rows = pieces(0, std::min(seen, step));
  for (int64_t first = step; first < seen; first += step)
    rows = g.op<ConcatOp>({rows, pieces(first, std::min(seen - first, step))}, {{"axis", int64_t(2)}});
  std::vector<int64_t> partsFirst{1, 0};
  for (size_t d = 2; d <= rank; ++d)
    partsFirst.push_back(int64_t(d));
  return g.transpose(rows, partsFirst);
}

} // namespace burin::passes
