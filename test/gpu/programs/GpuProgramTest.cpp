// States, branches, loops, sizes that a run computes and random numbers on a GPU: as on the processor. The GPU is the
// CUDA driver for tests, whose launches run the kernels on the emulator.
#include "test/gpu/driver/FakeCuda.h"
#include "test/gpu/programs/TwoDevices.h"
#include <burin/graph/program.h>
#include <catch2/catch.hpp>
#include <cstdlib>

using namespace burin;
using namespace burin::test;

namespace {

using List = std::vector<Tensor>;

/// At the end of a test, when its sessions are gone, nothing is left and nothing was wrong.
struct Clean {
  Clean() { fake::failCall(0); }
  ~Clean() {
    CHECK(emulatorErrors() == "");
    CHECK(fake::problems() == "");
  }
};

#define CHECK_SAME(devices, function, ...) CHECK((devices).differences(function, __VA_ARGS__) == "")

/// Sums, and counts what it has summed; a second function reads both.
struct Sums : nn::Module {
  Parameter sum = register_buffer("sum", zeros({5, 7})), count = register_buffer("count", zeros({}, i64));

  Graph graph() {
    Program program(*this);
    program.add("add",
                [&](const Tensor &x) {
                  sum.set(sum + x);
                  count.set(count + 1);
                  return sum * 2;
                },
                {{f32, {5, 7}}});
    program.add("mean", [&] { return sum / maximum(count, 1); }, {});
    return program.graph();
  }
};

/// Rows of a table that it sets, by an index that may be out of range. The rows are written in place.
struct Table : nn::Module {
  Parameter rows = register_buffer("rows", zeros({6, 5})), calls = register_buffer("calls", zeros({}, i64));

  Graph graph() {
    Program program(*this);
    program.add("set",
                [&](const Tensor &at, const Tensor &values) {
                  rows.set(scatter(rows, broadcast_to(unsqueeze(at, {1}), {at.shape()[0], 5}), values, 0));
                  calls.set(calls + 1);
                  return rows.value().sum({1});
                },
                {{i64, {Dim("n")}}, {f32, {Dim("n"), 5}}});
    program.add("get", [&](const Tensor &at) { return take(rows, at, 0); }, {{i64, {Dim("n")}}});
    return program.graph();
  }
};

} // namespace

TEST_CASE("gpu program: states are read and updated by several functions", "[gpu]") {
  Clean clean;
  manual_seed(1);
  Sums sums;
  TwoDevices devices(sums.graph());
  CHECK_SAME(devices, "mean", {});
  for (int i = 0; i < 4; ++i)
    CHECK_SAME(devices, "add", {randn({5, 7})});
  CHECK_SAME(devices, "mean", {});
  CHECK(devices.differentStates() == "");

  // The host sets, resets and copies them between runs.
  Tensor value = randn({5, 7});
  for (TestSession *s : {&devices.cpu, &devices.gpu})
    REQUIRE(s->session->writeState(0, {value.bytes().data(), value.bytes().size()}).ok());
  CHECK_SAME(devices, "add", {value});
  CHECK(devices.differentStates() == "");
  {
    TwoDevices copies(devices.program);
    REQUIRE(copies.cpu.session->copyStates(*devices.cpu.session).ok());
    REQUIRE(copies.gpu.session->copyStates(*devices.gpu.session).ok());
    CHECK_SAME(copies, "mean", {});
    CHECK_SAME(copies, "add", {value});
    CHECK(copies.differentStates() == "");
  }
  for (TestSession *s : {&devices.cpu, &devices.gpu})
    REQUIRE(s->session->reorderState(0, 0, std::vector<int64_t>{4, 0, 0, 1, 2}).ok());
  CHECK_SAME(devices, "add", {value});
  for (TestSession *s : {&devices.cpu, &devices.gpu})
    REQUIRE(s->session->resetStates().ok());
  CHECK_SAME(devices, "mean", {});
  CHECK(devices.differentStates() == "");
}

TEST_CASE("gpu program: a run that finds a wrong index leaves the states as they were", "[gpu]") {
  Clean clean;
  manual_seed(2);
  Table table;
  TwoDevices devices(table.graph());
  CHECK_SAME(devices, "set", {tensor({1, 4, 1}), randn({3, 5})});
  CHECK(devices.differentStates() == "");
  CHECK_SAME(devices, "set", {tensor({0, 2, 6, 7}), randn({4, 5})});
  CHECK(devices.onGpu.status.code() == rt::ErrorCode::Data);
  CHECK(devices.differentStates() == "");
  CHECK_SAME(devices, "get", {tensor({5, -1, 1})}, 0);
  CHECK(devices.onGpu.status.ok());
  CHECK_SAME(devices, "get", {tensor({5, -7, 1})}, 0);
  CHECK(devices.onGpu.status.code() == rt::ErrorCode::Data);
  CHECK_SAME(devices, "set", {tensor({-1}), randn({1, 5})});
  CHECK(devices.differentStates() == "");
}

TEST_CASE("gpu program: the first of several wrong values is named", "[gpu]") {
  Clean clean;
  auto f = [](const Tensor &x, const Tensor &i, const Tensor &j) {
    Tensor rows = take(x, i, 0);
    check(rows > -10, rows, "too small");
    return take(rows.sum({1}) * 2, j, 0) + 1;
  };
  TwoDevices devices(trace(f, {{f32, {9, 4}}, {i64, {5}}, {i64, {3}}}));
  Tensor x = iota({9, 4}, f32) - 12.5, good = tensor({3, 4, 8, 0, 5}), bad = tensor({3, 9, 8, -10, 5});
  for (const Tensor &i : {good, bad})
    for (const Tensor &j : {tensor({4, 0, -5}), tensor({4, 5, 6})})
      for (const Tensor &from : {x, x + 10})
        CHECK_SAME(devices, "main", {from, i, j});
}

TEST_CASE("gpu program: branches", "[gpu]") {
  Clean clean;
  Tensor c = tensor({1.5f, -2.0f, 7.0f});
  auto f = [&](const Tensor &x, const Tensor &i) {
    Tensor y = cond(
        x.sum() > 0, [&] { return cond(x[0] > 10, [&] { return x * c; }, [&] { return x + c; }); },
        [&] { return c - x * 0.5; });
    Tensor z = switch_case(i, [&] { return y.sum(); }, [&] { return y.max(); }, [&] { return -y.min(); });
    return List{y, z, y * z};
  };
  TwoDevices devices(trace(f, {{f32, {3}}, {i64, {}}}));
  for (const Tensor &x : {tensor({1.0f, 2.0f, 3.0f}), tensor({11.0f, 2.0f, 3.0f}), tensor({-9.0f, 2.0f, 3.0f})})
    for (int64_t i : {-1, 0, 1, 2, 5})
      CHECK_SAME(devices, "main", {x, tensor(i)});
}

TEST_CASE("gpu program: loops that go on as long as the data says", "[gpu]") {
  Clean clean;
  auto collatz = [](const Tensor &start) {
    auto [n, turns] = while_loop([](const Tensor &n, const Tensor &) { return n != 1; },
                                 [](const Tensor &n, const Tensor &turns) {
                                   Tensor next = where(n % 2 == 0, n / 2, 3 * n + 1).to(i64);
                                   return std::pair(next, turns + 1);
                                 },
                                 std::pair(start, tensor(int64_t(0))));
    return turns;
  };
  TwoDevices numbers(trace(collatz, {{i64, {}}}));
  for (int64_t start : {1, 2, 7, 27}) // none, one, odd and even numbers of turns
    CHECK_SAME(numbers, "main", {tensor(start)});
  CHECK(numbers.onGpu.results[0].item<int64_t>() == 111);

  // A table that is read in each turn, which may be out of range in a later one.
  auto walk = [](const Tensor &next, const Tensor &start) {
    auto [at, sum] = while_loop([](const Tensor &at, const Tensor &) { return at != 0; },
                                [&](const Tensor &at, const Tensor &sum) {
                                  return std::pair(take(next, reshape(at, {1}), 0).reshape({}), sum + at.to(f32));
                                },
                                std::pair(start, tensor(0.0f)));
    return List{at, sum};
  };
  TwoDevices table(trace(walk, {{i64, {Dim("n")}}, {i64, {}}}));
  CHECK_SAME(table, "main", {tensor({0, 3, 0, 4, 2}), tensor(int64_t(1))});
  CHECK(table.onGpu.results[1].item() == 10);
  CHECK_SAME(table, "main", {tensor({0, 3, 0, 4, 5}), tensor(int64_t(1))});
  CHECK(table.onGpu.status.code() == rt::ErrorCode::Data);
  CHECK_SAME(table, "main", {tensor({0, 3, 0, 4, 2, 9}), tensor(int64_t(3))});
}

TEST_CASE("gpu program: scans and counted loops", "[gpu]") {
  Clean clean;
  manual_seed(4);
  Tensor w = randn({6, 6}) * 0.3, v = randn({3, 6});
  auto recurrent = [&](const Tensor &h, const Tensor &xs) {
    auto step = [&](const List &states, const List &x) {
      Tensor next = tanh(matmul(states[0], w) + matmul(x[0], v));
      return ScanResult{{next}, {next.sum({0}), next * 0.5}};
    };
    ScanResult all = scan(step, {h}, {xs}), back = scan(step, {h}, {xs}, /*reverse=*/true);
    return List{all.states[0], all.outputs[0], back.outputs[1]};
  };
  TwoDevices devices(trace(recurrent, {{f32, {2, 6}}, {f32, {Dim("length"), 2, 3}}}));
  for (int64_t length : {5, 1, 0, 17, 5})
    CHECK_SAME(devices, "main", {randn({2, 6}), randn({length, 2, 3})}, 2e-6, 1e-5);

  auto nested = [](const Tensor &x, const Tensor &turns) {
    Tensor rows = fori_loop(
        0, x.shape()[0], [](const Tensor &i, const Tensor &y) { return y + take(y, reshape(i, {1}), 0) * 0.5; }, x);
    return fori_loop(
        tensor(int64_t(0)), turns, [](const Tensor &i, const Tensor &y) { return y * 0.75 + i.to(f32); }, rows);
  };
  TwoDevices loops(trace(nested, {{f32, {Dim("n"), 3}}, {i64, {}}}));
  for (int64_t turns : {0, 1, 2, 7})
    CHECK_SAME(loops, "main", {randn({4 + turns % 3, 3}), tensor(turns)}, 1e-6, 1e-6);
}

TEST_CASE("gpu program: loops overwrite what they carry, or alternate", "[gpu]") {
  Clean clean;
  auto setRow = [](const Tensor &i, const Tensor &x) {
    Tensor next = x;
    next.set({i}, next[{i}] * 2 + i.to(f32));
    return next;
  };
  auto f = [&](const Tensor &x, const Tensor &xs, const Tensor &turns) {
    auto step = [](const List &s, const List &e) {
      return ScanResult{{s[1].roll({1}, {0}) + e[0], s[0].roll({1}, {1}), s[2] * 0.5 + s[0]}, {}};
    };
    List all = scan(step, {x, x * 2, x + 1}, {xs}).states;
    auto body = [&](const Tensor &i, const Tensor &rows, const Tensor &moved) {
      return std::tuple(i + 1, setRow(i, rows), moved.roll({1}, {0}) + rows);
    };
    auto isBelow = [&](const Tensor &i, const Tensor &, const Tensor &) { return i < turns; };
    auto [i, rows, moved] = while_loop(isBelow, body, std::tuple(zeros({}, i64), x, all[0]));
    return List{all[0], all[1], all[2], rows, moved};
  };
  TwoDevices loops(trace(f, {{f32, {4, 3}}, {f32, {Dim("n"), 3}}, {i64, {}}}));
  manual_seed(6);
  for (int64_t turns : {0, 1, 2, 3, 4, 5}) // five: an index out of range
    for (int64_t count : {turns, turns, turns + 1})
      CHECK_SAME(loops, "main", {randn({4, 3}), randn({count, 3}), tensor(turns)}, 1e-6, 1e-6);
}

TEST_CASE("gpu program: sizes that a run computes", "[gpu]") {
  Clean clean;
  auto f = [](const Tensor &x) {
    Tensor kept = masked_select(x, x > 0);
    return List{kept * 2,
                kept.sum(),
                zeros({kept.size(0), 2}) + 1,
                concat({kept, x}),
                masked_select(kept, kept > 1),
                nonzero(x > 0.5),
                sort(kept).values};
  };
  TwoDevices devices(trace(f, {{f32, {Dim("n")}}}));
  manual_seed(6);
  for (int64_t size : {0, 1, 8, 300, 8, 40, 0})
    CHECK_SAME(devices, "main", {randn({size})}, 1e-6, 1e-5);
  auto part = [](const Tensor &x, const Tensor &n) { return prefix(x * 3, n) + 1; };
  TwoDevices prefixes(trace(part, {{f32, {Dim("n")}}, {i64, {}}}));
  for (int64_t n : {0, 3, 10, 11, -1, 4})
    CHECK_SAME(prefixes, "main", {randn({10}), tensor(n)});
}

TEST_CASE("gpu program: random numbers are the processor's", "[gpu]") {
  Clean clean;
  manual_seed(8);
  Generator generator(77);
  auto draw = [&](const Tensor &x) {
    return List{generator.rand({3, 5}), generator.randint(-3, 9, {40}), generator.rand({7}, f64),
                generator.bernoulli(x), generator.randperm(23)};
  };
  TwoDevices exact(trace(draw, {{f32, {Dim("n")}}}));
  for (int64_t n : {6, 9, 6})
    CHECK_SAME(exact, "main", {rand({n})});
  CHECK(exact.differentStates() == "");
  auto normal = [&](const Tensor &x) { return generator.randn({33, 3}) * x; };
  TwoDevices close(trace(normal, {{f32, {3}}}));
  for (int i = 0; i < 3; ++i)
    CHECK_SAME(close, "main", {randn({3})}, 1e-6, 2e-6);
  CHECK(close.differentStates() == "");
}

TEST_CASE("gpu program: a kernel reads a state for all rows before it writes over it", "[gpu]") {
  Clean clean;
  manual_seed(9);
  struct Scales : nn::Module {
    Parameter columns = register_buffer("columns", rand({24})), rows = register_buffer("rows", rand({5}));
  } scales;
  Program program(scales);
  program.add("columns",
              [&](const Tensor &x) {
                Tensor sums = x.sum({0}), y = x * scales.columns + sums;
                scales.columns.set(scales.columns - sums * 0.1);
                return y;
              },
              {{f32, {16, 24}}});
  program.add("rows",
              [&](const Tensor &x) {
                Tensor sums = x.sum({1}), y = x * reshape(scales.rows, {5, 1}) + reshape(sums, {5, 1});
                scales.rows.set(scales.rows - sums * 0.1);
                return y;
              },
              {{f32, {5, Dim("n")}}});
  TwoDevices devices(program.graph());
  for (int64_t n : {1, 40, 700}) {
    CHECK_SAME(devices, "columns", {randn({16, 24})}, 1e-5, 1e-5);
    CHECK_SAME(devices, "rows", {randn({5, n})}, 1e-5, 1e-5);
    CHECK(devices.differentStates(1e-5, 1e-5) == "");
  }
}

TEST_CASE("gpu program: small steps run side by side, ordered by events", "[gpu]") {
  Clean clean;
  manual_seed(10);
  auto towers = [](const Tensor &x) {
    List first, second; // each of the second ones needs two of the first
    for (int i = 1; i <= 4; ++i)
      first.push_back(tanh(matmul(transpose(tanh(x * double(i)), {1, 0}), x)));
    for (size_t i = 0; i < 4; ++i)
      second.push_back(matmul(first[i], first[(i + 1) % 4]));
    return matmul(concat(second), transpose(x, {1, 0}));
  };
  rt::Program::Ptr program = programForBoth(trace(towers, {{f32, {70, 33}}}));
  Tensor x = randn({70, 33});
  const double atol = 1e-5, rtol = 1e-5;
  fake::forgetWait(0);
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    fake::failRandomly(seed, 0);
    TwoDevices devices(program);
    for (int run = 0; run < 3; ++run)
      CHECK_SAME(devices, "main", {x}, atol, rtol);
  }
  CHECK(fake::waits() >=
        10 * 6); // five sessions that each launched twice: one fork and one join of four lanes at least
  fake::failCall(0);
}

namespace {

/// Runs a program on each element of `inputs`, first through streams, then as a graph, and again without each wait for
/// an event in turn, under several orders of the work that no event orders.
struct ForgottenWaits {
  int64_t all = 0;
  std::vector<int64_t> unnoticed; // numbers of the waits that can be left out without a difference

  ForgottenWaits(const Graph &graph, const List &inputs, uint64_t orders) : program(programForBoth(graph)) {
    for (uint64_t order = 1; order <= orders; ++order)
      CHECK(!differs(inputs, order, 0));
    for (int64_t wait = 1; wait <= all; ++wait) {
      uint64_t order = 1;
      while (order <= orders && !differs(inputs, order, wait))
        ++order;
      if (order > orders)
        unnoticed.push_back(wait);
    }
  }

private:
  rt::Program::Ptr program;

  bool differs(const List &inputs, uint64_t order, int64_t forgotten) {
    fake::rankStreams(order);
    bool isWrong = false;
    {
      TwoDevices devices(program);
      fake::forgetWait(forgotten);
      for (size_t i = 0; i < inputs.size() && !isWrong; ++i)
        isWrong = devices.differences("main", {inputs[i]}, 1e-5, 1e-5) != "" || !emulatorErrors().empty();
      all = forgotten ? all : fake::waits();
    }
    fake::rankStreams(0);
    fake::forgetWait(0);
    return isWrong;
  }
};

} // namespace

TEST_CASE("gpu program: each wait of a stream for an event is necessary", "[gpu]") {
  Clean clean;
  manual_seed(11);
  auto chains = [](const Tensor &x) { // four, each of three small steps, of which two meet in the middle
    List ends;
    for (int i = 1; i <= 4; ++i)
      ends.push_back(tanh(matmul(x * double(i), x)));
    for (int step = 0; step < 2; ++step)
      for (size_t i = 0; i < 4; ++i)
        ends[i] = tanh(matmul(ends[i], i == 0 && step == 1 ? ends[2] : x));
    return concat(ends);
  };
  // Values differ, as a kernel that starts too early may find those of the last run.
  Tensor x = randn({8, 8}) / 4;
  const uint64_t orders = std::getenv("BURIN_LONG_TESTS") ? 64 : 12;
  ForgottenWaits ofChains(trace(chains, {{f32, {8, 8}}}), {x, x / 2}, orders);
  CHECK(ofChains.all >= 2 * 7); // a fork and a join of three lanes, and where two chains meet, in both runs
  CHECK(ofChains.unnoticed == std::vector<int64_t>{});

  auto towers = [](const Tensor &x) { // each of the second ones needs two of the first
    List first, second;
    for (int i = 1; i <= 4; ++i)
      first.push_back(tanh(matmul(tanh(x * double(i)), x)));
    for (size_t i = 0; i < 4; ++i)
      second.push_back(matmul(first[i], first[(i + 1) % 4]));
    return second;
  };
  auto sums = [&](const Tensor &x) {
    List of = towers(x);
    return matmul(of[0] - of[1], of[2] - of[3]);
  };
  ForgottenWaits ofSums(trace(sums, {{f32, {8, 8}}}), {x, x / 2}, orders);
  CHECK(ofSums.all >= 2 * 10);
  CHECK(ofSums.unnoticed == std::vector<int64_t>{});

  // Four steps write a part of a buffer each, and wait as if they wrote all of it: for others that use memory where the
  // rest of it lies.
  auto parts = [&](const Tensor &x) { return matmul(concat(towers(x)), x); };
  ForgottenWaits ofParts(trace(parts, {{f32, {8, 8}}}), {x, x / 2}, orders);
  CHECK(ofParts.all >= 2 * 10);
  CHECK(ofParts.unnoticed == std::vector<int64_t>{11, 30}); // the same one in both runs
  CHECK(20 * ofParts.unnoticed.size() <= size_t(ofChains.all + ofSums.all + ofParts.all));
}
