// The variable behind a Parameter: the identity of a state.
#pragma once
#include "burin/observed.h"
#include "frontend/tensor/TensorState.h"
#include <mutex>

namespace burin::detail {

struct Cell;
/// Cells that eager code of this thread has set, with their values before; null: not logged.
using CellChanges = std::vector<std::pair<std::shared_ptr<Cell>, Tensor>>;
inline thread_local CellChanges *cellChanges = nullptr;

/// A named variable for a tensor. Traces read and set it in an overlay; jitted functions take the cells that they set
/// as inputs, and store the new values here.
struct Cell : Observed {
  Tensor value;
  std::mutex mutex;          // serialises runs of compiled functions that take the cell as an input
  bool alwaysInput = false;  // compiled functions never treat its value as a constant
  std::string name;          // name of the state in graphs, unless a module names it; may be empty
  std::weak_ptr<Cell> owner; // prefix of the name: for a slot, its parameter
  size_t retraces = 0;       // because a constant of the graph has changed

  /// Stores a value computed by a compiled function, of the same type; a leaf of the tape stays a leaf.
  void commit(const Tensor &result) {
    TensorState state = *Access::state(result);
    state.node = Access::state(value)->node;
    state.follows = Access::state(value)->follows;
    value = Access::make(std::move(state));
    ++version;
  }
};

} // namespace burin::detail
