// The place that a Parameter refers to: the identity of a state.
#pragma once
#include "burin/observed.h"
#include "frontend/tensor/TensorState.h"
#include <mutex>

namespace burin::detail {

struct Cell;
/// Cells that this thread's eager code has set, with what they held before; null: nobody asks.
using CellChanges = std::vector<std::pair<std::shared_ptr<Cell>, Tensor>>;
inline thread_local CellChanges *cellChanges = nullptr;

/// A named place for a tensor. Traces read and set it in an overlay of their own; jitted functions take those that they
/// set as inputs and put the new values here.
struct Cell : Observed {
  Tensor value;
  std::mutex mutex;          // orders the runs of compiled functions that take the cell as an input
  bool alwaysInput = false;  // compiled functions never take its value for a constant
  std::string name;          // of the state in graphs, if no module has a name for it; may be empty
  std::weak_ptr<Cell> owner; // whose name goes before that one: a slot's parameter
  size_t retraces = 0;       // because the value was a constant of the graph and has changed

  /// Puts in what a compiled function has computed, of the same type; a leaf of the tape stays one.
  void commit(const Tensor &result) {
    TensorState state = *Access::state(result);
    state.node = Access::state(value)->node;
    state.follows = Access::state(value)->follows;
    value = Access::make(std::move(state));
    ++version;
  }
};

} // namespace burin::detail
