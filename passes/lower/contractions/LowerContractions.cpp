// Lowers matmul and conv to pack and contract: right operand in panels, groups as a batch, and padding as
// an attribute of the contraction or as an op before it.
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/StridedView.h"
#include "passes/kernels/families/GpuFamilies.h"
#include "passes/lower/contractions/DepthParts.h"
#include "passes/lower/contractions/Pack.h"
#include "passes/lower/contractions/TrimTaps.h"
#include "passes/lower/contractions/WeightGradients.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_LOWERCONTRACTIONSPASS
#include "passes/Passes.h.inc"

namespace {

using Ints = std::vector<int64_t>;

Value reshape(OpBuilder &b, mlir::Location loc, Value x, Shape shape) {
  return shapeOf(x) == shape ? x : create<ReshapeOp>(b, loc, {x}, {{"shape", std::move(shape)}});
}
Value transpose(OpBuilder &b, mlir::Location loc, Value x, Ints perm) {
  return create<TransposeOp>(b, loc, {x}, {{"perm", std::move(perm)}});
}

/// Number of output channels after the last whole vector that are cheaper as horizontal sums than as a vector of their
/// own. It must depend only on sizes that are static wherever the convolution is compiled, because the order of
/// summation depends on it: the sizes of windows before taps are trimmed. Matrix products, and 1×1 convolutions, have
/// symbolic sizes in eager calls, so they have no tail; nor have convolutions with many taps, which may be gradients
/// of weights, whose channels are the images of a batch.
int64_t tailColumns(ConvOp op) {
  Shape weight = shapeOf(op.getWeight());
  bool last = op.getLayout() == "nhwc";
  size_t spatial = op.getStrides().size();
  const Dim &columns = last ? weight.back() : weight[0], &channels = last ? weight[spatial] : weight[1];
  ArrayRef<int64_t> padding = op.getPadding();
  // Lanes of the widest vectors, so that all targets compute the same.
  int64_t lanes = panelWidth(op.getWeight()) / 2, taps = 1;
  for (size_t d = 0; d < spatial; ++d)
    taps *= weight[d + (last ? 0 : 2)].value();
  bool seesAllTaps = padding[spatial - 1] <= 0 && padding.back() <= 0; // along a row
  if (taps == 1 || taps >= kLeastGradientTaps || op.getGroups() > 1 || !seesAllTaps || !columns.isStatic() ||
      !channels.isStatic() || columns.value() > kMostTailed * lanes)
    return 0;
  int64_t tail = columns.value() % lanes, steps = taps * ((channels.value() + lanes - 1) / lanes);
  return tail <= kMostTail && 2 * tail * (steps + kLaneSum) <= taps * channels.value() ? tail : 0;
}

/// `lhs` times a matrix [K, columns] whose last `tail` columns are horizontal sums.
Value contractMatrix(OpBuilder &b, mlir::Location loc, Value lhs, Value matrix, int64_t tail, Windows w, bool wide,
                     Readers readers) {
  Shape shape = shapeOf(matrix);
  Dim depth = shape[0], columns = shape[1];
  if (!tail)
    return contract(b, loc, lhs, pack(b, loc, matrix, readers), {}, 0, columns, std::move(w), wide);
  auto part = [&](Dim from, Dim to) {
    return create<SliceOp>(b, loc, {matrix},
                           {{"starts", Shape{0, from}}, {"stops", Shape{depth, to}}, {"steps", Ints{1, 1}}});
  };
  Value last = transpose(b, loc, part(columns - tail, columns), {1, 0});
  last = create<PackOp>(b, loc, {last}, {{"width", depth.value()}});
  // Kernels for GPUs read the other columns in panels, whatever their number.
  return contract(b, loc, lhs, pack(b, loc, part(0, columns - tail), {.onCpus = readers.onCpus}), last, 0, columns,
                  std::move(w), wide);
}

/// The matrix that `v` broadcasts along all leading dimensions; null if there is none.
Value repeatedMatrix(Value v) {
  auto broadcast = v.getDefiningOp<BroadcastToOp>();
  if (!broadcast)
    return {};
  Shape from = shapeOf(broadcast.getX()), to = shapeOf(v);
  if (from.size() < 2 || from[from.size() - 1] != to[to.size() - 1] || from[from.size() - 2] != to[to.size() - 2])
    return {};
  for (size_t i = 0; i + 2 < from.size(); ++i)
    if (from[i] != Dim(1))
      return {};
  return broadcast.getX();
}

/// The sum of a batch of contractions of parts of the depth, whose wide results are added in order; it is wide, too.
Value sumOfParts(GraphBuilder &g, const PartOperands &operands, Windows w, bool forLibraries, bool isThin = false) {
  const DType type = dtypeOf(operands.lhs);
  Value sums = contract(g.b, g.loc, operands.lhs, pack(g.b, g.loc, operands.matrix, {true, forLibraries}, isThin), {},
                        1, shapeOf(operands.matrix).back(), std::move(w), wideType(type) != type);
  return g.op<ReduceSumOp>({sums}, {{"axes", Ints{0}}, {"keepdims", false}});
}

/// The product of a left side [M, K], perhaps packed, and of packed columns: [M, columns].
Value productOfMatrices(GraphBuilder &g, Value lhs, Value panels, Dim columns, bool isWide, Readers readers) {
  if (!readers.withShortTiles || !isPackedLeft(lhs, columns))
    return contract(g.b, g.loc, lhs, panels, {}, 0, columns, {}, isWide);
  Value product = contract(g.b, g.loc, packLeft(g, lhs), panels, {}, 0, columns, Windows().byPanels(), isWide);
  return g.reshape(product, {shapeOf(lhs)[0], columns});
}

void lower(MatmulOp op, Readers readers) {
  const bool onGpus = readers.onGpus;
  OpBuilder b(op);
  mlir::Location loc = op.getLoc();
  Value lhs = op.getLhs(), rhs = op.getRhs();
  // Tensor cores take 8-bit floats on both sides; CPUs convert the left side once, and the right side where they read
  // it.
  const bool isOfFloat8 = isFloat8(dtypeOf(lhs)), isWide = isOfFloat8 && onGpus;
  if (isOfFloat8 && !onGpus)
    lhs = GraphBuilder(b, loc).cast(lhs, DType::f32);
  Shape l = shapeOf(lhs), r = shapeOf(rhs), result = shapeOf(op.getResult());
  size_t batch = l.size() - 2;
  Dim columns = r.back();
  Value matrix = batch ? repeatedMatrix(rhs) : rhs;
  if (matrix) {
    // One matrix for the whole batch: the leading dimensions become rows.
    Shape m = shapeOf(matrix);
    matrix = reshape(b, loc, matrix, {m[m.size() - 2], m[m.size() - 1]});
    Dim rows = elements(Shape(l.begin(), l.end() - 1));
    lhs = reshape(b, loc, lhs, {rows, l.back()});
    const DType type = dtypeOf(lhs);
    const int64_t parts = onGpus && isFloat(type) ? splitOfChannels({rows, columns, 1, l.back(), type}).parts : 1;
    GraphBuilder g(b, loc);
    const bool isThin = isOfFloat8 && hasFewRows(rows);
    Value product = parts > 1
                        ? g.cast(sumOfParts(g, splitDepth(g, lhs, matrix, parts), {}, readers.libraries, isThin),
                                 isWide ? DType::f32 : type)
                        : productOfMatrices(g, lhs, pack(b, loc, matrix, readers, isThin), columns, isWide, readers);
    op.replaceAllUsesWith(reshape(b, loc, product, result));
  } else {
    Dim batches = elements(Shape(l.begin(), l.end() - 2));
    Value left = reshape(b, loc, lhs, {batches, l[batch], l[batch + 1]});
    Value right = pack(b, loc, reshape(b, loc, rhs, {batches, r[batch], r[batch + 1]}), readers,
                       isOfFloat8 && hasFewRows(l[batch]));
    op.replaceAllUsesWith(reshape(b, loc, contract(b, loc, left, right, {}, 1, columns, {}, isWide), result));
  }
  op.erase();
}

Ints channelsLast(size_t spatial, bool back) {
  Ints perm{0};
  if (back)
    perm.push_back(spatial + 1);
  for (size_t d = 0; d < spatial; ++d)
    perm.push_back(d + (back ? 1 : 2));
  if (!back)
    perm.push_back(1);
  return perm;
}

bool isDepthwise(int64_t groups, const Dim &channels, const Dim &outputs) {
  return groups > 1 && channels == Dim(groups) && outputs == channels;
}

/// Convolutions that this pass leaves: channels-last, depthwise, without bias.
bool isWindow(ConvOp op) {
  return op.getLayout() == "nhwc" && !op.getBias() &&
         isDepthwise(op.getGroups(), shapeOf(op.getX()).back(), shapeOf(op.getResult()).back());
}

/// The windows of a convolution over [images, spatial…, channels]; images are a dimension with windows of one element.
Windows windowsOf(ConvOp op, Value weight) {
  Windows w;
  auto padding = op.getPadding();
  for (size_t d = 0; d < op.getStrides().size(); ++d) {
    w.kernel.push_back(shapeOf(weight)[d].value());
    w.strides.push_back(op.getStrides()[d]);
    w.dilations.push_back(op.getDilations()[d]);
  }
  if (llvm::any_of(padding, [](int64_t n) { return n != 0; }))
    for (auto half : {padding.take_front(padding.size() / 2), padding.take_back(padding.size() / 2)}) {
      w.padding.push_back(0);
      w.padding.insert(w.padding.end(), half.begin(), half.end());
    }
  return w;
}

constexpr int64_t kFewImages = 8; // with fewer rows the images are no tile of their own

/// Whether the contraction of x [images, spatial…, channels] handles padding itself. It skips the taps outside if the
/// ends of a row have static positions. Otherwise kernels for CPUs have rows that read zeros, which costs little for a
/// few rows and for many adjacent channels; these kernels do not divide a row among threads, so there must be others.
bool padsInKernel(ConvOp op, Value x, bool onCpus) {
  constexpr int64_t kFewChannels = 16, kFewPositions = 8, kFewRows = 2; // at each end
  Shape shape = shapeOf(x);
  auto padding = op.getPadding();
  const int64_t low = padding[padding.size() / 2 - 1], high = padding.back(), stride = op.getStrides().back();
  if ((low == 0 && high == 0) || shape[shape.size() - 2].isStatic())
    return true;
  const auto outer = ArrayRef(shape).drop_back(2);
  if (llvm::all_of(outer, [](const Dim &d) { return d.isStatic(); }) && staticProduct(outer) < kFewPositions)
    return false;
  const Dim channels = floordiv(shape.back(), op.getGroups());
  return onCpus && low >= 0 && high >= 0 && std::max(low, high) <= kFewRows * stride && channels.isStatic() &&
         channels.value() >= kFewChannels && stridedViewOf(x).strides.back() == Dim(1);
}

Value padded(OpBuilder &b, mlir::Location loc, Value x, const Ints &padding) {
  size_t rank = shapeOf(x).size(), half = padding.size() / 2;
  Ints low(padding.begin(), padding.begin() + half), high(padding.begin() + half, padding.end());
  low.resize(rank);
  high.resize(rank);
  return create<PadOp>(b, loc, {x}, {{"low", low}, {"high", high}, {"interior", Ints(rank, 0)}});
}

/// Groups are a batch of contractions. x is [images, spatial…, channels], weight [spatial…, channels of a group,
/// outputs].
Value contractGroups(GraphBuilder &g, Value x, Value weight, int64_t groups, const Windows &w, bool wide,
                     Readers readers) {
  Shape split = shapeOf(x);
  const Dim channels = split.back(), outputs = shapeOf(weight).back(),
            depth = floordiv(elements(shapeOf(weight)), outputs);
  const Dim perGroup = floordiv(channels, groups), outputsPerGroup = floordiv(outputs, groups);
  const int64_t last = int64_t(split.size()) - 1;
  split.back() = Dim(groups);
  split.push_back(perGroup);
  Ints groupFirst{last}, groupLast;
  for (int64_t d = 0; d < last; ++d) {
    groupFirst.push_back(d);
    groupLast.push_back(d + 1);
  }
  groupFirst.push_back(last + 1);
  groupLast.push_back(0);
  groupLast.push_back(last + 1);
  Value lhs = transpose(g.b, g.loc, g.reshape(x, split), groupFirst);
  Value parts = transpose(g.b, g.loc, g.reshape(weight, {depth, Dim(groups), outputsPerGroup}), {1, 0, 2});
  Value product =
      contract(g.b, g.loc, lhs, pack(g.b, g.loc, parts, readers.withoutLibraries()), {}, 1, outputsPerGroup, w, wide);
  product = transpose(g.b, g.loc, product, groupLast);
  Shape joined = shapeOf(product);
  joined.pop_back();
  joined.back() = outputs;
  return g.reshape(product, joined);
}

/// A convolution without groups, in parts of its depth, which are at least `fewest`, for a GPU; null if splitting does
/// not pay off.
Value contractInParts(GraphBuilder &g, ConvOp op, Value x, Value weight, Windows w, int64_t fewest) {
  const Shape whole = resultChannelsLast(op);
  const Dim outputs = shapeOf(weight).back(), depth = floordiv(elements(shapeOf(weight)), outputs);
  if (op.getGroups() != 1 || !isFloat(dtypeOf(x)))
    return {};
  if (seesWholeImage(x, w)) {
    x = g.reshape(x, {whole[0], depth});
    w = {};
  }
  const Dim channels = shapeOf(x).back(), rows = floordiv(elements(whole), outputs);
  const Sums sums{rows, outputs, floordiv(depth, channels), channels, dtypeOf(x)};
  Value matrix = g.reshape(weight, {depth, outputs});
  const DepthSplit ofChannels = splitOfChannels(sums);
  // Windows of the size of the image, each part of which reads little more than its share of the rows.
  const DepthSplit ofRows =
      w.kernel.size() > 1 && isWeightGradient(op, x, weight) ? splitOfWindowRows(sums, w.kernel[1]) : DepthSplit();
  const bool splitsRows = ofRows.parts > 1 && ofRows.cost < ofChannels.cost;
  const int64_t parts = splitsRows ? ofRows.parts : ofChannels.parts;
  if (parts < fewest)
    return {};
  if (!splitsRows)
    return g.reshape(sumOfParts(g, splitDepth(g, x, matrix, parts), w, /*forLibraries=*/false), whole);
  const int64_t paddingBefore = w.padding.empty() ? 0 : w.padding[1];
  x = rowsOfParts(g, x, {w.kernel[1], w.strides[1], w.dilations[1], whole[1].value(), paddingBefore}, parts);
  w.kernel[1] /= parts;
  if (!w.padding.empty())
    w.padding[1] = w.padding[1 + w.kernel.size()] = 0;
  return g.reshape(
      sumOfParts(g, {x, g.reshape(matrix, {parts, floordiv(depth, parts), outputs})}, w, /*forLibraries=*/false),
      whole);
}

/// Pads the channels of images, x [images, spatial…, channels] and weight [spatial…, channels, outputs], with zeros to
/// whole pieces of 16 bytes, which GPUs copy at once.
void padChannels(OpBuilder &b, mlir::Location loc, Value &x, Value &weight) {
  constexpr int64_t kCopiedBytes = 16;
  const int64_t piece = kCopiedBytes / int64_t(byteWidth(dtypeOf(x)));
  const Dim channels = shapeOf(x).back();
  if (!channels.isStatic() || channels.value() % piece == 0)
    return;
  auto padAlong = [&](Value v, size_t dim) {
    Ints none(shapeOf(v).size()), high = none;
    high[dim] = piece - channels.value() % piece;
    return create<PadOp>(b, loc, {v}, {{"low", none}, {"high", high}, {"interior", none}});
  };
  x = padAlong(x, shapeOf(x).size() - 1);
  weight = padAlong(weight, shapeOf(weight).size() - 2);
}

void lower(ConvOp op, int64_t tail, Readers readers) {
  const bool onGpus = readers.onGpus;
  OpBuilder b(op);
  mlir::Location loc = op.getLoc();
  Value x = op.getX(), weight = op.getWeight();
  size_t spatial = shapeOf(x).size() - 2;
  bool first = op.getLayout() != "nhwc";
  if (first) {
    x = transpose(b, loc, x, channelsLast(spatial, false));
    Ints perm;
    for (size_t d = 0; d < spatial; ++d)
      perm.push_back(d + 2);
    perm.push_back(1);
    perm.push_back(0);
    weight = transpose(b, loc, weight, perm);
  }
  int64_t groups = op.getGroups();
  // Tensor cores take 16-bit floats. Windows of one element are not worth a copy.
  if (onGpus && groups == 1 && isFloat(dtypeOf(x)) && byteWidth(dtypeOf(x)) == 2 &&
      staticProduct(ArrayRef(shapeOf(weight)).drop_back(2)) > 1)
    padChannels(b, loc, x, weight);
  Dim channels = shapeOf(x).back(), outputs = shapeOf(weight).back();
  // The op rounds once: the bias is added to the f32 sums before they become 16-bit floats.
  GraphBuilder g(b, loc);
  DType type = dtypeOf(x), sumType = op.getBias() ? wideType(type) : type;
  Value result;
  if (isDepthwise(groups, channels, outputs)) {
    // Depthwise convolutions stay window ops.
    x = g.cast(x, sumType);
    weight = g.cast(weight, sumType);
    result = create<ConvOp>(b, loc, {x, weight, Value()},
                            {{"strides", Ints(op.getStrides())},
                             {"padding", Ints(op.getPadding())},
                             {"dilations", Ints(op.getDilations())},
                             {"groups", groups},
                             {"layout", std::string("nhwc")}});
  } else {
    Windows w = windowsOf(op, weight);
    bool ofWeight = isWeightGradient(op, x, weight), fewImages = staticProduct(shapeOf(x)[0]) < kFewImages;
    if (!w.padding.empty() && (!padsInKernel(op, x, readers.onCpus) || (ofWeight && fewImages))) {
      x = padded(b, loc, x, w.padding);
      w.padding.clear();
    }
    Shape weightShape = shapeOf(weight);
    Dim depth = weightShape[spatial];
    for (size_t d = 0; d < spatial; ++d)
      depth = depth * weightShape[d];
    const bool isSmallGradient = ofWeight && hasFewTiles(op, outputs);
    Value inParts = onGpus ? contractInParts(g, op, x, weight, w, isSmallGradient ? kShards : 2) : Value();
    if (inParts) {
      result = g.cast(inParts, sumType);
    } else if (isSmallGradient) {
      result = contractShards(g, x, weight, w, readers);
    } else if (groups == 1 && !tail && readers.withShortTiles && isPackedLeft(x, outputs)) {
      result = contractPackedLeft(g, op, x, weight, w, readers);
    } else if (groups == 1) {
      readers.libraries &= depth == channels; // windows of one element
      result = contractMatrix(b, loc, x, reshape(b, loc, weight, {depth, outputs}), tail, w, sumType != type, readers);
    } else {
      result = contractGroups(g, x, weight, groups, w, sumType != type, readers);
    }
  }
  if (Value bias = op.getBias())
    result = g.cast(g.add(result, g.broadcastLike(g.cast(bias, sumType), result)), type);
  if (first)
    result = transpose(b, loc, result, channelsLast(spatial, true));
  op.replaceAllUsesWith(result);
  op.erase();
}

struct LowerContractionsPass : impl::LowerContractionsPassBase<LowerContractionsPass> {
  using LowerContractionsPassBase::LowerContractionsPassBase;
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<MatmulOp>(op) || (isa<ConvOp>(op) && !isWindow(cast<ConvOp>(op))))
        ops.push_back(op);
    });
    const Readers readers{onGpus, onCpus && !onGpus, forLibraries, shortTiles};
    for (Operation *op : ops) {
      if (auto matmul = dyn_cast<MatmulOp>(op)) {
        lower(readers.onCpus ? withoutTransposedResult(matmul) : matmul, readers);
        continue;
      }
      auto conv = cast<ConvOp>(op);
      int64_t tail = tailColumns(conv);
      trimTaps(conv);
      lower(conv, tail, readers);
    }
  }
};

} // namespace

} // namespace burin::passes
