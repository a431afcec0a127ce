// Placement of buffers, and expressions.
#include "runtime/format/ArenaPlacement.h"
#include "runtime/format/Expr.h"
#include "test/runtime/Checks.h"
#include <random>

using namespace burin::rt;
using namespace burin::rt::test;

namespace {

using Op = Expr::Op;

bool overlap(const LiveRange &a, uint64_t aAt, const LiveRange &b, uint64_t bAt) {
  return a.firstStep <= b.lastStep && b.firstStep <= a.lastStep && aAt < bAt + b.bytes && bAt < aAt + a.bytes;
}

std::optional<int64_t> binary(Op op, int64_t a, int64_t b) {
  return evaluate({{{Op::Const, a}, {Op::Const, b}, {op, 0}}}, {});
}

} // namespace

TEST_CASE("buffers that are never live together share their place") {
  std::vector<LiveRange> chain = {{100, 0, 1}, {100, 1, 2}, {100, 2, 3}, {100, 3, 4}};
  Placement p = placeBuffers(chain);
  CHECK(p.offsets == std::vector<uint64_t>{0, 128, 0, 128});
  CHECK(p.arenaBytes == 256);
}

TEST_CASE("a buffer goes into the lowest gap that fits") {
  std::vector<LiveRange> buffers = {{64, 0, 9}, {192, 0, 1}, {64, 0, 9}, {128, 2, 9}, {64, 2, 9}, {64, 2, 9}};
  Placement p = placeBuffers(buffers);
  CHECK(p.offsets == std::vector<uint64_t>{0, 64, 256, 64, 192, 320});
  CHECK(p.arenaBytes == 384);
}

TEST_CASE("empty buffers take no space, impossible ones are reported") {
  std::vector<LiveRange> buffers = {{0, 0, 5}, {1, 0, 5}, {0, 0, 5}};
  Placement p = placeBuffers(buffers);
  CHECK(p.offsets == std::vector<uint64_t>{0, 0, 0});
  CHECK(p.arenaBytes == 64);
  CHECK(placeBuffers({}).arenaBytes == 0);
  std::vector<LiveRange> huge = {{uint64_t(1) << 63, 0, 1}, {uint64_t(1) << 63, 0, 1}, {1, 0, 1}};
  CHECK(placeBuffers(huge).arenaBytes == UINT64_MAX);
  CHECK(placeBuffers(huge).offsets.size() == 3);
}

TEST_CASE("what workers have in their iterations of a loop never overlaps") {
  std::mt19937 random(8);
  for (int round = 0; round < 200; ++round) {
    uint32_t first = random() % 5, last = first + random() % 10;
    std::vector<LiveRange> buffers(2 + random() % 30), loops{{0, first, last}};
    for (LiveRange &b : buffers) {
      b.bytes = random() % 500;
      bool inside = random() % 2;
      b.firstStep = inside ? first + random() % (last - first + 1) : uint32_t(random() % 20);
      b.lastStep = inside ? b.firstStep + random() % (last - b.firstStep + 1) : b.firstStep + uint32_t(random() % 9);
      b.loop = inside ? 0 : kNoLoop;
    }
    constexpr int kWorkers = 3;
    Placement p = placeBuffers(buffers, loops, kWorkers);
    auto copies = [&](size_t i) { return buffers[i].loop == kNoLoop ? 1 : kWorkers; };
    for (size_t i = 0; i < buffers.size(); ++i)
      for (int w = 0; w < copies(i); ++w) {
        uint64_t begin = p.offsets[i] + uint64_t(w) * p.strides[0], end = begin + buffers[i].bytes;
        REQUIRE((buffers[i].bytes == 0 || end <= p.arenaBytes));
        for (size_t j = 0; j < buffers.size(); ++j)
          for (int v = 0; v < copies(j); ++v) {
            const LiveRange &a = buffers[i], &b = buffers[j];
            bool together = a.firstStep <= b.lastStep && b.firstStep <= a.lastStep;
            bool anyStep = a.loop != kNoLoop && b.loop != kNoLoop && v != w; // of different workers
            bool beside = (a.loop == kNoLoop) != (b.loop == kNoLoop) &&      // outside of the loop, live while it runs
                          (a.loop == kNoLoop ? a : b).firstStep <= last &&
                          (a.loop == kNoLoop ? a : b).lastStep >= first;
            if ((i == j && v == w) || !a.bytes || !b.bytes || !(anyStep || beside || (v == w && together)))
              continue;
            uint64_t from = p.offsets[j] + uint64_t(v) * p.strides[0], to = from + b.bytes;
            REQUIRE((end <= from || to <= begin));
          }
      }
  }
}

TEST_CASE("a loop is placed where its first local buffer comes in the order") {
  const std::vector<LiveRange> loops{{0, 2, 3}};
  const LiveRange local{128, 2, 3, 0}, before{128, 0, 1}, across{64, 1, 4};
  Placement first = placeBuffers(std::vector{local, before, across}, loops, 1);
  CHECK(first.offsets == std::vector<uint64_t>{0, 0, 128});
  CHECK(first.arenaBytes == 192);
  Placement last = placeBuffers(std::vector{across, before, local}, loops, 2);
  CHECK(last.offsets == std::vector<uint64_t>{0, 64, 64});
  CHECK(last.strides == std::vector<uint64_t>{128});
  CHECK(last.arenaBytes == 64 + 2 * 128);
}

TEST_CASE("placed buffers never overlap while both are live") {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<LiveRange> buffers(1 + random() % 60);
    uint64_t sum = 0, peak = 0;
    std::vector<uint64_t> live(100);
    for (LiveRange &b : buffers) {
      b.bytes = random() % 1000;
      b.firstStep = uint32_t(random() % 50);
      b.lastStep = b.firstStep + uint32_t(random() % 20);
      uint64_t aligned = (b.bytes + 63) / 64 * 64;
      sum += aligned;
      for (uint32_t s = b.firstStep; s <= b.lastStep; ++s)
        peak = std::max(peak, live[s] += aligned);
    }
    Placement p = placeBuffers(buffers);
    for (size_t i = 0; i < buffers.size(); ++i) {
      REQUIRE(p.offsets[i] % kBufferAlign == 0);
      REQUIRE(p.offsets[i] + buffers[i].bytes <= p.arenaBytes);
      for (size_t j = 0; j < i; ++j)
        REQUIRE_FALSE(overlap(buffers[i], p.offsets[i], buffers[j], p.offsets[j]));
    }
    REQUIRE(p.arenaBytes >= peak);
    REQUIRE(p.arenaBytes <= sum);
  }
}

TEST_CASE("expressions round as their names say") {
  CHECK(binary(Op::FloorDiv, 7, 2) == 3);
  CHECK(binary(Op::FloorDiv, -7, 2) == -4);
  CHECK(binary(Op::FloorDiv, 7, -2) == -4);
  CHECK(binary(Op::CeilDiv, 7, 2) == 4);
  CHECK(binary(Op::CeilDiv, -7, 2) == -3);
  CHECK(binary(Op::CeilDiv, 8, 2) == 4);
  CHECK(binary(Op::Mod, -7, 3) == 2);
  CHECK(binary(Op::Mod, 7, -3) == -2);
  CHECK(binary(Op::Min, -1, 4) == -1);
  CHECK(binary(Op::Max, -1, 4) == 4);
  CHECK(binary(Op::Sub, 3, 5) == -2);
  CHECK(evaluate({{{Op::Symbol, 1}, {Op::Symbol, 0}, {Op::Sub, 0}}}, std::vector<int64_t>{3, 10}) == 7);
}

TEST_CASE("overflow and division by zero have no value") {
  for (Op op : {Op::FloorDiv, Op::CeilDiv, Op::Mod}) {
    CHECK_FALSE(binary(op, 1, 0));
    CHECK_FALSE(binary(op, INT64_MIN, -1));
  }
  CHECK_FALSE(binary(Op::Add, INT64_MAX, 1));
  CHECK_FALSE(binary(Op::Sub, INT64_MIN, 1));
  CHECK_FALSE(binary(Op::Mul, INT64_MAX, 2));
}

TEST_CASE("malformed expressions are known before they are evaluated") {
  CHECK_FALSE(wellFormed({}, 0));
  CHECK_FALSE(wellFormed({{{Op::Add, 0}}}, 0));
  CHECK_FALSE(wellFormed({{{Op::Const, 1}, {Op::Const, 1}}}, 0));
  CHECK_FALSE(wellFormed({{{Op::Const, 1}, {Op::Add, 0}}}, 0));
  CHECK_FALSE(wellFormed({{{Op::Symbol, 1}}}, 1));
  CHECK_FALSE(wellFormed({{{Op::Symbol, -1}}}, 1));
  CHECK_FALSE(wellFormed({{{Op(10), 0}}}, 1));
  auto nested = [](int depth) {
    Expr e;
    for (int i = 0; i < depth; ++i)
      e.program.push_back({Op::Const, 1});
    for (int i = 1; i < depth; ++i)
      e.program.push_back({Op::Add, 0});
    return e;
  };
  CHECK(wellFormed(nested(kMaxExprDepth), 0));
  CHECK_FALSE(wellFormed(nested(kMaxExprDepth + 1), 0));
  Expr chain = nested(1);
  while (chain.program.size() + 2 <= kMaxExprLength) {
    chain.program.push_back({Op::Const, 1});
    chain.program.push_back({Op::Add, 0});
  }
  CHECK(wellFormed(chain, 0));
  chain.program.push_back({Op::Const, 1});
  chain.program.push_back({Op::Add, 0});
  CHECK_FALSE(wellFormed(chain, 0));
}

TEST_CASE("expressions print as a user writes them") {
  std::vector<Symbol> symbols(2);
  symbols[0].name = "batch";
  symbols[1].name = "n";
  Expr::Instr batch{Op::Symbol, 0}, n{Op::Symbol, 1};
  CHECK(printed({{batch, {Op::Const, 2}, {Op::Mul, 0}, {Op::Const, 1}, {Op::Add, 0}}}, symbols) == "batch*2 + 1");
  CHECK(printed({{batch, n, {Op::Add, 0}, {Op::Const, 4}, {Op::FloorDiv, 0}}}, symbols) == "(batch + n)/4");
  CHECK(printed({{batch, n, {Op::CeilDiv, 0}, {Op::Const, 3}, {Op::Max, 0}}}, symbols) == "max(ceil(batch/n), 3)");
  CHECK(printed({{batch, n, batch, {Op::Sub, 0}, {Op::Sub, 0}}}, symbols) == "batch - (n - batch)");
  CHECK(printed({{n, {Op::Const, -2}, {Op::Mul, 0}}}, symbols) == "n*(-2)");
}
