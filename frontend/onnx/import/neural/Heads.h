// Helpers of the attention ops: heads, masks, rotary embedding.
#pragma once
#include "frontend/onnx/import/Node.h"
#include <limits>

namespace burin::onnx {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Reshapes [batch, sequence, heads * size] to [batch, heads, sequence, size].
Tensor splitHeads(const Tensor &x, int64_t heads);
/// The inverse.
Tensor joinHeads(const Tensor &x);
/// Repeats each head for the query heads that share it.
Tensor repeatHeads(const Tensor &x, const Dim &heads);

/// Attention with four-dimensional operands.
struct Attention {
  Node &n;
  Tensor query, key, value;
  Tensor allowed, bias; // permitted keys of each query, and summand of its scores; undefined: all, none
  double scale = 1;

  Dim queries() const { return query.shape()[2]; }
  Dim keys() const { return key.shape()[2]; }

  void restrict(const Tensor &also) { allowed = allowed.defined() ? logical_and(allowed, also) : also; }
  void add(const Tensor &more) { bias = bias.defined() ? bias + more : more; }
  /// Adds a mask of the standard: bool, or summands. Keys that it does not cover are excluded.
  void addMask(Tensor mask);
  /// Restricts keys by position. `offset` is the number of keys before the first query: of rank 0, or [batch, 1, 1, 1].
  /// A query sees `left` keys before its own position and `right` after it; negative: all.
  void addPositions(const Tensor &offset, int64_t left, int64_t right);

  Tensor scores() const;
  Tensor masked(Tensor scores) const;
  /// softmax(scores) · value, as one op.
  Tensor result() const;
};

/// softmax over the last dimension; a row without finite scores gives zeros.
Tensor probabilities(const Tensor &scores, bool mayBeEmpty);

/// Rotates pairs of elements of x [batch, heads, sequence, size] by angles; cosines and sines broadcast to [batch, 1,
/// sequence, turned / 2]. `turned` is the number of rotated elements per head, 0 for all.
Tensor rotate(const Tensor &x, const Tensor &cosines, const Tensor &sines, bool interleaved, int64_t turned);

} // namespace burin::onnx
