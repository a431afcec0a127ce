// Tensors of a trace that are referred to after it.
#pragma once
#include "burin/tensor.h"
#include "mlir/IR/Value.h"
#include <memory>
#include <vector>

namespace burin {

/// Finds variables outside of a traced function that the function has assigned: compiled code would not assign them.
class Escapes {
public:
  /// What all tensors refer to that stand for `value`.
  std::shared_ptr<const void> reference(mlir::Value value);
  /// After the end of the trace: throws if a tensor still exists. The trace's context must be alive.
  void refuse(const char *op, const Location &where) const;
  void append(Escapes others);

private:
  struct Made {
    std::weak_ptr<const void> reference;
    mlir::Location where;
    llvm::StringRef op; // empty: an argument
  };
  std::vector<Made> made;
};

} // namespace burin
