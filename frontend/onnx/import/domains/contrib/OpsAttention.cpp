// The attention ops of the domain com.microsoft. A padding mask adds `mask_filter_value` (-10000) to the scores of
// masked keys; causal masks exclude keys completely.
#include "frontend/onnx/import/domains/contrib/Contrib.h"
#include "frontend/onnx/import/neural/Quantized.h"
#include <cmath>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

int64_t headsOf(Node &n, const char *attribute = "num_heads") {
  int64_t heads = n.attribute(attribute, int64_t(0));
  if (heads < 1)
    n.fail("it needs the attribute " + quoted(attribute));
  return heads;
}

void setScale(Attention &a) {
  const Dim size = a.query.shape()[3];
  a.scale = a.n.attribute("scale", 0.0);
  if (a.scale == 0 && !size.isStatic())
    a.n.unsupported("heads", size);
  if (a.scale == 0)
    a.scale = 1 / std::sqrt(double(size.value()));
}

/// The keys that the mask permits, in a shape that broadcasts to [batch, heads, queries, keys].
Tensor visibleKeys(const Attention &a, const Tensor &mask, const Dim &past) {
  const Dim batch = a.query.shape()[0];
  Tensor key = iota({1, 1, 1, a.keys()}, DType::i64, 3);
  auto perText = [&](const Dim &first) { return reshape(part(mask, 0, first, first + batch), {batch, 1, 1, 1}); };
  switch (mask.rank()) {
  case 1: // lengths; or ends, then starts; or lengths, then offsets
    if (mask.shape()[0] == batch * 2)
      return logical_and(key < perText(0), key >= perText(batch));
    return mask.shape()[0] == batch * 3 + 2 ? key < perText(0) : key < reshape(mask, {batch, 1, 1, 1});
  case 2: // [batch, keys]
    return unsqueeze(mask, {1, 2}) != 0;
  case 3: // [batch, queries, keys]
    return unsqueeze(mask, {1}) != 0;
  default: { // [batch, 1, most, most]
    Tensor rows = part(mask, 2, past, past + a.queries());
    return part(rows, 3, 0, a.keys()) != 0;
  }
  }
}

void hidePadding(Attention &a, const Tensor &mask, const Dim &past) {
  Tensor hidden = where(visibleKeys(a, mask, past), 0.0, a.n.attribute("mask_filter_value", -10000.0));
  a.add(hidden.to(a.query.dtype()));
}

/// With scores as an output, which requires the unfused form.
Values withScores(const Attention &a) {
  Tensor scores = a.masked(a.scores()), y = matmul(probabilities(scores, a.allowed.defined()), a.value);
  return Values({joinHeads(y), scores});
}

// ---- Attention

/// Columns [from, to) of [batch, sequence, heads * size] as heads.
Tensor headsFrom(const Tensor &x, const Dim &from, const Dim &to, int64_t heads) {
  return splitHeads(part(x, 2, from, to), heads);
}

/// `projected` is [batch, sequence, query + key + value].
Values attendProjected(Node &n, const Tensor &projected, size_t maskInput, size_t pastInput, size_t biasInput) {
  int64_t heads = headsOf(n);
  Dim whole = projected.shape()[2], third = floordiv(whole, 3);
  Ints given = n.attribute("qkv_hidden_sizes", Ints());
  Dim query = given.size() == 3 ? Dim(given[0]) : third, key = given.size() == 3 ? Dim(given[1]) : third;
  if (n.attribute("do_rotary", int64_t(0)))
    n.unsupported("do_rotary");
  Attention a{n,
              headsFrom(projected, 0, query, heads),
              headsFrom(projected, query, query + key, heads),
              headsFrom(projected, query + key, whole, heads),
              {},
              {}};
  Dim past = 0;
  if (n.has(pastInput)) {
    Tensor before = n[pastInput]; // [2, batch, heads, past, size]
    auto half = [&](int64_t i) { return squeeze(part(before, 0, i, i + 1), {0}); };
    past = before.shape()[3];
    a.key = concat({half(0), a.key}, 2);
    a.value = concat({half(1), a.value}, 2);
  }
  setScale(a);
  if (n.has(maskInput))
    hidePadding(a, n[maskInput], past);
  if (n.has(biasInput))
    a.addMask(n[biasInput]);
  if (n.attribute("unidirectional", int64_t(0)))
    a.addPositions(sizeTensor(past), -1, 0);
  Values results{joinHeads(a.result())};
  if (n.wants(1))
    results.push_back(stack({a.key, a.value}, 0));
  return results;
}

Values attention(Node &n) {
  Tensor projected = matmul(n[0], n[1]);
  return attendProjected(n, n.has(2) ? projected + n[2] : projected, 3, 4, 5);
}

// ---- MultiHeadAttention

/// Query, key and value with four dimensions, from any of the input formats.
void readHeads(Node &n, Attention &a, int64_t heads) {
  Tensor query = n[0];
  Tensor bias = n.has(3) ? n[3] : Tensor();
  Dim hidden = query.rank() == 5 ? query.shape()[2] * query.shape()[4] : query.shape()[2];
  auto biased = [&](const Tensor &x, const Dim &from, const Dim &to) {
    return bias.defined() ? x + part(bias, 0, from, to) : x;
  };
  auto unpacked = [](const Tensor &x, int64_t i) { // [batch, sequence, heads, parts, size]
    return transpose(squeeze(part(x, 3, i, i + 1), {3}), {0, 2, 1, 3});
  };
  if (query.rank() == 5) {
    if (bias.defined())
      n.unsupported("a bias of packed query, key and value");
    a.query = unpacked(query, 0);
    a.key = unpacked(query, 1);
    a.value = unpacked(query, 2);
    return;
  }
  a.query = splitHeads(biased(query, 0, hidden), heads);
  Tensor key = n[1];
  if (key.rank() == 5) {
    a.key = unpacked(key, 0);
    a.value = unpacked(key, 1);
    return;
  }
  Tensor value = n[2];
  a.key = key.rank() == 4 ? key : splitHeads(biased(key, hidden, hidden * 2), heads);
  a.value = value.rank() == 4 ? value : splitHeads(biased(value, hidden * 2, hidden * 2 + value.shape()[2]), heads);
}

Values multiHeadAttention(Node &n) {
  for (size_t i = 0; i < 3; ++i)
    if (n.has(i) && (n.rank(i) < 3 || n.rank(i) > 5))
      n.fail("its input " + std::to_string(i) + " is " + str(n.shape(i)) + ", but must have 3 to 5 dimensions");
  Attention a{n, {}, {}, {}, {}, {}};
  readHeads(n, a, headsOf(n));
  Dim past = 0;
  if (n.has(6)) {
    past = n.shape(6)[2];
    a.key = concat({n[6], a.key}, 2);
    a.value = concat({n[7], a.value}, 2);
  }
  setScale(a);
  if (n.has(4))
    hidePadding(a, n[4], past);
  if (n.has(5))
    a.addMask(n[5]);
  if (n.attribute("unidirectional", int64_t(0)))
    a.addPositions(sizeTensor(past), -1, 0);
  if (n.wants(3)) {
    Values results = withScores(a);
    return {results[0], a.key, a.value, results[1]};
  }
  return Values({joinHeads(a.result()), a.key, a.value});
}

// ---- GroupQueryAttention

/// A cache of keys or values per text: `before` earlier ones, followed by the new ones, `length` in total.
class Cache {
public:
  Cache(const Tensor &before, const Dim &past, const Dim &length) : before(before), past(past), length(length) {}

  Tensor join(const Tensor &old, const Tensor &added) const {
    Tensor all = old.defined() ? concat({old, added}, 2) : added;
    Tensor place = iota({1, 1, length, 1}, DType::i64, 2);
    Tensor from = where(place < before, place, place - before + sizeTensor(past));
    Shape shape = all.shape();
    shape[2] = length;
    return gather(all, broadcast_to(from, shape), 2);
  }

private:
  Tensor before; // [batch, 1, 1, 1]
  Dim past, length;
};

/// softmax with an additional element per row, of score `sink`, which has no value.
Tensor softmaxWithSink(const Tensor &scores, const Tensor &sink) {
  Tensor most = maximum(reduce_max(scores, {-1}, true), sink);
  Tensor weights = exp(scores - most);
  return weights / (reduce_sum(weights, {-1}, true) + exp(sink - most));
}

void readGroups(Node &n, Attention &a, int64_t heads, int64_t shared) {
  Tensor x = n[0];
  if (n.has(1)) {
    a.query = splitHeads(x, heads);
    a.key = splitHeads(n[1], shared);
    a.value = splitHeads(n[2], shared);
    return;
  }
  Dim size = floordiv(x.shape()[2], heads + 2 * shared);
  a.query = headsFrom(x, 0, size * heads, heads);
  a.key = headsFrom(x, size * heads, size * (heads + shared), shared);
  a.value = headsFrom(x, size * (heads + shared), size * (heads + 2 * shared), shared);
}

/// Rotates query and key by their positions: those after the past, unless they are given.
void turn(Node &n, Attention &a, const Tensor &before) {
  Tensor position = n.has(9) ? unsqueeze(n[9].to(DType::i64), {1}) // [batch, 1, sequence]
                             : iota({1, 1, a.queries()}, DType::i64, 2) + squeeze(before, {3});
  Tensor cosines = take(n[7], position, 0), sines = take(n[8], position, 0);
  bool interleaved = n.attribute("rotary_interleaved", int64_t(0));
  Dim turned = n.shape(7)[1] * 2;
  if (!turned.isStatic())
    n.unsupported("a rotation of " + turned.str() + " elements");
  a.query = rotate(a.query, cosines, sines, interleaved, turned.value());
  a.key = rotate(a.key, cosines, sines, interleaved, turned.value());
}

Values groupQueryAttention(Node &n) {
  int64_t heads = headsOf(n), shared = headsOf(n, "kv_num_heads");
  if (!n.has(5) || !n.has(6))
    n.fail("it needs the inputs seqlens_k and total_sequence_length");
  Attention a{n, {}, {}, {}, {}, {}};
  readGroups(n, a, heads, shared);
  Dim batch = a.query.shape()[0], queries = a.queries(), past = n.has(3) ? n.shape(3)[2] : Dim(0),
      total = n.sizes(6)[0];
  Tensor all = reshape(n[5].to(DType::i64), {batch, 1, 1, 1}) + 1; // number of keys per text
  Tensor before = maximum(all - sizeTensor(queries), 0);
  if (n.attribute("do_rotary", int64_t(0)))
    turn(n, a, before);
  Cache cache(before, past, max(total, past));
  a.key = cache.join(n.has(3) ? n[3] : Tensor(), a.key);
  a.value = cache.join(n.has(4) ? n[4] : Tensor(), a.value);
  Tensor presentKey = a.key, presentValue = a.value;
  a.key = repeatHeads(a.key, heads);
  a.value = repeatHeads(a.value, heads);
  setScale(a);
  int64_t window = n.attribute("local_window_size", int64_t(-1));
  a.addPositions(before, window > 0 ? window - 1 : -1, 0);
  if (n.has(10))
    a.addMask(n[10]);
  double cap = n.attribute("softcap", 0.0);
  bool hasSink = n.has(11) || n.attribute("smooth_softmax", int64_t(0)) > 0;
  Tensor y;
  if (cap == 0 && !hasSink) {
    y = a.result();
  } else {
    Tensor scores = a.scores();
    scores = a.masked(cap == 0 ? scores : tanh(scores / cap) * cap);
    Tensor sink = n.has(11) ? reshape(n[11], {1, heads, 1, 1}) : zeros({1, 1, 1, 1}, scores.dtype());
    y = matmul(hasSink ? softmaxWithSink(scores, sink) : softmax(scores, -1), a.value);
  }
  return Values({joinHeads(y), presentKey, presentValue});
}

// ---- RotaryEmbedding

/// Inputs: x, positions [batch, sequence] or the first one, cosines and sines by position.
Values rotaryEmbedding(Node &n) {
  Tensor x = n[0], position = n[1].to(DType::i64);
  bool isFlat = x.rank() == 3;
  n.requireRank(0, isFlat ? 3 : 4);
  Dim half = n.shape(2)[1];
  int64_t heads = n.attribute("num_heads", int64_t(0)), turned = n.attribute("rotary_embedding_dim", int64_t(0));
  if (isFlat && heads == 0) { // the tables determine the number
    Dim count = floordiv(x.shape()[2], half * 2);
    if (!count.isStatic())
      n.unsupported(count.str() + " heads");
    heads = count.value();
  }
  if (isFlat)
    x = splitHeads(x, heads);
  Tensor sequence = iota({1, x.shape()[2]}, DType::i64, 1);
  Tensor places = position.rank() == 1 ? sequence + position : position;
  Tensor y = rotate(x, unsqueeze(take(n[2], places, 0), {1}), unsqueeze(take(n[3], places, 0), {1}),
                    n.attribute("interleaved", int64_t(0)), turned);
  return isFlat ? joinHeads(y) : y;
}

/// Attention with quantised operands: the product of input and weights is computed with integers.
Values quantizedAttention(Node &n) {
  Tensor zero = n.has(6) ? n[6] : Tensor(), weightZero = n.has(7) ? n[7] : Tensor();
  Tensor x = dequantized(n[0], n[3], zero), weights = dequantized(n[1], n[4], weightZero);
  return attendProjected(n, matmul(x, weights) + n[2], 5, 8, SIZE_MAX);
}

constexpr std::string_view kDomain = "com.microsoft";
constexpr OpEntry table[] = {
    {"Attention", attention, {3, 2, 0, 1, 5}, kDomain},
    {"GroupQueryAttention", groupQueryAttention, {3, 3, 3, 4, 4, 1, 0, 2}, kDomain},
    {"MultiHeadAttention", multiHeadAttention, {3, 3, 3, 1, 1, 0, 4, 4}, kDomain},
    {"QAttention", quantizedAttention, {3, 2}, kDomain},
    {"RotaryEmbedding", rotaryEmbedding, {3, 1, 2, 2}, kDomain},
};

} // namespace

std::span<const OpEntry> contribAttentionOps() { return table; }

} // namespace burin::onnx
