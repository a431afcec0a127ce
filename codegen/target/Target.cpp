#include "codegen/target/Target.h"
#include "codegen/target/Precision.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/TargetParser/Host.h"
#include <cstdlib>
#include <sstream>

namespace burin::codegen {

// Register tiles: rows * vectors accumulators, the vectors of the right operand and one broadcast must fit the register
// file (32 registers with AVX-512, 16 with AVX2). prfchw belongs to neither level, but processors without it execute it
// as a no-op.
static const Target targets[] = {
    {"x86-64-v3", "x86-64-v3", "+prfchw", 32, 6, 2, false, false, false},
    {"x86-64-v4", "x86-64-v4", "-prefer-256-bit,+prfchw", 64, 12, 2, true, false, false},
    {"x86-64-v4+bf16", "x86-64-v4", "-prefer-256-bit,+prfchw,+avx512bf16", 64, 12, 2, true, false, true},
    {"x86-64-v4+amx", "x86-64-v4", "-prefer-256-bit,+prfchw,+avx512bf16,+amx-tile,+amx-bf16", 64, 12, 2, true, true,
     true},
    // A GPU thread loads 16 bytes at once. Tiles are small where a thread runs a whole task of a CPU kernel.
    {"cuda-sm_80+ptx", "sm_80", "+ptx70", 16, 4, 1, false, false, false, Device::Cuda},
    {"cuda-sm_80+ptx+tf32", "sm_80", "+ptx70", 16, 4, 1, false, false, false, Device::Cuda, false, false,
     F32Products::Tf32},
    {"cuda-sm_80+ptx+bf16x3", "sm_80", "+ptx70", 16, 4, 1, false, false, false, Device::Cuda, false, false,
     F32Products::Bf16x3},
    {"cuda-sm_90a+ptx", "sm_90a", "+ptx80", 16, 4, 1, false, false, false, Device::Cuda, /*warpgroups=*/true,
     /*dependentLaunches=*/true},
    {"cuda-sm_90a+ptx+tf32", "sm_90a", "+ptx80", 16, 4, 1, false, false, false, Device::Cuda, true, true,
     F32Products::Tf32},
    {"cuda-sm_90a+ptx+bf16x3", "sm_90a", "+ptx80", 16, 4, 1, false, false, false, Device::Cuda, true, true,
     F32Products::Bf16x3},
};

llvm::ArrayRef<Target> allTargets() { return targets; }

static const Target *bestTarget() {
  auto features = llvm::sys::getHostCPUFeatures();
  auto has = [&](std::initializer_list<llvm::StringRef> names) {
    for (llvm::StringRef name : names)
      if (!features.lookup(name))
        return false;
    return true;
  };
  if (!has({"avx2", "fma", "f16c", "bmi2", "lzcnt", "movbe"}))
    return nullptr;
  if (!has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}))
    return &targets[0];
  return has({"avx512bf16"}) ? &targets[2] : &targets[1];
}

/// The facts in the file that BURIN_MACHINE names, as written by `burin machine --profile`.
static std::optional<Machine> savedMachine(Machine start, std::string &error) {
  static const char *path = std::getenv("BURIN_MACHINE");
  if (!path || !*path)
    return start;
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file) {
    error = std::string("cannot read '") + path + "', which the environment variable BURIN_MACHINE names";
    return std::nullopt;
  }
  std::optional<Machine> machine = parseProfile((*file)->getBuffer(), start, error);
  if (!machine)
    error = std::string(path) + ", which the environment variable BURIN_MACHINE names: " + error;
  return machine;
}

/// The best target, with the facts of this machine; nullptr, with `error`, if there is none or its profile is invalid.
static const Target *nativeTarget(std::string &error) {
  struct Native {
    std::optional<Target> target;
    std::string error;
  };
  static const Native native = [] {
    Native n;
    if (const Target *best = bestTarget())
      if (auto machine = savedMachine(machineOf(llvm::sys::getHostCPUName()), n.error)) {
        n.target = *best;
        n.target->machine = *machine;
      }
    return n;
  }();
  error = native.error;
  return native.target ? &*native.target : nullptr;
}

static const Target *namedTarget(llvm::StringRef name) {
  for (const Target &target : targets)
    if (name == target.name)
      return &target;
  return nullptr;
}

/// The value of BURIN_TARGET; empty if not set.
static llvm::StringRef chosenTarget() {
  static const char *chosen = std::getenv("BURIN_TARGET");
  return chosen ? chosen : "";
}

const Target *findTarget(llvm::StringRef name) {
  if (name != "native")
    return namedTarget(name);
  llvm::StringRef chosen = chosenTarget();
  std::string ignored;
  return chosen.empty() || chosen == "native" ? nativeTarget(ignored) : namedTarget(chosen);
}

std::string targetProblem(llvm::StringRef name) {
  std::string known;
  for (const Target &target : targets)
    known += std::string(known.empty() ? "" : ", ") + target.name;
  if (std::string error; name == "native" && !nativeTarget(error) && !error.empty())
    return error;
  if (name == "native" && chosenTarget().empty())
    return "this processor lacks AVX2 and FMA, which 'native' needs\n  name the target to compile for: one of " + known;
  if (name == "native")
    return "unknown target '" + chosenTarget().str() +
           "' in the environment variable BURIN_TARGET\n  known are: " + known;
  if (llvm::StringRef precision = matmulPrecision(); !precision.empty() && name.ends_with(("+" + precision).str()))
    return "unknown precision '" + precision.str() +
           "' in the environment variable BURIN_MATMUL_PRECISION\n  known are: highest, high, medium";
  return "unknown target '" + name.str() + "'\n  known are: native, " + known;
}

std::string describe(const Target &target) {
  std::ostringstream text;
  text << target.name << ", cpu " << target.cpu << ", features " << target.features << ", vectors of "
       << target.vectorBytes << ", tiles of " << target.tileRows << "x" << target.tileVectors << ", avx512 "
       << target.avx512 << ", amx " << target.amx << ", bf16 pairs " << target.bf16Pairs << "\n"
       << profileText(target.machine);
  return text.str();
}

} // namespace burin::codegen
