// What the ops of attention are made of: heads, masks, rotated positions.
#pragma once
#include "frontend/onnx/import/Node.h"
#include <limits>

namespace burin::onnx {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// [batch, sequence, heads * size] as [batch, heads, sequence, size].
Tensor splitHeads(const Tensor &x, int64_t heads);
/// The other way round.
Tensor joinHeads(const Tensor &x);
/// Each head as often as query heads share it.
Tensor repeatHeads(const Tensor &x, const Dim &heads);

/// The parts of attention after its inputs have four dimensions.
struct Attention {
  Node &n;
  Tensor query, key, value;
  Tensor allowed, bias; // which keys a query sees, and what is added to its scores; empty: all, nothing
  double scale = 1;

  Dim queries() const { return query.shape()[2]; }
  Dim keys() const { return key.shape()[2]; }

  void restrict(const Tensor &also) { allowed = allowed.defined() ? logical_and(allowed, also) : also; }
  void add(const Tensor &more) { bias = bias.defined() ? bias + more : more; }
  /// A mask as the standard has it: bool, or to be added. What it lacks of the keys is hidden.
  void addMask(Tensor mask);
  /// Restrictions by position. `offset` is how many keys come before the first query: of rank 0, or [batch, 1, 1, 1].
  /// A query sees `left` keys before its own position and `right` behind; negative: all.
  void addPositions(const Tensor &offset, int64_t left, int64_t right);

  Tensor scores() const;
  Tensor masked(Tensor scores) const;
  /// softmax(scores) value, as one op.
  Tensor result() const;
};

/// softmax over the last dimension; a row without a finite score gives zeros.
Tensor probabilities(const Tensor &scores, bool mayBeEmpty);

/// Pairs of elements of x [batch, heads, sequence, size] turned by angles: cosines and sines broadcast to
/// [batch, 1, sequence, turned / 2]. `turned` is how many elements of a head are, 0 for all.
Tensor rotate(const Tensor &x, const Tensor &cosines, const Tensor &sines, bool interleaved, int64_t turned);

} // namespace burin::onnx
