// The variable behind a Parameter: the identity of a state.
#pragma once
#include "frontend/tensor/core/Observed.h"
#include "frontend/tensor/core/TensorState.h"
#include <mutex>

namespace burin::detail {

struct Cell;
/// Cells that eager code of this thread has set, with their values before; null: not logged.
using CellChanges = std::vector<std::pair<std::shared_ptr<Cell>, Tensor>>;
inline thread_local CellChanges *cellChanges = nullptr;

/// Whether a module is in training mode.
struct Mode : Observed {
  bool isTraining = true;
};

/// A named variable for a tensor. Traces read and set it in an overlay; jitted functions take the cells that they set
/// as inputs, and store the new values here.
struct Cell : Observed {
  std::mutex mutex;               // serialises runs of compiled functions that take the cell as an input
  bool alwaysInput = false;       // compiled functions never treat its value as a constant
  std::string name;               // name of the state in graphs, unless a module names it; may be empty
  std::weak_ptr<Cell> owner;      // prefix of the name: for a slot, its parameter
  size_t retraces = 0;            // because a constant of the graph has changed
  std::weak_ptr<const Mode> mode; // of the module that it is a parameter of
  std::shared_ptr<Cell> tied;     // the variable that parameters with this cell stand for; null: this one

  /// Calls of functions on other threads may store a new value at the same time.
  Tensor value() const {
    std::lock_guard lock(access);
    return held;
  }
  void store(Tensor value) {
    std::lock_guard lock(access);
    std::swap(held, value); // the former value ends after the lock
  }
  /// Until the lock ends, other threads wait before they read the value.
  std::unique_lock<std::mutex> keepFromReaders() { return std::unique_lock(access); }
  /// Under that lock: stores a value computed by a compiled function, of the same type; a leaf of the tape stays a
  /// leaf. Returns the former value.
  Tensor exchange(const Tensor &result) {
    TensorState state = *Access::state(result);
    state.node = Access::state(held)->node;
    state.follows = Access::state(held)->follows;
    ++version;
    return std::exchange(held, Access::make(std::move(state)));
  }
  void commit(const Tensor &result) {
    Tensor former; // ends after the lock
    auto lock = keepFromReaders();
    former = exchange(result);
  }

private:
  mutable std::mutex access;
  Tensor held;
};

} // namespace burin::detail
