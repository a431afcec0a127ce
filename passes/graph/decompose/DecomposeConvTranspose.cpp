// Decomposes transposed convolutions to convolutions.
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/LayoutModel.h"
#include "passes/graph/decompose/Decompose.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
namespace {

/// The sizes of a transposed convolution in one spatial dimension.
struct TransposedWindow {
  int64_t kernel, stride, dilation, low, high, extra;

  /// Elements of x that contribute to one position of the result, at most.
  int64_t taps() const { return (kernel + stride - 1) / stride; }
  /// Positions behind those that the kernel reaches from the last element of x, rounded up to strides; if negative,
  /// they are cropped.
  int64_t highPadding() const { return kernel - taps() * stride - high + extra; }
  /// Whether products contribute to all positions of the result.
  bool reachesAll() const { return kernel >= stride && extra <= high; }
};

std::vector<TransposedWindow> windowsOf(ConvTransposeOp op) {
  Shape weight = shapeOf(op.getWeight());
  size_t spatial = weight.size() - 2;
  auto entry = [](ArrayRef<int64_t> list, size_t i, int64_t otherwise) { return list.empty() ? otherwise : list[i]; };
  std::vector<TransposedWindow> windows;
  for (size_t i = 0; i < spatial; ++i) {
    size_t end = op.getPadding().size() == 2 * spatial ? spatial + i : i;
    windows.push_back({weight[2 + i].value(), entry(op.getStrides(), i, 1), entry(op.getDilations(), i, 1),
                       entry(op.getPadding(), i, 0), entry(op.getPadding(), end, 0),
                       entry(op.getOutputPadding(), i, 0)});
  }
  return windows;
}

Value convolve(GraphBuilder &g, Value x, Value weight, Value bias, const std::vector<int64_t> &padding,
               const std::vector<int64_t> &dilations, int64_t groups, const std::string &layout) {
  return g.op<ConvOp>({x, weight, bias}, {{"strides", std::vector<int64_t>(dilations.size(), 1)},
                                          {"padding", padding},
                                          {"dilations", dilations},
                                          {"groups", groups},
                                          {"layout", layout}});
}

Value padded(GraphBuilder &g, Value x, const std::vector<int64_t> &low, const std::vector<int64_t> &high) {
  return g.op<PadOp>({x}, {{"low", low}, {"high", high}, {"interior", std::vector<int64_t>(low.size(), 0)}});
}

/// Positions q * stride + r of the result for r from `first` on, `count` of them, which have the same number of taps.
struct Phases {
  int64_t taps, first, count;
};

/// Builds a transposed convolution with strides from convolutions over x without inserted zeros:
///   y[q * stride + r] = sum over m of x[q - m] * w[r + m * stride]
/// Phases r with the same number of taps m are channels of one convolution; their results are interleaved. That takes
/// only the products of the definition. Channels are last, so that they move together.
class PhaseConvolutions {
public:
  PhaseConvolutions(GraphBuilder &g, ConvTransposeOp op, ArrayRef<TransposedWindow> windows)
      : g(g), op(op), windows(windows), groups(int64_t(op.getGroups())), out(shapeOf(op.getWeight())[1]) {}

  Value build() {
    int64_t rank = int64_t(windows.size()) + 2;
    x = g.transpose(op.getX(), channelsLast(size_t(rank), 1));
    weight = splitWeight();
    Value y = interleaved(joined({}));
    if (op.getBias() && !isBiasInside())
      y = g.add(y, g.perChannel(op.getBias(), shapeOf(y), size_t(rank - 1)));
    return g.transpose(y, inverse(channelsLast(size_t(rank), 1)));
  }

  /// Elsewhere the bias is added to positions that no product contributes to, too, after rounding.
  bool isBiasInside() const {
    return llvm::all_of(windows, [](const TransposedWindow &w) { return w.reachesAll(); });
  }

private:
  /// [C, O/groups, kernel…] to [groups, C/groups, O/groups, (taps, phases)…], taps mirrored, kernels padded by zeros.
  Value splitWeight() {
    Shape shape = shapeOf(op.getWeight()), split{groups, floordiv(shape[0], groups), out};
    std::vector<int64_t> high(2, 0), tapAxes;
    for (const TransposedWindow &w : windows) {
      high.push_back(w.taps() * w.stride - w.kernel);
      tapAxes.push_back(int64_t(split.size()));
      split.insert(split.end(), {w.taps(), w.stride});
    }
    Value padding = padded(g, op.getWeight(), std::vector<int64_t>(high.size(), 0), high);
    return g.op<FlipOp>({g.reshape(padding, split)}, {{"axes", tapAxes}});
  }

  /// All phases of the dimensions from chosen.size() on, for the chosen phases of those before:
  /// [N, (Q, phases)…, groups, O/groups].
  Value joined(const std::vector<Phases> &chosen) {
    if (chosen.size() == windows.size())
      return convolved(chosen);
    const TransposedWindow &w = windows[chosen.size()];
    int64_t longer = w.kernel % w.stride, taps = w.kernel / w.stride;
    SmallVector<Value> parts;
    for (Phases phases : {Phases{taps + 1, 0, longer}, Phases{taps, longer, w.stride - longer}})
      if (phases.taps && phases.count) {
        std::vector<Phases> more = chosen;
        more.push_back(phases);
        parts.push_back(joined(more));
      }
    return parts.size() == 1 ? parts[0] : g.op<ConcatOp>(parts, {{"axis", 2 + 2 * int64_t(chosen.size())}});
  }

  /// One convolution: [N, (Q, phases)…, groups, O/groups].
  Value convolved(ArrayRef<Phases> chosen) {
    int64_t spatial = int64_t(windows.size());
    Dim count = 1;
    Shape image = shapeOf(x), weights = shapeOf(weight), kernel, split(image.begin(), image.end() - 1);
    std::vector<int64_t> low, order{0}, behind{0}, tapAxes, phaseAxes;
    split.push_back(groups);
    Shape starts(3, 0), stops(weights.begin(), weights.begin() + 3);
    for (auto [i, phases] : llvm::enumerate(chosen)) {
      int64_t taps = windows[i].taps(), axis = 3 + 2 * int64_t(i);
      starts.insert(starts.end(), {taps - phases.taps, phases.first});
      stops.insert(stops.end(), {taps, phases.first + phases.count});
      kernel.push_back(phases.taps);
      count = count * Dim(phases.count);
      low.push_back(phases.taps - 1);
      tapAxes.push_back(axis);
      phaseAxes.push_back(axis + 1);
      split[1 + i] = split[1 + i] + (phases.taps - 1);
      split.push_back(phases.count);
      order.insert(order.end(), {1 + int64_t(i), 2 + spatial + int64_t(i)});
      behind.insert(behind.end(), {taps - phases.taps, 0});
    }
    split.push_back(out);
    kernel.insert(kernel.end(), {weights[1], Dim(groups) * count * out});
    std::vector<int64_t> steps(starts.size(), 1);
    Value part = g.op<SliceOp>({weight}, {{"starts", starts}, {"stops", stops}, {"steps", steps}});
    part = g.reshape(g.transpose(part, concatenated({tapAxes, {1, 0}, phaseAxes, {2}})), kernel);
    Value y = convolve(g, x, part, isBiasInside() ? bias(count) : Value(), concatenated({low, low}),
                       std::vector<int64_t>(windows.size(), 1), groups, "nhwc");
    y = g.transpose(g.reshape(y, split), concatenated({order, {1 + spatial, 2 + 2 * spatial}}));
    return padded(g, y, std::vector<int64_t>(behind.size() + 2, 0), concatenated({behind, {0, 0}}));
  }

  /// [groups * O/groups] to [groups * count * O/groups].
  Value bias(const Dim &count) {
    if (!op.getBias())
      return {};
    Value v = g.broadcast(g.reshape(op.getBias(), {groups, 1, out}), {groups, count, out});
    return g.reshape(v, {Dim(groups) * count * out});
  }

  /// [N, (Q, phases)…, groups, O/groups] to [N, spatial…, groups * O/groups].
  Value interleaved(Value y) {
    Shape shape = shapeOf(y), merged{shape[0]};
    std::vector<int64_t> missing{0}, low{0}, high{0};
    for (auto [i, w] : llvm::enumerate(windows)) {
      missing.insert(missing.end(), {0, w.stride - shape[2 + 2 * i].value()});
      merged.push_back(shape[1 + 2 * i] * Dim(w.stride));
      low.push_back(-w.low);
      high.push_back(w.highPadding());
    }
    merged.push_back(out * Dim(groups));
    y = padded(g, y, std::vector<int64_t>(missing.size() + 2, 0), concatenated({missing, {0, 0}}));
    return padded(g, g.reshape(y, merged), concatenated({low, {0}}), concatenated({high, {0}}));
  }

  GraphBuilder &g;
  ConvTransposeOp op;
  ArrayRef<TransposedWindow> windows;
  int64_t groups;
  Dim out;
  Value x, weight;
};

/// Depthwise and dilated kernels are left to ConvTranspose, and 16-bit floats whose sums would be rounded before their
/// bias is added.
class StridedConvTranspose : public OpRewritePattern<ConvTransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvTransposeOp op, PatternRewriter &rewriter) const override {
    std::vector<TransposedWindow> windows = windowsOf(op);
    int64_t groups = op.getGroups();
    bool isDepthwise = groups > 1 && shapeOf(op.getWeight())[0] == Dim(groups);
    auto isStrided = [](const TransposedWindow &w) { return w.stride > 1; };
    auto isDilated = [](const TransposedWindow &w) { return w.dilation > 1; };
    if (isDepthwise || llvm::none_of(windows, isStrided) || llvm::any_of(windows, isDilated))
      return failure();
    GraphBuilder g(rewriter, op.getLoc());
    PhaseConvolutions phases(g, op, windows);
    DType dtype = dtypeOf(op.getResult());
    if (op.getBias() && !phases.isBiasInside() && wideType(dtype) != dtype)
      return failure();
    rewriter.replaceOp(op, phases.build());
    return success();
  }
};

/// A transposed convolution is a convolution over x with zeros inserted between its elements, with the kernel mirrored
/// and its channels exchanged.
class ConvTranspose : public OpRewritePattern<ConvTransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConvTransposeOp op, PatternRewriter &rewriter) const override {
    GraphBuilder g(rewriter, op.getLoc());
    std::vector<TransposedWindow> windows = windowsOf(op);
    std::vector<int64_t> low(2, 0), high(2, 0), interior(2, 0), dilations;
    for (const TransposedWindow &w : windows) {
      int64_t reach = w.dilation * (w.kernel - 1);
      low.push_back(reach - w.low);
      high.push_back(reach - w.high + w.extra);
      interior.push_back(w.stride - 1);
      dilations.push_back(w.dilation);
    }
    Value x = g.op<PadOp>({op.getX()}, {{"low", low}, {"high", high}, {"interior", interior}});
    rewriter.replaceOp(op, convolve(g, x, mirrored(g, op.getWeight(), op.getGroups()), op.getBias(),
                                    std::vector<int64_t>(2 * windows.size(), 0), dilations, op.getGroups(), "nchw"));
    return success();
  }

  /// [C, O/groups, kernel…] to [O, C/groups, kernel…], each kernel dimension reversed.
  static Value mirrored(GraphBuilder &g, Value weight, int64_t groups) {
    Shape shape = shapeOf(weight);
    int64_t rank = int64_t(shape.size());
    Dim in = floordiv(shape[0], groups), out = shape[1];
    Value w = g.op<FlipOp>({weight}, {{"axes", axesFrom(2, rank)}});
    auto with = [&](std::initializer_list<Dim> channels) {
      Shape result(channels);
      result.insert(result.end(), shape.begin() + 2, shape.end());
      return result;
    };
    std::vector<int64_t> perm{0, 2, 1};
    for (int64_t axis : axesFrom(3, rank + 1))
      perm.push_back(axis);
    w = g.transpose(g.reshape(w, with({groups, in, out})), perm);
    return g.reshape(w, with({out * Dim(groups), in}));
  }
};

} // namespace

void populateConvTransposeDecompositions(RewritePatternSet &patterns) {
  patterns.add<ConvTranspose>(patterns.getContext(), /*benefit=*/1);
  patterns.add<StridedConvTranspose>(patterns.getContext(), /*benefit=*/2);
}

} // namespace burin::passes
