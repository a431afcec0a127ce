// Encoders as in transformers' BertModel, and a step of transformers' GPT2LMHeadModel.
#include "tools/bench/models/Models.h"

namespace burin::bench {
namespace {

/// [batch, length, width] to [batch, heads, length, width / heads], and back.
Tensor splitHeads(const Tensor &x, int64_t heads) {
  int64_t width = int64_t(x.size(-1));
  return x.reshape({x.size(0), x.size(1), heads, width / heads}).transpose({0, 2, 1, 3});
}
Tensor mergeHeads(const Tensor &x) { return x.transpose({0, 2, 1, 3}).flatten(2); }

// ---- BERT

constexpr double kBertEpsilon = 1e-12;

struct BertEmbeddings : nn::Module {
  nn::Embedding words, positions, types;
  nn::LayerNorm norm;

  explicit BertEmbeddings(const BertSizes &s)
      : words(s.vocabulary, s.width), positions(s.positions, s.width), types(2, s.width), norm(s.width, kBertEpsilon) {
    register_module("word_embeddings", words);
    register_module("position_embeddings", positions);
    register_module("token_type_embeddings", types);
    register_module("LayerNorm", norm);
  }
  Tensor operator()(const Tensor &ids) const {
    Tensor position = positions.weight.value()[Slice(0, ids.size(1))];
    return norm(words(ids) + types.weight.value()[0] + position);
  }
};

struct BertSelfAttention : nn::Module {
  nn::Linear query, key, value;
  int64_t heads;

  explicit BertSelfAttention(const BertSizes &s)
      : query(s.width, s.width), key(s.width, s.width), value(s.width, s.width), heads(s.heads) {
    register_module("query", query);
    register_module("key", key);
    register_module("value", value);
  }
  Tensor operator()(const Tensor &x) const {
    Tensor q = splitHeads(query(x), heads), k = splitHeads(key(x), heads), v = splitHeads(value(x), heads);
    return mergeHeads(scaled_dot_product_attention(q, k, v));
  }
};

/// A linear layer, then the normalised sum with `residual`.
struct BertOutput : nn::Module {
  nn::Linear dense;
  nn::LayerNorm norm;

  BertOutput(int64_t in, int64_t out) : dense(in, out), norm(out, kBertEpsilon) {
    register_module("dense", dense);
    register_module("LayerNorm", norm);
  }
  Tensor operator()(const Tensor &x, const Tensor &residual) const { return norm(dense(x) + residual); }
};

struct BertAttention : nn::Module {
  BertSelfAttention self;
  BertOutput output;

  explicit BertAttention(const BertSizes &s) : self(s), output(s.width, s.width) {
    register_module("self", self);
    register_module("output", output);
  }
  Tensor operator()(const Tensor &x) const { return output(self(x), x); }
};

struct BertIntermediate : nn::Module {
  nn::Linear dense;

  explicit BertIntermediate(const BertSizes &s) : dense(s.width, 4 * s.width) { register_module("dense", dense); }
  Tensor operator()(const Tensor &x) const { return gelu(dense(x)); }
};

struct BertLayer : nn::Module {
  BertAttention attention;
  BertIntermediate intermediate;
  BertOutput output;

  explicit BertLayer(const BertSizes &s) : attention(s), intermediate(s), output(4 * s.width, s.width) {
    register_module("attention", attention);
    register_module("intermediate", intermediate);
    register_module("output", output);
  }
  Tensor operator()(const Tensor &x) const {
    Tensor y = attention(x);
    return output(intermediate(y), y);
  }
};

struct BertEncoder : nn::Module {
  nn::ModuleList<BertLayer> layers;

  explicit BertEncoder(const BertSizes &s) {
    for (int64_t i = 0; i < s.layers; ++i)
      layers.push_back(BertLayer(s));
    register_module("layer", layers);
  }
  Tensor operator()(Tensor x) const {
    for (const BertLayer &layer : layers)
      x = layer(x);
    return x;
  }
};

struct Bert : nn::Module {
  BertEmbeddings embeddings;
  BertEncoder encoder;

  explicit Bert(const BertSizes &s) : embeddings(s), encoder(s) {
    register_module("embeddings", embeddings);
    register_module("encoder", encoder);
  }
  Tensor operator()(const Tensor &ids) const { return encoder(embeddings(ids)); }
};

// ---- GPT-2

constexpr int64_t kGptLayers = 12, kGptWidth = 768, kGptHeads = 12, kGptVocabulary = 50257, kGptPositions = 1024;

/// transformers' linear layer whose weight is [in, out].
struct Conv1D : nn::Module {
  Parameter weight, bias;

  Conv1D(int64_t in, int64_t out) : Module("Conv1D") {
    weight = register_parameter("weight", randn({in, out}));
    bias = register_parameter("bias", zeros({out}));
  }
  Tensor operator()(const Tensor &x) const { return matmul(x, weight) + bias; }
};

struct GptAttention : nn::Module {
  Conv1D inputs{kGptWidth, 3 * kGptWidth}, output{kGptWidth, kGptWidth};

  GptAttention() {
    register_module("c_attn", inputs);
    register_module("c_proj", output);
  }
  /// Returns the result, and the key and value of the new token.
  std::array<Tensor, 3> operator()(const Tensor &x, const Tensor &pastKey, const Tensor &pastValue) const {
    std::vector<Tensor> parts = split(inputs(x), {kGptWidth, kGptWidth, kGptWidth}, -1);
    Tensor q = splitHeads(parts[0], kGptHeads), k = splitHeads(parts[1], kGptHeads),
           v = splitHeads(parts[2], kGptHeads);
    Tensor mixed = scaled_dot_product_attention(q, concat({pastKey, k}, 2), concat({pastValue, v}, 2));
    return {output(mergeHeads(mixed)), k, v};
  }
};

struct GptMlp : nn::Module {
  Conv1D up{kGptWidth, 4 * kGptWidth}, down{4 * kGptWidth, kGptWidth};

  GptMlp() {
    register_module("c_fc", up);
    register_module("c_proj", down);
  }
  Tensor operator()(const Tensor &x) const { return down(gelu(up(x), "tanh")); }
};

struct GptBlock : nn::Module {
  nn::LayerNorm ln_1 = register_module("ln_1", nn::LayerNorm(kGptWidth));
  GptAttention attn = register_module("attn", GptAttention());
  nn::LayerNorm ln_2 = register_module("ln_2", nn::LayerNorm(kGptWidth));
  GptMlp mlp = register_module("mlp", GptMlp());

  std::array<Tensor, 3> operator()(const Tensor &x, const Tensor &pastKey, const Tensor &pastValue) const {
    auto [mixed, key, value] = attn(ln_1(x), pastKey, pastValue);
    Tensor y = x + mixed;
    return {y + mlp(ln_2(y)), key, value};
  }
};

struct GptTransformer : nn::Module {
  nn::Embedding wte = register_module("wte", nn::Embedding(kGptVocabulary, kGptWidth));
  nn::Embedding wpe = register_module("wpe", nn::Embedding(kGptPositions, kGptWidth));
  nn::ModuleList<GptBlock> h;
  nn::LayerNorm ln_f = nn::LayerNorm(kGptWidth);

  GptTransformer() {
    for (int64_t i = 0; i < kGptLayers; ++i)
      h.push_back(GptBlock());
    register_module("h", h);
    register_module("ln_f", ln_f);
  }
};

/// Takes the token, its position, and the past key and value of each layer; returns the logits of the next token, and
/// the key and value of this token for each layer. The last product shares the weights of the embedding.
struct Gpt2 : nn::Module {
  GptTransformer transformer = register_module("transformer", GptTransformer());

  std::vector<Tensor> operator()(const std::vector<Tensor> &inputs) const {
    Tensor x = transformer.wte(inputs[0]) + transformer.wpe(inputs[1]);
    std::vector<Tensor> outputs{Tensor()};
    for (size_t i = 0; i < transformer.h.size(); ++i) {
      auto [y, key, value] = transformer.h[i](x, inputs[2 + 2 * i], inputs[3 + 2 * i]);
      x = y;
      outputs.push_back(key);
      outputs.push_back(value);
    }
    outputs[0] = matmul(transformer.ln_f(x), transformer.wte.weight->t());
    return outputs;
  }
};

} // namespace

Model bert(const BertSizes &sizes, int64_t batch, int64_t length, DType dtype) {
  Bert net(sizes);
  seedWeights(net);
  return traced(net, {{"input_ids", randint(0, sizes.vocabulary, {batch, length})}}, {"last_hidden_state"}, dtype);
}

Model gpt2Decode(int64_t past, DType dtype) {
  Gpt2 net;
  seedWeights(net);
  StateDict inputs{{"input_ids", randint(0, kGptVocabulary, {1, 1})}, {"position_ids", full({1, 1}, past, i64)}};
  std::vector<std::string> outputs{"logits"};
  Shape cache{1, kGptHeads, past, kGptWidth / kGptHeads};
  for (int64_t i = 0; i < kGptLayers; ++i)
    for (const char *kind : {"key_", "value_"}) {
      inputs.emplace_back("past_" + (kind + std::to_string(i)), randn(cache));
      outputs.push_back(kind + std::to_string(i));
    }
  return traced(net, std::move(inputs), std::move(outputs), dtype);
}

} // namespace burin::bench
