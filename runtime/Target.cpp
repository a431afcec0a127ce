#include "runtime/Target.h"

namespace burin::rt {
namespace {

// From the least to the most demanding. Another architecture is another table.
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

} // namespace

std::string_view hostTarget() { return levels[hostLevel()]; }

int targetRank(std::string_view target) {
  for (int i = 0; i <= hostLevel(); ++i)
    if (levels[i] == target)
      return i;
  return -1;
}

} // namespace burin::rt
