// What each PTX instruction does, as the manual of the instruction set says (PTX ISA 8.0, chapter 9).
#include "test/gpu/emulator/Fragments.h"
#include "test/gpu/ptx/PtxTypes.h"
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <sstream>

namespace burin::test::ptx {
namespace {

// ---- other operands

template <class T> void shiftLeft(Thread &t, const Instruction &i) {
  uint32_t by = t.get<uint32_t>(i.from[1]);
  t.put<T>(i.to[0], by >= uint32_t(kBits<T>) ? T(0) : T(uint64_t(t.get<T>(i.from[0])) << by));
}
template <class T> void shiftRight(Thread &t, const Instruction &i) {
  uint32_t by = std::min(t.get<uint32_t>(i.from[1]), uint32_t(kBits<T>));
  T x = t.get<T>(i.from[0]);
  t.put<T>(i.to[0], by == uint32_t(kBits<T>) ? T(std::is_signed_v<T> && x < T(0) ? -1 : 0) : T(x >> by));
}
template <class T> void multiplyWide(Thread &t, const Instruction &i) {
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  Wide product = Wide(t.get<T>(i.from[0])) * Wide(t.get<T>(i.from[1]));
  sizeof(T) == 4 ? t.put(i.to[0], uint64_t(product)) : t.put(i.to[0], uint32_t(product));
}
template <class T> void extractField(Thread &t, const Instruction &i) {
  uint32_t from = t.get<uint32_t>(i.from[1]) & 0xFF, length = t.get<uint32_t>(i.from[2]) & 0xFF;
  T x = t.get<T>(i.from[0]);
  if (length == 0)
    return t.put<T>(i.to[0], 0);
  const uint32_t last = std::min(from + length - 1, uint32_t(kBits<T> - 1));
  uint64_t bits = from >= uint32_t(kBits<T>) ? 0 : uint64_t(Unsigned<T>(x)) >> from;
  const bool sign = std::is_signed_v<T> && (uint64_t(Unsigned<T>(x)) >> last & 1);
  const uint64_t mask = length >= 64 ? ~uint64_t(0) : (uint64_t(1) << length) - 1;
  const uint32_t known = from > last ? 0 : last - from + 1;
  const uint64_t real = known >= 64 ? ~uint64_t(0) : (uint64_t(1) << known) - 1;
  t.put<T>(i.to[0], T((bits & mask & real) | (sign ? ~real : 0)));
}
void insertField(Thread &t, const Instruction &i) { // bfi.b32
  uint32_t a = t.get<uint32_t>(i.from[0]), b = t.get<uint32_t>(i.from[1]);
  uint32_t at = t.get<uint32_t>(i.from[2]) & 0xFF, length = t.get<uint32_t>(i.from[3]) & 0xFF;
  uint64_t mask = at >= 32 ? 0 : (((uint64_t(1) << std::min(length, 32u)) - 1) << at) & 0xFFFFFFFF;
  t.put(i.to[0], uint32_t((b & ~mask) | (uint64_t(a) << std::min(at, 32u) & mask)));
}
void permuteBytes(Thread &t, const Instruction &i) { // prmt.b32
  uint64_t both = uint64_t(t.get<uint32_t>(i.from[1])) << 32 | t.get<uint32_t>(i.from[0]);
  uint32_t selector = t.get<uint32_t>(i.from[2]), result = 0;
  for (uint32_t n = 0; n < 4; ++n) {
    uint32_t choice = selector >> 4 * n & 0xF, byte = uint32_t(both >> 8 * (choice & 7) & 0xFF);
    if (choice & 8) // its sign
      byte = byte & 0x80 ? 0xFF : 0;
    result |= byte << 8 * n;
  }
  t.put(i.to[0], result);
}
void funnelRight(Thread &t, const Instruction &i) { // shf.r.wrap.b32
  uint64_t both = uint64_t(t.get<uint32_t>(i.from[1])) << 32 | t.get<uint32_t>(i.from[0]);
  t.put(i.to[0], uint32_t(both >> (t.get<uint32_t>(i.from[2]) & 31)));
}
void funnelLeft(Thread &t, const Instruction &i) { // shf.l.wrap.b32
  uint64_t both = uint64_t(t.get<uint32_t>(i.from[1])) << 32 | t.get<uint32_t>(i.from[0]);
  t.put(i.to[0], uint32_t(both << (t.get<uint32_t>(i.from[2]) & 31) >> 32));
}
template <class T> void leadingZeros(Thread &t, const Instruction &i) {
  t.put(i.to[0], uint32_t(std::countl_zero(t.get<T>(i.from[0]))));
}
template <class T> void select(Thread &t, const Instruction &i) {
  t.put(i.to[0], t.get<T>(i.from[t.get<uint8_t>(i.from[2]) ? 0 : 1]));
}
void notPredicate(Thread &t, const Instruction &i) { t.put(i.to[0], uint8_t(!t.get<uint8_t>(i.from[0]))); }

/// add.cc, addc, addc.cc, sub.cc, subc, subc.cc: `target` bit 0: takes the carry, bit 1: leaves one, bit 2: subtracts.
template <class T> void withCarry(Thread &t, const Instruction &i) {
  unsigned __int128 a = t.get<T>(i.from[0]), b = t.get<T>(i.from[1]), in = i.target & 1 ? t.carry : 0;
  unsigned __int128 result = i.target & 4 ? a - b - in : a + b + in;
  if (i.target & 2)
    t.carry = uint64_t(result >> kBits<T>) & 1;
  t.put(i.to[0], T(result));
}

// ---- comparisons: `target` is the place in this list
const char *const kComparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                    "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

template <class T> bool holds(uint32_t which, T a, T b) {
  const bool unordered = isNan(a) || isNan(b);
  if (which >= 12)
    return unordered == (which == 13);
  if (unordered)
    return which >= 6;
  switch (which % 6) {
  case 0:
    return a == b;
  case 1:
    return a != b;
  case 2:
    return a < b;
  case 3:
    return a <= b;
  case 4:
    return a > b;
  default:
    return a >= b;
  }
}
template <class T> void compare(Thread &t, const Instruction &i) {
  t.put(i.to[0], uint8_t(holds(i.target, t.get<T>(i.from[0]), t.get<T>(i.from[1]))));
}
void comparePairs(Thread &t, const Instruction &i) {
  using Pair = std::array<Half, 2>;
  Pair a = t.get<Pair>(i.from[0]), b = t.get<Pair>(i.from[1]);
  for (size_t n = 0; n < 2; ++n)
    t.put(i.to[n], uint8_t(holds(i.target, a[n], b[n])));
}

Run findComparison(const std::string &type) {
  static const std::map<std::string, Run> all = {
      {"s16", compare<int16_t>},  {"u16", compare<uint16_t>}, {"b16", compare<uint16_t>}, {"s32", compare<int32_t>},
      {"u32", compare<uint32_t>}, {"b32", compare<uint32_t>}, {"s64", compare<int64_t>},  {"u64", compare<uint64_t>},
      {"b64", compare<uint64_t>}, {"f16", compare<Half>},     {"f32", compare<float>},    {"f64", compare<double>},
      {"f16x2", comparePairs}};
  auto known = all.find(type);
  return known == all.end() ? nullptr : known->second;
}

// ---- conversions: `target` is the rounding
enum Rounding : uint32_t { Nearest, ToEven, Down, Up, ToZero };

template <class T> T rounded(uint32_t how, T x) {
  double wide = double(x);
  return T(how == ToEven   ? std::nearbyint(wide)
           : how == Down   ? std::floor(wide)
           : how == Up     ? std::ceil(wide)
           : how == ToZero ? std::trunc(wide)
                           : wide);
}
template <class To, class From> void convert(Thread &t, const Instruction &i) {
  From x = t.get<From>(i.from[0]);
  if constexpr (isFloat<From> && isFloat<To>) {
    t.put(i.to[0], std::is_same_v<To, From> ? To(rounded(i.target, x)) : To(x));
  } else if constexpr (isFloat<From>) {
    double wide = double(rounded(i.target, x));
    To result = isNan(wide)                                                ? To(0)
                : wide >= std::ldexp(1.0, std::numeric_limits<To>::digits) ? std::numeric_limits<To>::max()
                : wide <= double(std::numeric_limits<To>::min())           ? std::numeric_limits<To>::min()
                                                                           : To(wide);
    t.put(i.to[0], result);
  } else if constexpr (isFloat<To>) {
    t.put(i.to[0], To(x));
  } else { // a register is wider than the type in it: the sign fills it
    std::is_signed_v<From> ? t.put(i.to[0], To(int64_t(x))) : t.put(i.to[0], To(uint64_t(x)));
    if constexpr (sizeof(To) == 1)
      t.put(i.to[0], std::is_signed_v<To> ? uint32_t(int32_t(To(x))) : uint32_t(To(x)));
  }
}
void convertToPair(Thread &t, const Instruction &i) { // cvt.rn.f16x2.f32: the first operand becomes the upper half
  t.put(i.to[0], std::array<Half, 2>{Half(t.get<float>(i.from[1])), Half(t.get<float>(i.from[0]))});
}

template <class To> Run conversionFrom(const std::string &from) {
  static const std::map<std::string, Run> all = {
      {"s8", convert<To, int8_t>},    {"u8", convert<To, uint8_t>},   {"s16", convert<To, int16_t>},
      {"u16", convert<To, uint16_t>}, {"s32", convert<To, int32_t>},  {"u32", convert<To, uint32_t>},
      {"s64", convert<To, int64_t>},  {"u64", convert<To, uint64_t>}, {"f16", convert<To, Half>},
      {"f32", convert<To, float>},    {"f64", convert<To, double>}};
  auto known = all.find(from);
  return known == all.end() ? nullptr : known->second;
}
Run findConversion(const std::string &to, const std::string &from) {
  using Find = Run (*)(const std::string &);
  static const std::map<std::string, Find> all = {
      {"s8", conversionFrom<int8_t>},    {"u8", conversionFrom<uint8_t>},   {"s16", conversionFrom<int16_t>},
      {"u16", conversionFrom<uint16_t>}, {"s32", conversionFrom<int32_t>},  {"u32", conversionFrom<uint32_t>},
      {"s64", conversionFrom<int64_t>},  {"u64", conversionFrom<uint64_t>}, {"f16", conversionFrom<Half>},
      {"f32", conversionFrom<float>},    {"f64", conversionFrom<double>}};
  auto known = all.find(to);
  return known == all.end() ? nullptr : known->second(from);
}

// ---- memory, moves, control

uint64_t loaded(const std::byte *from, uint32_t bytes, bool isSigned) {
  uint64_t value = 0;
  std::memcpy(&value, from, bytes);
  const bool fills = isSigned && bytes < 8 && (value >> (8 * bytes - 1) & 1);
  return fills ? value | ~uint64_t(0) << 8 * bytes : value;
}
template <bool isSigned> void load(Thread &t, const Instruction &i) {
  const std::byte *at = t.memory(i, /*writes=*/false);
  for (size_t n = 0; n < i.to.size(); ++n)
    t.put(i.to[n], loaded(at + n * i.bytes, i.bytes, isSigned));
}
void store(Thread &t, const Instruction &i) {
  std::byte *at = t.memory(i, /*writes=*/true);
  for (size_t n = 0; n < i.to.size(); ++n) {
    uint64_t value = t.bits(i.to[n]);
    std::memcpy(at + n * i.bytes, &value, i.bytes);
  }
}
void loadParameter(Thread &t, const Instruction &i) {
  uint64_t value = t.frame().slots[i.from[0].index] >> 8 * i.from[0].number;
  t.put(i.to[0], i.bytes == 8 ? value : value & ((uint64_t(1) << 8 * i.bytes) - 1));
}
void storeParameter(Thread &t, const Instruction &i) { t.frame().slots[i.from[0].index] = t.bits(i.to[0]); }
void atomicMin(Thread &t, const Instruction &i) { // atom.global.min.s64
  std::byte *at = t.memory(i, /*writes=*/true, /*atomic=*/true);
  int64_t old;
  std::memcpy(&old, at, sizeof old);
  int64_t least = std::min(old, t.get<int64_t>(i.from[1]));
  std::memcpy(at, &least, sizeof least);
  t.put(i.to[0], old);
}
/// Of one register, of a vector into one, or of one into a vector.
template <class T> void move(Thread &t, const Instruction &i) {
  if (i.to.size() == 1 && i.from[1].kind == Operand::Kind::Number)
    return t.put(i.to[0], t.get<T>(i.from[0]));
  constexpr uint32_t half = kBits<T> / 2;
  constexpr uint64_t mask = (uint64_t(1) << half) - 1;
  if (i.to.size() == 1)
    return t.put(i.to[0], T((t.bits(i.from[1]) & mask) << half | (t.bits(i.from[0]) & mask)));
  uint64_t all = t.bits(i.from[0]);
  t.put(i.to[0], all & mask);
  t.put(i.to[1], all >> half & mask);
}
void branch(Thread &t, const Instruction &i) { t.frame().next = i.target; }
void barrier(Thread &t, const Instruction &) { t.waiting = Waiting::AtBarrier; }
std::vector<std::string> partsOf(const std::string &name) {
  std::vector<std::string> parts;
  std::istringstream words(name);
  for (std::string part; std::getline(words, part, '.');)
    parts.push_back(part);
  return parts;
}

Run findMemory(const std::vector<std::string> &parts, Instruction &i) {
  const std::string &type = parts.back();
  i.bytes = uint8_t(std::stoi(type.substr(1)) / 8);
  const bool isLoad = parts[0] == "ld", isParameter = has(parts, "param");
  if (isParameter)
    return isLoad ? loadParameter : storeParameter;
  return !isLoad ? store : type[0] == 's' ? load<true> : load<false>;
}

Run findCarry(const std::vector<std::string> &parts, Instruction &i) {
  if (!has(parts, "cc") && parts[0].size() == 3)
    return nullptr;
  i.target = (parts[0].back() == 'c') | has(parts, "cc") << 1 | (parts[0][0] == 's') << 2;
  return kBits<uint64_t> == std::stoi(parts.back().substr(1)) ? withCarry<uint64_t> : withCarry<uint32_t>;
}

Run findShift(const std::vector<std::string> &parts) {
  const std::string &type = parts.back();
  const int bits = std::stoi(type.substr(1));
  if (parts[0] == "shl")
    return bits == 16 ? shiftLeft<uint16_t> : bits == 32 ? shiftLeft<uint32_t> : shiftLeft<uint64_t>;
  if (type[0] == 's')
    return bits == 16 ? shiftRight<int16_t> : bits == 32 ? shiftRight<int32_t> : shiftRight<int64_t>;
  return bits == 16 ? shiftRight<uint16_t> : bits == 32 ? shiftRight<uint32_t> : shiftRight<uint64_t>;
}

Run findMul(const std::vector<std::string> &parts) {
  const std::string &type = parts.back();
  if (has(parts, "wide"))
    return type == "s32"   ? multiplyWide<int32_t>
           : type == "u32" ? multiplyWide<uint32_t>
           : type == "s16" ? multiplyWide<int16_t>
           : type == "u16" ? multiplyWide<uint16_t>
                           : nullptr;
  return nullptr; // found by findArithmetic()
}

void convertToBf16Pair(Thread &t, const Instruction &i) {
  t.put(i.to[0], fragments::packPair(fragments::Element::BF16, t.get<float>(i.from[1]), t.get<float>(i.from[0])));
}

void roundToTf32(Thread &t, const Instruction &i) { t.put(i.to[0], fragments::roundToTf32(t.get<float>(i.from[0]))); }

Run findConvert(const std::vector<std::string> &parts, Instruction &i) {
  if (parts == Parts{"cvt", "rna", "tf32", "f32"})
    return roundToTf32;
  i.target = has(parts, "rni")   ? ToEven
             : has(parts, "rmi") ? Down
             : has(parts, "rpi") ? Up
             : has(parts, "rzi") ? ToZero
                                 : Nearest;
  if (has(parts, "rz") || has(parts, "ftz") || has(parts, "sat"))
    return nullptr;
  if (has(parts, "bf16x2"))
    return convertToBf16Pair;
  return has(parts, "f16x2") ? convertToPair : findConversion(parts[parts.size() - 2], parts.back());
}

Run findMove(const std::string &type) {
  const int bits = type == "pred" ? 8 : std::stoi(type.substr(1));
  return bits == 8 ? move<uint8_t> : bits == 16 ? move<uint16_t> : bits == 32 ? move<uint32_t> : move<uint64_t>;
}

Run findSelect(const std::string &type) {
  const int bits = std::stoi(type.substr(1));
  return bits == 16 ? select<uint16_t> : bits == 32 ? select<uint32_t> : select<uint64_t>;
}

using Find = Run (*)(const Parts &, Instruction &);
const std::map<std::string, Find> kFamilies = {
    {"add", findCarry}, // the others are found by findArithmetic()
    {"sub", findCarry},
    {"addc", findCarry},
    {"subc", findCarry},
    {"mul", [](const Parts &p, Instruction &) { return findMul(p); }},
    {"not", [](const Parts &p, Instruction &) -> Run { return p.back() == "pred" ? notPredicate : nullptr; }},
    {"shl", [](const Parts &p, Instruction &) { return findShift(p); }},
    {"shr", [](const Parts &p, Instruction &) { return findShift(p); }},
    {"shf",
     [](const Parts &p, Instruction &) -> Run {
       return !has(p, "wrap") ? nullptr : has(p, "l") ? funnelLeft : has(p, "r") ? funnelRight : nullptr;
     }},
    {"bfe",
     [](const Parts &p, Instruction &) {
       return p.back() == "s32"   ? extractField<int32_t>
              : p.back() == "u32" ? extractField<uint32_t>
              : p.back() == "s64" ? extractField<int64_t>
                                  : extractField<uint64_t>;
     }},
    {"bfi", [](const Parts &p, Instruction &) { return p.back() == "b32" ? insertField : nullptr; }},
    {"prmt", [](const Parts &, Instruction &) -> Run { return permuteBytes; }},
    {"clz",
     [](const Parts &p, Instruction &) { return p.back() == "b64" ? leadingZeros<uint64_t> : leadingZeros<uint32_t>; }},
    {"selp", [](const Parts &p, Instruction &) { return findSelect(p.back()); }},
    {"setp",
     [](const Parts &p, Instruction &i) -> Run {
       auto known = std::ranges::find(kComparisons, p.at(1), [](const char *c) { return std::string(c); });
       i.target = uint32_t(known - std::begin(kComparisons));
       return p.size() != 3 || known == std::end(kComparisons) ? nullptr : findComparison(p.back());
     }},
    {"cvt", findConvert},
    {"cvta", [](const Parts &, Instruction &) -> Run { return move<uint64_t>; }}, // all spaces are one
    {"mov", [](const Parts &p, Instruction &) { return findMove(p.back()); }},
    {"ld", findMemory},
    {"st", findMemory},
    {"atom",
     [](const Parts &p, Instruction &i) -> Run {
       i.bytes = 8;
       return has(p, "min") && p.back() == "s64" ? atomicMin : nullptr;
     }},
    {"bra", [](const Parts &, Instruction &) -> Run { return branch; }},
    {"bar", [](const Parts &p, Instruction &i) { return p == Parts{"bar", "sync"} ? barrier : findPhases(p, i); }},
    {"shfl", findWarp},
    {"mma", findWarp},
    {"ldmatrix", findWarp},
    {"cp", findWarp},
    {"mbarrier", findPhases},
    {"fence", findPhases},
    {"wgmma", findPhases},
    {"setmaxnreg", findPhases},
    {"griddepcontrol", // launches follow each other here
     [](const Parts &p, Instruction &) -> Run {
       return p.back() == "wait" ? [](Thread &, const Instruction &) {} : Run();
     }},
    {"call", [](const Parts &, Instruction &) -> Run { return callFunction; }},
    {"ret", [](const Parts &, Instruction &) -> Run { return returnFromFunction; }},
};

} // namespace

Run find(const std::string &name, Instruction &i) {
  Parts parts = partsOf(name);
  if (Run run = findArithmetic(parts))
    return run;
  auto family = kFamilies.find(parts[0]);
  return family == kFamilies.end() ? nullptr : family->second(parts, i);
}

} // namespace burin::test::ptx
