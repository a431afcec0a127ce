// Layers and their gradients compared with PyTorch, in f64; see make_layers.py.
#include "test/frontend/Check.h"
#include "test/training/Cases.h"

using namespace burin::test;

namespace {

using Arguments = std::vector<Tensor>;
struct Layer {
  nn::Module module;
  std::function<Arguments(const Arguments &)> call;
};
using Layers = std::map<std::string, Layer>;

template <class M, class F> Layer layer(M module, F call) {
  return {module, [=](const Arguments &a) mutable { return detail::flatten(call(module, a)); }};
}
/// A layer with one tensor argument.
template <class M> Layer plain(M module) {
  return layer(module, [](M &m, const Arguments &a) { return m(a[0]); });
}

Layers windows() {
  return {{"Conv1d", plain(nn::Conv1d(4, 6, 3, {.stride = 2, .padding = 1, .dilation = 2, .groups = 2}))},
          {"Conv2d", plain(nn::Conv2d(4, 2, {3, 2}, {.padding = {1, 0}, .bias = false}))},
          {"Conv3d", plain(nn::Conv3d(2, 3, {2, 3, 1}, {.stride = {1, 2, 1}, .padding = {1, 0, 0}}))},
          {"ConvTranspose1d", plain(nn::ConvTranspose1d(4, 2, 3, {.stride = 2, .padding = 1, .output_padding = 1}))},
          {"ConvTranspose2d", plain(nn::ConvTranspose2d(4, 2, 3, {.stride = 2, .groups = 2}))},
          {"ConvTranspose3d", plain(nn::ConvTranspose3d(2, 1, 2, {.stride = 2}))},
          {"MaxPool1d", plain(nn::MaxPool1d(3, {.stride = 2, .padding = 1}))},
          {"MaxPool2d", plain(nn::MaxPool2d({2, 3}, {.stride = 2}))},
          {"MaxPool3d", plain(nn::MaxPool3d(2))},
          {"AvgPool1d", plain(nn::AvgPool1d(3, {.stride = 1, .padding = 1}))},
          {"AvgPool2d", plain(nn::AvgPool2d(2, {.ceil_mode = true}))},
          {"AvgPool3d", plain(nn::AvgPool3d(2, {.stride = 1}))},
          {"AdaptiveAvgPool1d", plain(nn::AdaptiveAvgPool1d(4))},
          {"AdaptiveAvgPool2d", plain(nn::AdaptiveAvgPool2d({2, 3}))},
          {"AdaptiveAvgPool3d", plain(nn::AdaptiveAvgPool3d(2))}};
}

Layers norms() {
  return {{"BatchNorm1d", plain(nn::BatchNorm1d(4))},
          {"BatchNorm1d rows", plain(nn::BatchNorm1d(4))},
          {"BatchNorm3d", plain(nn::BatchNorm3d(2, {.affine = false}))},
          {"BatchNorm1d train", plain(nn::BatchNorm1d(4, {.momentum = 0.25}))},
          {"BatchNorm2d train", plain(nn::BatchNorm2d(4))},
          {"BatchNorm2d average", plain(nn::BatchNorm2d(4, {.momentum = std::nullopt}))},
          {"BatchNorm2d untracked", plain(nn::BatchNorm2d(4, {.track_running_stats = false}))},
          {"InstanceNorm1d", plain(nn::InstanceNorm1d(4))},
          {"InstanceNorm2d", plain(nn::InstanceNorm2d(4, {.affine = true}))},
          {"InstanceNorm3d", plain(nn::InstanceNorm3d(2, {.affine = true}))},
          {"InstanceNorm1d tracked", plain(nn::InstanceNorm1d(4, {.track_running_stats = true}))},
          {"InstanceNorm2d train",
           plain(nn::InstanceNorm2d(4, {.momentum = 0.25, .affine = true, .track_running_stats = true}))},
          {"GroupNorm", plain(nn::GroupNorm(2, 4))},
          {"LayerNorm", plain(nn::LayerNorm({2, 3}))}};
}

Layers elements() {
  return {
      {"Mish", plain(nn::Mish())},
      {"PReLU", plain(nn::PReLU())},
      {"PReLU channels", plain(nn::PReLU(4))},
      {"Linear", plain(nn::Linear(3, 2))},
      {"Upsample nearest scale_factor", plain(nn::Upsample({.scale_factor = {2}}))},
      {"Upsample nearest size", plain(nn::Upsample({.size = {3, 9}}))},
      {"Upsample linear", plain(nn::Upsample({.scale_factor = {1.5}, .mode = "linear"}))},
      {"Upsample bilinear", plain(nn::Upsample({.scale_factor = {2}, .mode = "bilinear"}))},
      {"Upsample bilinear corners", plain(nn::Upsample({.size = {7, 3}, .mode = "bilinear", .align_corners = true}))},
      {"Upsample trilinear", plain(nn::Upsample({.size = {3, 5, 2}, .mode = "trilinear"}))},
      {"Upsample bicubic", plain(nn::Upsample({.scale_factor = {2}, .mode = "bicubic"}))},
      {"PixelShuffle", plain(nn::PixelShuffle(2))},
      {"PixelUnshuffle", plain(nn::PixelUnshuffle(3))}};
}

Layers embeddings() {
  auto bag = [](const char *mode) { return plain(nn::EmbeddingBag(6, 3, mode)); };
  auto offsets = [](const char *mode) {
    return layer(nn::EmbeddingBag(6, 3, mode), [](auto &m, auto &a) {
      return m.forward(a[0], a[1], a.size() > 2 ? std::optional(a[2]) : std::nullopt);
    });
  };
  return {{"Embedding padding", plain(nn::Embedding(6, 3, {.padding_idx = 2}))},
          {"EmbeddingBag mean", bag("mean")},
          {"EmbeddingBag sum", bag("sum")},
          {"EmbeddingBag max", bag("max")},
          {"EmbeddingBag mean offsets", offsets("mean")},
          {"EmbeddingBag max offsets", offsets("max")},
          {"EmbeddingBag sum weights offsets", offsets("sum")}};
}

Layers recurrent() {
  auto one = [](auto module) {
    return layer(module, [](auto &m, auto &a) { return m(a[0], a.size() > 1 ? std::optional(a[1]) : std::nullopt); });
  };
  auto two = [](auto module) { return layer(module, [](auto &m, auto &a) { return m(a[0], a[1], a[2]); }); };
  auto lengths = [](auto &m, auto &a) { return m(a[0], std::nullopt, std::nullopt, a[1]); };
  return {{"RNN", one(nn::RNN(3, 4))},
          {"RNN relu", one(nn::RNN(3, 4, {.bias = false, .nonlinearity = "relu"}))},
          {"GRU", one(nn::GRU(3, 4))},
          {"GRU batch_first", one(nn::GRU(3, 4, {.batch_first = true}))},
          {"GRU unbatched", one(nn::GRU(3, 4, {.num_layers = 2}))},
          {"LSTM", two(nn::LSTM(3, 4))},
          {"LSTM deep", two(nn::LSTM(3, 4, {.num_layers = 2, .bidirectional = true}))},
          {"LSTM lengths", layer(nn::LSTM(3, 4, {.num_layers = 2, .bidirectional = true}), lengths)},
          {"RNNCell", one(nn::RNNCell(3, 4))},
          {"GRUCell", one(nn::GRUCell(3, 4))},
          {"LSTMCell", two(nn::LSTMCell(3, 4))}};
}

Layers transformers() {
  using namespace nn;
  auto encoder = [] {
    return TransformerEncoderLayer(
        8, 2, {.dim_feedforward = 6, .activation = "gelu", .batch_first = true, .norm_first = true});
  };
  auto decoder = [] { return TransformerDecoderLayer(8, 2, {.dim_feedforward = 6}); };
  return {
      {"TransformerEncoderLayer", plain(TransformerEncoderLayer(8, 2, {.dim_feedforward = 6}))},
      {"TransformerEncoder masks",
       layer(TransformerEncoder(encoder, 2, LayerNorm(8)),
             [](auto &m, auto &a) { return m(a[0], {.mask = a[1], .key_padding_mask = a[2]}); })},
      {"TransformerDecoderLayer", layer(TransformerDecoderLayer(8, 2, {.dim_feedforward = 6, .norm_first = true}),
                                        [](auto &m, auto &a) { return m(a[0], a[1]); })},
      {"TransformerDecoder",
       layer(TransformerDecoder(decoder, 2),
             [](auto &m, auto &a) { return m(a[0], a[1], {.mask = a[2]}, {.key_padding_mask = a[3]}); })},
      {"Transformer", layer(Transformer(8, 2, 1, 2, {.dim_feedforward = 6, .batch_first = true}), [](auto &m, auto &a) {
         return m(a[0], a[1], {.key_padding_mask = a[3]}, {.mask = a[2]}, {.key_padding_mask = a[3]});
       })}};
}

Layers parametrized() {
  using namespace nn;
  return {{"WeightNorm Linear", plain(WeightNorm(Linear(3, 4)))},
          {"WeightNorm Conv1d", plain(WeightNorm(Conv1d(2, 3, 3), 1))},
          {"SpectralNorm Linear", plain(SpectralNorm(Linear(3, 4)))},
          {"SpectralNorm Conv2d train", plain(SpectralNorm(Conv2d(2, 3, 2, {.bias = false})))}};
}

Layers activations() {
  return {{"ReLU6", plain(nn::ReLU6())},
          {"SELU", plain(nn::SELU())},
          {"CELU", plain(nn::CELU())},
          {"CELU 0.5", plain(nn::CELU(0.5))},
          {"Hardtanh", plain(nn::Hardtanh())},
          {"LogSigmoid", plain(nn::LogSigmoid())},
          {"Softsign", plain(nn::Softsign())},
          {"Tanhshrink", plain(nn::Tanhshrink())},
          {"Softshrink", plain(nn::Softshrink())},
          {"Hardshrink", plain(nn::Hardshrink())},
          {"Threshold", plain(nn::Threshold(0.25, -3))},
          {"GLU", plain(nn::GLU(1))},
          {"Softmin", plain(nn::Softmin())},
          {"Unflatten", plain(nn::Unflatten(1, {2, -1}))},
          {"ConstantPad1d", plain(nn::ConstantPad1d({2, -1}, 0.5))},
          {"ZeroPad2d", plain(nn::ZeroPad2d({1, 0, 2, 1}))},
          {"ReflectionPad2d", plain(nn::ReflectionPad2d({1, 2, 3, 0}))},
          {"ReplicationPad3d", plain(nn::ReplicationPad3d({1, 0, 2, 1, 0, 1}))},
          {"ReflectionPad1d all", plain(nn::ReflectionPad1d(2))},
          {"AdaptiveMaxPool1d", plain(nn::AdaptiveMaxPool1d(4))},
          {"AdaptiveMaxPool2d", plain(nn::AdaptiveMaxPool2d({2, 3}))},
          {"AdaptiveMaxPool2d larger", plain(nn::AdaptiveMaxPool2d({7, 7}))},
          {"AdaptiveMaxPool3d", plain(nn::AdaptiveMaxPool3d(2))}};
}

const std::map<std::string, Tensors> &cases() {
  static const auto all = loadCases("layers.json");
  return all;
}

/// Returns the entries whose names begin with `prefix`, without the prefix.
Tensors part(const Tensors &all, const std::string &prefix) {
  Tensors result;
  for (const auto &[name, tensor] : all)
    if (name.starts_with(prefix))
      result.emplace_back(name.substr(prefix.size()), tensor);
  return result;
}

Arguments argumentsOf(const Tensors &all) {
  Arguments arguments;
  for (int i = 0; all.find(std::to_string(i)); ++i)
    arguments.push_back(all.at(std::to_string(i)));
  return arguments;
}

/// The sum that make_layers.py differentiates.
Tensor total(const Arguments &results) {
  Tensor sum;
  for (const Tensor &r : results) {
    Tensor weights = ((iota({elements(r.shape())}, i64) % 7 - 3).to(f64) / 4.0).reshape(r.shape());
    Tensor part = (r * weights).sum();
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

/// Compares all stored gradients, computed in a trace.
void checkGradients(const std::string &name, const Layer &layer, const Arguments &arguments, const Tensors &expected) {
  std::vector<TensorSpec> specs;
  for (const Tensor &a : arguments)
    specs.push_back(a.spec());
  Graph graph = trace(
      [&](const Arguments &a) {
        Arguments results = layer.call(a), xs;
        for (const auto &[key, gradient] : expected)
          xs.push_back(key.starts_with("w.") ? layer.module.state_dict().at(key.substr(2)) : a[size_t(std::stoi(key))]);
        Arguments gradients = grad(total(results), xs);
        gradients.insert(gradients.begin(), results.begin(), results.end());
        return gradients;
      },
      specs);
  Arguments got = graph.run(arguments);
  got.erase(got.begin(), got.end() - int64_t(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i)
    checkClose(got[i], expected[i].second, 1e-9, name + ", gradient of " + expected[i].first);
}

/// The layer as a function of the tensors at `places` of its arguments, followed by the values of its parameters.
TensorFunction functionOf(Layer layer, const Arguments &arguments, const std::vector<size_t> &places) {
  auto call = [=](const Arguments &given) {
    Arguments all = arguments;
    for (size_t i = 0; i < places.size(); ++i)
      all[places[i]] = given[i];
    std::vector<Parameter> parameters = layer.module.parameters();
    for (size_t i = 0; i < parameters.size(); ++i)
      parameters[i].set(given[places.size() + i].detach());
    return layer.call(all);
  };
  return custom_vjp(call, [=](const Arguments &inputs, const Arguments &, const Arguments &gradients) {
    EnableGrad enabled;
    Arguments given;
    for (const Tensor &input : inputs)
      given.push_back(input.detach().requires_grad_());
    Arguments results = call(given);
    std::vector<Parameter> parameters = layer.module.parameters();
    for (size_t i = 0; i < parameters.size(); ++i)
      given[places.size() + i] = parameters[i];
    Tensor sum;
    for (size_t i = 0; i < results.size(); ++i)
      if (gradients[i].defined())
        sum = sum.defined() ? sum + (results[i] * gradients[i]).sum() : (results[i] * gradients[i]).sum();
    return grad(sum, given);
  });
}

/// Compares eager gradients of float arguments and parameters with finite differences, a little beside the given
/// values, as some of these are where a derivative jumps. Layers with many elements are moved along lines only.
void checkDifferences(const Layer &layer, const Arguments &arguments) {
  std::vector<size_t> places;
  Arguments values, directions;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].dtype() == f64) {
      places.push_back(i);
      values.push_back(arguments[i]);
    }
  for (const Parameter &parameter : layer.module.parameters())
    values.push_back(parameter->detach());
  Generator random(1);
  Dim count = 0;
  for (Tensor &value : values) {
    count = count + elements(value.shape());
    value = value + random.rand(value.shape(), f64) * 1e-3;
    directions.push_back(random.randn(value.shape(), f64));
  }
  TensorFunction function = functionOf(layer, arguments, places);
  if (count.value() < 400) {
    CHECK_NOTHROW(gradcheck(function, values));
    return;
  }
  auto along = [&](const Arguments &distances) {
    Arguments moved = values;
    for (size_t i = 0; i < moved.size(); ++i)
      moved[i] = moved[i] + directions[i] * distances[0](int64_t(i));
    return function(moved);
  };
  CHECK_NOTHROW(gradcheck(along, {zeros({int64_t(values.size())}, f64)}));
}

void check(const std::string &name, Layer layer) {
  INFO(name);
  REQUIRE(cases().count(name));
  const Tensors &given = cases().at(name);
  const bool trains = name.ends_with(" train") || name.ends_with(" average");
  layer.module.train(trains);
  layer.module.to(f64);
  Tensors state = part(given, "w."), now = layer.module.state_dict();
  REQUIRE(now.size() == state.size());
  for (size_t i = 0; i < state.size(); ++i)
    CHECK(now[i].first == state[i].first); // in PyTorch's order as well
  layer.module.load_state_dict(state);
  Arguments arguments = argumentsOf(given), results = layer.call(arguments);
  Tensors expected = part(given, "out.");
  REQUIRE(results.size() == expected.size());
  for (size_t i = 0; i < results.size(); ++i)
    checkClose(results[i], expected[i].second, 1e-10, name + ", result " + std::to_string(i));
  for (const auto &[key, value] : part(given, "after.")) {
    INFO(name << ", afterwards");
    checkClose(layer.module.state_dict().at(key), value, 1e-10, key);
  }
  if (Tensors gradients = part(given, "grad."); !gradients.empty() && !trains)
    checkGradients(name, layer, arguments, gradients);
  // A padding row is frozen; each call of SpectralNorm in training mode improves its estimate.
  if (name != "Embedding padding" && !(name.starts_with("SpectralNorm") && trains))
    checkDifferences(layer, arguments);
}

void checkAll(const Layers &layers) {
  for (const auto &[name, layer] : layers)
    check(name, layer);
}

} // namespace

TEST_CASE("convolutions and pools are PyTorch's") { checkAll(windows()); }
TEST_CASE("normalisations are PyTorch's") { checkAll(norms()); }
TEST_CASE("elementwise layers and resampling are PyTorch's") { checkAll(elements()); }
TEST_CASE("embeddings are PyTorch's") { checkAll(embeddings()); }
TEST_CASE("recurrent layers are PyTorch's") { checkAll(recurrent()); }
TEST_CASE("transformers are PyTorch's") { checkAll(transformers()); }

TEST_CASE("layers with computed weights are PyTorch's") { checkAll(parametrized()); }

TEST_CASE("activations, pads and adaptive pools are PyTorch's") { checkAll(activations()); }

TEST_CASE("each stored case of a layer is used") {
  CHECK(cases().size() == windows().size() + norms().size() + elements().size() + embeddings().size() +
                              recurrent().size() + transformers().size() + parametrized().size() +
                              activations().size());
}

TEST_CASE("LSTMs take their states as a pair, and a causal mask is that of a flag") {
  const Tensor x = randn({5, 2, 3}), h = randn({1, 2, 4}), c = randn({1, 2, 4});
  nn::LSTM lstm(3, 4);
  CHECK(floats(std::get<2>(lstm(x, {h, c}))) == floats(std::get<2>(lstm(x, h, c))));
  nn::LSTMCell cell(3, 4);
  std::pair<Tensor, Tensor> state{h[0], c[0]};
  for (int i = 0; i < 2; ++i)
    state = cell(x[i], state);
  auto [h1, c1] = cell(x[0], h[0], c[0]);
  CHECK(floats(state.first) == floats(cell(x[1], {h1, c1}).first));
  const Tensor mask = nn::Transformer::generate_square_subsequent_mask(5);
  nn::TransformerEncoderLayer layer(8, 2);
  layer.eval();
  const Tensor y = randn({5, 2, 8});
  CHECK(largestDifference(layer(y, {.mask = mask}), layer(y, {.is_causal = true})) < 1e-6);
}

TEST_CASE("a recurrent layer is traced for any length and batch") {
  nn::LSTM lstm(3, 4, {.num_layers = 2, .bidirectional = true});
  Graph graph = trace([&](const Tensor &x) { return lstm(x); }, {{f32, {Dim("length"), Dim("batch"), 3}}});
  CHECK(str(graph.outputs()[0].spec) == "f32[length, batch, 8]");
  for (int length : {1, 4}) {
    Tensor x = randn({length, 2, 3});
    auto [output, hidden, cell] = lstm(x);
    std::vector<Tensor> got = graph.run({x});
    CHECK(largestDifference(got[0], output) < 1e-5);
    CHECK(largestDifference(got[1], hidden) < 1e-5);
    CHECK(largestDifference(got[2], cell) < 1e-5);
  }
}

TEST_CASE("spatial dropout drops whole channels, dropout of attention keeps the mean") {
  manual_seed(5);
  Tensor y = nn::Dropout2d(0.5)(ones({16, 32, 3, 3}));
  Tensor low = y.min({2, 3}), high = y.max({2, 3});
  CHECK(largestDifference(low, high) == 0);
  CHECK(high.mean().item() == Approx(1).margin(0.2));
  nn::MultiheadAttention attention(4, 2, {.dropout = 0.3});
  Tensor x = randn({2, 3, 4});
  CHECK(largestDifference(attention(x), attention(x)) > 0);
  attention.eval();
  CHECK(largestDifference(attention(x), attention(x)) == 0);
  nn::LSTM lstm(3, 4, {.num_layers = 2, .dropout = 0.5});
  Tensor sequence = randn({4, 2, 3});
  CHECK(largestDifference(std::get<0>(lstm(sequence)), std::get<0>(lstm(sequence))) > 0);
}

TEST_CASE("layers refuse what does not fit") {
  CHECK_ERROR(nn::Conv3d(2, 2, {1, 2}), "Conv3d", "one number or 3");
  CHECK_ERROR(nn::BatchNorm1d(3)(zeros({2, 3, 4, 5})), "BatchNorm1d", "[N, C] or [N, C, L]");
  CHECK_ERROR(nn::BatchNorm1d(3)(zeros({1, 3})), "one value per feature", "eval()");
  CHECK_ERROR(nn::InstanceNorm2d(3)(zeros({2, 3})), "InstanceNorm2d");
  CHECK_ERROR(nn::Dropout2d()(zeros({2, 3})), "Dropout2d", "2 spatial");
  CHECK_ERROR(nn::PReLU(3)(zeros({2, 4})), "3 weights");
  CHECK_ERROR(nn::LSTM(3, 4)(zeros({5, 2, 4})), "LSTM", "[T, N, 3]");
  CHECK_ERROR(nn::LSTM(3, 4)(zeros({5, 2, 3}), zeros({1, 3, 4})), "[1, 2, 4]");
  CHECK_ERROR(nn::RNN(3, 4, {.nonlinearity = "sin"}), "\"sin\"");
  CHECK_ERROR(nn::GRUCell(3, 4)(zeros({2, 2})), "[N, 3]");
  CHECK_ERROR(nn::EmbeddingBag(3, 4, "min"), "\"min\"");
  CHECK_ERROR(nn::EmbeddingBag(3, 4)(zeros({2}, i64)), "offsets");
  CHECK_ERROR(nn::Embedding(3, 4, {.padding_idx = 3}), "padding_idx 3");
  CHECK_ERROR(nn::Upsample({.scale_factor = {2}, .mode = "bilinear"})(zeros({1, 2, 3})), "bilinear", "f32[1, 2, 3]");
  CHECK_ERROR(nn::Upsample({})(zeros({1, 2, 3})), "size or scale_factor");
  CHECK_ERROR(nn::PixelShuffle(2)(zeros({6, 2, 2})), "PixelShuffle", "multiple of 4");
  CHECK_ERROR(nn::TransformerEncoderLayer(8, 2, {.activation = "selu"}), "\"selu\"");
}

TEST_CASE("activations, pads and pools refuse what they cannot compute") {
  CHECK_ERROR(nn::ZeroPad2d({1, 2, 3}), "3 numbers", "1 or 4");
  CHECK_ERROR(nn::ZeroPad2d(1)(zeros({3, 4})), "f32[3, 4]", "2 spatial dimensions");
  CHECK_ERROR(nn::ReflectionPad1d(4)(zeros({1, 1, 3})), "reflect");
  CHECK_ERROR(nn::AdaptiveMaxPool2d(2)(zeros({1, 1, 0, 3})), "f32[1, 1, 0, 3]", "positive");
  CHECK_ERROR(nn::Hardtanh(2, 1), "min_val");
  CHECK_ERROR(nn::CELU(0), "alpha");
  CHECK_ERROR(nn::Softshrink(-1), "lambd");
}

TEST_CASE("adaptive pools have windows for any size") {
  const Graph graph = trace(nn::AdaptiveMaxPool1d(4), {{f32, {1, 2, Dim("n")}}});
  for (int64_t n : {1, 3, 4, 9, 16}) {
    INFO(n);
    const Tensor x = randn({1, 2, n});
    CHECK(largestDifference(graph.run({x})[0], nn::AdaptiveMaxPool1d(4)(x)) == 0);
  }
}

TEST_CASE("activations keep NaN, element types and empty tensors") {
  const Tensor x = tensor({-2.0, -0.25, 0.25, 2.0, double(NAN)}).to(f32);
  auto check = [&](auto layer) {
    for (DType type : {f32, f16, bf16, f64}) {
      Tensor y = layer(x.to(type));
      INFO(layer.kind() << " " << str(y.spec()));
      CHECK(y.dtype() == type);
      CHECK(std::isnan(y(4).item()));
      CHECK(layer(x.to(type)(Slice(0, 0))).shape() == Shape{0});
    }
  };
  check(nn::ReLU6());
  check(nn::SELU());
  check(nn::CELU());
  check(nn::Hardtanh());
  check(nn::LogSigmoid());
  check(nn::Softsign());
  check(nn::Tanhshrink());
  check(nn::Softshrink());
  check(nn::Hardshrink());
  check(nn::Threshold(0, 1));
}
