// Values that a loop carries use one buffer or two: memory, results, gradients and errors.
#include "test/frontend/MemoryUse.h"
#include <burin/graph/host.h>

namespace {

constexpr int64_t kLarge = 1 << 18; // elements of 4 bytes
constexpr size_t kBytes = 4 * kLarge, kSmall = 1 << 16;

/// The error of a run is thrown where its result is awaited, and by synchronize().
template <class F> void checkFails(F &&code) {
  CHECK_THROWS_AS(code(), Error);
  try {
    synchronize();
  } catch (const Error &) { // NOLINT(bugprone-empty-catch): thrown already where the result was awaited
  }
}

bool areSame(const Tensor &x, const Tensor &y) { return x.shape() == y.shape() && eq(x, y).all().item<bool>(); }

using Body = Tensor (*)(const Tensor &, const Tensor &);

Tensor inPlace(const Tensor &i, const Tensor &x) { return tanh(x * 1.5) + i.to(f32) * 0.25; }
Tensor moved(const Tensor &, const Tensor &x) { return (x.roll({1}, {0}) + x.roll({-1}, {0})) * 0.5; }
Tensor ofSteps(const Tensor &i, const Tensor &x) { return x * 0.5 + cumsum(x + i.to(f32), 0) * 1e-3; }
Tensor branching(const Tensor &i, const Tensor &x) {
  return cond(i % 2 == 0, [&] { return x.roll({1}, {0}) + 1; }, [&] { return x * 0.5; });
}

/// Three states of which each depends on others, and one that never changes.
std::vector<Tensor> mixed(const Tensor &i, const std::vector<Tensor> &s) {
  return {s[1] + i.to(f32), s[0].roll({1}, {0}) - s[1], s[2] * 0.5 + s[0], s[3]};
}

std::vector<Tensor> mixedLoop(const Dim &turns, const Tensor &x) {
  ScanStep step = [](const std::vector<Tensor> &s, const std::vector<Tensor> &e) {
    return ScanResult{mixed(e[0], s), {}};
  };
  return scan(step, {x, x * 2, x + 1, x - 1}, {iota({turns}, i64)}).states;
}

} // namespace

TEST_CASE("a loop holds two versions of a carried value at most, whatever its length") {
  manual_seed(3);
  const Tensor x = randn({kLarge});
  for (Body body : {inPlace, moved, ofSteps, branching})
    for (int64_t turns : {3, 4, 40}) {
      const Tensor want = fori_loop(0, turns, body, x).wait();
      auto loop = jit([=](const Tensor &x) { return fori_loop(0, turns, body, x); });
      Tensor got;
      const size_t bytes = extraBytes([&] { got = loop(x).wait(); });
      INFO(turns << " turns, " << bytes << " bytes");
      CHECK(bytes <= 3 * kBytes + kSmall); // the result, the other version, and a value within the body
      CHECK(areSame(got, want));
    }
}

TEST_CASE("carried values are right for every length, fixed or symbolic") {
  const Tensor x = tensor({0.5f, -1.0f, 2.0f, 3.5f});
  auto symbolic = compile(trace([](const Tensor &rows, const Tensor &x) { return mixedLoop(rows.size(0), x); },
                                {{f32, {Dim("n"), 2}}, {f32, {4}}}));
  for (int64_t turns = 0; turns < 7; ++turns) {
    std::vector<Tensor> want{x, x * 2, x + 1, x - 1};
    for (int64_t i = 0; i < turns; ++i)
      want = mixed(tensor(i), want);
    const std::vector<Tensor> got = symbolic.run({zeros({turns, 2}), x});
    const std::vector<Tensor> fixed =
        turns < 2 ? got : compile(trace([=](const Tensor &x) { return mixedLoop(turns, x); }, {{f32, {4}}})).run({x});
    REQUIRE(got.size() == 4);
    for (size_t i = 0; i < 4; ++i) {
      INFO(turns << " turns, state " << i);
      CHECK(areSame(got[i], want[i]));
      CHECK(areSame(fixed[i], want[i]));
    }
  }
}

TEST_CASE("carried values are right if the run determines the length") {
  auto f = [](const Tensor &x, const Tensor &s) {
    auto step = [](const std::vector<Tensor> &s, const std::vector<Tensor> &e) {
      return ScanResult{{s[0].roll({1}, {0}) + e[0], s[1] * 0.5 + e[0]}, {}};
    };
    ScanResult all = scan(step, {s, s}, {masked_select(x, x > 0)});
    return std::vector{all.states[0], all.states[1]};
  };
  const Tensor s = tensor({1.0f, 2.0f, 4.0f});
  Artifact compiled = compile(trace(f, {{f32, {5}}, {f32, {3}}}));
  for (int count = 0; count <= 5; ++count) {
    const Tensor x = where(arange(5) < count, arange(5).to(f32) + 1, Tensor(-1.0).to(f32));
    const std::vector<Tensor> want = f(x, s), got = compiled.run({x, s});
    INFO(count << " elements");
    CHECK(areSame(got[0], want[0]));
    CHECK(areSame(got[1], want[1]));
  }
}

TEST_CASE("all versions of a carried value are there for those who read them") {
  Tensor x = tensor({0.5f, -1.0f, 2.0f});
  auto lossOf = [](const Tensor &x) {
    return fori_loop(0, 5, [](const Tensor &i, const Tensor &s) { return tanh(s * 1.1 + i.to(f32)); }, x);
  };
  auto gradient = [=](const Tensor &x) {
    Tensor last = lossOf(x);
    return std::pair(last, grad(last.sum(), {x})[0]);
  };
  auto [gotLast, gotSlope] = jit(gradient)(x);
  Tensor last = lossOf(x.requires_grad_()), slope = grad(last.sum(), {x})[0];
  CHECK(largestDifference(gotLast, last) < 1e-6);
  CHECK(largestDifference(gotSlope, slope) < 1e-6);
  auto stacked = [](const Tensor &x) {
    auto step = [](const std::vector<Tensor> &s, const std::vector<Tensor> &e) {
      Tensor next = s[0] * 2 + e[0];
      return ScanResult{{next, s[1] + next}, {next, s[1]}};
    };
    ScanResult all = scan(step, {x, x}, {arange(4).to(f32)});
    return std::vector{all.states[0], all.states[1], all.outputs[0], all.outputs[1]};
  };
  const std::vector<Tensor> want = stacked(x), got = compile(trace(stacked, {{f32, {3}}})).run({x});
  for (size_t i = 0; i < want.size(); ++i)
    CHECK(areSame(got[i], want[i]));
}

namespace {

constexpr int64_t kRows = 64, kColumns = kLarge / kRows;

Tensor setRow(const Tensor &i, const Tensor &x) {
  Tensor next = x;
  next.set({i}, next[{i}] * 2 + i.to(f32));
  return next;
}

} // namespace

TEST_CASE("a row of a carried value is set in place") {
  manual_seed(4);
  const Tensor x = randn({kRows, kColumns}), turns = tensor(int64_t(7));
  Tensor want = x;
  for (int64_t i = 0; i < 7; ++i)
    want = setRow(tensor(i), want);
  auto counted = jit([](const Tensor &x, const Tensor &) { return fori_loop(0, 7, setRow, x); });
  auto open = jit([](const Tensor &x, const Tensor &n) {
    auto body = [](const Tensor &i, const Tensor &v) { return std::pair(i + 1, setRow(i, v)); };
    auto isBelow = [&](const Tensor &i, const Tensor &) { return i < n; };
    return while_loop(isBelow, body, std::pair(zeros({}, i64), x)).second;
  });
  for (auto &loop : {std::function<Tensor(const Tensor &, const Tensor &)>(counted), {open}}) {
    Tensor got;
    const size_t bytes = extraBytes([&] { got = loop(x, turns).wait(); });
    INFO(bytes << " bytes");
    CHECK(bytes <= kBytes + 4 * kSmall); // the result, and rows
    CHECK(areSame(got, want));
    CHECK(areSame(loop(x, turns), want));
  }
  CHECK(areSame(open(x, zeros({}, i64)), x));
}

TEST_CASE("a while loop keeps what is read of its carried values") {
  auto loop = [](const Tensor &x, const Tensor &n) {
    auto body = [](const Tensor &i, const Tensor &v, const Tensor &old) {
      Tensor next = setRow(i % 4, v);
      return std::tuple(i + 1, next, old + v.roll({1}, {0}));
    };
    auto isBelow = [&](const Tensor &i, const Tensor &, const Tensor &) { return i < n; };
    auto [i, last, sum] = while_loop(isBelow, body, std::tuple(zeros({}, i64), x, x));
    return std::vector{last, sum, x + last};
  };
  const Tensor x = tensor({1.0f, 2.0f, 3.0f, 4.0f}).reshape({4, 1});
  Graph graph = trace(loop, {{f32, {4, 1}}, {i64, {}}});
  Artifact compiled = compile(graph);
  for (int64_t n : {0, 1, 2, 5, 6}) {
    const std::vector<Tensor> want = loop(x, tensor(n)), got = compiled.run({x, tensor(n)});
    for (size_t i = 0; i < want.size(); ++i) {
      INFO(n << " turns, result " << i);
      CHECK(areSame(got[i], want[i]));
    }
  }
}

TEST_CASE("a run that fails in a loop leaves inputs and states as they were") {
  const Tensor x = tensor({1.0f, 2.0f, 3.0f, 4.0f}).reshape({4, 1});
  const Tensor before = x + 0;
  Parameter p = Parameter::state(x + 0, "p");
  auto f = jit([p](const Tensor &x, const Tensor &n) mutable {
    auto body = [&](const Tensor &i, const Tensor &v) {
      p.set(setRow(i, p.value()));
      return std::pair(i + 1, setRow(i, v));
    };
    auto isBelow = [&](const Tensor &i, const Tensor &) { return i < n; };
    return while_loop(isBelow, body, std::pair(zeros({}, i64), x)).second;
  });
  checkFails([&] { f(x, tensor(int64_t(5))).wait(); });
  CHECK(areSame(x, before));
  CHECK(areSame(p.value(), before));
  CHECK(areSame(f(x, tensor(int64_t(4))), p.value()));
  CHECK(areSame(x, before));
}

TEST_CASE("parts of states are set in place where the indices are known to be in range") {
  manual_seed(5);
  const Tensor start = randn({4, kRows / 4, kColumns}), row = randn({kColumns});
  using Change = std::function<void(Tensor &, const Tensor &, const Tensor &)>;
  const Change changes[] = {
      [](Tensor &w, const Tensor &row, const Tensor &) { w.set({3, 5}, row); },
      [](Tensor &w, const Tensor &row, const Tensor &) { w.set({-1}, row); },
      [](Tensor &w, const Tensor &row, const Tensor &i) { w.set({i}, row); },
      [](Tensor &w, const Tensor &row, const Tensor &i) { w.set({i, i}, row); },
      [](Tensor &w, const Tensor &row, const Tensor &i) { w.set({i.clamp(0, 3), 5}, row); },
      [](Tensor &w, const Tensor &row, const Tensor &i) { w.set({i, Slice(2, 4)}, w[{i, Slice(3, 5)}] + row); },
  };
  for (const Change &change : changes) {
    Parameter p = Parameter::state(start + 0, "p");
    auto f = jit([p, change](const Tensor &row, const Tensor &i) mutable {
      Tensor w = p.value();
      change(w, row, i);
      p.set(w);
      return row + 1;
    });
    Tensor want = start + 0;
    for (int64_t i : {2, 0}) {
      INFO("change " << &change - changes << ", index " << i);
      change(want, row, tensor(i));
      const void *place = p->bytes().data();
      f(row, tensor(i)).wait();
      CHECK(p->bytes().data() == place);
      CHECK(areSame(p.value(), want));
    }
    const auto number = &change - changes;
    if (number < 2 || number == 4)
      continue;
    checkFails([&] { f(row, tensor(int64_t(kRows))).wait(); }); // before anything is written
    CHECK(areSame(p.value(), want));
  }
}

TEST_CASE("parts of a state are set in place one after the other") {
  Parameter p = Parameter::state(zeros({kRows, kColumns}), "p");
  auto step = [p](const Tensor &row) mutable {
    Tensor w = p.value();
    w.set({1}, row).set({3}, w[1] * 2);
    p.set(tanh(w));
    return row + 1;
  };
  auto f = jit(step);
  const Tensor row = arange(kColumns).to(f32);
  step(row);
  const Tensor want = p.value() + 0;
  p.set(zeros({kRows, kColumns}));
  const void *place = p->bytes().data();
  f(row).wait();
  CHECK(p->bytes().data() == place);
  CHECK(areSame(p.value(), want));
}

TEST_CASE("a state that one branch sets stays in place") {
  Parameter p = Parameter::state(zeros({kRows, kColumns}), "p");
  auto f = jit([p](const Tensor &n, const Tensor &isOn) mutable {
    return cond(
        isOn,
        [&] {
          p.set(setRow(n, p.value()));
          return n + 1;
        },
        [&] { return n; });
  });
  const Tensor on = ones({}, boolean), off = zeros({}, boolean);
  Tensor want = zeros({kRows, kColumns});
  for (int64_t n : {3, 0, 3}) {
    const void *place = p->bytes().data();
    CHECK(f(tensor(n), on).item<int64_t>() == n + 1);
    want = setRow(tensor(n), want);
    CHECK(areSame(p.value(), want));
    CHECK(f(tensor(n), off).item<int64_t>() == n);
    CHECK(areSame(p.value(), want));
    synchronize();
    CHECK(p->bytes().data() == place);
  }
  const size_t bytes = extraBytes([&] { f(tensor(int64_t(1)), off).wait(); });
  CHECK(bytes < kBytes / 2);
  checkFails([&] { f(tensor(kRows), on).wait(); });
  CHECK(areSame(p.value(), want));
  Tensor held = p.value(); // a copy of the state is changed then
  f(tensor(int64_t(5)), on).wait();
  CHECK(areSame(held, want));
  CHECK(!areSame(p.value(), want));
}

TEST_CASE("a state that both branches set, and whose old value is a result") {
  Parameter p = Parameter::state(tensor({1.0f, 2.0f, 3.0f}), "p");
  auto step = [p](const Tensor &x) mutable {
    Tensor old = p.value();
    Tensor y = cond(
        x.sum() > 0,
        [&] {
          p.set(p.value() * 2 + x);
          return p.value().sum();
        },
        [&] {
          p.set(p.value().roll({1}, {0}));
          return p.value().max();
        });
    return std::vector{y, old, p.value() + old};
  };
  auto f = jit(step);
  for (double scale : {1.0, -1.0, 0.5, -2.0}) {
    const Tensor x = tensor({0.5f, 1.0f, -0.25f}) * scale, before = p.value() + 0;
    const std::vector<Tensor> want = step(x);
    const Tensor after = p.value() + 0;
    p.set(before);
    const std::vector<Tensor> got = f(x);
    CHECK(areSame(p.value(), after));
    for (size_t i = 0; i < want.size(); ++i)
      CHECK(areSame(got[i], want[i]));
  }
}

TEST_CASE("a branch that fails leaves states that other branches have set") {
  const Tensor start = tensor({1.0f, 2.0f, 3.0f});
  Parameter p = Parameter::state(start + 0, "p"), q = Parameter::state(start + 0, "q"),
            r = Parameter::state(start + 0, "r");
  auto f = jit([=](const Tensor &i, const Tensor &j) mutable {
    auto setAt = [](Parameter &state, const Tensor &at) {
      return cond(
          at >= 0,
          [&] {
            state.set(setRow(at, state.value()));
            return at + 1;
          },
          [&] { return at; });
    };
    r.set(r.value() * 2);
    return setAt(p, i) + setAt(q, j);
  });
  CHECK(f(tensor(int64_t(1)), tensor(int64_t(2))).item<int64_t>() == 5);
  const Tensor wantP = setRow(tensor(int64_t(1)), start), wantQ = setRow(tensor(int64_t(2)), start);
  for (auto [i, j] : {std::pair<int64_t, int64_t>(3, 0), {0, 3}, {-1, 3}, {3, -1}}) {
    INFO(i << ", " << j);
    checkFails([&] { f(tensor(i), tensor(j)).wait(); });
    CHECK(areSame(p.value(), wantP));
    CHECK(areSame(q.value(), wantQ));
    CHECK(areSame(r.value(), start * 2));
  }
}

TEST_CASE("a loop whose body leaves its states as they are has no steps") {
  const Tensor one = ones({3});
  auto looped = jit([&](const Tensor &x) {
    Tensor y = fori_loop(0, 2, [&](const Tensor &, const Tensor &s) { return s * one; }, x + 1.0);
    return y * 2.0;
  });
  CHECK(floats(looped(tensor({1.0f, 2.0f, 3.0f}))) == std::vector<float>{4, 6, 8});
  auto same = jit(
      [&](const Tensor &x) { return fori_loop(0, 2, [&](const Tensor &, const Tensor &s) { return s * one; }, x); });
  CHECK(floats(same(tensor({1.0f, 2.0f, 3.0f}))) == std::vector<float>{1, 2, 3});
}

TEST_CASE("a state that several steps overwrite, behind a C++ function that may fail") {
  const Tensor start = tensor({1.0f, 2.0f, 3.0f, 4.0f}).reshape({4, 1});
  Parameter p = Parameter::state(start + 0, "p");
  std::function<void()> during = [] {};
  auto next = [](const Tensor &v) {
    Tensor twice = v * 2 - 1;
    return twice + cumsum(twice, 0) * 0.25;
  };
  auto f = jit([&](const Tensor &x) {
    Tensor y = host_call([&](const Tensor &v) { return during(), v; }, TensorSpec{f32, {}}, x);
    p.set(next(next(p.value())));
    return y;
  });
  Tensor x = tensor(1.0f), want = start, held;
  f(x).wait();
  want = next(next(want));
  CHECK(areSame(p.value(), want));
  const void *place = p->bytes().data();
  f(x).wait();
  want = next(next(want));
  CHECK(areSame(p.value(), want));
  CHECK(p->bytes().data() == place);
  // A handle from before the call, or from the C++ function, keeps the old value.
  for (bool isEarly : {true, false}) {
    held = isEarly ? p.value() : Tensor();
    during = [&] { held = isEarly ? held : p.value(); };
    f(x).wait();
    CHECK(areSame(held, want));
    want = next(next(want));
    CHECK(areSame(p.value(), want));
  }
  held = {};
  during = [] { throw std::runtime_error("no"); };
  checkFails([&] { f(x).wait(); });
  CHECK(areSame(p.value(), want));
  during = [] {};
  f(x).wait();
  CHECK(areSame(p.value(), next(next(want))));
}

TEST_CASE("a state that is set before a loop and in it, by runs that fail there") {
  const Tensor start = tensor({1.0f, 2.0f, 3.0f, 4.0f}).reshape({4, 1});
  const bool isCounted = GENERATE(false, true);
  Parameter p = Parameter::state(start + 0, "p");
  auto f = jit([&](const Tensor &n) {
    p.set(setRow(tensor(int64_t(0)), p.value()) * 2);
    auto body = [&](const Tensor &i, const Tensor &v) { return p.set(setRow(n + i - 3, p.value())), v + 1; };
    return isCounted
               ? fori_loop(0, 3, body, tensor(0))
               : fori_loop(
                     n - 3, n, [&](const Tensor &i, const Tensor &v) { return p.set(setRow(i, p.value())), v + 1; },
                     tensor(0));
  });
  Tensor want = start;
  for (int64_t n : {3, 5, 4, 5, 3}) {
    INFO(n);
    if (n == 5) {
      checkFails([&] { f(tensor(n)).wait(); });
    } else {
      CHECK(f(tensor(n)).item<int64_t>() == 3);
      want = setRow(tensor(int64_t(0)), want) * 2;
      for (int64_t i = n - 3; i < n; ++i)
        want = setRow(tensor(i), want);
    }
    CHECK(areSame(p.value(), want));
  }
}
