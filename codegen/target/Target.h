// Targets of the code generator. No code outside codegen depends on x86 or PTX.
#pragma once
#include "codegen/target/Machine.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace burin::codegen {

enum class Device { Cpu, Cuda };

/// How a GPU multiplies f32: by FMA, or on tensor cores with operands that are rounded to tf32, or split into two terms
/// of bf16, of which three products are added.
enum class F32Products { Exact, Tf32, Bf16x3 };

struct Target {
  const char *name;     // in artifacts and --target
  const char *cpu;      // LLVM's -mcpu
  const char *features; // LLVM's -mattr
  int64_t vectorBytes;  // width of a vector register
  int64_t tileRows;     // contraction register tile: rows …
  int64_t tileVectors;  // … by vectors of columns
  bool avx512;          // has scalef, permutes of all lanes, broadcast memory operands
  bool amx;             // tiles of bf16
  bool bf16Pairs;       // adds the products of two pairs of bf16 to an f32 per lane (AVX512-BF16)
  Device device = Device::Cpu;
  bool warpgroups = false;        // four warps of a GPU multiply tiles in shared memory together (wgmma)
  bool dependentLaunches = false; // kernels begin with griddepcontrol.wait; the runtime relies on it from sm_90 on
  F32Products f32Products = F32Products::Exact;
  Machine machine = {};

  bool isGpu() const { return device == Device::Cuda; }
  /// Number of vector lanes for elements of this width.
  int64_t lanes(int64_t elementBytes) const { return vectorBytes / elementBytes; }
};

llvm::ArrayRef<Target> allTargets();
/// The target with this name. "native" is the target in the environment variable BURIN_TARGET, or else the best one
/// that this machine supports, tuned to its processor. nullptr if there is none.
const Target *findTarget(llvm::StringRef name);
/// Explains why findTarget() returned nullptr, and what to do.
std::string targetProblem(llvm::StringRef name);
/// All properties as text: part of the cache key of compiled code, because targets with equal names may be tuned
/// differently.
std::string describe(const Target &target);

} // namespace burin::codegen
