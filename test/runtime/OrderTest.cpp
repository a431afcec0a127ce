// Which steps of a plan run concurrently, and that the results are those of sequential execution.
#include "runtime/execute/LaneOrder.h"
#include "runtime/execute/StepSchedule.h"
#include "test/runtime/Checks.h"
#include "test/runtime/Model.h"
#include <cmath>

using namespace burin::rt;
using namespace burin::rt::test;

namespace {

constexpr int64_t kColumns = 48;

Slot buffer(uint32_t i) { return {Slot::Kind::Buffer, i}; }

/// An artifact whose steps access these slots; a buffer's producer comes first.
Artifact artifactOf(const std::vector<std::vector<Slot>> &operands) {
  Artifact a;
  a.plans.resize(1);
  for (const std::vector<Slot> &slots : operands) {
    Step step;
    step.operands = slots;
    a.plans[0].steps.push_back(step);
  }
  return a;
}

constexpr double kCostNs = 8000;

/// "0 1+2 3": steps 1 and 2 run concurrently.
std::string orderOf(const Artifact &a, std::vector<double> ns, int threads = 2) {
  std::string text;
  uint32_t left = 0;
  for (auto [step, together] :
       orderSteps(a.plans[0], 0, uint32_t(a.plans[0].steps.size()), ns, {threads, kCostNs}).entries) {
    text += text.empty() ? "" : left ? "+" : " ";
    text += std::to_string(step);
    left = left ? left - 1 : together - 1;
  }
  return text;
}

/// x[1, n] -> reversed(exp(x * w + b)) for `towers` different w. Each tower has three steps of `ns`; the towers are in
/// sequence.
Model towers(int count, int64_t ns) {
  Model m;
  ExprId one = m.constant(1), columns = m.constant(kColumns), bytes = m.constant(kColumns * 4);
  m.input("x", {one, columns});
  for (int t = 0; t < count; ++t) {
    m.output("y" + std::to_string(t), {one, columns});
    Slot w = m.weight("w" + std::to_string(t), std::vector<float>(kColumns, .1f * float(t + 1)));
    Slot b = m.weight("b" + std::to_string(t), std::vector<float>(kColumns, -.5f));
    auto at = uint32_t(3 * t);
    Slot first = m.buffer(bytes, at, at + 1), second = m.buffer(bytes, at + 1, at + 2);
    m.step("affine", {in(0), w, b, first}, {columns}, one).deps = {};
    m.step("exponential", {first, second}, {}, columns).deps = {at};
    Step &last = m.step("reversed", {second, out(uint32_t(t))}, {columns}, one);
    last.deps = {at + 1};
    last.scratchBytes = bytes;
  }
  for (Step &step : m.plan().steps)
    step.flops = m.constant(ns * 32);
  return m;
}

} // namespace

TEST_CASE("towers of small steps run side by side") {
  Artifact a = artifactOf({{in(0), buffer(0)},
                           {buffer(0), buffer(1)},
                           {buffer(1), out(0)},
                           {in(0), buffer(2)},
                           {buffer(2), buffer(3)},
                           {buffer(3), out(1)}});
  CHECK(orderOf(a, {9000, 9000, 9000, 9000, 9000, 9000}) == "0+3 1+4 2+5");
  CHECK(orderOf(a, {4000, 9000, 9000, 4000, 9000, 9000}) == "0 3 1+4 2+5");
}

TEST_CASE("steps stay in order where nothing is gained, or that may not run beside others") {
  Artifact a = artifactOf({{in(0), buffer(0)}, {in(0), buffer(1)}, {buffer(0), buffer(1), out(0)}});
  CHECK(orderOf(a, {9000, 9000, 9000}) == "0+1 2");
  CHECK(orderOf(a, {7000, 7000, 9000}) == "0 1 2");
  CHECK(orderOf(a, {20000, 4000, 1000}) == "0 1 2"); // the short steps would wait for the longest one
  CHECK(orderOf(a, {9000, -1, 9000}) == "0 1 2");
}

TEST_CASE("steps that touch what another one writes follow each other") {
  // Both steps read a buffer; then one of the readers writes in its place.
  CHECK(orderOf(artifactOf({{in(0), buffer(0)}, {buffer(0), out(0)}, {buffer(0), out(1)}}), {9000, 9000, 9000}) ==
        "0 1+2");
  CHECK(orderOf(artifactOf({{in(0), buffer(0)}, {buffer(0), out(0)}, {buffer(0), buffer(0)}, {buffer(0), out(1)}}),
                {9000, 9000, 9000, 9000}) == "0 1 2 3");
  Artifact a = artifactOf({{in(0), out(0)}, {in(0), out(1)}});
  CHECK(orderOf(a, {9000, 9000}) == "0+1");
  a.plans[0].steps[1].deps = {0};
  CHECK(orderOf(a, {9000, 9000}) == "0 1");
}

TEST_CASE("buffers of steps side by side live at the same time") {
  Model m = towers(2, 9000);
  std::vector<double> ns(m.plan().steps.size(), 9000);
  StepSchedule order = orderSteps(m.plan(), 0, uint32_t(ns.size()), ns, {2, kCostNs});
  CHECK(order.groups == 3);
  std::vector<std::pair<uint32_t, uint32_t>> live;
  for (const LiveRange &range : liveRanges(m.plan(), order))
    live.push_back({range.firstStep, range.lastStep});
  CHECK(live == std::vector<std::pair<uint32_t, uint32_t>>{{0, 1}, {1, 2}, {0, 1}, {1, 2}});
}

TEST_CASE("on a GPU a step waits for those alone that it needs") {
  using Touched = std::vector<TouchedMemory>;
  auto reads = [](uint64_t place) { return TouchedMemory{1, place, place + 1, false}; };
  auto writes = [](uint64_t place) { return TouchedMemory{1, place, place + 1, true}; };
  auto textOf = [](const std::vector<LaneOrder::Place> &places) {
    std::string text;
    for (const LaneOrder::Place &place : places) {
      text += (text.empty() ? "" : ", ") + std::to_string(place.lane);
      for (int lane = 0; lane < LaneOrder::kMostLanes; ++lane)
        text += place.waits >> lane & 1 ? " after " + std::to_string(lane) : "";
      text += place.waits & LaneOrder::kFork ? " forked" : "";
    }
    return text;
  };
  LaneOrder order(3);
  CHECK(textOf(order.add({{writes(0)}, {writes(1)}})) == "0, 1 forked");
  // Each follows its own predecessor.
  CHECK(textOf(order.add({{reads(1), writes(3)}, {reads(0), writes(2)}})) == "1, 0");
  CHECK(textOf(order.add({{reads(2), reads(3), writes(4)}, {reads(3), writes(5)}})) == "0 after 1, 1");
  CHECK(textOf(order.add({{reads(4), writes(6)}, {reads(1), writes(7)}, {reads(9), writes(8)}})) == "0, 1, 2 forked");
  CHECK(textOf(order.add({{writes(4)}, {reads(4)}})) == "0, 1 after 0"); // reused memory
  CHECK(textOf(order.add({Touched{writes(20)}, {reads(6)}})) == "0, 1"); // its lane has waited before
  CHECK(textOf(order.add({{reads(8)}, {reads(8)}, {reads(8)}})) == "2, 0 after 2, 1 after 2");
  LaneOrder one(1);
  CHECK(textOf(one.add({{writes(0)}, {reads(0)}})) == "0, 0");
}

TEST_CASE("steps side by side give what they give one after the other") {
  constexpr int count = 5;
  Program::Ptr program = towers(count, 6000).load(); // each step is too small for several threads
  std::vector<float> x;
  for (int64_t i = 0; i < kColumns; ++i)
    x.push_back(float(i) / 7);
  std::vector<int64_t> shape{1, kColumns};
  for (int threads : {1, 2, 3}) {
    std::unique_ptr<Session> session;
    REQUIRE(Session::create(program, {.threads = threads}, session).ok());
    TensorView input = view(x, shape);
    for (int run = 0; run < 200; ++run) {
      std::vector<TensorView> outputs(count);
      REQUIRE(session->run({&input, 1}, outputs).ok());
      bool same = true;
      for (int t = 0; t < count; ++t)
        for (int64_t i = 0; i < kColumns; ++i)
          same &= static_cast<float *>(outputs[size_t(t)].data)[i] ==
                  std::exp(x[size_t(kColumns - 1 - i)] * (.1f * float(t + 1)) + -.5f);
      CHECK(same);
    }
    CHECK(session->arenaBytes() == uint64_t(threads > 1 ? 2 * count : 2) * kColumns * 4);
  }
}
