#include "passes/lower/contractions/WeightGradients.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

constexpr int64_t kOverlap = 4;          // windows are at least this many times as large as the number of positions
constexpr int64_t kTileRows = 192;       // rows of a task of a small result, see ContractionTiling
constexpr int64_t kLeastTiles = kShards; // with at least this many tiles there are tasks enough

static bool isTransposeOfMatrix(TransposeOp op) { return op && op.getPerm().size() == 2 && op.getPerm()[0] == 1; }

MatmulOp withoutTransposedResult(MatmulOp op) {
  auto left = op.getLhs().getDefiningOp<TransposeOp>();
  auto after = op->hasOneUse() ? dyn_cast<TransposeOp>(*op->user_begin()) : TransposeOp();
  if (!isTransposeOfMatrix(left) || !isTransposeOfMatrix(after) || isConstantExpression(op.getRhs()) ||
      isConstantExpression(left.getX()))
    return op;
  const Dim rows = shapeOf(op.getLhs())[0], depth = shapeOf(op.getLhs())[1], columns = shapeOf(op.getRhs())[1];
  if (!rows.isStatic() || !columns.isStatic())
    return op;
  // A right side of one panel is not packed.
  const int64_t width = panelWidth(op.getRhs());
  auto packed = [&](const Dim &side) { return side.value() <= width ? 0 : side.value(); };
  const int64_t gainPerStep = packed(columns) - packed(rows);
  if (gainPerStep < 0 && (!depth.isStatic() || gainPerStep * depth.value() + rows.value() * columns.value() <= 0))
    return op;
  OpBuilder b(op);
  GraphBuilder g(b, op.getLoc());
  auto swapped = cast<MatmulOp>(g.op<MatmulOp>({g.transposeLastTwo(op.getRhs()), left.getX()}).getDefiningOp());
  after.replaceAllUsesWith(swapped.getResult());
  after.erase();
  op.erase();
  return swapped;
}

int64_t staticProduct(ArrayRef<Dim> sizes) {
  int64_t product = 1;
  for (const Dim &size : sizes)
    product *= size.isStatic() ? size.value() : 0;
  return product;
}

Shape resultChannelsLast(ConvOp op) {
  Shape shape = shapeOf(op.getResult());
  if (op.getLayout() != "nhwc") {
    shape.push_back(shape[1]);
    shape.erase(shape.begin() + 1);
  }
  return shape;
}

bool isWeightGradient(ConvOp op, Value x, Value weight) {
  size_t spatial = op.getStrides().size();
  Shape window = shapeOf(weight), image = shapeOf(x);
  int64_t taps = staticProduct(ArrayRef(window).take_front(spatial)), positions = 1;
  for (size_t d = 0; d < spatial; ++d) {
    if (!window[d].isStatic() || !image[d + 1].isStatic() || op.getStrides()[d] * kOverlap > window[d].value())
      return false;
    int64_t reach = op.getDilations()[d] * (window[d].value() - 1) + 1;
    int64_t size = image[d + 1].value() + op.getPadding()[d] + op.getPadding()[d + spatial];
    positions *= (size - reach) / op.getStrides()[d] + 1;
  }
  return op.getGroups() == 1 && taps >= kLeastGradientTaps && positions * kOverlap <= taps;
}

bool hasFewTiles(ConvOp op, const Dim &columns) {
  int64_t elements = staticProduct(shapeOf(op.getResult()));
  int64_t width = panelWidth(op.getWeight());
  if (!elements || !columns.isStatic())
    return false;
  int64_t rows = elements / columns.value();
  return (rows + kTileRows - 1) / kTileRows * ((columns.value() + width - 1) / width) < kLeastTiles;
}

bool seesWholeImage(Value x, const Windows &w) {
  Shape image = shapeOf(x);
  for (size_t d = 1; d < w.kernel.size(); ++d)
    if (image[d] != Dim(w.kernel[d]) || w.dilations[d] != 1)
      return false;
  return w.padding.empty();
}

Value contractPackedLeft(GraphBuilder &g, ConvOp op, Value x, Value weight, const Windows &w, Readers readers) {
  const Shape result = resultChannelsLast(op);
  const Dim outputs = shapeOf(weight).back(), depth = floordiv(elements(shapeOf(weight)), outputs);
  Value matrix = pack(g.b, g.loc, g.reshape(weight, {depth, outputs}), readers.withoutLibraries());
  const bool isProduct = seesWholeImage(x, w);
  Value left = packLeft(g, isProduct ? g.reshape(x, {result[0], depth}) : x);
  return g.reshape(contract(g.b, g.loc, left, matrix, {}, 0, outputs, (isProduct ? Windows() : w).byPanels()), result);
}

/// Splits dimension `dim` of v into shards and moves them first: [shards, …]. A transpose that made v is merged into
/// the new one.
static Value shardsFirst(GraphBuilder &g, Value v, size_t dim) {
  auto before = v.getDefiningOp<TransposeOp>();
  Value source = before ? before.getX() : v;
  std::vector<int64_t> perm;
  for (size_t d = 0; d < shapeOf(v).size(); ++d)
    perm.push_back(before ? before.getPerm()[d] : int64_t(d));
  int64_t at = perm[dim];
  Shape split = shapeOf(source);
  split[at] = floordiv(split[at], kShards);
  split.insert(split.begin() + at, Dim(kShards));
  std::vector<int64_t> order{at};
  for (int64_t d : perm)
    order.push_back(d < at ? d : d + 1);
  return g.transpose(g.reshape(source, split), order);
}

/// Pads dimension `dim` with zeros to a multiple of the number of shards.
static Value wholeShards(GraphBuilder &g, Value v, size_t dim) {
  Shape shape = shapeOf(v);
  Dim missing = ceildiv(shape[dim], kShards) * Dim(kShards) - shape[dim];
  if (missing == Dim(0))
    return v;
  shape[dim] = missing;
  return g.op<ConcatOp>({v, g.full(shape, 0, dtypeOf(v))}, {{"axis", int64_t(dim)}});
}

Value contractShards(GraphBuilder &g, Value x, Value weight, const Windows &w, Readers readers) {
  size_t spatial = w.kernel.size() - 1;
  DType type = dtypeOf(x);
  x = shardsFirst(g, wholeShards(g, x, spatial + 1), spatial + 1);
  weight = shardsFirst(g, wholeShards(g, weight, spatial), spatial);
  Shape taps = shapeOf(weight);
  Dim outputs = taps.back(), depth = elements(Shape(taps.begin() + 1, taps.end() - 1));
  weight = g.reshape(weight, {kShards, depth, outputs});
  Value sums = contract(g.b, g.loc, x, pack(g.b, g.loc, weight, readers.withoutLibraries()), {}, 1, outputs, w,
                        wideType(type) != type);
  std::vector<Value> parts;
  for (int64_t shard = 0; shard < kShards; ++shard) {
    Shape starts(shapeOf(sums).size(), Dim(0)), stops = shapeOf(sums);
    starts[0] = shard;
    stops[0] = shard + 1;
    parts.push_back(g.slice(sums, starts, stops));
  }
  Value total = g.add(g.add(parts[0], parts[1]), g.add(parts[2], parts[3]));
  Shape shape = shapeOf(total);
  return g.cast(g.reshape(total, Shape(shape.begin() + 1, shape.end())), type);
}

} // namespace burin::passes
