// The inference functions that op definitions name, and their helpers.
#pragma once
#include "ir/infer/OpInfo.h"

namespace burin::ir {

using Ints = std::vector<int64_t>;

/// How many calls this thread has inferred, for tests of what calls cost.
uint64_t inferenceCount();

// Elementwise
bool inferElementwise(InferCall &);
bool inferCast(InferCall &);
// Reductions
bool inferReduction(InferCall &);
bool inferReductionI64(InferCall &);
bool inferReductionBool(InferCall &);
bool inferArgReduction(InferCall &);
bool inferCumsum(InferCall &);
// Shapes
bool inferReshape(InferCall &);
bool inferSqueeze(InferCall &);
bool inferUnsqueeze(InferCall &);
bool inferTranspose(InferCall &);
bool inferBroadcastTo(InferCall &);
bool inferSlice(InferCall &);
bool inferFlip(InferCall &);
bool inferConcat(InferCall &);
bool inferStack(InferCall &);
bool inferSplit(InferCall &);
bool inferTile(InferCall &);
bool inferPad(InferCall &);
bool inferTriangle(InferCall &);
// Indexing and creation
bool inferTake(InferCall &);
bool inferGather(InferCall &);
bool inferScatter(InferCall &);
bool inferPrefix(InferCall &);
bool inferNonzero(InferCall &);
bool inferArgsort(InferCall &);
bool inferNonMaxSuppression(InferCall &);
bool inferIota(InferCall &);
bool inferFull(InferCall &);
bool inferRandom(InferCall &);
bool inferBernoulli(InferCall &);
bool inferRandomIntegers(InferCall &);
bool inferRandomKey(InferCall &);
// Products
bool inferMatmul(InferCall &);
bool inferDotGeneral(InferCall &);
bool inferPack(InferCall &);
bool inferBf16Terms(InferCall &);
bool inferBf16Pairs(InferCall &);
bool inferContract(InferCall &);
// Windows
bool inferConv(InferCall &);
bool inferConvTranspose(InferCall &);
bool inferPool(InferCall &);
bool inferAdaptivePool(InferCall &);
// Normalisation and attention
bool inferSameAsOperand(InferCall &);
bool inferAlongAxis(InferCall &);
bool inferNorm(InferCall &);
bool inferBatchNorm(InferCall &);
bool inferGroupNorm(InferCall &);
bool inferAttention(InferCall &);
bool inferAttentionGradient(InferCall &);

// ---- shared

std::string str(const Ints &);

inline std::string toText(const char *s) { return s; }
inline std::string toText(const std::string &s) { return s; }
inline std::string toText(std::string_view s) { return std::string(s); }
inline std::string toText(size_t n) { return std::to_string(n); }
inline std::string toText(int64_t n) { return std::to_string(n); }
inline std::string toText(DType t) { return std::string(name(t)); }
inline std::string toText(const Dim &d) { return d.str(); }
inline std::string toText(const Shape &s) { return burin::str(s); }
inline std::string toText(const TensorSpec &s) { return burin::str(s); }
inline std::string toText(const Ints &s) { return str(s); }
/// Concatenates the parts of a message.
template <class... T> std::string text(const T &...parts) { return (toText(parts) + ...); }

/// "lhs", or "xs[2]" for a variadic operand.
std::string operandName(const InferCall &, size_t i);
/// "lhs f32[4, 8]"
std::string operandText(const InferCall &, size_t i);

/// Makes `axis` an index into `rank` dimensions. Loose calls count negative ones from the end.
bool canonicalAxis(InferCall &, int64_t &axis, size_t rank, std::string_view name = "axis");
/// The same for several different axes; sorts them. Strict calls must give them sorted.
bool canonicalAxes(InferCall &, Ints &axes, size_t rank, std::string_view name = "axes");
/// One number per dimension, each at least `least`. Loose calls may give none (then all are `fallback`) or one for all.
bool canonicalList(InferCall &, std::string_view name, size_t size, int64_t fallback, int64_t least);
/// Fails if `holds` is false in a strict call: the attribute is not in the form the frontend records.
bool requireCanonical(InferCall &, bool holds, std::string_view name, const std::string &canonical);

/// NumPy's broadcasting of two shapes; nullopt if they do not fit, and `call`, if any, notes the sizes that do not.
std::optional<Shape> broadcastShapes(const Shape &, const Shape &, InferCall *call = nullptr);
/// Whether x repeats to `shape`: right-aligned, each size equal or the number 1. `call`, if any, notes sizes that are
/// not.
bool broadcastsTo(const Shape &x, const Shape &shape, InferCall *call = nullptr);
bool requireFloat(InferCall &, size_t operand);
bool requireRank(InferCall &, size_t operand, size_t least);

inline bool succeed(InferCall &call, DType dtype, Shape shape) {
  call.results = {{dtype, std::move(shape)}};
  return true;
}

} // namespace burin::ir
