// Writes every example of the op table, and loops, as ONNX models of their own, with inputs and the interpreter's
// results, for check_export.py to try in ONNX Runtime: `onnx-export-samples FOLDER`.
//
// NAME.onnx   the model
// NAME.bin    the elements of inputs and outputs, one after another
// list.txt    a line per model: NAME, the example, then "in" or "out", type and sizes of each, separated by tabs
//
// Functions with states are NAME.onnx and NAME.bin, too; a line of states.txt has the values that the states begin
// with, and of each run inputs, results, and states after it.
#include "frontend/trace/GraphData.h"
#include "test/ops/Row.h"
#include <burin/burin.h>
#include <burin/nn/transformer.h>
#include <cstdio>
#include <fstream>

using namespace burin;
using namespace burin::test;

namespace {

/// Restricts operands to those for which ONNX defines the result, such as floats within the range of the integers that
/// they are cast to.
void avoidUndefined(const std::string &op, Example &example) {
  if (op == "reduce_prod" && !isFloat(example.operands[0].spec->dtype)) // overflows
    example.operands[0].draw = {-1, 1};
  if (op == "cast" && isFloat(example.operands[0].spec->dtype))
    example.operands[0].draw = {0, 100};
}

std::string spec(const char *side, const ir::RefTensor &tensor) {
  std::string text = std::string("\t") + side + "\t" + std::string(name(tensor.dtype)) + "\t";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(tensor.shape[i]);
  return text;
}

/// Returns whether ONNX leaves the result open, such as a mean over no elements.
bool isUndefined(const std::string &op, const Example &example) {
  if (op != "reduce_mean" && op != "reduce_var")
    return false;
  const Shape &shape = example.operands[0].spec->shape;
  return std::find(shape.begin(), shape.end(), Dim(0)) != shape.end();
}

/// Returns false if ONNX has no equivalent.
bool write(const std::string &folder, const std::string &name, Sample &sample, std::ostream &list) {
  std::string path = folder + "/" + name;
  std::ofstream(path + ".mlir") << sample.graph->text();
  burin::Graph graph = burin::Graph::load(path + ".mlir");
  std::remove((path + ".mlir").c_str());
  try {
    graph.save(path + ".onnx");
  } catch (const Error &) {
    return false;
  }
  std::ofstream bytes(path + ".bin", std::ios::binary);
  std::string line = name + "\t" + sample.text;
  auto add = [&](const char *side, const Tensors &tensors) {
    for (const ir::RefTensor &tensor : tensors) {
      std::vector<char> data = tensor.toBytes();
      bytes.write(data.data(), std::streamsize(data.size()));
      line += spec(side, tensor);
    }
  };
  add("in", sample.inputs);
  add("out", sample.graph->interpret(sample.inputs));
  list << line << "\n";
  return true;
}

/// A loop with state over `length` elements, which the op table does not contain.
Sample loopSample(int64_t length, bool reverse) {
  Random random(7);
  Sample sample{"loop", std::make_unique<burin::test::Graph>(), {}};
  burin::test::Graph &graph = *sample.graph;
  auto input = [&](const TensorSpec &spec, const std::vector<int64_t> &sizes) {
    sample.inputs.push_back(randomTensor(spec.dtype, sizes, {-2, 2}, Mood::Plain, random));
    return graph.input(spec);
  };
  auto x = input({f32, {Dim("n"), 3, 4}}, {length, 3, 4}), initial = input({f32, {1, 3, 4}}, {1, 3, 4});
  auto weight = input({f32, {1, 4, 4}}, {1, 4, 4});
  auto results = graph.loop({initial}, {x}, reverse, [&](const auto &states, const auto &elements) {
    auto sum = graph.apply("add", {graph.apply("matmul", {states[0], weight})[0], elements[0]})[0];
    return burin::test::Graph::Values{graph.apply("tanh", {sum})[0], sum};
  });
  for (auto result : results)
    graph.output(result);
  return sample;
}

// ---- states

void append(std::ostream &bytes, std::string &line, const std::string &side, const Tensor &tensor) {
  auto data = tensor.bytes();
  bytes.write(reinterpret_cast<const char *>(data.data()), std::streamsize(data.size()));
  line += "\t" + side + "\t" + std::string(burin::name(tensor.dtype())) + "\t";
  for (const Dim &size : tensor.shape())
    line += (line.back() == '\t' ? "" : ",") + size.str();
}

/// Writes a function of a program with the initial values of its states, and inputs and results of some runs.
void writeStates(const std::string &folder, const std::string &name, const burin::Graph &graph,
                 const std::string &function, const std::vector<TensorSpec> &inputs, std::ostream &list) {
  graph.function(function).save(folder + "/" + name + ".onnx");
  Artifact artifact = compile(graph);
  std::ofstream bytes(folder + "/" + name + ".bin", std::ios::binary);
  std::string line = name;
  for (const NamedSpec &state : artifact.states())
    append(bytes, line, "state " + state.name, artifact.state(state.name));
  for (int run = 0; run < 4; ++run) {
    std::vector<Tensor> given;
    for (const TensorSpec &input : inputs) {
      given.push_back(isFloat(input.dtype) ? randn(input.shape) : randint(0, 3, input.shape));
      append(bytes, line, "in", given.back());
    }
    for (const Tensor &result : artifact.function(function).run(given))
      append(bytes, line, "out", result);
    for (const NamedSpec &state : artifact.states())
      append(bytes, line, "after " + state.name, artifact.state(state.name));
  }
  list << line << "\n";
}

int writeStates(const std::string &folder) {
  manual_seed(21);
  std::ofstream list(folder + "/states.txt");
  int written = 0;
  auto add = [&](const std::string &name, Program program, const std::string &function,
                 const std::vector<TensorSpec> &inputs) {
    writeStates(folder, name, program.graph(), function, inputs, list);
    ++written;
  };
  Parameter count = Parameter::state(zeros({}, i64), "count"), mean = Parameter::state(zeros({3}), "mean");
  Program running;
  running.add("main",
              [&](const Tensor &x) {
                count.set(count + 1);
                mean.set(mean + (x - mean) / count.value().to(f32));
                return mean * 2;
              },
              {{DType::f32, {3}}});
  add("states-running-mean", std::move(running), "main", {{DType::f32, {3}}});

  auto norm = nn::Sequential(nn::Conv2d(2, 4, 3), nn::BatchNorm2d(4), nn::ReLU());
  Program normalised(norm);
  normalised.add("main", [&](const Tensor &x) { return norm(x); }, {{DType::f32, {3, 2, 6, 6}}});
  add("states-batch-norm", std::move(normalised), "main", {{DType::f32, {3, 2, 6, 6}}});

  auto net = nn::Sequential(nn::Linear(5, 7), nn::Tanh(), nn::Linear(7, 3));
  optim::SGD optimizer(net.parameters(), {.lr = .1, .momentum = .9});
  const std::vector<TensorSpec> batch{{DType::f32, {8, 5}}, {DType::i64, {8}}};
  auto learning = [&] {
    Program program(net);
    program.add(
        "learn",
        [&](const Tensor &x, const Tensor &y) {
          Tensor loss = cross_entropy(net(x), y);
          optimizer.zero_grad();
          loss.backward();
          optimizer.step();
          return loss;
        },
        batch);
    program.add("predict", [&](const Tensor &x) { return net(x); }, {batch[0]});
    return program;
  };
  add("states-training", learning(), "learn", batch);
  add("states-read-only", learning(), "predict", {batch[0]});

  // Branches, loops that depend on data, and random numbers.
  Parameter total = Parameter::state(zeros({2}), "total");
  Program controlled;
  controlled.add("main",
                 [&](const Tensor &x, const Tensor &index) {
                   Tensor twice = x * 2, bias = tensor({0.5, 0.25});
                   Tensor one = cond(x.sum() > 0, [&] { return twice + bias; }, [&] { return x * bias; });
                   Tensor two =
                       switch_case(index.sum(), [&] { return one; }, [&] { return one + twice; }, [&] { return -one; });
                   auto turn = [&](const Tensor &v) { return v + abs(two) + bias; };
                   Tensor last = while_loop([](const Tensor &v) { return v.sum() < 20; }, turn, total.value());
                   total.set(last * 0.5);
                   return std::tuple(two, last);
                 },
                 {{DType::f32, {2}}, {DType::i64, {1}}});
  add("states-control", std::move(controlled), "main", {{DType::f32, {2}}, {DType::i64, {1}}});
  Generator generator(-11);
  Program random;
  random.add("main",
             [&](const Tensor &x) {
               Dim n = x.size(0);
               return std::tuple(generator.rand({n}), generator.randn({n, 3}), generator.randint(-3, 9, {n}),
                                 generator.bernoulli(sigmoid(x)), generator.uniform({n}, -1, 2, DType::f64));
             },
             {{DType::f32, {Dim("n")}}});
  add("states-random", std::move(random), "main", {{DType::f32, {7}}});

  auto attending = [] {
    nn::KVCache cache(/*batch=*/2, /*heads=*/2, /*length=*/7, /*size=*/4);
    auto attend = [cache](const Tensor &x, const Tensor &positions) {
      Tensor tokens = x.reshape({2, x.size(1), 2, 4}).transpose({0, 2, 1, 3}), sees = cache.mask(positions, x.size(1));
      auto [keys, values] = cache.update(tokens, sin(tokens), positions);
      return scaled_dot_product_attention(tokens, keys, values, sees);
    };
    Program program(cache);
    program.add("prefill", attend, {{DType::f32, {2, Dim("m"), 8}}, {DType::i64, {2}}});
    program.add("decode", attend, {{DType::f32, {2, 1, 8}}, {DType::i64, {2}}});
    return program;
  };
  add("states-cache-prefill", attending(), "prefill", {{DType::f32, {2, 3, 8}}, {DType::i64, {2}}});
  add("states-cache-decode", attending(), "decode", {{DType::f32, {2, 1, 8}}, {DType::i64, {2}}});
  return written;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2)
    return std::fprintf(stderr, "usage: onnx-export-samples FOLDER\n"), 2;
  std::string folder = argv[1];
  std::ofstream list(folder + "/list.txt");
  int written = 0, without = 0;
  for (const Row *row : allRows())
    for (DType dtype : row->types)
      for (size_t i = 0; Example &example : row->examples(*row, dtype)) {
        if (isUndefined(row->op, example))
          continue;
        avoidUndefined(row->op, example);
        Sample sample = sampleOf(row->op, std::move(example), 20240);
        std::string stem = row->op + "-" + std::string(name(dtype)) + "-" + std::to_string(i++);
        ++(write(folder, stem, sample, list) ? written : without);
      }
  for (int64_t length : {1, 5})
    for (bool reverse : {false, true}) {
      Sample sample = loopSample(length, reverse);
      ++(write(folder, "loop-" + std::to_string(length) + (reverse ? "-reverse" : ""), sample, list) ? written
                                                                                                     : without);
    }
  written += writeStates(folder);
  std::printf("%d models, %d examples without an ONNX form\n", written, without);
  return 0;
}
