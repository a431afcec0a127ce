// Transformer layers. Options, masks and names in state_dict are PyTorch's.
#pragma once
#include "burin/nn/layers.h"

namespace burin::nn {

/// Options of the transformer layers.
struct TransformerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu"; ///< "relu" or "gelu"
  double layer_norm_eps = 1e-5;
  bool batch_first = false; ///< [N, L, size] instead of [L, N, size]
  bool norm_first = false;  ///< normalise before attention and feed-forward instead of after their residuals
  bool bias = true;
};

/// Masks as in PyTorch: true in a bool mask excludes a position; float masks are added to the scores.
struct AttentionMasks {
  std::optional<Tensor> mask = std::nullopt;             ///< [L, S]
  std::optional<Tensor> key_padding_mask = std::nullopt; ///< [N, S], or [S] without a batch
  bool is_causal = false;                                ///< position i sees positions up to i; combines with the masks
};

/// Self-attention and a feed-forward network, with residuals. x is [L, N, size], [N, L, size] with batch_first, or [L,
/// size]. Source: Vaswani et al. 2017, torch.nn.TransformerEncoderLayer.
struct BURIN_API TransformerEncoderLayer : Module {
  TransformerEncoderLayer(int64_t size, int64_t heads, TransformerOptions options = {},
                          Location where = Location::current());
  Tensor operator()(const Tensor &x, const AttentionMasks &masks = {}, Location where = Location::current()) const;
  TransformerOptions options;
  MultiheadAttention self_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2;
  Dropout dropout1, dropout2;
};

/// `count` layers from `make`, then a LayerNorm if `norm` is given. Source: torch.nn.TransformerEncoder, whose layers
/// are copies; here layers have different initial values.
struct BURIN_API TransformerEncoder : Module {
  TransformerEncoder(const std::function<TransformerEncoderLayer()> &make, int64_t count,
                     std::optional<LayerNorm> norm = std::nullopt, Location where = Location::current());
  Tensor operator()(const Tensor &x, const AttentionMasks &masks = {}, Location where = Location::current()) const;
  ModuleList<TransformerEncoderLayer> layers;
  std::optional<LayerNorm> norm;
};

/// Self-attention, attention to the output of an encoder, and a feed-forward network, with residuals.
/// Source: torch.nn.TransformerDecoderLayer.
struct BURIN_API TransformerDecoderLayer : Module {
  TransformerDecoderLayer(int64_t size, int64_t heads, TransformerOptions options = {},
                          Location where = Location::current());
  Tensor operator()(const Tensor &x, const Tensor &memory, const AttentionMasks &masks = {},
                    const AttentionMasks &memory_masks = {}, Location where = Location::current()) const;
  TransformerOptions options;
  MultiheadAttention self_attn, multihead_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout1, dropout2, dropout3;
};

/// `count` layers from `make`, then a LayerNorm if `norm` is given. Source: torch.nn.TransformerDecoder.
struct BURIN_API TransformerDecoder : Module {
  TransformerDecoder(const std::function<TransformerDecoderLayer()> &make, int64_t count,
                     std::optional<LayerNorm> norm = std::nullopt, Location where = Location::current());
  Tensor operator()(const Tensor &x, const Tensor &memory, const AttentionMasks &masks = {},
                    const AttentionMasks &memory_masks = {}, Location where = Location::current()) const;
  ModuleList<TransformerDecoderLayer> layers;
  std::optional<LayerNorm> norm;
};

/// An encoder and a decoder, each with a LayerNorm at its end; matrices begin with xavier_uniform_. Source: Vaswani et
/// al. 2017, torch.nn.Transformer.
struct BURIN_API Transformer : Module {
  explicit Transformer(int64_t size = 512, int64_t heads = 8, int64_t encoder_layers = 6, int64_t decoder_layers = 6,
                       const TransformerOptions &options = {}, Location where = Location::current());
  /// The decoder's output, in the shape of `target`: [T, N, size], [N, T, size] with batch_first, or [T, size].
  Tensor operator()(const Tensor &source, const Tensor &target, const AttentionMasks &source_masks = {},
                    const AttentionMasks &target_masks = {}, const AttentionMasks &memory_masks = {},
                    Location where = Location::current()) const;
  /// The mask of `length` positions that see themselves and earlier ones: [length, length], 0, and -inf above the
  /// diagonal. `is_causal` of AttentionMasks needs no mask.
  static Tensor generate_square_subsequent_mask(const Dim &length, DType dtype = f32,
                                                Location where = Location::current());
  TransformerEncoder encoder;
  TransformerDecoder decoder;
};

/// Cache of the keys and values of earlier tokens, for up to `batch` sequences of up to `length` tokens: state of the
/// functions of a Program that read a prompt and continue it. Each sequence has its own position.
///
///   Tensor sees = cache.mask(positions, x.size(1));
///   auto [keys, values] = cache.update(key, value, positions);
///   Tensor y = scaled_dot_product_attention(query, keys, values, sees);
struct BURIN_API KVCache : Module {
  KVCache(int64_t batch, int64_t heads, int64_t length, int64_t size, DType dtype = f32,
          Location where = Location::current());
  /// Stores key and value, [n, heads, m, size] with n <= batch, at the positions positions[i] (i64[n]) to positions[i]
  /// + m - 1 of sequence i; earlier contents are replaced. Returns all keys and values of the n sequences, [n, heads,
  /// length, size]. A position beyond the end is an error.
  std::pair<Tensor, Tensor> update(const Tensor &key, const Tensor &value, const Tensor &positions,
                                   Location where = Location::current()) const;
  /// The mask for scaled_dot_product_attention with m queries at positions[i] to positions[i] + m - 1: bool [n, 1, m,
  /// length], true for keys at or before the query.
  Tensor mask(const Tensor &positions, const Dim &m, Location where = Location::current()) const;
  Parameter keys, values; ///< [batch, heads, length, size]
};

} // namespace burin::nn
