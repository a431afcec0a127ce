// Jitted functions overwrite the old values of states if nobody else holds them.
#include "frontend/tensor/data/DlpackAbi.h"
#include "runtime/execute/session/AsyncRunner.h"
#include "test/frontend/MemoryUse.h"
#include <array>
#include <burin/graph/host.h>
#include <burin/training/data.h>
#include <burin/training/optim.h>
#include <cstring>
#include <deque>
#include <filesystem>
#include <thread>

namespace {

constexpr int64_t kLarge = 1 << 20; // 4-byte elements; large enough for runs to be asynchronous

const void *placeOf(const Parameter &p) { return p->bytes().data(); }

/// A state that each call adds to.
struct Sum {
  Parameter total;
  explicit Sum(Tensor start) : total(Parameter::state(std::move(start), "total")) {}
  auto step() {
    return jit([p = total](const Tensor &x) mutable {
      p.set(p + x);
      return x.sum() * 0;
    });
  }
};

bool isAll(const Tensor &x, float value) {
  std::vector<float> elements = floats(x);
  return std::ranges::all_of(elements, [&](float element) { return element == value; });
}

} // namespace

TEST_CASE("a state that nobody else holds stays where it is") {
  for (int64_t size : {int64_t(3), kLarge}) {
    Sum sum(zeros({size}));
    auto step = sum.step();
    Tensor one = ones({size});
    step(one).wait();
    const void *place = placeOf(sum.total);
    for (int i = 0; i < 20; ++i) {
      step(one).wait();
      CHECK(placeOf(sum.total) == place);
    }
    CHECK(isAll(sum.total, 21));
    if (size == kLarge) {
      CHECK(extraBytes([&] { step(one).wait(); }) < size_t(kLarge));
      Tensor held = sum.total;
      CHECK(extraBytes([&] { step(one).wait(); }) >= size_t(4 * kLarge));
    }
  }
}

TEST_CASE("an old value that a handle holds is copied, once") {
  for (int64_t size : {int64_t(3), kLarge}) {
    Sum sum(zeros({size}));
    auto step = sum.step();
    Tensor one = ones({size});
    step(one);
    Tensor old = sum.total, reshaped = old.reshape({1, size});
    old = {};
    step(one);
    step(one);
    CHECK(isAll(reshaped, 1));
    CHECK(isAll(sum.total, 3));
    const void *place = placeOf(sum.total);
    reshaped = {};
    step(one).wait();
    CHECK(placeOf(sum.total) == place);
  }
}

TEST_CASE("indices that are known early are checked before a state is overwritten") {
  Parameter total = Parameter::state(zeros({kLarge}), "total");
  auto step = jit([p = total](const Tensor &x, const Tensor &count) mutable {
    p.set(p + x);
    return take(cumsum(p.value(), 0), count - 1, 0); // computed last, from the new value
  });
  Tensor one = ones({kLarge});
  CHECK(floats(step(one, tensor({3}))) == std::vector<float>{3});
  const void *place = placeOf(total);
  for (int i = 2; i < 6; ++i) {
    CHECK(floats(step(one, tensor({int64_t(4), kLarge}))) == std::vector<float>{float(4 * i), float(kLarge * i)});
    CHECK(placeOf(total) == place);
    std::string what = messageOf([&] { step(one, tensor({int64_t(1), kLarge + 1})).wait(); });
    CHECK(contains(what, "an index of take is out of range along axis 0 (element 1)"));
    CHECK(contains(what, "DonationTest.cpp:"));
    CHECK(isAll(total, float(i)));
    CHECK(placeOf(total) == place);
  }
}

TEST_CASE("DLPack views and memory of others are not written") {
  std::vector<float> mine(4, 7);
  Sum sum(from_blob(mine.data(), {f32, {4}}, [] {}));
  auto step = sum.step();
  step(ones({4})).wait();
  CHECK(mine == std::vector<float>(4, 7));
  CHECK(isAll(sum.total, 8));
  DLManagedTensor *view = to_dlpack(sum.total);
  step(ones({4})).wait();
  CHECK(static_cast<const float *>(view->dl_tensor.data)[2] == 8);
  CHECK(isAll(sum.total, 9));
  view->deleter(view);
}

TEST_CASE("cells made from one tensor keep values of their own") {
  Tensor start = zeros({5});
  Parameter a = Parameter::state(start, "a"), b = Parameter::state(start, "b");
  start = {};
  auto step = jit([&](const Tensor &x) {
    a.set(a + x);
    b.set(b - x);
    return a - b;
  });
  CHECK(isAll(step(ones({5})), 2));
  CHECK(isAll(step(ones({5})), 4));
  CHECK(isAll(a, 2));
  CHECK(isAll(b, -2));
}

TEST_CASE("readers that have not run yet read the old value") {
  Sum sum(zeros({kLarge}));
  auto step = sum.step();
  Tensor one = ones({kLarge});
  step(one);
  std::vector<Tensor> seen;
  for (int i = 0; i < 10; ++i) {
    seen.push_back(sum.total * 2); // not yet computed
    step(one);
  }
  for (int i = 0; i < 10; ++i)
    CHECK(isAll(seen[size_t(i)], float(2 * i + 2)));
}

TEST_CASE("threads that step and read get whole values") {
  Sum sum(zeros({1000}));
  auto step = jit([p = sum.total](const Tensor &x) mutable {
    p.set(p + x);
    return p.value();
  });
  Tensor one = ones({1000});
  step(one).wait();
  std::atomic<int> torn = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      std::vector<std::pair<Tensor, float>> kept;
      for (int i = 0; i < 100; ++i) {
        Tensor now = step(one);
        float first = now[0].item<float>();
        kept.emplace_back(now, first);
      }
      for (auto &[tensor, first] : kept)
        torn += !isAll(tensor, first);
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(torn == 0);
  CHECK(isAll(sum.total, 201));
}

TEST_CASE("threads step a state by two jitted functions") {
  Sum sum(zeros({1000}));
  auto step = jit([p = sum.total](const Tensor &x) mutable {
    p.set(p + x);
    return x;
  });
  auto twice = jit([p = sum.total](const Tensor &x) mutable {
    p.set(p + x + x);
    return x;
  });
  Tensor one = ones({1000});
  step(one).wait();
  twice(one).wait();
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i)
        t ? twice(one) : step(one);
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(isAll(sum.total, 303));
  CHECK((step.traces() == 1 && twice.traces() == 1)); // no call mistakes another one's commit for a change
}

TEST_CASE("runs that call C++ functions or determine sizes overwrite states that nobody else holds") {
  const bool isHost = GENERATE(true, false);
  Parameter total = Parameter::state(zeros({kLarge}), "total");
  std::function<void()> during = [] {};
  auto step = jit([&](const Tensor &x) {
    total.set(total + x);
    Tensor count = isHost ? host_call(
                                [&](const Tensor &v) {
                                  during();
                                  return v;
                                },
                                TensorSpec{f32, {}}, x[0])
                          : nonzero(x.slice(0, 0, 2) > 0).sum();
    total.set(total + x);
    return count;
  });
  Tensor one = ones({kLarge});
  step(one).wait();
  const void *place = placeOf(total);
  CHECK(extraBytes([&] { step(one).wait(); }) < size_t(kLarge));
  CHECK(placeOf(total) == place);
  CHECK(isAll(total, 4));

  Tensor old = total;
  step(one).wait();
  CHECK(isAll(old, 4));
  CHECK(isAll(total, 6));
  old = {};
  if (!isHost)
    return;

  Tensor kept, later;
  during = [&] {
    kept = total.value();
    later = total * 10;                                  // may run after this call
    std::thread([&] { CHECK(isAll(total, 6)); }).join(); // while the run goes on
  };
  step(one).wait();
  CHECK(isAll(kept, 6));
  CHECK(isAll(later, 60));
  CHECK(isAll(total, 8));
  kept = later = {};
  during = [] {};
  step(one).wait();
  const void *now = placeOf(total);
  during = [] { throw std::runtime_error("no"); };
  CHECK(contains(messageOf([&] { step(one).wait(); }), "no"));
  CHECK(isAll(total, 10));
  during = [] {};
  step(one).wait();
  CHECK(placeOf(total) == now);
  CHECK(isAll(total, 12));
}

TEST_CASE("a failed run overwrites none of many states, which it would update at once") {
  const bool isHost = GENERATE(true, false);
  std::vector<Parameter> states;
  for (int64_t i = 0; i < 16; ++i)
    states.push_back(Parameter::state(zeros({4000 + 16 * i}), "state" + std::to_string(i)));
  bool fails = false;
  auto step = jit([&](const Tensor &x) {
    Tensor y = x * 2;
    if (isHost)
      y = host_call(
          [&](const Tensor &v) {
            if (fails)
              throw std::runtime_error("it must fail");
            return v;
          },
          TensorSpec{f32, {}}, y);
    else
      check(y > 0, "it must fail");
    for (Parameter &state : states)
      state.set(state + x);
    return y;
  });
  auto areAll = [&](float value) { return std::ranges::all_of(states, [&](auto &s) { return isAll(s, value); }); };
  const Tensor one = full({}, 1.0f), bad = full({}, isHost ? 1.0f : -1.0f);
  for (int turn = 1; turn <= 3; ++turn) {
    step(one).wait();
    CHECK(areAll(float(turn)));
    fails = true;
    CHECK(contains(messageOf([&] { step(bad).wait(); }), "it must fail"));
    CHECK(areAll(float(turn)));
    fails = false;
    (void)messageOf([] { synchronize(); }); // reports it, too
  }
}

TEST_CASE("threads read whole values of a state that runs with C++ functions overwrite") {
  Parameter total = Parameter::state(zeros({100000}), "total");
  auto step = jit([&](const Tensor &x) {
    Tensor y = host_call([](const Tensor &v) { return v; }, TensorSpec{f32, {}}, x[0]);
    total.set(total + x);
    return y;
  });
  Tensor one = ones({100000});
  step(one).wait();
  std::atomic<bool> ends = false;
  std::atomic<int> torn = 0;
  std::thread reader([&] {
    float last = 0;
    while (!ends) {
      const std::vector<float> seen = floats(total.value());
      torn += seen.front() < last || std::ranges::any_of(seen, [&](float v) { return v != seen.front(); });
      last = seen.front();
    }
  });
  for (int i = 0; i < 200; ++i)
    step(one).wait();
  ends = true;
  reader.join();
  CHECK(torn == 0);
  CHECK(isAll(total, 201));
  CHECK(step.traces() == 1);
}

/// A number that is 0, computed in a while: eager code that uses it runs later.
static Tensor late() {
  Tensor x = full({700, 700}, 1e-3f);
  for (int i = 0; i < 4; ++i)
    x = matmul(x, x);
  return x.sum() * 0;
}

TEST_CASE("an eager set writes into memory that nothing else refers to") {
  Tensor x = zeros({64, kLarge / 64}), row = ones({kLarge / 64});
  x.set(0, row);
  const void *place = x.bytes().data();
  CHECK(extraBytes([&] { x.set(1, row).set({Slice(), 2}, 5).wait(); }) < size_t(kLarge));
  CHECK(x.bytes().data() == place);
  Tensor old = x;
  x.set(2, row * 3);
  CHECK(x.bytes().data() != place);
  CHECK(old[2][0].item() == 0);
  CHECK(x[2][0].item() == 3);

  Parameter p = Parameter::state(x + 0, "p"); // another storage than x
  x = old = {};
  p->wait();
  place = placeOf(p);
  auto put = [&](int64_t i, const Tensor &values) {
    Tensor value = p;
    value.set(i, values);
    p.set(value);
  };
  put(3, row + late()); // the values come after p has the new tensor
  CHECK(placeOf(p) == place);
  old = p;
  put(4, row * 7 + late());
  CHECK(placeOf(p) != place);
  CHECK(old[4][0].item() == 0);
  CHECK(p.value()[3][0].item() == 1);
  CHECK(p.value()[4][0].item() == 7);
}

TEST_CASE("an eager step by rows writes them into the table") {
  constexpr int64_t kRows = 1 << 16, kColumns = 16;
  nn::Embedding layer(kRows, kColumns, {.sparse = true});
  optim::SGD optimizer({layer.weight}, {.lr = 1.0});
  auto step = [&] {
    optimizer.zero_grad();
    layer(tensor({3, 5, 3})).sum().backward();
    optimizer.step();
  };
  const float before = layer.weight.value()[3][0].item<float>();
  step(); // copies the table
  CHECK(extraBytes(step) < size_t(4 * kRows * kColumns) / 2);
  Tensor held = layer.weight;
  CHECK(extraBytes(step) >= size_t(4 * kRows * kColumns));
  CHECK(held[3][0].item<float>() == Approx(before - 4));
  CHECK(layer.weight.value()[3][0].item<float>() == Approx(before - 6));
}

TEST_CASE("a run that fails leaves the states as they were") {
  for (int64_t size : {int64_t(3), kLarge}) {
    Parameter total = Parameter::state(zeros({size}), "total"), count = Parameter::state(tensor(0), "count");
    auto step = jit([&](const Tensor &x) {
      total.set(total + x);
      count.set(count + 1);
      check(x > 0, "a value is not positive");
      return x * 1;
    });
    Tensor one = ones({size});
    step(one);
    step(one);
    Tensor failed = step(-one);
    CHECK(contains(messageOf([&] { failed.wait(); }), "a value is not positive"));
    CHECK(isAll(total, 2));
    CHECK(count->item<int64_t>() == 2);
    step(one).wait();
    CHECK(isAll(total, 3));
    // An input that fails, before or during the call.
    Tensor bad = take(one, tensor({-1, int64_t(size)}), 0);
    Tensor broken = one + bad.sum();
    CHECK(!messageOf([&] { step(broken).wait(); }).empty());
    CHECK(isAll(total, 3));
    CHECK(count->item<int64_t>() == 3);
    step(one).wait();
    CHECK(isAll(total, 4));
    CHECK(!messageOf([] { synchronize(); }).empty());
  }
}

TEST_CASE("queued runs of a session start with the states before failed ones") {
  Parameter total = Parameter::state(zeros({3}), "total");
  const Artifact artifact = compile(trace(
      [&](const Tensor &x) {
        total.set(total + x);
        check(x > 0, "a value is not positive");
        return total.value() * 1;
      },
      {{f32, {3}}}));
  const std::string path = (std::filesystem::temp_directory_path() / "burin-queued-states.plate").string();
  artifact.save(path);
  rt::Program::Ptr program;
  REQUIRE(rt::Program::loadFile(path, {}, program).ok());
  std::filesystem::remove(path);
  std::unique_ptr<rt::Session> session;
  REQUIRE(rt::Session::create(program, {.threads = 1}, session).ok());
  const bool isQueued = GENERATE(false, true); // all before the first one runs; else each after the one before
  struct Call {
    std::array<float, 3> x, y = {};
    std::atomic<bool> mayEnd{false}, isDone{false};
    std::string message = {};
  };
  std::array<float, 6> signs{1, -1, -1, 1, -1, 1}, expected{1, 0, 0, 2, 0, 3};
  std::deque<Call> calls;
  for (float sign : signs)
    calls.emplace_back(std::array{sign, sign, sign});
  {
    rt::AsyncRunner runner(*session);
    for (Call &call : calls) {
      const int64_t shape = 3;
      rt::TensorView in{call.x.data(), &shape, 1, f32}, out{call.y.data(), &shape, 1, f32};
      auto done = [](void *context, const rt::Status &status, std::span<const rt::TensorView>) {
        auto &ended = *static_cast<Call *>(context);
        while (!ended.mayEnd)
          std::this_thread::yield();
        ended.message = status.message();
        ended.isDone = true;
      };
      call.mayEnd = !isQueued;
      REQUIRE(runner.enqueue(0, {&in, 1}, {&out, 1}, {&call, done}).ok());
      while (!isQueued && !call.isDone)
        std::this_thread::yield();
    }
    for (Call &call : calls)
      call.mayEnd = true;
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    CHECK(contains(calls[i].message, "a value is not positive") == (signs[i] < 0));
    if (signs[i] > 0)
      CHECK(calls[i].y == std::array{expected[i], expected[i], expected[i]});
  }
  CHECK(static_cast<const float *>(session->state(0).data)[2] == 3);
}
