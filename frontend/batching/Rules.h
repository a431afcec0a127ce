// Helpers of the batching rules of op definitions (`batching` in ir/ops/*.td): functions of public Tensor calls,
// independent of graphs. Dimension 0 of an operand holds the examples, or is 1 if the operand is shared by all of them.
#pragma once
#include "burin/graph/vmap.h"
#include "burin/ops.h"
#include "ir/infer/OpInfo.h"

namespace burin::batching {

using Ints = std::vector<int64_t>;
using Tensors = std::vector<Tensor>;

/// Calls an op by its table entry, in a trace or eagerly. Undefined operands are absent.
Tensors callOp(const ir::OpInfo &info, const Tensors &operands, std::vector<ir::Attr> attrs);

/// An op with the attributes of a call.
class Self {
public:
  Self(const ir::OpInfo &info, std::vector<ir::Attr> attrs) : info(&info), attrs(std::move(attrs)) {}
  Tensor operator()(const Tensors &operands) const { return callOp(*info, operands, attrs)[0]; }
  Self with(std::string_view attribute, ir::Attr value) const;

private:
  const ir::OpInfo *info;
  std::vector<ir::Attr> attrs;
};

/// A call to be made for many examples.
struct BatchingCall {
  const ir::OpInfo &info;
  // Undefined if absent; at least one has the examples, except in draws of random numbers.
  Tensors operands;
  std::vector<ir::Attr> attrs;     // canonical, of one example
  std::vector<TensorSpec> results; // of one example
  Dim examples;
  Randomness randomness;
  Self self() const { return {info, attrs}; }
};
/// The results, with the examples in dimension 0.
using BatchingRule = Tensors (*)(const BatchingCall &);
/// Null if the op has no rule, as ops that are internal to the compiler.
BatchingRule ruleOf(const ir::OpInfo &info);

// ---- dimensions
inline Ints behind(Ints axes) {
  for (int64_t &axis : axes)
    ++axis;
  return axes;
}
template <class List> List inFront(const typename List::value_type &first, List rest) {
  rest.insert(rest.begin(), first);
  return rest;
}
inline Ints inFront(int64_t first, Ints rest) { return inFront<Ints>(first, std::move(rest)); }
inline Shape inFront(const Dim &first, Shape rest) { return inFront<Shape>(first, std::move(rest)); }

inline bool isShared(const Tensor &x) { return !x.defined() || x.shape()[0] == Dim(1); }
/// A shared operand without the examples' dimension; undefined if x is undefined.
Tensor alone(const Tensor &x);
/// x repeated for all examples if it is shared; undefined if x is undefined.
Tensor expand(const Tensor &x, const Dim &examples);
Tensors expand(Tensors xs, const Dim &examples);
/// x with `rank` dimensions, by new ones of size 1 after the first.
Tensor aligned(const Tensor &x, size_t rank);

// ---- ops
/// Calls the op once per example.
Tensor oneByOne(const Tensors &operands, const Self &self, const Dim &examples);
Tensor reduced(const Tensor &x, const Ints &axes, bool keepdims, const Self &self);
/// Merges the examples into the next dimension, N of [N, C, …].
Tensor folded(const Tensor &x, const Self &self);
Tensor takeOfEach(const Tensor &x, const Tensor &indices, int64_t axis, const Dim &examples);
Tensor product(const Tensor &lhs, const Tensor &rhs);
Tensor dotOfEach(const Tensor &lhs, const Tensor &rhs, const Ints &lhsBatch, const Ints &rhsBatch,
                 const Ints &lhsContract, const Ints &rhsContract, const Dim &examples);
/// The examples become part of N or, if they have different weights, groups of channels; one call per example if their
/// number is symbolic or channels are last.
Tensor convolution(const Tensor &x, const Tensor &weight, const Tensor &bias, int64_t groups, bool channelsFirst,
                   const Self &self, const Dim &examples);
Tensor layerNorm(const Tensor &x, const Tensor &weight, const std::optional<Tensor> &bias, int64_t axis,
                 const Self &self, const Dim &examples);
Tensor groupNorm(const Tensor &x, const Tensor &weight, const Tensor &bias, const Self &self, const Dim &examples);
/// `operands` are x and four parameters per channel.
Tensor batchNorm(const Tensors &operands, const Self &self, const Dim &examples);
/// `operands` are query, key, value and mask.
Tensor attention(const Tensors &operands, const Self &self, const Dim &examples);
Tensor suppressed(const Tensor &boxes, const Tensor &scores, const Self &self, const Dim &examples);
/// With a shared key, examples have different numbers.
Tensor drawn(const Tensor &key, const Shape &shape, const Self &self, const Dim &examples);
Tensor drawnWith(const Tensor &probability, const Tensor &key, const Self &self, const Dim &examples,
                 Randomness randomness);

} // namespace burin::batching
