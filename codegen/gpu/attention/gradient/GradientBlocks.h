// Gradients of attention on a GPU, without a matrix of weights in memory. With P the weights and g the gradient of the
// result,
//   dV = Pᵀ · g,   dS = P * (dP - rowsum(P * dP)) with dP = g · vᵀ,   dQ = dS · k,   dK = dSᵀ · q.
//
// A block of a first group has a tile of query rows. It loops over the keys twice: for what the rows need of all keys
// (RowState), which it also stores to scratch memory, and for dQ. A block of the second group has a tile of keys and
// loops over the query rows for dK and dV. Scores are computed three times, but no two blocks add to one sum, so
// results do not depend on the order in which blocks run.
#pragma once
#include "codegen/emit/KernelEmitters.h"
#include "codegen/gpu/attention/AttentionOperands.h"

namespace burin::codegen {

/// Of a query row: its weights are exp(score - shift) * inverse; `total` is the sum of P * dP.
struct RowState {
  Value shift, inverse, total;
  static constexpr int64_t kBytes = 3 * sizeof(float);
};

class GradientBlocks {
public:
  /// `result`: the memory of the op's result, with the gradients of queries, keys and values joined along the rows.
  GradientBlocks(AttentionOperands &operands, Value result)
      : operands(operands), k(operands.k), result{result, operands.type, {}} {}

  using Emit = llvm::function_ref<void(Value first)>;
  /// `ofQueries`, `ofKeys`: emit the work of a block whose rows begin at `first`, of the current head.
  GpuLaunch emit(int64_t tileRows, int64_t threads, Emit ofQueries, Emit ofKeys);

  /// The state of a row of the current head, or of the last row if there are fewer.
  RowState load(Value row);
  void store(Value row, const RowState &);
  /// Of sums over keys relative to the largest score `top`: of the weights, and of their products with dP.
  RowState stateOf(Value top, Value weights, Value products);
  /// What is subtracted from scores of a row: the largest one, or 0 if the row sees no key.
  Value shiftOf(Value top);

  enum class Part { OfQueries, OfKeys, OfValues };
  /// Position of an element in the result.
  Value placeOf(Part, Value row, Value column);

  AttentionOperands &operands;
  KernelBuilder &k;
  const Memory result;

private:
  SmallVector<Value> statePlaces(Value row);

  Value head;
};

} // namespace burin::codegen
