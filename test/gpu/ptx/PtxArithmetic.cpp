// Instructions with one result from up to three operands of its type (PTX ISA 8.0, sections 9.7.1 to 9.7.8).
#include "test/gpu/ptx/PtxTypes.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace burin::test::ptx {
namespace {

struct Add {
  template <class T> static T apply(T a, T b, T) {
    if constexpr (isFloat<T>)
      return T(a + b);
    else
      return T(uint64_t(a) + uint64_t(b));
  }
};
struct Sub {
  template <class T> static T apply(T a, T b, T) {
    if constexpr (isFloat<T>)
      return T(a - b);
    else
      return T(uint64_t(a) - uint64_t(b));
  }
};
struct Mul { // .lo
  template <class T> static T apply(T a, T b, T) {
    if constexpr (isFloat<T>)
      return T(a * b);
    else
      return T(uint64_t(a) * uint64_t(b));
  }
};
struct MulHigh {
  template <class T> static T apply(T a, T b, T) {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return T(Wide(a) * Wide(b) >> kBits<T>);
  }
};
struct Mad {
  template <class T> static T apply(T a, T b, T c) { return T(uint64_t(a) * uint64_t(b) + uint64_t(c)); }
};
struct Fma {
  template <class T> static T apply(T a, T b, T c) {
    if constexpr (std::is_same_v<T, Half>) // exact in f64 but for the sum, whose error is far below half a unit of f16
      return T(double(a) * double(b) + double(c));
    else
      return std::fma(a, b, c);
  }
};
struct Div {
  template <class T> static T apply(T a, T b, T) {
    if constexpr (isFloat<T>)
      return T(a / b);
    else if (b == 0)
      return T(-1);
    else if (std::is_signed_v<T> && b == T(-1))
      return T(0 - uint64_t(a));
    else
      return T(a / b);
  }
};
struct Rem {
  template <class T> static T apply(T a, T b, T) {
    return b == 0 ? a : std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
  }
};
struct Min {
  template <class T> static T apply(T a, T b, T) {
    if (isNan(a) || isNan(b))
      return isNan(a) ? b : a;
    if constexpr (isFloat<T>)
      if (a == b)
        return std::signbit(double(a)) ? a : b;
    return b < a ? b : a;
  }
};
struct Max {
  template <class T> static T apply(T a, T b, T) {
    if (isNan(a) || isNan(b))
      return isNan(a) ? b : a;
    if constexpr (isFloat<T>)
      if (a == b)
        return std::signbit(double(a)) ? b : a;
    return a < b ? b : a;
  }
};
/// With .NaN: NaN if either is.
template <class F> struct OrNan {
  template <class T> static T apply(T a, T b, T c) { return isNan(a) || isNan(b) ? T(NAN) : F::apply(a, b, c); }
};
/// 0 instead of negative results.
template <class F> struct Relu {
  template <class T> static T apply(T a, T b, T c) { return std::max(F::apply(a, b, c), T(0)); }
};
struct Abs {
  template <class T> static T apply(T a, T, T) {
    if constexpr (isFloat<T>)
      return T(std::fabs(a));
    else
      return a < 0 ? T(0 - uint64_t(a)) : a;
  }
};
struct AbsHalf {
  template <class T> static T apply(T a, T, T) {
    return std::bit_cast<T>(uint16_t(std::bit_cast<uint16_t>(a) & 0x7FFF));
  }
};
struct Neg {
  template <class T> static T apply(T a, T, T) {
    if constexpr (isFloat<T>)
      return -a;
    else
      return T(0 - uint64_t(a));
  }
};
struct Sqrt {
  template <class T> static T apply(T a, T, T) { return std::sqrt(a); }
};
struct Reciprocal {
  template <class T> static T apply(T a, T, T) { return 1 / a; }
};
struct ApproximateReciprocal { // .approx.ftz
  template <class T> static T apply(T a, T, T) {
    auto flushed = [](T x) { return std::fabs(x) < std::numeric_limits<T>::min() ? std::copysign(T(0), x) : x; };
    return flushed(1 / flushed(a));
  }
};
struct Exp2 { // .approx.ftz
  template <class T> static T apply(T a, T, T) {
    T result = std::exp2(a);
    return std::fabs(result) < std::numeric_limits<T>::min() ? T(0) : result;
  }
};
struct CopySign { // the sign of the first operand
  template <class T> static T apply(T a, T b, T) { return std::copysign(b, a); }
};
struct And {
  template <class T> static T apply(T a, T b, T) { return a & b; }
};
struct Or {
  template <class T> static T apply(T a, T b, T) { return a | b; }
};
struct Xor {
  template <class T> static T apply(T a, T b, T) { return a ^ b; }
};
struct Not {
  template <class T> static T apply(T a, T, T) { return T(~a); }
};

template <class F, class T> void compute(Thread &t, const Instruction &i) {
  t.put<T>(i.to[0], F::template apply<T>(t.get<T>(i.from[0]), t.get<T>(i.from[1]), t.get<T>(i.from[2])));
}
/// Both halves of a register.
template <class F, class T> void computePairs(Thread &t, const Instruction &i) {
  using Pair = std::array<T, 2>;
  Pair a = t.get<Pair>(i.from[0]), b = t.get<Pair>(i.from[1]), c = t.get<Pair>(i.from[2]), result;
  for (size_t n = 0; n < 2; ++n)
    result[n] = F::template apply<T>(a[n], b[n], c[n]);
  t.put(i.to[0], result);
}

template <class F> Run integers(const std::string &type) {
  static const std::map<std::string, Run> all = {
      {"s16", compute<F, int16_t>},  {"u16", compute<F, uint16_t>},       {"b16", compute<F, uint16_t>},
      {"s32", compute<F, int32_t>},  {"u32", compute<F, uint32_t>},       {"b32", compute<F, uint32_t>},
      {"s64", compute<F, int64_t>},  {"u64", compute<F, uint64_t>},       {"b64", compute<F, uint64_t>},
      {"pred", compute<F, uint8_t>}, {"s16x2", computePairs<F, int16_t>}, {"u16x2", computePairs<F, uint16_t>},
      {"b8", compute<F, uint8_t>}};
  auto known = all.find(type);
  return known == all.end() ? nullptr : known->second;
}
template <class F> Run floats(const std::string &type) {
  return type == "f32" ? compute<F, float> : type == "f64" ? compute<F, double> : nullptr;
}
template <class F> Run halves(const std::string &type) {
  return type == "f16" ? compute<F, Half> : type == "f16x2" ? computePairs<F, Half> : nullptr;
}
template <class F> Run numbers(const std::string &type) {
  Run run = integers<F>(type);
  run = run ? run : floats<F>(type);
  return run ? run : halves<F>(type);
}

/// The smallest or largest of two.
template <class F> Run extreme(const Parts &p) {
  if (has(p, "relu"))
    return integers<Relu<F>>(p.back());
  return has(p, "NaN") ? floats<OrNan<F>>(p.back()) : numbers<F>(p.back());
}

/// Of floats; 16-bit ones have their own.
template <class F> Run floatsOrHalves(const std::string &type) {
  Run run = floats<F>(type);
  return run ? run : halves<F>(type);
}

using Find = Run (*)(const Parts &);
const std::map<std::string, Find> kFamilies = {
    {"mul", [](const Parts &p) { return has(p, "hi") ? integers<MulHigh>(p.back()) : numbers<Mul>(p.back()); }},
    {"not", [](const Parts &p) { return integers<Not>(p.back()); }},
    {"add", [](const Parts &p) { return numbers<Add>(p.back()); }},
    {"sub", [](const Parts &p) { return numbers<Sub>(p.back()); }},
    {"mad", [](const Parts &p) { return has(p, "lo") ? integers<Mad>(p.back()) : nullptr; }},
    {"fma", [](const Parts &p) { return floatsOrHalves<Fma>(p.back()); }},
    {"div",
     [](const Parts &p) {
       Run run = integers<Div>(p.back());
       return run ? run : floats<Div>(p.back());
     }},
    {"rem", [](const Parts &p) { return integers<Rem>(p.back()); }},
    {"min", [](const Parts &p) { return extreme<Min>(p); }},
    {"max", [](const Parts &p) { return extreme<Max>(p); }},
    {"abs",
     [](const Parts &p) {
       Run run = halves<AbsHalf>(p.back());
       run = run ? run : floats<Abs>(p.back());
       return run ? run : integers<Abs>(p.back());
     }},
    {"neg", [](const Parts &p) { return numbers<Neg>(p.back()); }},
    {"sqrt", [](const Parts &p) { return has(p, "rn") ? floats<Sqrt>(p.back()) : nullptr; }},
    {"rcp",
     [](const Parts &p) -> Run {
       if (has(p, "approx"))
         return has(p, "ftz") && p.back() == "f32" ? compute<ApproximateReciprocal, float> : nullptr;
       return has(p, "rn") ? floats<Reciprocal>(p.back()) : nullptr;
     }},
    {"ex2", [](const Parts &p) -> Run { return has(p, "ftz") && p.back() == "f32" ? compute<Exp2, float> : nullptr; }},
    {"copysign", [](const Parts &p) { return floats<CopySign>(p.back()); }},
    {"and", [](const Parts &p) { return integers<And>(p.back()); }},
    {"or", [](const Parts &p) { return integers<Or>(p.back()); }},
    {"xor", [](const Parts &p) { return integers<Xor>(p.back()); }},
};

} // namespace

Run findArithmetic(const Parts &parts) {
  auto family = kFamilies.find(parts[0]);
  const bool isOther = has(parts, "cc") || has(parts, "wide") || parts == Parts{"not", "pred"};
  return family == kFamilies.end() || isOther ? nullptr : family->second(parts);
}

} // namespace burin::test::ptx
