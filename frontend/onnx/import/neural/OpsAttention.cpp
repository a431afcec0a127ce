// Attention and related ops.
#include "frontend/onnx/import/neural/Heads.h"
#include <cmath>

namespace burin::onnx {

namespace {

Values attention(Node &n) {
  Attention a{n, n[0], n[1], n[2], {}, {}};
  bool isFlat = a.query.rank() == 3;
  for (size_t i = 0; i < 3; ++i)
    if (n.rank(i) != (isFlat ? 3 : 4))
      n.fail("query, key and value must all have 3 or all have 4 dimensions, but are " + str(n.shape(0)) + ", " +
             str(n.shape(1)) + " and " + str(n.shape(2)));
  if (isFlat) {
    int64_t heads = n.attribute("q_num_heads", int64_t(0)), shared = n.attribute("kv_num_heads", int64_t(0));
    if (heads < 1 || shared < 1)
      n.fail("inputs of rank 3 need the attributes q_num_heads and kv_num_heads");
    a.query = splitHeads(a.query, heads);
    a.key = splitHeads(a.key, shared);
    a.value = splitHeads(a.value, shared);
  }
  Dim past = 0;
  if (n.has(4)) {
    past = n.shape(4)[2];
    a.key = concat({n[4], a.key}, 2);
    a.value = concat({n[5], a.value}, 2);
  }
  Tensor presentKey = a.key, presentValue = a.value;
  Dim heads = a.query.shape()[1], size = a.query.shape()[3];
  a.key = repeatHeads(a.key, heads);
  a.value = repeatHeads(a.value, heads);
  if (!size.isStatic())
    n.unsupported("heads", size);
  a.scale = n.attribute("scale", 1 / std::sqrt(double(size.value())));
  if (n.has(3))
    a.addMask(n[3]);
  Tensor offset = sizeTensor(past);
  if (n.has(6)) { // excludes keys beyond the valid ones
    Tensor valid = reshape(n[6], {n.shape(6)[0], 1, 1, 1});
    a.restrict(iota({1, a.keys()}, DType::i64, 1) < valid);
    offset = valid - sizeTensor(a.queries());
  }
  bool isCausal = n.attribute("is_causal", int64_t(0));
  int64_t left = n.attribute("left_window_size", int64_t(-1)), right = n.attribute("right_window_size", int64_t(-1));
  a.addPositions(offset, left, isCausal ? 0 : right);

  double cap = n.attribute("softcap", 0.0);
  bool isPlain = cap == 0 && !n.hasAttribute("softmax_precision") && !n.wants(3);
  Values results;
  if (isPlain) {
    results = {a.result()};
    results = {isFlat ? joinHeads(results[0].tensor) : results[0].tensor, presentKey, presentValue};
    return results;
  }
  Tensor raw = a.scores(), capped = cap == 0 ? raw : tanh(raw / cap) * cap, masked = a.masked(capped);
  DType precision = n.attributeType("softmax_precision", masked.dtype());
  Tensor weights = probabilities(masked.to(precision), a.allowed.defined() || a.bias.defined()).to(a.query.dtype());
  Tensor y = matmul(weights, a.value);
  const Tensor stages[] = {raw, capped, masked, weights};
  int64_t mode = n.attribute("qk_matmul_output_mode", int64_t(0));
  if (mode < 0 || mode > 3)
    n.fail("qk_matmul_output_mode must be 0 to 3");
  return Values({isFlat ? joinHeads(y) : y, presentKey, presentValue, stages[mode]});
}

/// Attention with subgraphs that change scores and probabilities.
Values flexAttention(Node &n) {
  Tensor query = n[0];
  Dim heads = query.shape()[1], size = query.shape()[3];
  if (!size.isStatic())
    n.unsupported("heads", size);
  Attention a{n, query, repeatHeads(n[1], heads), repeatHeads(n[2], heads), {}, {}};
  a.scale = n.attribute("scale", 1 / std::sqrt(double(size.value())));
  DType precision = n.attributeType("softmax_precision", query.dtype() == DType::f64 ? DType::f64 : DType::f32);
  auto modify = [&](Tensor x, const char *name) {
    return n.hasAttribute(name) ? tensorOf(n.run(n.attributeGraph(name), {x}).at(0)) : x;
  };
  Tensor scores = modify(a.scores().to(precision), "score_mod");
  Tensor weights = modify(softmax(scores, -1), "prob_mod");
  return matmul(weights.to(query.dtype()), a.value);
}

/// Rotates pairs of elements by an angle that depends on the position.
Values rotaryEmbedding(Node &n) {
  Tensor x = n[0], cosines = n[1], sines = n[2];
  bool isFlat = x.rank() == 3, interleaved = n.attribute("interleaved", int64_t(0));
  n.requireRank(0, isFlat ? 3 : 4);
  if (isFlat)
    x = splitHeads(x, std::max<int64_t>(n.attribute("num_heads", int64_t(1)), 1));
  if (n.has(3)) {
    cosines = take(cosines, n[3], 0);
    sines = take(sines, n[3], 0);
  }
  Tensor y = rotate(x, unsqueeze(cosines, {1}), unsqueeze(sines, {1}), interleaved,
                    n.attribute("rotary_embedding_dim", int64_t(0)));
  return isFlat ? joinHeads(y) : y;
}

/// The recurrence, position by position.
Values linearAttention(Node &n) {
  int64_t heads = n.attribute("q_num_heads", int64_t(1)), shared = n.attribute("kv_num_heads", int64_t(1));
  constexpr int64_t kMaxSteps = 512;
  Dim steps = n.shape()[1];
  if (!steps.isStatic() || steps.value() > kMaxSteps)
    n.unsupported("a sequence of " + steps.str() + " positions");
  std::string rule = n.attribute("update_rule", "gated_delta");
  bool isGated = rule == "gated" || rule == "gated_delta", isDelta = rule == "delta" || rule == "gated_delta";
  DType inner = n.dtype() == DType::f64 ? DType::f64 : DType::f32; // the state accumulates rounding errors
  Tensor query = splitHeads(n[0], heads).to(inner), key = splitHeads(n[1], shared).to(inner),
         value = splitHeads(n[2], shared).to(inner);
  Shape k = key.shape(), v = value.shape();
  double scale = n.attribute("scale", 0.0);
  if (scale == 0)
    scale = 1 / std::sqrt(double(k[3].value()));
  DType stateType = n.has(3) ? n.dtype(3) : n.dtype();
  Tensor state = n.has(3) ? n[3].to(inner) : full({k[0], shared, k[3], v[3]}, 0, inner);
  // Positions become rows [batch, heads, 1, size].
  auto at = [](const Tensor &x, int64_t t) { return part(x, 2, t, t + 1); };
  std::vector<Tensor> rows;
  for (int64_t t = 0; t < steps.value(); ++t) {
    Tensor column = transpose(at(key, t), {0, 1, 3, 2}), row = at(value, t);
    if (isGated) {
      Tensor decay = exp(transpose(at(splitHeads(n[4].to(inner), shared), t), {0, 1, 3, 2}));
      state = state * decay;
    }
    if (isDelta)
      row = (row - matmul(at(key, t), state)) * unsqueeze(transpose(part(n[5].to(inner), 1, t, t + 1), {0, 2, 1}), {3});
    state = state + column * row;
    rows.push_back(matmul(at(query, t) * scale, repeatHeads(state, heads)));
  }
  Tensor y = joinHeads(concat(rows, 2)).to(n.dtype());
  return Values({y, state.to(stateType)});
}

Values causalConvolution(Node &n) {
  Tensor x = n[0];
  Shape shape = x.shape();
  Dim size = n.shape(1)[2], channels = shape[1];
  if (!size.isStatic() || !channels.isStatic())
    n.unsupported("a kernel or channels", size.isStatic() ? channels : size);
  Tensor past = n.has(3) ? n[3] : full({shape[0], channels, size - 1}, 0, x.dtype());
  Tensor all = concat({past, x}, 2);
  Tensor y = conv(all, n[1], n.optional(2), {}, {}, {}, channels.value());
  std::string activation = n.attribute("activation", "none");
  if (activation != "none")
    y = silu(y);
  return Values({y, part(all, 2, shape[2], shape[2] + size - 1)});
}

constexpr OpEntry table[] = {
    {"Attention", attention, {3, 3, 3, 0, 4, 4, 1}},
    {"CausalConvWithState", causalConvolution, {3, 3}},
    {"FlexAttention", flexAttention, {4, 4, 4}, "ai.onnx.preview"},
    {"LinearAttention", linearAttention, {3, 3, 3, 0, 3, 3}},
    {"RotaryEmbedding", rotaryEmbedding, {3, 1, 1}},
};

} // namespace

std::span<const OpEntry> attentionOps() { return table; }

} // namespace burin::onnx
