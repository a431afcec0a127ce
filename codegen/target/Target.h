// What the code generator needs to know about a processor. Outside codegen nothing knows more about x86 or PTX.
#pragma once
#include "codegen/target/Machine.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace burin::codegen {

enum class Device { Cpu, Cuda };

struct Target {
  const char *name;     // as in artifacts and --target
  const char *cpu;      // LLVM's -mcpu
  const char *features; // LLVM's -mattr
  int64_t vectorBytes;  // width of a vector register
  int64_t tileRows;     // contraction register tile: rows …
  int64_t tileVectors;  // … by vectors of columns
  bool avx512;          // has instructions for x * 2^k, for any lanes of vectors of f32, and with a broadcast operand
  bool amx;             // multiplies tiles of bf16
  Device device = Device::Cpu;
  Machine machine = {};

  bool isGpu() const { return device == Device::Cuda; }
  /// Vector lanes of elements of this width.
  int64_t lanes(int64_t elementBytes) const { return vectorBytes / elementBytes; }
};

llvm::ArrayRef<Target> allTargets();
/// By name. "native" is the target that the environment variable BURIN_TARGET names; without it the best one that this
/// machine supports, tuned to its processor. nullptr if there is none.
const Target *findTarget(llvm::StringRef name);
/// Why findTarget() returned nullptr, and what to do.
std::string targetProblem(llvm::StringRef name);
/// All properties as text: part of the key of a cache of compiled code, as two targets of one name may be tuned
/// differently.
std::string describe(const Target &target);

} // namespace burin::codegen
