#include "burin/nn/transformer.h"
#include "burin/nn/init.h"
#include "burin/tensor/creation.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/context/LocationScope.h"
#include <limits>

namespace burin::nn {

namespace {

Tensor swapped(const Tensor &x) { return transpose(x, {1, 0, 2}); }

/// The mask as numbers to add to scores: -inf for true in a bool mask; floats unchanged.
Tensor added(const Tensor &mask, DType dtype) {
  if (!isBool(mask.dtype()))
    return mask.to(dtype);
  return where(mask, full({}, -std::numeric_limits<double>::infinity(), dtype), full({}, 0, dtype));
}

/// Combines the masks into one that broadcasts to [N, heads, L, S], or [heads, L, S] without a batch.
std::optional<Tensor> joined(const AttentionMasks &masks, DType dtype, const char *layer, const Location &place) {
  std::optional<Tensor> result;
  if (masks.mask) {
    if (masks.mask->rank() != 2)
      throw Error(place, layer, "the mask is " + str(masks.mask->spec()) + ", but must be [L, S]");
    result = added(*masks.mask, dtype);
  }
  if (masks.key_padding_mask) {
    if (masks.key_padding_mask->rank() < 1 || masks.key_padding_mask->rank() > 2)
      throw Error(place, layer,
                  "key_padding_mask is " + str(masks.key_padding_mask->spec()) + ", but must be [N, S] or [S]");
    Tensor padding = unsqueeze(added(*masks.key_padding_mask, dtype), {-2, -3});
    result = result ? *result + padding : padding;
  }
  return result;
}

Tensor attend(const MultiheadAttention &attention, const Tensor &x, const Tensor &memory, const AttentionMasks &masks,
              bool batchFirst, const Location &where) {
  const bool swaps = x.rank() == 3 && !batchFirst;
  auto mask = joined(masks, x.dtype(), attention.kind().c_str(), where);
  Tensor query = swaps ? swapped(x) : x, key = swaps ? swapped(memory) : memory;
  Tensor result = attention(query, key, key, mask, masks.is_causal, where);
  return swaps ? swapped(result) : result;
}

template <class Layer> Tensor feedForward(const Layer &layer, const Tensor &x, const Location &where) {
  Tensor hidden = layer.linear1(x, where);
  hidden = layer.options.activation == "gelu" ? gelu(hidden, "none", where) : relu(hidden, where);
  return layer.linear2(layer.dropout(hidden, where), where);
}

void checkOptions(const TransformerOptions &options, const char *layer, const Location &where) {
  if (options.activation != "relu" && options.activation != "gelu")
    throw Error(detail::inScope(where), layer,
                "the activation is \"" + options.activation + "\", but must be \"relu\" or \"gelu\"");
}

void checkInput(const Tensor &x, const char *layer, const Location &where) {
  if (x.rank() != 2 && x.rank() != 3)
    throw Error(where, layer, "the input is " + str(x.spec()) + ", but must have three dimensions, or two without N");
}

LayerNorm makeNorm(int64_t size, const TransformerOptions &options, const Location &where) {
  return LayerNorm(size, options.layer_norm_eps, true, where);
}

} // namespace

// ---- encoder

TransformerEncoderLayer::TransformerEncoderLayer(int64_t size, int64_t heads, TransformerOptions given, Location where)
    : Module("TransformerEncoderLayer", where), options(std::move(given)),
      self_attn(register_module(
          "self_attn", MultiheadAttention(size, heads, {.bias = options.bias, .dropout = options.dropout}, where))),
      linear1(register_module("linear1", Linear(size, options.dim_feedforward, {.bias = options.bias}, where))),
      dropout(register_module("dropout", Dropout(options.dropout, where))),
      linear2(register_module("linear2", Linear(options.dim_feedforward, size, {.bias = options.bias}, where))),
      norm1(register_module("norm1", makeNorm(size, options, where))),
      norm2(register_module("norm2", makeNorm(size, options, where))),
      dropout1(register_module("dropout1", Dropout(options.dropout, where))),
      dropout2(register_module("dropout2", Dropout(options.dropout, where))) {
  checkOptions(options, "TransformerEncoderLayer", where);
}

Tensor TransformerEncoderLayer::operator()(const Tensor &given, const AttentionMasks &masks, Location where) const {
  ModuleScope inModule(*this);
  LocationScope scope(where);
  const Location place = detail::inScope(where);
  checkInput(given, "TransformerEncoderLayer", place);
  auto attention = [&](const Tensor &x) {
    return dropout1(attend(self_attn, x, x, masks, options.batch_first, place));
  };
  auto network = [&](const Tensor &x) { return dropout2(feedForward(*this, x, place)); };
  if (options.norm_first) {
    Tensor x = given + attention(norm1(given));
    return x + network(norm2(x));
  }
  Tensor x = norm1(given + attention(given));
  return norm2(x + network(x));
}

template <class Layer>
static ModuleList<Layer> makeLayers(const std::function<Layer()> &make, int64_t count, const char *kind,
                                    const Location &where) {
  require(make != nullptr, kind, "there is no function that makes the layers", where);
  requireSize(count, 0, "the number of layers", kind, where);
  ModuleList<Layer> layers(where);
  for (int64_t i = 0; i < count; ++i)
    layers.push_back(make(), where);
  return layers;
}

TransformerEncoder::TransformerEncoder(const std::function<TransformerEncoderLayer()> &make, int64_t count,
                                       std::optional<LayerNorm> given, Location where)
    : Module("TransformerEncoder", where),
      layers(register_module("layers", makeLayers(make, count, "TransformerEncoder", where))), norm(std::move(given)) {
  if (norm)
    register_module("norm", *norm, where);
}
Tensor TransformerEncoder::operator()(const Tensor &given, const AttentionMasks &masks, Location where) const {
  ModuleScope inModule(*this);
  Tensor x = given;
  for (const auto &layer : layers)
    x = layer(x, masks, where);
  return norm ? (*norm)(x, where) : x;
}

// ---- decoder

TransformerDecoderLayer::TransformerDecoderLayer(int64_t size, int64_t heads, TransformerOptions given, Location where)
    : Module("TransformerDecoderLayer", where), options(std::move(given)),
      self_attn(register_module(
          "self_attn", MultiheadAttention(size, heads, {.bias = options.bias, .dropout = options.dropout}, where))),
      multihead_attn(
          register_module("multihead_attn",
                          MultiheadAttention(size, heads, {.bias = options.bias, .dropout = options.dropout}, where))),
      linear1(register_module("linear1", Linear(size, options.dim_feedforward, {.bias = options.bias}, where))),
      dropout(register_module("dropout", Dropout(options.dropout, where))),
      linear2(register_module("linear2", Linear(options.dim_feedforward, size, {.bias = options.bias}, where))),
      norm1(register_module("norm1", makeNorm(size, options, where))),
      norm2(register_module("norm2", makeNorm(size, options, where))),
      norm3(register_module("norm3", makeNorm(size, options, where))),
      dropout1(register_module("dropout1", Dropout(options.dropout, where))),
      dropout2(register_module("dropout2", Dropout(options.dropout, where))),
      dropout3(register_module("dropout3", Dropout(options.dropout, where))) {
  checkOptions(options, "TransformerDecoderLayer", where);
}

Tensor TransformerDecoderLayer::operator()(const Tensor &given, const Tensor &memory, const AttentionMasks &masks,
                                           const AttentionMasks &memory_masks, Location where) const {
  ModuleScope inModule(*this);
  LocationScope scope(where);
  const Location place = detail::inScope(where);
  checkInput(given, "TransformerDecoderLayer", place);
  auto attention = [&](const Tensor &x) {
    return dropout1(attend(self_attn, x, x, masks, options.batch_first, place));
  };
  auto look = [&](const Tensor &x) {
    return dropout2(attend(multihead_attn, x, memory, memory_masks, options.batch_first, place));
  };
  auto network = [&](const Tensor &x) { return dropout3(feedForward(*this, x, place)); };
  if (options.norm_first) {
    Tensor x = given + attention(norm1(given));
    x = x + look(norm2(x));
    return x + network(norm3(x));
  }
  Tensor x = norm1(given + attention(given));
  x = norm2(x + look(x));
  return norm3(x + network(x));
}

TransformerDecoder::TransformerDecoder(const std::function<TransformerDecoderLayer()> &make, int64_t count,
                                       std::optional<LayerNorm> given, Location where)
    : Module("TransformerDecoder", where),
      layers(register_module("layers", makeLayers(make, count, "TransformerDecoder", where))), norm(std::move(given)) {
  if (norm)
    register_module("norm", *norm, where);
}
Tensor TransformerDecoder::operator()(const Tensor &given, const Tensor &memory, const AttentionMasks &masks,
                                      const AttentionMasks &memory_masks, Location where) const {
  ModuleScope inModule(*this);
  Tensor x = given;
  for (const auto &layer : layers)
    x = layer(x, memory, masks, memory_masks, where);
  return norm ? (*norm)(x, where) : x;
}

// ---- both

Transformer::Transformer(int64_t size, int64_t heads, int64_t encoder_layers, int64_t decoder_layers,
                         const TransformerOptions &options, Location where)
    : Module("Transformer", where),
      encoder(register_module("encoder",
                              TransformerEncoder([&] { return TransformerEncoderLayer(size, heads, options, where); },
                                                 encoder_layers, makeNorm(size, options, where), where))),
      decoder(register_module("decoder",
                              TransformerDecoder([&] { return TransformerDecoderLayer(size, heads, options, where); },
                                                 decoder_layers, makeNorm(size, options, where), where))) {
  for (const Parameter &parameter : parameters())
    if (parameter.dim() > 1)
      init::xavier_uniform_(parameter, 1, where);
}

Tensor Transformer::operator()(const Tensor &source, const Tensor &target, const AttentionMasks &source_masks,
                               const AttentionMasks &target_masks, const AttentionMasks &memory_masks,
                               Location where) const {
  ModuleScope inModule(*this);
  return decoder(target, encoder(source, source_masks, where), target_masks, memory_masks, where);
}

Tensor Transformer::generate_square_subsequent_mask(const Dim &length, DType dtype, Location where) {
  return triu(full({length, length}, -std::numeric_limits<double>::infinity(), dtype, where), 1, where);
}

} // namespace burin::nn
