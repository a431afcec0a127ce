// What the batching rules of the op definitions (`batching` in ir/ops/*.td) are made of: functions of public Tensor
// calls, which know nothing of graphs. An operand has the examples in dimension 0, or a 1 there if it is shared: the
// same for all of them.
#pragma once
#include "burin/ops.h"
#include "burin/vmap.h"
#include "ir/infer/OpInfo.h"

namespace burin::batching {

using Ints = std::vector<int64_t>;
using Tensors = std::vector<Tensor>;

/// Calls an op by its table entry, in a trace or eagerly. Undefined operands are absent ones.
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

/// A call that is made for each example.
struct BatchingCall {
  const ir::OpInfo &info;
  Tensors operands;                // an absent one is undefined; at least one has the examples, unless it is a draw
  std::vector<ir::Attr> attrs;     // canonical, of one example
  std::vector<TensorSpec> results; // of one example
  Dim examples;
  Randomness randomness;
  Self self() const { return {info, attrs}; }
};
/// The results, with the examples in dimension 0.
using BatchingRule = Tensors (*)(const BatchingCall &);
/// Null if the op has none, as only ops inside of the compiler do.
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
/// A shared operand as the op itself takes it; undefined if x is.
Tensor alone(const Tensor &x);
/// x repeated for all examples, if it is shared; undefined if x is.
Tensor expand(const Tensor &x, const Dim &examples);
Tensors expand(Tensors xs, const Dim &examples);
/// x with dimensions of size 1 behind the first one, so that it has this many.
Tensor aligned(const Tensor &x, size_t rank);

// ---- ops
/// One example after the other.
Tensor oneByOne(const Tensors &operands, const Self &self, const Dim &examples);
Tensor reduced(const Tensor &x, const Ints &axes, bool keepdims, const Self &self);
/// The examples as part of the dimension behind them, N of [N, C, …].
Tensor folded(const Tensor &x, const Self &self);
Tensor takeOfEach(const Tensor &x, const Tensor &indices, int64_t axis, const Dim &examples);
Tensor product(const Tensor &lhs, const Tensor &rhs);
Tensor dotOfEach(const Tensor &lhs, const Tensor &rhs, const Ints &lhsBatch, const Ints &rhsBatch,
                 const Ints &lhsContract, const Ints &rhsContract, const Dim &examples);
/// With the examples in N, or, if each has weights of its own, as groups of channels; one by one if those are not a
/// known number or come last.
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
/// With a shared key each example has numbers of its own.
Tensor drawn(const Tensor &key, const Shape &shape, const Self &self, const Dim &examples);
Tensor drawnWith(const Tensor &probability, const Tensor &key, const Self &self, const Dim &examples,
                 Randomness randomness);

} // namespace burin::batching
