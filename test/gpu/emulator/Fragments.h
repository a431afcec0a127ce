// How matrices lie in the registers of a warp, as PTX says for mma.m16n8k16 and ldmatrix (PTX ISA, 9.7.14), and for
// wgmma in the registers of a warpgroup and in shared memory (9.7.15): shared by the emulator and the interpreter, and
// checked against CuTe's layouts in FragmentTest.cpp.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace burin::test::fragments {

inline constexpr int kLanes = 32;

struct Place {
  int row, column;
  friend bool operator==(const Place &, const Place &) = default;
};

/// Elements of a lane, two of 16 bits per register: the left side, 16 x 16.
constexpr Place leftPlace(int lane, int i) { return {lane / 4 + i / 2 % 2 * 8, lane % 4 * 2 + i % 2 + i / 4 * 8}; }
/// The right side, 16 x 8: the row is the step of the sum.
constexpr Place rightPlace(int lane, int i) { return {lane % 4 * 2 + i % 2 + i / 2 * 8, lane / 4}; }
/// The sum, 16 x 8, one f32 per register.
constexpr Place sumPlace(int lane, int i) { return {lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2}; }
/// The same with elements of 32 bits, one per register: the left side, 16 x 8, and the right side, 8 x 8 (mma.m16n8k8).
constexpr Place wideLeftPlace(int lane, int i) { return {lane / 4 + i % 2 * 8, lane % 4 + i / 2 * 4}; }
constexpr Place wideRightPlace(int lane, int i) { return {lane % 4 + i * 4, lane / 4}; }
/// The same with bytes, four per register: the left side, 16 x 32, and the right side, 32 x 8 (mma.m16n8k32).
constexpr Place byteLeftPlace(int lane, int i) { return {lane / 4 + i / 4 % 2 * 8, lane % 4 * 4 + i % 4 + i / 8 * 16}; }
constexpr Place byteRightPlace(int lane, int i) { return {lane % 4 * 4 + i % 4 + i / 4 * 16, lane / 4}; }
/// An 8 x 8 matrix of 16-bit elements that ldmatrix reads.
constexpr Place matrixPlace(int lane, int i, bool transposed) {
  Place place{lane / 4, lane % 4 * 2 + i};
  return transposed ? Place{place.column, place.row} : place;
}

/// The sum of a warpgroup, 64 rows, one f32 per register.
inline constexpr int kGroupLanes = 128;
constexpr Place groupSumPlace(int thread, int i) {
  return {thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8, i / 4 * 8 + thread % 4 * 2 + i % 2};
}
/// Elements of a thread, two of 16 bits per register: the left side of a warpgroup, 64 x 16.
constexpr Place groupLeftPlace(int thread, int i) {
  return {thread / kLanes * 16 + leftPlace(thread % kLanes, i).row, leftPlace(thread % kLanes, i).column};
}

/// A matrix in shared memory as wgmma knows it: eight lines of 64 or 128 bytes are a group.
struct Descriptor {
  uint64_t bits;
  uint32_t start() const { return uint32_t(bits & 0x3FFF) << 4; }
  uint32_t panelBytes() const { return uint32_t(bits >> 16 & 0x3FFF) << 4; }
  uint32_t groupBytes() const { return uint32_t(bits >> 32 & 0x3FFF) << 4; }
  /// Whether lines have 64 or 128 bytes, the only ones that are known here, and groups begin at multiples of their
  /// size.
  bool isKnown() const { return (bits >> 62 == 1 || bits >> 62 == 2) && (bits >> 49 & 7) == 0; }
  uint32_t lineBytes() const { return bits >> 62 == 1 ? 128 : 64; }

  /// The address of an element of so many bytes, in a window of 256 KB. Lines are the rows of a matrix, `at` is the
  /// element in a row; or lines are steps, with all columns in panels of a line, of 16 bits each.
  uint32_t ofRow(int line, int at, int bytes = 2) const { return swizzled(inGroups(line) + uint32_t(at * bytes)); }
  uint32_t ofStep(int line, int column) const {
    const int panel = int(lineBytes()) / 2;
    return swizzled(inGroups(line) + uint32_t(column / panel) * panelBytes() + uint32_t(column % panel) * 2);
  }

private:
  uint32_t inGroups(int line) const {
    return start() + uint32_t(line / 8) * groupBytes() + uint32_t(line % 8) * lineBytes();
  }
  /// The two or three bits above 128 bytes choose another place for 16 bytes of a line.
  uint32_t swizzled(uint32_t address) const { return address ^ (address >> 7 & (lineBytes() / 16 - 1)) << 4; }
};

/// Of both operands; of bytes the left one comes first.
enum class Element : int32_t { F16, BF16, TF32, S8S8, S8U8, U8S8, U8U8, E4M3E4M3, E4M3E5M2, E5M2E4M3, E5M2E5M2 };

constexpr bool isOfIntegers(Element type) { return type >= Element::S8S8 && type <= Element::U8U8; }
constexpr bool isOfFloat8(Element type) { return type >= Element::E4M3E4M3; }
constexpr int bytesOf(Element type) { return type < Element::TF32 ? 2 : type == Element::TF32 ? 4 : 1; }

/// The type of wgmma in a text, with so many columns; nullopt if there is none that is known here.
inline std::optional<Element> elementOf(std::string_view text, unsigned columns) {
  constexpr std::pair<const char *, Element> kTypes[] = {
      {"k16.f32.f16.f16", Element::F16},        {"k16.f32.bf16.bf16", Element::BF16},
      {"k32.s32.s8.s8", Element::S8S8},         {"k32.s32.s8.u8", Element::S8U8},
      {"k32.s32.u8.s8", Element::U8S8},         {"k32.s32.u8.u8", Element::U8U8},
      {"k32.f32.e4m3.e4m3", Element::E4M3E4M3}, {"k32.f32.e4m3.e5m2", Element::E4M3E5M2},
      {"k32.f32.e5m2.e4m3", Element::E5M2E4M3}, {"k32.f32.e5m2.e5m2", Element::E5M2E5M2}};
  const std::string start = "wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns);
  for (auto [name, type] : kTypes)
    if (text.find(start + name + " ") != text.npos)
      return type;
  return std::nullopt;
}

inline float toFloat(Element type, uint16_t bits) {
  if (type == Element::BF16)
    return std::bit_cast<float>(uint32_t(bits) << 16);
  // As __extendhfsf2, which is a call for each element where the compiler may not use F16C.
  constexpr uint32_t kSpecial = 0x7C00;
  const uint32_t sign = uint32_t(bits & 0x8000) << 16, size = bits & 0x7FFF;
  const float scaled = std::bit_cast<float>(size << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | (size < kSpecial ? std::bit_cast<uint32_t>(scaled) : 0x7F800000 | size << 13));
}

/// A byte of the left or the right side.
inline double fromByte(Element type, bool isRight, uint8_t bits) {
  const int index = int(type) - int(isOfFloat8(type) ? Element::E4M3E4M3 : Element::S8S8);
  const bool isFirst = (isRight ? index % 2 : index / 2) == 0; // signed, or E4M3
  if (isOfIntegers(type))
    return isFirst ? double(int8_t(bits)) : double(bits);
  if (!isFirst)
    return double(std::bit_cast<_Float16>(uint16_t(bits << 8)));
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  const double unit = std::bit_cast<double>(uint64_t(1023 - 10 + std::max(exponent, 1)) << 52);
  const double size = double(exponent ? 8 + fraction : fraction) * unit;
  return (bits & 0x7F) == 0x7F ? std::nan("") : bits & 0x80 ? -size : size;
}

/// A sum as tensor cores of compute capability 9.0 have been observed to add products of 8-bit floats: bits of an
/// addend below 2^-13 of the power of two of the largest one are cut off.
inline float addCut(std::span<const double> addends) {
  constexpr int kFractionBits = 13, kBias = 1023, kMantissaBits = 52;
  constexpr uint64_t kSize = ~uint64_t(0) >> 1, kInfinity = uint64_t(2 * kBias + 1) << kMantissaBits;
  uint64_t largest = 0; // its bits, without the sign
  for (double x : addends)
    largest = std::max(largest, std::bit_cast<uint64_t>(x) & kSize);
  if (largest == 0 || largest >= kInfinity)
    return float(std::accumulate(addends.begin(), addends.end(), 0.0));
  auto powerOf2 = [](int exponent) { return std::bit_cast<double>(uint64_t(kBias + exponent) << kMantissaBits); };
  const int exponent = int(largest >> kMantissaBits) - kBias - kFractionBits; // no addend is a subnormal f64
  const double scale = powerOf2(-exponent);
  int32_t sum = 0;
  for (double x : addends)
    sum += int32_t(x * scale);
  return float(sum * powerOf2(exponent));
}

/// Rounded to the nearest, ties to even.
inline uint16_t fromFloat(Element type, float x) {
  if (type == Element::F16)
    return std::bit_cast<uint16_t>(_Float16(x));
  uint32_t bits = std::bit_cast<uint32_t>(x);
  if (x != x)
    return 0x7FFF;
  return uint16_t((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
inline uint32_t packPair(Element type, float low, float high) {
  return fromFloat(type, low) | uint32_t(fromFloat(type, high)) << 16;
}

/// What a lane hands in and gets: registers. Sums are f32, or i32 of bytes.
struct Multiplied {
  std::array<uint32_t, 4> left;
  std::array<uint32_t, 2> right;
  std::array<uint32_t, 4> sum;
};

/// The bits of an f32 that tf32 has not.
inline constexpr uint32_t kBelowTf32 = (1u << 13) - 1;
/// Rounded to the nearest, ties away from zero (cvt.rna.tf32.f32).
inline uint32_t roundToTf32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), infinity = 0x7F800000;
  if (x != x)
    return 0x7FFFE000;
  return (bits & infinity) == infinity ? bits : (bits + (kBelowTf32 + 1) / 2) & ~kBelowTf32;
}
/// NaN for what has not been rounded: PTX does not say what the hardware makes of it.
inline float fromTf32(uint32_t bits) { return std::bit_cast<float>(bits & kBelowTf32 ? 0x7FC00000 : bits); }

/// left * right + sum of bytes; sums wrap.
inline void multiplyBytes(Element type, std::array<Multiplied *, kLanes> lanes) {
  constexpr int kRows = 16, kSteps = 32, kColumns = 8;
  int32_t left[kRows][kSteps], right[kSteps][kColumns];
  auto byte = [](auto &registers, int i, bool isSigned) {
    const auto bits = uint8_t(registers[size_t(i / 4)] >> i % 4 * 8);
    return isSigned ? int32_t(int8_t(bits)) : int32_t(bits);
  };
  const bool isLeftSigned = type == Element::S8S8 || type == Element::S8U8;
  const bool isRightSigned = type == Element::S8S8 || type == Element::U8S8;
  for (int lane = 0; lane < kLanes; ++lane) {
    Multiplied &m = *lanes[size_t(lane)];
    for (int i = 0; i < 16; ++i)
      left[byteLeftPlace(lane, i).row][byteLeftPlace(lane, i).column] = byte(m.left, i, isLeftSigned);
    for (int i = 0; i < 8; ++i)
      right[byteRightPlace(lane, i).row][byteRightPlace(lane, i).column] = byte(m.right, i, isRightSigned);
  }
  int32_t products[kRows][kColumns] = {};
  for (int row = 0; row < kRows; ++row)
    for (int step = 0; step < kSteps; ++step)
      for (int column = 0; column < kColumns; ++column)
        products[row][column] += left[row][step] * right[step][column];
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < 4; ++i)
      lanes[size_t(lane)]->sum[size_t(i)] += uint32_t(products[sumPlace(lane, i).row][sumPlace(lane, i).column]);
}

/// left * right + sum, exact but for the rounding of the whole sum: hardware may round more often.
inline void multiply(Element type, std::array<Multiplied *, kLanes> lanes) {
  if (isOfIntegers(type))
    return multiplyBytes(type, lanes);
  constexpr int kRows = 16, kMostSteps = 16, kColumns = 8;
  const bool isWide = type == Element::TF32;
  const int steps = isWide ? 8 : kMostSteps;
  double left[kRows][kMostSteps], right[kMostSteps][kColumns], sums[kRows][kColumns];
  auto half = [](auto &registers, int i) { return uint16_t(registers[size_t(i / 2)] >> i % 2 * 16); };
  for (int lane = 0; lane < kLanes; ++lane) {
    Multiplied &m = *lanes[size_t(lane)];
    for (int i = 0; isWide && i < 4; ++i)
      left[wideLeftPlace(lane, i).row][wideLeftPlace(lane, i).column] = double(fromTf32(m.left[size_t(i)]));
    for (int i = 0; isWide && i < 2; ++i)
      right[wideRightPlace(lane, i).row][wideRightPlace(lane, i).column] = double(fromTf32(m.right[size_t(i)]));
    for (int i = 0; !isWide && i < 8; ++i)
      left[leftPlace(lane, i).row][leftPlace(lane, i).column] = double(toFloat(type, half(m.left, i)));
    for (int i = 0; !isWide && i < 4; ++i)
      right[rightPlace(lane, i).row][rightPlace(lane, i).column] = double(toFloat(type, half(m.right, i)));
  }
  auto forSums = [&](auto body) {
    for (int lane = 0; lane < kLanes; ++lane)
      for (int i = 0; i < 4; ++i)
        body(lanes[size_t(lane)]->sum[size_t(i)], sums[sumPlace(lane, i).row][sumPlace(lane, i).column]);
  };
  forSums([](uint32_t bits, double &sum) { sum = double(std::bit_cast<float>(bits)); });
  for (int row = 0; row < kRows; ++row)
    for (int step = 0; step < steps; ++step)
      for (int column = 0; column < kColumns; ++column)
        sums[row][column] += left[row][step] * right[step][column];
  forSums([](uint32_t &bits, double sum) { bits = std::bit_cast<uint32_t>(float(sum)); });
}

/// Four matrices, whose rows the lanes point to, as a register each.
inline void loadMatrices(const std::array<const uint16_t *, kLanes> &rows, bool transposed,
                         std::array<std::array<uint32_t, 4>, kLanes> &result) {
  for (int lane = 0; lane < kLanes; ++lane)
    for (int m = 0; m < 4; ++m) {
      uint32_t both = 0;
      for (int i = 0; i < 2; ++i) {
        Place at = matrixPlace(lane, i, transposed);
        both |= uint32_t(rows[size_t(m) * 8 + size_t(at.row)][at.column]) << 16 * i;
      }
      result[size_t(lane)][size_t(m)] = both;
    }
}

} // namespace burin::test::fragments
