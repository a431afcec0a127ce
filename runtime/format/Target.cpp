#include "runtime/format/Target.h"
#include <iterator>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace burin::rt {
namespace {

// From the least to the most demanding; one table per architecture.
#if defined(__x86_64__)
constexpr std::string_view levels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
int hostLevel() {
  static const int level = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4"))
      return 3;
    if (__builtin_cpu_supports("x86-64-v3"))
      return 2;
    return __builtin_cpu_supports("x86-64-v2") ? 1 : 0;
  }();
  return level;
}
#elif defined(__aarch64__)
constexpr std::string_view levels[] = {"aarch64"};
int hostLevel() { return 0; }
#else
#error "burin's runtime knows x86-64 and AArch64"
#endif

#if defined(__x86_64__)
constexpr std::string_view bf16Target = "x86-64-v4+bf16", amxTarget = "x86-64-v4+amx";
/// Whether the processor has AVX512-BF16.
bool hostHasBf16() {
  static const bool has = [] {
    constexpr unsigned leaf = 7, subleaf = 1, avx512Bf16 = 1u << 5;
    unsigned a = 0, b = 0, c = 0, d = 0;
    return hostLevel() == 3 && __get_cpuid_count(leaf, subleaf, &a, &b, &c, &d) && (a & avx512Bf16);
  }();
  return has;
}
/// Whether the processor has AMX with bf16, and the system permits its use.
bool hostHasAmx() {
  static const bool has = [] {
    constexpr unsigned leaf = 7, amxBf16 = 1u << 22;
    constexpr long askForState = 0x1023, tileData = 18; // arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)
    unsigned a = 0, b = 0, c = 0, d = 0;
    return hostHasBf16() && __get_cpuid_count(leaf, 0, &a, &b, &c, &d) && (d & amxBf16) &&
           syscall(SYS_arch_prctl, askForState, tileData) == 0;
  }();
  return has;
}
#endif

} // namespace

std::string_view hostTarget() {
#if defined(__x86_64__)
  if (hostHasBf16())
    return bf16Target;
#endif
  return levels[hostLevel()];
}

int targetRank(std::string_view target) {
  for (int i = 0; i <= hostLevel(); ++i)
    if (levels[i] == target)
      return i;
#if defined(__x86_64__)
  if (target == bf16Target && hostHasBf16())
    return int(std::size(levels));
  if (target == amxTarget && hostHasAmx())
    return int(std::size(levels)) + 1;
#endif
  return -1;
}

} // namespace burin::rt
