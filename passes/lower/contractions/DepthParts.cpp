#include "passes/lower/contractions/DepthParts.h"
#include "passes/kernels/families/GpuFamilies.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

int64_t depthParts(const Sums &s) {
  constexpr int64_t kTile = 64, kMostTiles = 192; // an H200 has 132 multiprocessors, which hold several blocks each
  constexpr int64_t kLeastDepth = 128, kMostParts = 64, kCopied = 16;
  // Costs in summed elements of a tile, of which a block multiplies about 100 per microsecond: another kernel adds the
  // parts, and each result of a part is written and read.
  constexpr int64_t kSumKernel = 256, kResultsPerElement = 5000;
  for (const Dim &d : {s.rows, s.columns, s.taps, s.channels})
    if (!d.isStatic() || d.value() == 0)
      return 1;
  const int64_t rows = s.rows.value(), columns = s.columns.value(), channels = s.channels.value();
  const int64_t depth = s.taps.value() * channels, aligned = std::max<int64_t>(kCopied / byteWidth(s.type), 1);
  const int64_t tiles = (rows + kTile - 1) / kTile * ((columns + kTile - 1) / kTile);
  if (rows <= kMostThinRows)
    return 1;
  int64_t best = 1, least = depth - depth / 4;
  for (int64_t parts = 2; parts <= kMostParts && parts * tiles <= kMostTiles; parts *= 2) {
    if (channels % (parts * aligned) != 0 || depth / parts < kLeastDepth)
      break;
    const int64_t cost = depth / parts + kSumKernel + parts * rows * columns / kResultsPerElement;
    if (cost < least)
      least = cost, best = parts;
  }
  return best;
}

PartOperands splitDepth(GraphBuilder &g, Value lhs, Value matrix, int64_t parts) {
  Shape left = shapeOf(lhs), right = shapeOf(matrix);
  const Dim channels = floordiv(left.back(), parts), taps = floordiv(right[0], left.back());
  const int64_t last = int64_t(left.size()) - 1;
  left.back() = parts;
  left.push_back(channels);
  std::vector<int64_t> partsFirst{last};
  for (int64_t d = 0; d < last; ++d)
    partsFirst.push_back(d);
  partsFirst.push_back(last + 1);
  lhs = g.transpose(g.reshape(lhs, left), partsFirst);
  if (taps != Dim(1))
    matrix = g.transpose(g.reshape(matrix, {taps, parts, channels, right[1]}), {1, 0, 2, 3});
  return {lhs, g.reshape(matrix, {parts, taps * channels, right[1]})};
}

} // namespace burin::passes
