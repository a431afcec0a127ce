// Several functions over the same parameters, in one artifact.
#include "test/frontend/Check.h"
#include "test/onnx/Folder.h"
#include <burin/graph/program.h>
#include <burin/graph/states.h>
#include <burin/nn/losses.h>
#include <burin/training/optim.h>
#include <thread>

using test::Folder;

namespace {

const Tensor x = tensor({1.0f, 2.0f});

struct Net : nn::Module {
  nn::Linear hidden = register_module("hidden", nn::Linear(6, 16)), out = register_module("out", nn::Linear(16, 3));
  Tensor operator()(const Tensor &in) const { return out(tanh(hidden(in))); }
};

/// A program that trains and predicts, and the eager module to compare with.
struct Learner {
  bool isSeeded = (manual_seed(5), true);
  Net net;
  optim::SGD optimizer{net.parameters(), {.lr = .1, .momentum = .9}};
  Tensor step(const Tensor &in, const Tensor &label) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(net(in), label);
    loss.backward();
    optimizer.step();
    return loss.detach();
  }
  Graph graph() {
    Program program(net);
    program.add("train_step", [&](const Tensor &in, const Tensor &label) { return step(in, label); },
                {{f32, {8, 6}}, {i64, {8}}}, {"x", "label"}, {"loss"});
    program.add("predict", [&](const Tensor &in) { return net(in); }, {{f32, {Dim("n"), 6}}});
    return program.graph();
  }
};

} // namespace

TEST_CASE("what one function of a program learns, the others use") {
  Learner eager, traced;
  Artifact artifact = compile(traced.graph());
  CHECK(artifact.functions() == std::vector<std::string>{"train_step", "predict"});
  Artifact predict = artifact.function("predict");
  CHECK(predict.inputs()[0].spec == TensorSpec{f32, {Dim("n"), 6}});
  for (int i = 0; i < 5; ++i) {
    Tensor in = randn({8, 6}), label = randint(0, 3, {8});
    Tensor loss = eager.step(in, label);
    CHECK(artifact(in, label).item() == Approx(loss.item()).epsilon(1e-5));
    Tensor some = randn({3 + i, 6});
    CHECK(allclose(predict(some), eager.net(some), 1e-4, 1e-5));
  }
  CHECK(artifact.state("hidden.weight.momentum_buffer").shape() == Shape{16, 6});
  CHECK(allclose(artifact.state("hidden.weight"), eager.net.hidden.weight.value(), 1e-4, 1e-6));
}

TEST_CASE("a graph of several functions is saved and loaded whole") {
  Folder folder;
  Learner learner;
  Graph graph = learner.graph();
  graph.save(folder / "net.burin");
  Graph loaded = Graph::load(folder / "net.burin");
  CHECK(loaded.functions() == graph.functions());
  CHECK(loaded.function("predict").outputs() == graph.function("predict").outputs());
  Tensor in = randn({2, 6});
  CHECK(allclose(loaded.function("predict").run({in})[0], learner.net(in), 1e-5, 1e-6));
  CHECK_ERROR((void)loaded.function("predcit"), "no function \"predcit\"; it has train_step, predict");
}

TEST_CASE("states are read, written, reset, saved and loaded by name") {
  Folder folder;
  Learner learner;
  Artifact artifact = compile(learner.graph());
  auto weight = [](const Artifact &a) { return a.state("out.weight").to_vector<float>(); };
  std::vector<float> before = weight(artifact);
  Tensor in = randn({8, 6}), label = randint(0, 3, {8});
  artifact.run({in, label});
  std::vector<float> after = weight(artifact);
  CHECK(before != after);

  artifact.save_states(folder / "after.safetensors");
  Artifact other = artifact.with_own_states();
  artifact.reset_states();
  CHECK(weight(artifact) == before);
  CHECK(weight(other) == after);
  artifact.load_states(folder / "after.safetensors");
  CHECK(weight(artifact) == after);
  CHECK(artifact(in, label).item() == other(in, label).item());

  artifact.set_state("out.bias", tensor({1.0f, 2.0f, 3.0f}));
  CHECK(artifact.state("out.bias").to_vector<float>() == std::vector<float>{1, 2, 3});
  CHECK_ERROR(artifact.set_state("out.bias", zeros({4})), "\"out.bias\" is f32[3], got f32[4]");
  CHECK_ERROR((void)artifact.state("bias"), "no state \"bias\"; it has");
  save_safetensors(folder / "part.safetensors", {{"out.bias", zeros({3})}});
  CHECK_ERROR(artifact.load_states(folder / "part.safetensors"), "lacks the state");
  CHECK_ERROR(artifact.load_states(folder / "none.safetensors"), "none.safetensors: No such file");
  // The failed calls left the state unchanged.
  CHECK(artifact.state("out.bias").to_vector<float>() == std::vector<float>{1, 2, 3});
}

TEST_CASE("states of an artifact are reordered, and copied between artifacts") {
  Learner learner;
  Artifact artifact = compile(learner.graph()), other = artifact.with_own_states();
  auto bias = [](const Artifact &a) { return floats(a.state("out.bias")); };
  const std::vector<int64_t> order{2, 2, 0}, rows{1, 0, 1}, outside{0, 1, 3}, few{0, 1};
  artifact.set_state("out.bias", tensor({1.0f, 2.0f, 3.0f}));
  reorder_state(artifact, "out.bias", -1, order);
  CHECK(bias(artifact) == std::vector<float>{3, 3, 1});
  const Tensor weight = artifact.state("out.weight");
  reorder_state(artifact, "out.weight", 0, rows);
  CHECK(floats(artifact.state("out.weight")) == floats(take(weight, tensor({1, 0, 1}), 0)));
  CHECK(bias(other) != bias(artifact));
  CHECK_ERROR(reorder_state(artifact, "out.bias", 1, order), "is f32[3] and has no axis 1");
  CHECK_ERROR(reorder_state(artifact, "out.bias", 0, few), "got 2 indices for axis 0");
  CHECK_ERROR(reorder_state(artifact, "out.bias", 0, outside), "index 3 is out of range");
  CHECK_ERROR(reorder_state(artifact, "bias", 0, few), "no state \"bias\"");
  CHECK(bias(artifact) == std::vector<float>{3, 3, 1});

  copy_states(artifact, other);
  CHECK(bias(other) == bias(artifact));
  CHECK(floats(other.state("out.weight")) == floats(artifact.state("out.weight")));
  copy_states(artifact.function("predict"), artifact); // the same states
  CHECK_ERROR(copy_states(compile(learner.graph()), artifact), "of one loaded artifact only");
  // Copies in both directions at once do not wait for each other.
  std::thread back([&] {
    for (int i = 0; i < 200; ++i)
      copy_states(other, artifact);
  });
  for (int i = 0; i < 200; ++i)
    copy_states(artifact, other);
  back.join();
  CHECK(bias(other) == std::vector<float>{3, 3, 1});
}

TEST_CASE("a saved artifact of a program runs by function and name") {
  Folder folder;
  Learner learner;
  compile(learner.graph()).save(folder / "net.plate");
  Artifact artifact = load(folder / "net.plate");
  Tensor in = randn({8, 6}), label = randint(0, 3, {8});
  auto results = artifact.run({{"label", label}, {"x", in}});
  CHECK(results.at("loss").item() == Approx(learner.step(in, label).item()).epsilon(1e-5));
}

TEST_CASE("constants are in the file once, however many functions use them") {
  Net net;
  Tensor table = randn({300, 400});
  auto size = [&](bool isTwice) {
    Program program;
    program.add("one", [&](const Tensor &in) { return matmul(in, table); }, {{f32, {Dim("n"), 300}}});
    if (isTwice)
      program.add("two", [&](const Tensor &in) { return relu(matmul(in, table)); }, {{f32, {Dim("n"), 300}}});
    Folder folder;
    compile(program.graph()).save(folder / "x.plate");
    return std::filesystem::file_size(folder / "x.plate");
  };
  CHECK(size(true) < size(false) + 100'000); // the table of 480 kB is stored once
}

TEST_CASE("calls of functions with states follow each other, from however many threads") {
  struct Counter : nn::Module {
    Parameter count = register_buffer("count", zeros({}, i64));
  } counter;
  Program program(counter);
  program.add("up",
              [&] {
                counter.count.set(counter.count + 1);
                return counter.count.value();
              },
              {});
  program.add("down",
              [&] {
                counter.count.set(counter.count - 1);
                return counter.count.value();
              },
              {});
  Artifact artifact = compile(program.graph());
  std::vector<std::thread> threads;
  for (const char *name : {"up", "up", "down"})
    threads.emplace_back([f = artifact.function(name)] {
      for (int i = 0; i < 200; ++i)
        (void)f.run(std::span<const Tensor>());
    });
  for (std::thread &thread : threads)
    thread.join();
  CHECK(artifact.state("count").item<int64_t>() == 200);
}

TEST_CASE("mistakes with programs are named") {
  Program program;
  CHECK_ERROR((void)program.graph(), "no function");
  program.add("f", [](const Tensor &in) { return in + 1; }, {{f32, {2}}});
  CHECK_ERROR(program.add("f", [](const Tensor &in) { return in; }, {{f32, {2}}}), "has a function \"f\" already");
  CHECK_ERROR(program.add("my f", [](const Tensor &in) { return in; }, {{f32, {2}}}), "no name for a function");
  // A function that throws while it is traced leaves the others unchanged.
  CHECK_ERROR(program.add("g", [](const Tensor &in) { return matmul(in, zeros({3, 3})); }, {{f32, {2}}}), "matmul");
  program.add("g", [](const Tensor &in) { return in * 2; }, {{f32, {2}}});
  Graph graph = program.graph();
  CHECK(graph.function("g").run({x})[0].to_vector<float>() == std::vector<float>{2, 4});
  CHECK_ERROR(program.add("h", [](const Tensor &in) { return in; }, {{f32, {2}}}), "graph() has been called");
}

TEST_CASE("functions of a program with states of one name, or with parameters that were converted, are refused") {
  struct Counter : nn::Module {
    Parameter total;
    explicit Counter(const Shape &shape) : total(register_buffer("total", zeros(shape))) {}
    Tensor operator()(const Tensor &in) {
      total.set(total.value() + in.sum());
      return total.value() * 1;
    }
  } first({2}), second({3});
  auto read = [](Counter &counter) { return [counter](const Tensor &in) { return in.sum() * counter.total.value(); }; };
  SECTION("two modules with states of one name") {
    Program program;
    program.add("first", first, {{f32, {2}}});
    program.add("second", second, {{f32, {2}}});
    const std::string what = messageOf([&] { (void)program.graph(); });
    INFO(what);
    CHECK(contains(what, "@second has a state \"total\", f32[3], and another function has one of that name, f32[2]"));
    CHECK(contains(what, "Program program(module)"));
    CHECK(contains(what, "ProgramTest.cpp:"));
  }
  SECTION("one module names both") {
    struct Both : nn::Module {
      Counter a, b;
      Both(const Counter &a, const Counter &b) : a(register_module("a", a)), b(register_module("b", b)) {}
    } both(first, second);
    Program program(both);
    program.add("first", [&](const Tensor &in) { return first(in); }, {{f32, {2}}});
    program.add("second", [&](const Tensor &in) { return second(in); }, {{f32, {2}}});
    Artifact artifact = compile(program.graph());
    CHECK(floats(artifact(x)) == std::vector<float>{3, 3});
    CHECK(floats(artifact.function("second")(x)) == std::vector<float>{3, 3, 3});
    CHECK(floats(artifact.state("a.total")) == std::vector<float>{3, 3});
    CHECK(floats(artifact.state("b.total")) == std::vector<float>{3, 3, 3});
  }
  SECTION("the same module in two functions, one of which only reads") {
    Program program;
    program.add("first", first, {{f32, {2}}});
    program.add("read", read(first), {{f32, {2}}});
    Artifact artifact = compile(program.graph());
    artifact(x).wait();
    CHECK(floats(artifact.function("read")(x)) == std::vector<float>{9, 9});
  }
  SECTION("a constant weight of the same name in another module is no state") {
    Program program;
    program.add("first", first, {{f32, {2}}});
    program.add("read", read(second), {{f32, {2}}});
    Artifact artifact = compile(program.graph());
    CHECK(floats(artifact(x)) == std::vector<float>{3, 3});
    CHECK(floats(artifact.function("read")(x)) == std::vector<float>{0, 0, 0});
  }
  SECTION("a parameter that was converted in between") {
    Program program(first);
    program.add("first", [&](const Tensor &in) { return first(in); }, {{f32, {2}}});
    first.to(f64);
    program.add("read", read(first), {{f64, {2}}});
    const std::string what = messageOf([&] { (void)program.graph(); });
    INFO(what);
    CHECK(contains(what, "@first was recorded with a parameter"));
    CHECK(contains(what, "that was f32[2], and is f64[2] now; convert modules before add() is called"));
    CHECK(contains(what, "ProgramTest.cpp:"));
  }
}

TEST_CASE("a graph that was refused leaves the parameters as they were") {
  Parameter p = Parameter::state(zeros({2}), "p");
  Program program;
  program.add("f", [&](const Tensor &in) { return p.set(p.value() + in), p.value() * 1; }, {{f32, {2}}});
  CHECK_ERROR(program.add("g", [&](const Tensor &in) { return p.set(in), in; }, {{f32, {3}}}),
              "does not have the shape");
  CHECK_ERROR(program.add("h", [&](const Tensor &in) { return p.set(in), in; }, {{f64, {2}}}), "set");
  CHECK(floats(p.value()) == std::vector<float>{0, 0});
  Artifact artifact = compile(program.graph());
  CHECK(artifact.functions() == std::vector<std::string>{"f"});
  CHECK(floats(artifact(x)) == std::vector<float>{1, 2});
  CHECK(floats(p.value()) == std::vector<float>{0, 0});
}
