#include "codegen/target/Target.h"
#include "llvm/TargetParser/Host.h"

namespace burin::codegen {

// Register tiles: rows * vectors accumulators, the vectors of the right side and one broadcast must fit the file
// (32 registers with AVX-512, 16 with AVX2). prfchw is in neither level, but processors of both that lack it skip it.
static const Target targets[] = {
    {"x86-64-v3", "x86-64-v3", "+prfchw", 32, 6, 2, false, false, true},
    {"x86-64-v4", "x86-64-v4", "-prefer-256-bit,+prfchw", 64, 12, 2, true, false, true},
    {"x86-64-v4+amx", "x86-64-v4", "-prefer-256-bit,+prfchw,+amx-tile,+amx-bf16", 64, 12, 2, true, true, true},
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
  return has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) ? &targets[1] : &targets[0];
}

/// Measured on a Zen 5: there a split store costs hardly more than another.
static Target tuned(Target target) {
  target.splitStoresWait = !llvm::sys::getHostCPUName().starts_with("znver");
  return target;
}

static const Target *nativeTarget() {
  const Target *best = bestTarget();
  if (!best)
    return nullptr;
  static const Target native = tuned(*best);
  return &native;
}

const Target *findTarget(llvm::StringRef name) {
  if (name == "native")
    return nativeTarget();
  for (const Target &target : targets)
    if (name == target.name)
      return &target;
  return nullptr;
}

} // namespace burin::codegen
