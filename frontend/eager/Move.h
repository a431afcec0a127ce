// Moves the operands of a call to one device.
#pragma once
#include "burin/tensor/device.h"
#include "frontend/tensor/core/TensorState.h"
#include "llvm/ADT/SmallVector.h"

namespace burin::detail {

/// The operands of a call, moved if necessary. Null operands are absent.
class AlignedOperands {
public:
  /// Throws if operands that may not be moved are on different devices.
  AlignedOperands(std::span<const Tensor *const> given, const char *op, const Location &where);

  Device device() const { return place; }
  /// Whether all operands follow the others, so that the results do, too.
  bool allFollow() const { return follow; }
  std::span<const Tensor *const> operands() const { return moved.empty() ? given : std::span(pointers); }

private:
  std::span<const Tensor *const> given;
  Device place;
  bool follow = true;
  llvm::SmallVector<Tensor, 4> moved; // those from another device
  llvm::SmallVector<const Tensor *, 4> pointers;
};

} // namespace burin::detail
