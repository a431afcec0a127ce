// Functions that the code of artifacts may import. Loading fails for any other name.
#include "runtime/code/Elf.h"
#include <cmath>
#include <cstring>

namespace burin::rt {
namespace {

struct Import {
  std::string_view name;
  void *address;
};

template <class F> void *address(F *function) { return reinterpret_cast<void *>(function); }

using Unary64 = double(double);
using Unary32 = float(float);
using Binary64 = double(double, double);
using Binary32 = float(float, float);

#define UNARY(name)                                                                                                    \
  {#name, address<Unary64>(::name)}, { #name "f", address<Unary32>(::name##f) }
#define BINARY(name)                                                                                                   \
  {#name, address<Binary64>(::name)}, { #name "f", address<Binary32>(::name##f) }
const Import imports[] = {
    UNARY(exp),
    UNARY(exp2),
    UNARY(expm1),
    UNARY(log),
    UNARY(log2),
    UNARY(log10),
    UNARY(log1p),
    UNARY(sin),
    UNARY(cos),
    UNARY(tan),
    UNARY(asin),
    UNARY(acos),
    UNARY(atan),
    UNARY(sinh),
    UNARY(cosh),
    UNARY(tanh),
    UNARY(asinh),
    UNARY(acosh),
    UNARY(atanh),
    UNARY(cbrt),
    UNARY(erf),
    UNARY(floor),
    UNARY(ceil),
    UNARY(trunc),
    UNARY(round),
    UNARY(rint),
    UNARY(nearbyint),
    UNARY(roundeven),
    BINARY(pow),
    BINARY(fmod),
    BINARY(atan2),
    {"memcpy", address(::memcpy)},
    {"memmove", address(::memmove)},
    {"memset", address(::memset)},
};
#undef UNARY
#undef BINARY

} // namespace

void *importedFunction(std::string_view name) {
  for (const Import &import : imports)
    if (import.name == name)
      return import.address;
  return nullptr;
}

} // namespace burin::rt
