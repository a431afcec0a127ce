#include "test/passes/RandomGraph.h"
#include "passes/analysis/GraphBuilder.h"

using namespace mlir;
using namespace burin::ir;
using burin::passes::GraphBuilder;
using Ints = std::vector<int64_t>;

namespace burin::test {
namespace {

class Generator {
public:
  Generator(MLIRContext &context, unsigned seed)
      : random(seed), batch(seed % 2 ? Dim("n") : Dim(kBatch)), b(&context), g(b, UnknownLoc::get(&context)) {}

  RandomGraph build(int steps) {
    RandomGraph graph;
    graph.module = ModuleOp::create(g.loc);
    b.setInsertionPointToEnd(graph.module->getBody());
    TensorSpec image{DType::f32, {batch, 4, 6, 5}};
    auto type = tensorType(b.getContext(), image);
    auto main = func::FuncOp::create(b, g.loc, "main", b.getFunctionType({type, type}, {}));
    b.setInsertionPointToStart(main.addEntryBlock());
    for (BlockArgument argument : main.getArguments()) {
      values.push_back(argument);
      graph.inputs.push_back(tensor({kBatch, 4, 6, 5}));
    }
    for (int i = 0; i < steps; ++i)
      if (Value v = step())
        values.push_back(v);
    SmallVector<Value> results;
    for (Value v : values)
      if (v.use_empty() || pick(8) == 0)
        results.push_back(v);
    func::ReturnOp::create(b, g.loc, results);
    main.setType(b.getFunctionType({type, type}, ValueRange(results).getTypes()));
    return graph;
  }

private:
  static constexpr int64_t kBatch = 2;

  // ---- choices
  int64_t pick(int64_t n) { return int64_t(random() % uint64_t(n)); }
  bool coin() { return pick(2) == 0; }
  int64_t between(int64_t low, int64_t high) { return low + pick(high - low + 1); }
  RefTensor tensor(Ints shape, double low = -2, double high = 2) {
    RefTensor t = RefTensor::zeros(DType::f32, std::move(shape));
    for (double &x : t.reals())
      x = roundTo(DType::f32, std::uniform_real_distribution<double>(low, high)(random));
    return t;
  }
  Value constant(Ints shape, double low = -1, double high = 1) {
    std::vector<char> bytes = tensor(shape, low, high).toBytes();
    return createConstant(b, g.loc, {DType::f32, Shape(shape.begin(), shape.end())}, bytes);
  }
  /// Returns a value of a given rank, or null.
  Value valueOfRank(size_t rank) {
    for (int tries = 0; tries < 8; ++tries)
      if (Value v = values[size_t(pick(int64_t(values.size())))]; shapeOf(v).size() == rank)
        return v;
    return {};
  }
  Value sameShape(Value x) {
    for (int tries = 0; tries < 8; ++tries)
      if (Value v = values[size_t(pick(int64_t(values.size())))]; v.getType() == x.getType())
        return v;
    return x;
  }
  static int64_t size(Value v, size_t d) { return shapeOf(v)[d].value(); }

  // ---- steps: null if nothing fits
  Value step() {
    switch (pick(19)) {
    case 0:
    case 1:
      return convolution();
    case 2:
      return pooling();
    case 3:
      return unary();
    case 4:
      return g.op<AddOp>({first(), sameShape(last)});
    case 5:
      return perChannel();
    case 6:
      return normalization();
    case 7:
      return reduction();
    case 8:
      return concatenation();
    case 9:
      return window();
    case 10:
      return alongAxis();
    case 11:
      return channelShuffle();
    case 12:
      return classifier();
    case 13:
      return gate();
    case 14:
      return toTokens();
    case 15:
      return attention();
    case 16:
      return transposedConvolution();
    case 17:
      return toLastAndBack();
    default:
      return selection();
    }
  }

  Value first() { return last = values[size_t(pick(int64_t(values.size())))]; }

  Value convolution() {
    Value x = valueOfRank(4);
    if (!x)
      return {};
    int64_t channels = size(x, 1), groups = channels % 2 == 0 && coin() ? (coin() ? channels : 2) : 1;
    int64_t outputs = groups * between(1, 3), kh = between(1, 3), kw = between(1, 3);
    Ints padding{pick(2), pick(2), pick(2), pick(2)}, dilations{between(1, 2), 1};
    if (size(x, 2) + padding[0] + padding[2] < dilations[0] * (kh - 1) + 1 || size(x, 3) + padding[1] + padding[3] < kw)
      return {};
    return g.op<ConvOp>({x, constant({outputs, channels / groups, kh, kw}), coin() ? constant({outputs}) : Value()},
                        {{"strides", Ints{between(1, 2), between(1, 2)}},
                         {"padding", padding},
                         {"dilations", dilations},
                         {"groups", groups}});
  }

  Value transposedConvolution() {
    Value x = valueOfRank(4);
    if (!x || size(x, 2) < 2 || size(x, 2) > 8 || size(x, 3) > 8)
      return {};
    int64_t channels = size(x, 1), groups = channels % 2 == 0 && coin() ? 2 : 1, outputs = between(1, 2),
            k = between(2, 3);
    return g.op<ConvTransposeOp>(
        {x, constant({channels, outputs, k, k}), coin() ? constant({outputs * groups}) : Value()},
        {{"strides", Ints{2, between(1, 2)}},
         {"padding", Ints{pick(2), 0, pick(2), 0}},
         {"dilations", Ints{1, between(1, 2)}},
         {"output_padding", Ints{pick(2), 0}},
         {"groups", groups}});
  }

  Value pooling() {
    Value x = valueOfRank(4);
    if (!x || size(x, 2) < 2 || size(x, 3) < 2)
      return {};
    if (pick(3) == 0)
      return g.op<AdaptiveAvgPoolOp>({x}, {{"output_size", Ints{between(1, 2), 1}}});
    GraphBuilder::NamedAttrs attrs{{"kernel", Ints{2, 2}},
                                   {"strides", Ints{between(1, 2), 2}},
                                   {"padding", Ints{pick(2), 0, 1, 0}},
                                   {"dilations", Ints{1, 1}},
                                   {"ceil_mode", coin()}};
    return coin() ? g.op<MaxPoolOp>({x}, attrs) : g.op<AvgPoolOp>({x}, attrs);
  }

  Value unary() {
    Value x = first();
    switch (pick(4)) {
    case 0:
      return g.op<ReluOp>({x});
    case 1:
      return g.op<SigmoidOp>({x});
    case 2:
      return g.op<TanhOp>({x});
    default:
      return g.mul(x, g.op<SigmoidOp>({x}));
    }
  }

  /// An affine map that can be folded into weights.
  Value perChannel() {
    Value x = first();
    size_t channel = shapeOf(x).size() == 4 ? 1 : shapeOf(x).size() - 1;
    int64_t channels = size(x, channel);
    Value v = g.perChannel(constant({channels}, 0.5, 2), shapeOf(x), channel);
    switch (pick(5)) {
    case 0:
      return g.mul(x, v);
    case 1:
      return g.sub(x, v);
    case 2:
      return g.sub(v, x);
    case 3:
      return g.div(x, v);
    default:
      return g.add(v, x);
    }
  }

  Value normalization() {
    Value x = valueOfRank(4);
    if (!x)
      return {};
    int64_t channels = size(x, 1);
    auto parameter = [&] { return constant({channels}, 0.5, 1.5); };
    switch (pick(3)) {
    case 0:
      return g.op<BatchNormOp>({x, parameter(), parameter(), parameter(), parameter()});
    case 1:
      return g.op<InstanceNormOp>({x, parameter(), coin() ? parameter() : Value()});
    default:
      return g.op<GroupNormOp>({x, coin() ? parameter() : Value(), parameter()},
                               {{"groups", channels % 2 ? int64_t(1) : int64_t(2)}});
    }
  }

  Value reduction() {
    Value x = valueOfRank(4);
    if (!x)
      return {};
    Ints axes = coin() ? Ints{2, 3} : coin() ? Ints{1} : Ints{3};
    GraphBuilder::NamedAttrs attrs{{"axes", axes}, {"keepdims", coin()}};
    switch (pick(4)) {
    case 0:
      return g.op<ReduceMeanOp>({x}, attrs);
    case 1:
      return g.op<ReduceMaxOp>({x}, attrs);
    case 2:
      attrs.push_back({"correction", int64_t(0)});
      return g.op<ReduceVarOp>({x}, attrs);
    default:
      return g.op<LogsumexpOp>({x}, attrs);
    }
  }

  Value concatenation() {
    Value x = valueOfRank(4);
    return x ? g.op<ConcatOp>({x, sameShape(x), x}, {{"axis", between(1, 3)}}) : Value();
  }

  Value window() {
    Value x = valueOfRank(4);
    if (!x)
      return {};
    switch (pick(4)) {
    case 0:
      return g.op<PadOp>(
          {x}, {{"low", Ints{0, 0, 1, 0}}, {"high", Ints{0, 1, 0, 2}}, {"value", 0.5}, {"interior", Ints(4, 0)}});
    case 1: {
      Shape stops = shapeOf(x), starts(4, Dim(0));
      stops[1] = between(1, size(x, 1));
      starts[3] = pick(size(x, 3));
      return g.op<SliceOp>({x}, {{"starts", starts}, {"stops", stops}, {"steps", Ints{1, 1, between(1, 2), 1}}});
    }
    case 2:
      return g.op<FlipOp>({x}, {{"axes", Ints{between(1, 2), 3}}});
    default:
      return g.op<CumsumOp>({x}, {{"axis", between(1, 3)}});
    }
  }

  Value alongAxis() {
    Value x = first();
    int64_t rank = int64_t(shapeOf(x).size());
    GraphBuilder::NamedAttrs attrs{{"axis", between(1, rank - 1)}};
    switch (pick(4)) {
    case 0:
      return g.op<SoftmaxOp>({x}, attrs);
    case 1:
      return g.op<LogSoftmaxOp>({x}, attrs);
    case 2:
      return g.op<LayerNormOp>({x, constant({size(x, size_t(rank) - 1)}), Value()}, {{"axis", rank - 1}});
    default:
      return g.op<RmsNormOp>({x, constant({size(x, size_t(rank) - 1)})}, {{"axis", rank - 1}});
    }
  }

  Value channelShuffle() {
    Value x = valueOfRank(4);
    if (!x || size(x, 1) % 2)
      return {};
    Shape shape = shapeOf(x);
    Value split = g.reshape(x, {shape[0], 2, size(x, 1) / 2, shape[2], shape[3]});
    return g.reshape(g.transpose(split, {0, 2, 1, 3, 4}), shape);
  }

  Value classifier() {
    Value x = valueOfRank(4);
    if (!x)
      return {};
    int64_t features = size(x, 1) * size(x, 2) * size(x, 3);
    Value flat = g.reshape(x, {shapeOf(x)[0], features});
    return g.op<MatmulOp>({flat, constant({features, between(2, 4)})});
  }

  /// A squeeze-and-excite gate.
  Value gate() {
    Value x = valueOfRank(4);
    if (!x)
      return {};
    int64_t channels = size(x, 1);
    Value mean = g.op<ReduceMeanOp>({x}, {{"axes", Ints{2, 3}}});
    Value gate = g.op<SigmoidOp>({g.op<MatmulOp>({mean, constant({channels, channels})})});
    return g.mul(x, g.broadcast(g.reshape(gate, {shapeOf(x)[0], channels, 1, 1}), shapeOf(x)));
  }

  Value toTokens() {
    Value x = valueOfRank(4);
    if (!x)
      return {};
    Shape shape = shapeOf(x);
    return g.transpose(g.reshape(x, {shape[0], shape[1], shape[2] * shape[3]}), {0, 2, 1});
  }

  Value attention() {
    Value x = valueOfRank(3);
    if (!x)
      return {};
    Value key = sameShape(x), mask;
    int64_t length = size(x, 1);
    if (coin())
      mask = g.op<GtOp>({constant({length, length}), g.full({length, length}, -0.5, DType::f32)});
    return g.op<ScaledDotProductAttentionOp>({x, key, sameShape(x), mask}, {{"is_causal", coin()}});
  }

  Value toLastAndBack() {
    Value x = valueOfRank(4);
    return x ? g.transpose(g.op<SigmoidOp>({g.transpose(x, {0, 2, 3, 1})}), {0, 3, 1, 2}) : Value();
  }

  Value selection() {
    Value x = valueOfRank(4);
    if (!x)
      return {};
    if (coin())
      return g.where(g.op<GtOp>({x, g.fullLike(x, 0.1)}), x, sameShape(x));
    int64_t axis = between(1, 3);
    const Dim size = shapeOf(x)[size_t(axis)];
    int64_t rows = size.isStatic() ? std::min<int64_t>(size.value(), 3) : 1;
    return g.op<TakeOp>({x, g.op<IotaOp>({}, {{"shape", Shape{rows}}, {"dtype", DType::i64}})}, {{"axis", axis}});
  }

  std::mt19937 random;
  Dim batch;
  OpBuilder b;
  GraphBuilder g;
  std::vector<Value> values;
  Value last;
};

} // namespace

RandomGraph randomGraph(MLIRContext &context, unsigned seed, int steps) {
  return Generator(context, seed).build(steps);
}

} // namespace burin::test
