// Debug prints and calls of C++ functions: eager, jitted, and from artifacts.
#include "test/frontend/Check.h"
#include "test/onnx/Folder.h"
#include <burin/nn.h>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <thread>
#include <unistd.h>

using test::Folder;

namespace {

/// Returns the text that `code` writes to standard error.
template <class F> std::string printed(F &&code) {
  Folder folder;
  const std::string path = folder / "stderr";
  const int before = ::dup(2), file = ::open(path.c_str(), O_CREAT | O_RDWR | O_TRUNC, 0600);
  ::dup2(file, 2);
  struct Restore {
    int before, file;
    ~Restore() {
      ::dup2(before, 2);
      ::close(before);
      ::close(file);
    }
  };
  {
    Restore restore{before, file};
    code();
  }
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Removes the source locations from the lines.
std::string withoutPlaces(std::string text) {
  std::stringstream in(text);
  std::string line, all;
  while (std::getline(in, line)) {
    size_t at = line.find("HostTest.cpp:");
    all += (at == std::string::npos ? line : line.substr(line.find(": ", at) + 2)) + "\n";
  }
  return all;
}

/// Returns the prints of a function of a vector: eager, jitted, and as an artifact loaded from a file.
template <class F> std::vector<std::string> ways(F function, const Tensor &x) {
  Folder folder;
  Graph graph = trace(function, {x.spec()});
  graph.save(folder / "f.burin");
  compile(Graph::load(folder / "f.burin")).save(folder / "f.plate");
  Artifact artifact = load(folder / "f.plate");
  auto jitted = jit(function);
  std::vector<std::string> texts;
  texts.push_back(printed([&] { detail::flatten(function(x))[0].wait(); }));
  for (int i = 0; i < 2; ++i)
    texts.push_back(printed([&] { detail::flatten(jitted(x))[0].wait(); }));
  texts.push_back(printed([&] { artifact(x).wait(); }));
  return texts;
}

/// Checks that all ways print the same; returns the text without source locations.
template <class F> std::string samePrints(F function, const Tensor &x) {
  std::vector<std::string> texts = ways(function, x);
  for (const std::string &text : texts)
    CHECK(text == texts[0]);
  return withoutPlaces(texts[0]);
}

} // namespace

TEST_CASE("debug_print writes label, place, shape and values") {
  int line = 0;
  auto f = [&](const Tensor &x) {
    Tensor y = x * 2;
    line = __LINE__ + 1;
    debug_print(y, "doubled");
    return y + 1;
  };
  for (const std::string &text : ways(f, tensor({1.0f, 2.5f, -3.0f})))
    CHECK(contains(text, atLine(__FILE__, line) + "doubled: f32[3] [ 2.  5. -6.]\n"));
  auto matrix = [](const Tensor &x) {
    debug_print(x.reshape({2, 2}));
    return x;
  };
  CHECK(samePrints(matrix, tensor({1, 2, 3, 4})) == "i64[2, 2]\n[[1 2]\n [3 4]]\n");
}

TEST_CASE("every element type is printed alike everywhere") {
  for (DType type : {f32, f64, f16, bf16, i8, u8, i16, i32, i64, boolean}) {
    auto f = [&](const Tensor &x) {
      Tensor y = (x * 3).to(type);
      debug_print(y, "y");
      debug_print(y.sum(), "sum");
      return y;
    };
    CHECK(contains(samePrints(f, tensor({0.0f, 1.0f, 2.0f})), "y: " + std::string(name(type)) + "[3] "));
  }
  auto special = [](const Tensor &x) {
    debug_print(x / 0.0);
    debug_print(x(Slice(0, 0)), "empty");
    debug_print(iota({40, 40}, i64, 1), "large");
    return x;
  };
  std::string text = samePrints(special, tensor({1.0f, 0.0f, -1.0f}));
  CHECK(contains(text, "f32[3] [ inf  nan -inf]\nempty: f32[0] []\nlarge: i64[40, 40]\n[[ 0  1  2 ... 37 38 39]\n"));
}

TEST_CASE("prints keep the order of the program, and nobody removes them") {
  Tensor w = ones({3, 3});
  auto f = [&](const Tensor &x) {
    debug_print(x, "1");
    Tensor y = matmul(x.reshape({1, 3}), w);
    debug_print(w(0), "2");
    debug_print(y, "3");
    Tensor unused = exp(y);
    debug_print(unused > 2, "4");
    debug_print(x, "5");
    debug_print(x, "5");
    Tensor z = relu(x - 1) * 2;
    debug_print(z.sum(), "6");
    debug_print(Tensor(2.5f), "7");
    return z;
  };
  std::string text = samePrints(f, tensor({1.0f, 2.0f, 3.0f}));
  size_t at = 0;
  for (const char *label : {"1: ", "2: ", "3: ", "4: ", "5: ", "5: ", "6: ", "7: "}) {
    at = text.find(label, at);
    INFO(label << "\n" << text);
    REQUIRE(at != std::string::npos);
    ++at;
  }
}

TEST_CASE("branches print if they are taken, loops in each turn") {
  auto f = [](const Tensor &x) {
    Tensor y = cond(
        x.sum() > 0,
        [&] {
          debug_print(x, "positive");
          return x * 2;
        },
        [&] {
          debug_print(x.sum(), "negative");
          return x;
        });
    Tensor count = while_loop([](const Tensor &i) { return i < 3; },
                              [](const Tensor &i) {
                                debug_print(i, "turn");
                                return i + 1;
                              },
                              tensor(0));
    scan(
        [](const std::vector<Tensor> &states, const std::vector<Tensor> &parts) { // whose results nobody uses
          debug_print(parts[0] + states[0], "step");
          return ScanResult{{states[0] + parts[0]}, {}};
        },
        {tensor(0.0f)}, {y}, false);
    map(
        [](const Tensor &element) {
          debug_print(element, "element");
          return element;
        },
        y);
    fori_loop(
        0, 2,
        [](const Tensor &i, const Tensor &v) {
          return while_loop([&](const Tensor &j) { return j < i; },
                            [&](const Tensor &j) {
                              debug_print(i * 10 + j, "nested");
                              return j + 1;
                            },
                            v * 0);
        },
        tensor(0));
    return y + count.to(f32);
  };
  CHECK(samePrints(f, tensor({1.0f, 2.0f})) ==
        "positive: f32[2] [1. 2.]\nturn: i64[] 0\nturn: i64[] 1\nturn: i64[] 2\nstep: f32[] 2.0\nstep: f32[] 6.0\n"
        "element: f32[] 2.0\nelement: f32[] 4.0\nnested: i64[] 10\n");
  CHECK(contains(samePrints(f, tensor({-1.0f, -2.0f})), "negative: f32[] -3.0\nturn: i64[] 0\n"));
}

TEST_CASE("states are printed as they are at that point, also where they are updated in place") {
  Parameter total(zeros({4}));
  auto f = [&](const Tensor &x) {
    debug_print(total, "before");
    total.set(total + x);
    debug_print(total, "after");
    return x;
  };
  const std::string first = "before: f32[4] [0. 0. 0. 0.]\nafter: f32[4] [1. 1. 1. 1.]\n";
  const std::string second = "before: f32[4] [1. 1. 1. 1.]\nafter: f32[4] [2. 2. 2. 2.]\n";
  Artifact artifact = compile(trace(f, {{DType::f32, {4}}}));
  auto jitted = jit(f);
  CHECK(withoutPlaces(printed([&] { artifact(ones({4})).wait(), artifact(ones({4})).wait(); })) == first + second);
  CHECK(withoutPlaces(printed([&] { jitted(ones({4})).wait(), jitted(ones({4})).wait(); })) == first + second);
}

TEST_CASE("sizes of prints may be symbols, and prints survive many batch sizes") {
  auto layer = nn::Conv2d(3, 8, 3);
  Graph graph = trace(
      [&](const Tensor &x) {
        Tensor y = relu(layer(x));
        debug_print(y.sum({1, 2, 3}), "sums");
        return y.mean({2, 3});
      },
      {{DType::f32, {Dim("batch"), 3, 9, 9}}});
  Artifact artifact = compile(graph);
  for (int64_t batch : {1, 2, 5}) {
    Tensor x = randn({batch, 3, 9, 9});
    std::string text = printed([&] { CHECK(largestDifference(artifact(x), relu(layer(x)).mean({2, 3})) < 1e-5); });
    CHECK(contains(text, "sums: f32[" + std::to_string(batch) + "] ["));
  }
}

TEST_CASE("gradients and remat print once") {
  auto loop = [](const Tensor &x) {
    Tensor y = while_loop([](const Tensor &v) { return v.sum() < 100; },
                          [](const Tensor &v) {
                            debug_print(v.sum(), "turn");
                            return v * 2;
                          },
                          x, 8);
    return remat([](const Tensor &v) {
             debug_print(v.max(), "largest");
             return sin(v) * v;
           })(y)
        .sum();
  };
  auto gradient = jit([&](const Tensor &x) { return grad(loop(x), {x})[0]; });
  Tensor x = tensor({10.0f, 3.0f});
  Tensor got;
  std::string text = printed([&] { got = gradient(x).wait(); });
  CHECK(withoutPlaces(text) == "turn: f32[] 13.0\nturn: f32[] 26.0\nturn: f32[] 52.0\nlargest: f32[] 80.0\n");
  Tensor leaf = tensor({10.0f, 3.0f}).requires_grad_();
  printed([&] { loop(leaf).backward(); });
  CHECK(largestDifference(got, leaf.grad()) < 1e-3);
}

TEST_CASE("prints are left out of ONNX files") {
  Folder folder;
  auto f = [](const Tensor &x) {
    debug_print(x, "x");
    return x * 2;
  };
  trace(f, {{DType::f32, {2}}}).save(folder / "f.onnx");
  Tensor y;
  CHECK(printed([&] { y = Graph::load(folder / "f.onnx").run({tensor({1.0f, 2.0f})})[0].wait(); }).empty());
  CHECK(floats(y) == std::vector<float>{2, 4});
}

// ---- host_call

TEST_CASE("a C++ function runs eagerly and in each run of compiled code") {
  int calls = 0;
  auto f = [&](const Tensor &x) {
    Tensor y = host_call(
        [&](const Tensor &a, const Tensor &b) {
          ++calls;
          CHECK(!a.isTraced());
          std::vector<float> sorted = floats(a * b);
          std::sort(sorted.begin(), sorted.end());
          return from_vector(sorted);
        },
        TensorSpec{f32, x.shape()}, x + 1, x);
    return y * 2;
  };
  Tensor x = tensor({3.0f, -2.0f, 1.0f});
  const std::vector<float> want{4, 4, 24};
  CHECK(floats(f(x)) == want);
  auto jitted = jit(f);
  CHECK(floats(jitted(x)) == want);
  CHECK(floats(jitted(x)) == want);
  CHECK(jitted.traces() == 1);
  Graph graph = trace(f, {{DType::f32, {Dim("n")}}});
  CHECK(floats(compile(graph)(x)) == want);
  CHECK(floats(graph.run({tensor({1.0f})})[0]) == std::vector<float>{4});
  CHECK(calls == 5);
}

TEST_CASE("host calls return nothing, one tensor, or several") {
  std::vector<std::string> order;
  auto f = [&](const Tensor &x) {
    host_call([&](const Tensor &v) { order.push_back("void " + std::to_string(int(v.sum().item()))); }, {}, x);
    auto [least, largest] = host_call(
        [&](const Tensor &v) {
          order.push_back("pair");
          return std::pair(v.min(), v.max().to(f64));
        },
        {TensorSpec{f32, {}}, TensorSpec{f64, {}}}, x);
    std::vector<Tensor> list = host_call(
        [&](const std::vector<Tensor> &all) {
          order.push_back("list " + std::to_string(all.size()));
          return all;
        },
        std::vector<TensorSpec>{x.spec(), x.spec()}, std::vector<Tensor>{x, x * 2});
    Tensor number = host_call([&] { return 3.0f; }, TensorSpec{f32, {}});
    host_call([&] { order.push_back("last"); }, {});
    return list[1] + least + largest.to(f32) + number;
  };
  const std::vector<std::string> want{"void 3", "pair", "list 2", "last"};
  Tensor x = tensor({1.0f, 2.0f});
  const std::vector<float> result{8, 10};
  CHECK(floats(f(x)) == result);
  CHECK(order == want);
  auto jitted = jit(f);
  for (int i = 0; i < 2; ++i) {
    order.clear();
    CHECK(floats(jitted(x)) == result);
    CHECK(order == want);
  }
}

TEST_CASE("host calls in branches and loops") {
  int calls = 0;
  auto f = [&](const Tensor &x) {
    return cond(
        x > 0,
        [&] {
          return while_loop(
              [](const Tensor &v) { return v < 100; },
              [&](const Tensor &v) { return host_call([&](const Tensor &t) { return ++calls, t * 3; }, v.spec(), v); },
              x);
        },
        [&] { return x; });
  };
  auto jitted = jit(f);
  CHECK(jitted(tensor(5.0f)).item() == 135);
  CHECK(calls == 3);
  CHECK(jitted(tensor(-5.0f)).item() == -5);
  CHECK(calls == 3);
}

TEST_CASE("what a host function throws ends the run with its line, and states are as before") {
  Parameter count(zeros({}, i64));
  int line = 0;
  bool fails = false;
  auto f = [&](const Tensor &x) {
    count.set(count + 1);
    line = __LINE__ + 2;
    Tensor y =
        host_call([&](const Tensor &v) { return fails ? throw std::runtime_error("disk full") : v + 1; }, x.spec(), x);
    count.set(count + y.sum().to(i64) * 0);
    return y;
  };
  auto jitted = jit(f);
  Artifact artifact = compile(trace(f, {{DType::f32, {2}}}));
  auto state = [&] { return artifact.state("state0").item<int64_t>(); };
  CHECK(floats(jitted(ones({2}))) == std::vector<float>{2, 2});
  CHECK(floats(artifact(ones({2}))) == std::vector<float>{2, 2});
  fails = true;
  for (int i = 0; i < 2; ++i) {
    std::string message = messageOf([&] { jitted(ones({2})).wait(); });
    INFO(message);
    CHECK(contains(message, "disk full"));
    CHECK(contains(message, std::string(__FILE__) + ":" + std::to_string(line)));
    CHECK(count->item<int64_t>() == 1);
    CHECK(contains(messageOf([&] { artifact(ones({2})).wait(); }), "disk full"));
    CHECK(state() == 1);
  }
  fails = false;
  jitted(ones({2})).wait();
  CHECK(count->item<int64_t>() == 2);
}

TEST_CASE("mistakes with host calls are explained") {
  Tensor x = ones({2});
  auto wrong = [&](const Tensor &v) { return host_call([](const Tensor &t) { return t.to(f64); }, v.spec(), v); };
  CHECK(contains(messageOf([&] { wrong(x); }), "result 0 of the function is f64[2]; f32[2] was announced"));
  CHECK(contains(messageOf([&] { jit(wrong)(x).wait(); }), "result 0 of the function is f64[2]; f32[2] was announced"));
  CHECK_ERROR(host_call([] { return std::vector<Tensor>(); }, TensorSpec{f32, {}}),
              "returns 0 tensors; 1 were announced");
  CHECK_ERROR(host_call([](const Tensor &t) { return t; }, TensorSpec{f32, {Dim("n")}}, x), "f32[n]");

  Folder folder;
  auto f = [](const Tensor &v) { return host_call([](const Tensor &t) { return t * 2; }, v.spec(), v); };
  const std::string place = std::string(__FILE__) + ":" + std::to_string(__LINE__ - 1);
  Graph graph = trace(f, {x.spec()});
  CHECK_ERROR(graph.save(folder / "f.burin"), place.c_str(), "which no file can hold");
  CHECK_ERROR(graph.save(folder / "f.onnx"), place.c_str(), "write it with ops");
  CHECK_ERROR(compile(graph).save(folder / "f.plate"), place.c_str(), "write it with ops");
  CHECK(!std::filesystem::exists(folder / "f.plate"));
}

TEST_CASE("host calls have no gradient unless they are given one") {
  auto square = [](const Tensor &v) { return host_call([](const Tensor &t) { return t * t; }, v.spec(), v); };
  Tensor x = tensor({1.0f, 3.0f});
  auto plain = [&](const Tensor &v) { return grad(square(v).sum(), {v})[0]; };
  CHECK(contains(messageOf([&] { jit(plain)(x); }), "a C++ function has no gradient; put the call into a custom_vjp"));
  Tensor leaf = tensor({1.0f, 3.0f}).requires_grad_();
  CHECK(contains(messageOf([&] { square(leaf).sum().backward(); }), "a C++ function has no gradient"));
  auto given = custom_vjp([&](const std::vector<Tensor> &in) { return std::vector<Tensor>{square(in[0])}; },
                          [](const std::vector<Tensor> &in, const std::vector<Tensor> &, const std::vector<Tensor> &g) {
                            return std::vector<Tensor>{g[0] * in[0] * 2};
                          });
  auto with = [&](const Tensor &v) { return grad(given({v})[0].sum(), {v})[0]; };
  CHECK(floats(jit(with)(x)) == std::vector<float>{2, 6});
  given({leaf})[0].sum().backward();
  CHECK(floats(leaf.grad()) == std::vector<float>{2, 6});
  auto detached = [&](const Tensor &v) { return grad((square(detach(v)) * v).sum(), {v})[0]; };
  CHECK(floats(jit(detached)(x)) == std::vector<float>{1, 9});
}

TEST_CASE("a host function may compute, but not run what holds its own states") {
  Parameter count(zeros({}, i64));
  auto doubled = jit([](const Tensor &v) { return v * 2; });
  std::function<Tensor(const Tensor &)> step;
  bool again = false;
  auto jitted = jit([&](const Tensor &x) {
    count.set(count + 1);
    return host_call([&](const Tensor &v) { return again ? step(v) : doubled(v) + count->item<int64_t>() * 0; },
                     x.spec(), x);
  });
  step = [&](const Tensor &x) { return jitted(x); };
  CHECK(jitted(tensor(4.0f)).item() == 8);
  again = true;
  CHECK(contains(messageOf([&] { jitted(tensor(4.0f)).wait(); }),
                 "wants states that the run which has called it is using"));
  CHECK(count->item<int64_t>() == 1);
}

TEST_CASE("threads call host functions of one compiled function at once") {
  std::atomic<int> calls = 0, wrong = 0;
  auto jitted =
      jit([&](const Tensor &x) { return host_call([&](const Tensor &v) { return ++calls, v + 1; }, x.spec(), x); });
  jitted(tensor(0.0f)).wait();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i)
        wrong += jitted(tensor(float(t))).item() != t + 1;
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(wrong == 0);
  CHECK(calls == 201);
}
