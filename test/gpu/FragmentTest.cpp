// The fragments that emulator and interpreter take for those of the hardware are those of CuTe: the layouts of
// MMA_Traits<SM80_16x8x16_F32F16F16F32_TN> and Copy_Traits<SM75_U32x4_LDSM_N, SM75_U16x8_LDSM_T> (PyPI nvidia-cutlass
// 4.2) map a thread and a value to a position, column by column.
#include "test/gpu/Fragments.h"
#include <catch2/catch.hpp>
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

const Layout kLeft{{{4, 32}, {8, 1}}, {{2, 16}, {2, 8}, {2, 128}}}; // of 16 x 16
const Layout kRight{{{4, 16}, {8, 1}}, {{2, 8}, {2, 64}}};          // of 8 x 16
const Layout kSum{{{4, 32}, {8, 1}}, {{2, 16}, {2, 8}}};            // of 16 x 8
/// Bits of the 8 rows of 128 bits that eight threads point to.
const Layout kTransposed{{{4, 256}, {8, 16}}, {{16, 1}, {2, 128}}};

} // namespace

TEST_CASE("Fragments lie in registers as CuTe says") {
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < 8; ++i)
      CHECK(leftPlace(lane, i).row + 16 * leftPlace(lane, i).column == kLeft(lane, i));
    for (int i = 0; i < 4; ++i) {
      CHECK(rightPlace(lane, i).column + 8 * rightPlace(lane, i).row == kRight(lane, i));
      CHECK(sumPlace(lane, i).row + 16 * sumPlace(lane, i).column == kSum(lane, i));
    }
    for (int i = 0; i < 2; ++i) {
      Place turned = matrixPlace(lane, i, /*transposed=*/true);
      CHECK(turned.row * 128 + turned.column * 16 == kTransposed(lane, 16 * i));
      Place straight = matrixPlace(lane, i, /*transposed=*/false); // 32 bits of thread after thread
      CHECK(straight.row * 128 + straight.column * 16 == lane * 32 + i * 16);
    }
  }
}
