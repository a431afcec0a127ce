// The driver fails at random calls: each run ends with one status, nothing is left behind, states are as before, and
// the session goes on.
#include "test/gpu/driver/FakeCuda.h"
#include "test/gpu/programs/TwoDevices.h"
#include <burin/graph/program.h>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>

using namespace burin;
using namespace burin::test;

namespace {

/// Functions of every kind of plan, in numbers that are exact on both devices.
struct Functions : nn::Module {
  Parameter rows = register_buffer("rows", zeros({6, 5})), count = register_buffer("count", zeros({}, i64));

  Graph graph() {
    Program program(*this);
    Dim n("n");
    // Recorded: a state that is replaced, one that is updated in place, an index that may be wrong.
    program.add("set",
                [&](const Tensor &at, const Tensor &values) {
                  rows.set(scatter(rows, broadcast_to(unsqueeze(at, {1}), {at.shape()[0], 5}), values, 0));
                  count.set(count + 1);
                  return rows.value().sum({1});
                },
                {{i64, {n}}, {f32, {n, 5}}});
    // Products side by side.
    program.add("towers",
                [&](const Tensor &at, const Tensor &x) {
                  std::vector<Tensor> towers;
                  for (int i = 1; i <= 5; ++i)
                    towers.push_back(matmul(transpose(x + i, {1, 0}), x - i) + count->to(f32));
                  return concat(towers) + at.sum().to(f32);
                },
                {{i64, {n}}, {f32, {n, 5}}});
    // A branch and a loop.
    program.add(
        "walk",
        [&](const Tensor &at, const Tensor &x) {
          Tensor start =
              cond(at.sum() % 2 == 0, [&] { return take(x, at, 0).sum({0}); }, [&] { return rows.value().sum({0}); });
          count.set(count + 2);
          return while_loop([](const Tensor &y) { return y.abs().max() < 300; },
                            [](const Tensor &y) { return y * 2 + 1; }, start.abs());
        },
        {{i64, {n}}, {f32, {n, 5}}});
    // The same in a CUDA graph, as no kernel in them can report an error.
    program.add("decide",
                [&](const Tensor &at, const Tensor &x) {
                  Tensor start = cond(at.sum() % 2 == 0, [&] { return x.sum({0}); }, [&] { return x.max({0}); });
                  count.set(count + 3);
                  return while_loop([](const Tensor &y) { return y.abs().max() < 300; },
                                    [](const Tensor &y) { return y * 2 + 1; }, start.abs());
                },
                {{i64, {n}}, {f32, {n, 5}}});
    // Sizes that the run computes.
    program.add("select",
                [&](const Tensor &at, const Tensor &x) {
                  Tensor kept = masked_select(x, x > 0);
                  return concat({kept * 2, take(rows, at, 0).sum({1})});
                },
                {{i64, {n}}, {f32, {n, 5}}});
    return program.graph();
  }
};

constexpr const char *kFunctions[] = {"set", "towers", "walk", "decide", "select"};

/// For the session of this seed, which has seen most sizes before, so that runs are recorded and replayed.
std::vector<Tensor> inputs(uint64_t seed, std::mt19937 &random) {
  const int64_t n = 1 + int64_t((seed + random() % 5 / 4) % 4);
  std::vector<int64_t> at;
  std::vector<float> x;
  for (int64_t i = 0; i < n; ++i)
    at.push_back(int64_t(random() % 25 == 0 ? 9 : random() % 6)); // seldom out of range
  for (int64_t i = 0; i < 5 * n; ++i)
    x.push_back(float(int(random() % 9) - 4));
  return {from_vector(at), from_vector(x, Shape{n, 5})};
}

std::string bytesOf(const std::vector<std::pair<std::string, Tensor>> &states) {
  std::string all;
  for (const auto &[name, value] : states)
    all.append(reinterpret_cast<const char *>(value.bytes().data()), value.bytes().size());
  return all;
}

/// What ends with an error of the driver says so once.
bool namesDriver(const std::string &message) {
  size_t first = message.find(": CUDA_ERROR_");
  return message.starts_with("cuda:0: ") && first != message.npos &&
         message.find("CUDA_ERROR_", first + 8) == message.npos;
}

/// Runs of one session of which about one of `oneOf` driver calls fails. Adds to `runs` and `failures`.
void trySession(const rt::Program::Ptr &program, uint64_t seed, int64_t oneOf, int &runs, int &failures) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  fake::failRandomly(seed, oneOf);
  std::unique_ptr<rt::Session> opened;
  rt::Status created = rt::Session::create(program, {.threads = 1, .device = "cuda:0"}, opened);
  ++runs;
  if (!created.ok()) {
    ++failures;
    CHECK(created.message().find("CUDA_ERROR_") != std::string::npos);
    CHECK(!opened);
    return;
  }
  opened.reset();
  fake::failCall(0);
  TwoDevices devices(program);
  auto runBoth = [&](bool mayFail) {
    std::string before = bytesOf(devices.gpu.states());
    const char *function = kFunctions[random() % std::size(kFunctions)];
    std::vector<Tensor> given = inputs(seed, random);
    fake::failRandomly(random(), mayFail ? oneOf : 0);
    devices.onGpu = devices.gpu.run(function, given);
    fake::failCall(0);
    ++runs;
    INFO(function << ": " << devices.onGpu.status.message());
    if (!devices.onGpu.status.ok() && devices.onGpu.status.code() != rt::ErrorCode::Data) {
      ++failures;
      CHECK(mayFail);
      CHECK(namesDriver(devices.onGpu.status.message()));
      CHECK(bytesOf(devices.gpu.states()) == before);
      return;
    }
    devices.onCpu = devices.cpu.run(function, given);
    CHECK(devices.onGpu.status.message() == devices.onCpu.status.message());
    CHECK(devices.resultDifferences() == "");
    CHECK(devices.differentStates() == "");
  };
  for (int i = 0; i < 12; ++i)
    runBoth(true);
  for (int i = 0; i < 4; ++i)
    runBoth(false);
}

} // namespace

TEST_CASE("gpu failures: the driver fails at random calls", "[gpu]") {
  const int most = std::getenv("BURIN_LONG_TESTS") ? 10'000 : 500;
  rt::Program::Ptr program = programForBoth(Functions().graph());
  int runs = 0, failures = 0;
  for (uint64_t seed = 1; runs < most; ++seed) {
    INFO("seed " << seed);
    trySession(program, seed, seed % 3 ? 40 : 9, runs, failures);
    fake::failCall(0);
    CHECK(emulatorErrors() == "");
    CHECK(fake::problems() == "");
  }
  CHECK(fake::replays() > runs / 20);
  CHECK(failures > runs / 4);
  CHECK(failures < runs * 3 / 4);
}
