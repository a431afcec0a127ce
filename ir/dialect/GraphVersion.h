// The version of the dialect that saved graphs carry.
#pragma once
#include "mlir/Bytecode/BytecodeImplementation.h"

namespace burin::ir {

/// Incremented when the form of an op changes.
struct GraphVersion : mlir::DialectVersion {
  static constexpr uint64_t kCurrent = 1;
  explicit GraphVersion(uint64_t number) : number(number) {}
  uint64_t number;
};

} // namespace burin::ir
