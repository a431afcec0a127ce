// The fragments that emulator and interpreter take for those of the hardware are those of CuTe: the layouts of
// MMA_Traits<SM80_16x8x16_F32F16F16F32_TN, SM80_16x8x8_F32TF32TF32F32_TN, SM80_16x8x32_S32S8S8S32_TN> and
// Copy_Traits<SM75_U32x4_LDSM_N, SM75_U16x8_LDSM_T> (PyPI nvidia-cutlass 4.2) map a thread and a value to a position,
// column by column. Those of warpgroups are CLayout_64x128, ALayout_64x16 and what tile_to_shape() makes of
// Layout_K_SW64_Atom for 64 x 32, of Layout_MN_SW64_Atom for 128 x 64 and of Layout_K_SW128_Atom for 128 x 64, all of
// half_t, and of the last one for 128 x 128 of bytes; the descriptors are GmmaDescriptor with the strides that
// make_gmma_desc() finds there. Bulk copies by a tensor map with the swizzle of an atom fill these layouts, as
// SM90_TMA_LOAD does in CuTe.
#include "burin/narrow_float.h"
#include "test/gpu/driver/TensorMap.h"
#include "test/gpu/emulator/Fragments.h"
#include <catch2/catch.hpp>
#include <cmath>
#include <utility>
#include <vector>

using namespace burin::test::fragments;

namespace {

/// A layout of CuTe: sizes and strides of the modes of the threads, then of the values.
struct Layout {
  std::vector<std::pair<int, int>> threads, values;
  int operator()(int thread, int value) const { return walk(threads, thread) + walk(values, value); }

private:
  static int walk(const std::vector<std::pair<int, int>> &modes, int i) {
    int at = 0;
    for (auto [size, stride] : modes)
      at += i % size * stride, i /= size;
    return at;
  }
};

const Layout kLeft{{{4, 32}, {8, 1}}, {{2, 16}, {2, 8}, {2, 128}}};     // of 16 x 16
const Layout kRight{{{4, 16}, {8, 1}}, {{2, 8}, {2, 64}}};              // of 8 x 16
const Layout kSum{{{4, 32}, {8, 1}}, {{2, 16}, {2, 8}}};                // of 16 x 8
const Layout kWideLeft{{{4, 16}, {8, 1}}, {{2, 8}, {2, 64}}};           // of 16 x 8
const Layout kWideRight{{{4, 8}, {8, 1}}, {{2, 32}}};                   // of 8 x 8
const Layout kByteLeft{{{4, 64}, {8, 1}}, {{4, 16}, {2, 8}, {2, 256}}}; // of 16 x 32
const Layout kByteRight{{{4, 32}, {8, 1}}, {{4, 8}, {2, 128}}};         // of 8 x 32
/// Bits of the 8 rows of 128 bits that eight threads point to.
const Layout kTransposed{{{4, 256}, {8, 16}}, {{16, 1}, {2, 128}}};

const Layout kGroupSum{{{4, 128}, {8, 1}, {4, 16}}, {{2, 64}, {2, 8}, {16, 512}}}; // of 64 x 128
const Layout kGroupLeft{{{4, 128}, {8, 1}, {4, 16}}, {{2, 64}, {2, 8}, {2, 512}}}; // of 64 x 16
/// In shared memory, elements: rows, then steps; columns, then steps.
const Layout kRowsOfSteps{{{8, 32}, {8, 256}}, {{32, 1}}};
const Layout kStepsOfColumns{{{32, 1}, {4, 2048}}, {{8, 32}, {8, 256}}};
const Layout kWideRowsOfSteps{{{8, 64}, {16, 512}}, {{64, 1}}};
const Layout kByteRowsOfSteps{{{8, 128}, {16, 1024}}, {{128, 1}}};
/// Swizzle<2, 3, 3> and Swizzle<3, 3, 3> of elements of two bytes.
int swizzled(int at) { return at ^ (at & 3 << 6) >> 3; }
int wideSwizzled(int at) { return at ^ (at & 7 << 6) >> 3; }
/// Swizzle<3, 4, 3> of bytes.
int byteSwizzled(int at) { return at ^ (at & 7 << 7) >> 3; }

} // namespace

TEST_CASE("Matrices of warpgroups lie in registers and in shared memory as CuTe says") {
  for (int thread = 0; thread < kGroupLanes; ++thread)
    for (int i = 0; i < 64; ++i)
      CHECK(groupSumPlace(thread, i).row + 64 * groupSumPlace(thread, i).column == kGroupSum(thread, i));
  for (int thread = 0; thread < kGroupLanes; ++thread)
    for (int i = 0; i < 8; ++i)
      CHECK(groupLeftPlace(thread, i).row + 64 * groupLeftPlace(thread, i).column == kGroupLeft(thread, i));
  constexpr uint32_t kStart = 1024;
  const Descriptor right{0x8000002001000000 | kStart >> 4}, left{0x8000002000010000 | kStart >> 4};
  CHECK((right.isKnown() && right.start() == kStart && right.panelBytes() == 4096 && right.groupBytes() == 512));
  for (int row = 0; row < 64; ++row)
    for (int step = 0; step < 32; ++step)
      CHECK(int(left.ofRow(row, step)) == int(kStart) + 2 * swizzled(kRowsOfSteps(row, step)));
  for (int step = 0; step < 64; ++step)
    for (int column = 0; column < 128; ++column)
      CHECK(int(right.ofStep(step, column)) == int(kStart) + 2 * swizzled(kStepsOfColumns(column, step)));
  // The next 16 steps begin 32 bytes further, before the pieces of a line are in their order.
  const Descriptor next{left.bits + 2};
  for (int row = 0; row < 64; ++row)
    CHECK(next.ofRow(row, 0) == left.ofRow(row, 16));
}

TEST_CASE("Bytes that warpgroups multiply lie in shared memory as CuTe says, and have the values of their types") {
  constexpr int kStart = 1024;
  const Descriptor rows{0x4000004000010000 | kStart >> 4}, next{rows.bits + 2};
  for (int row = 0; row < 128; ++row) {
    for (int step = 0; step < 128; ++step)
      CHECK(int(rows.ofRow(row, step, 1)) == kStart + byteSwizzled(kByteRowsOfSteps(row, step)));
    CHECK(next.ofRow(row, 0, 1) == rows.ofRow(row, 32, 1));
  }
  for (int bits = 0; bits < 256; ++bits) {
    auto isSame = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
    const double narrow = burin::fromNarrowFloat(burin::DType::f8e4m3fn, uint16_t(bits)),
                 wide = burin::fromNarrowFloat(burin::DType::f8e5m2, uint16_t(bits));
    for (bool isRight : {false, true}) {
      CHECK(isSame(fromByte(isRight ? Element::E5M2E4M3 : Element::E4M3E5M2, isRight, uint8_t(bits)), narrow));
      CHECK(isSame(fromByte(isRight ? Element::E4M3E5M2 : Element::E5M2E4M3, isRight, uint8_t(bits)), wide));
      CHECK(fromByte(isRight ? Element::U8S8 : Element::S8U8, isRight, uint8_t(bits)) == int8_t(bits));
      CHECK(fromByte(isRight ? Element::S8U8 : Element::U8S8, isRight, uint8_t(bits)) == bits);
    }
  }
}

TEST_CASE("Sums of 8-bit floats lose the bits below 2^-13 of the largest addend") {
  auto sum = [](std::vector<double> addends) { return addCut(addends); };
  CHECK(sum({1, std::ldexp(1, -13)}) == 1 + std::ldexp(1.f, -13));
  CHECK(sum({1, std::ldexp(1, -14), std::ldexp(1, -14)}) == 1);
  CHECK(sum({-1.5, std::ldexp(-1.75, -13)}) == -1.5f - std::ldexp(1.f, -13));
  CHECK(sum({0, 0}) == 0);
  CHECK(std::isnan(sum({1, std::nan("")})));
}

TEST_CASE("Rows of 128 bytes, and boxes of bulk copies, lie in shared memory as CuTe says") {
  using burin::test::simt::TensorMap;
  constexpr uint32_t kStart = 2048, kRows = 128, kRow = 64, kColumns = 32, kPanels = 4, kLine = 64;
  const Descriptor left{0x4000004000010000 | kStart >> 4}, next{left.bits + 2};
  CHECK((left.isKnown() && left.lineBytes() == 128 && left.groupBytes() == 1024));
  for (uint32_t row = 0; row < kRows; ++row) {
    for (uint32_t step = 0; step < kRow; ++step)
      CHECK(int(left.ofRow(int(row), int(step))) ==
            int(kStart) + 2 * wideSwizzled(kWideRowsOfSteps(int(row), int(step))));
    CHECK(next.ofRow(int(row), 0) == left.ofRow(int(row), 16));
  }
  alignas(16) static std::byte memory[2 * kRows * kRow];
  const auto address = reinterpret_cast<uint64_t>(memory);
  std::string problem;
  const uint64_t rowSizes[] = {kRow, kRows}, rowStrides[] = {2 * kRow};
  const uint32_t rowBox[] = {kRow, kRows};
  const TensorMap rows = TensorMap::make(address, rowSizes, rowStrides, rowBox, 128, problem);
  const int32_t first[] = {0, 0, 0};
  CHECK((problem == "" && rows.check(2, kStart) == "" && rows.boxBytes() == sizeof memory));
  for (const auto &piece : rows.pieces(kStart, first)) {
    const auto at = int(piece.from - memory) / 2;
    CHECK(int(piece.to) == int(kStart) + 2 * wideSwizzled(kWideRowsOfSteps(at / int(kRow), at % int(kRow))));
    CHECK(piece.bytes == 16);
  }
  const uint64_t panelSizes[] = {kColumns, kLine, kPanels}, panelStrides[] = {2 * kColumns, 2 * kColumns * kLine};
  const uint32_t panelBox[] = {kColumns, kLine, kPanels};
  const TensorMap panels = TensorMap::make(address, panelSizes, panelStrides, panelBox, 64, problem);
  CHECK((problem == "" && panels.boxBytes() == sizeof memory));
  for (const auto &piece : panels.pieces(kStart, first)) {
    const auto at = int(piece.from - memory) / 2, column = at % int(kColumns), line = at / int(kColumns);
    const int step = line % int(kLine), panel = line / int(kLine);
    CHECK(int(piece.to) == int(kStart) + 2 * swizzled(kStepsOfColumns(panel * int(kColumns) + column, step)));
  }
  // What lies outside of the tensor is zeros: the last 8 rows of the box, and all but 24 elements of the others.
  const int32_t last[] = {kRow - 24, 8};
  size_t zeros = 0;
  for (const auto &piece : rows.pieces(kStart, last))
    zeros += piece.bytes == 0;
  CHECK(zeros == kRows * 8 - (kRows - 8) * 3);
  // What the driver refuses.
  auto refusal = [&](uint64_t at, uint64_t size, uint64_t stride, uint32_t box) {
    const uint64_t sizes[] = {size, kRows}, strides[] = {stride};
    const uint32_t boxes[] = {box, kRows};
    std::string why;
    (void)TensorMap::make(at, sizes, strides, boxes, 128, why);
    return why;
  };
  CHECK(refusal(address, kRow, 2 * kRow, kRow) == "");
  CHECK(refusal(address + 8, kRow, 2 * kRow, kRow) != "");
  CHECK(refusal(address, 0, 2 * kRow, kRow) != "");
  CHECK(refusal(address, kRow, 2 * kRow + 8, kRow) != "");
  CHECK(refusal(address, kRow, 2 * kRow, kRow / 2) != "");
  CHECK(TensorMap::load(std::array<std::byte, TensorMap::kBytes>{}.data()).check(2, kStart) != "");
}

TEST_CASE("Fragments lie in registers as CuTe says") {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 8; ++i)
      CHECK(leftPlace(lane, i).row + 16 * leftPlace(lane, i).column == kLeft(lane, i));
    for (int i = 0; i < 4; ++i) {
      CHECK(rightPlace(lane, i).column + 8 * rightPlace(lane, i).row == kRight(lane, i));
      CHECK(sumPlace(lane, i).row + 16 * sumPlace(lane, i).column == kSum(lane, i));
    }
    for (int i = 0; i < 4; ++i)
      CHECK(wideLeftPlace(lane, i).row + 16 * wideLeftPlace(lane, i).column == kWideLeft(lane, i));
    for (int i = 0; i < 2; ++i)
      CHECK(wideRightPlace(lane, i).column + 8 * wideRightPlace(lane, i).row == kWideRight(lane, i));
    for (int i = 0; i < 16; ++i)
      CHECK(byteLeftPlace(lane, i).row + 16 * byteLeftPlace(lane, i).column == kByteLeft(lane, i));
    for (int i = 0; i < 8; ++i)
      CHECK(byteRightPlace(lane, i).column + 8 * byteRightPlace(lane, i).row == kByteRight(lane, i));
    for (int i = 0; i < 2; ++i) {
      Place turned = matrixPlace(lane, i, /*transposed=*/true);
      CHECK(turned.row * 128 + turned.column * 16 == kTransposed(lane, 16 * i));
      Place straight = matrixPlace(lane, i, /*transposed=*/false); // 32 bits of thread after thread
      CHECK(straight.row * 128 + straight.column * 16 == lane * 32 + i * 16);
    }
  }
}
