// gpu-pack FOLDER [OP…]: writes artifacts with code for processors and GPUs, with inputs and the results that the
// reference interpreter gives (of models: that the processor gives), and kernels to be timed, for gpu-check. All of
// them, or these ops, "models", "speed".
#include "test/gpu/bundle/Artifacts.h"
#include "test/gpu/bundle/Case.h"
#include "test/gpu/programs/Models.h"
#include "test/gpu/programs/TwoDevices.h"
#include "test/ops/Row.h"
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>

using namespace burin;
using namespace burin::test;

namespace {

constexpr uint64_t kSeed = 20240;
constexpr size_t kMostBytes = 200'000; // of a case, if there are smaller ones

[[noreturn]] void fail(const std::string &what) { throw std::runtime_error(what); }

rt::NpyArray arrayOf(const ir::RefTensor &t) {
  std::vector<char> bytes = t.toBytes();
  auto *data = reinterpret_cast<const std::byte *>(bytes.data());
  return {t.dtype, t.shape, {data, data + bytes.size()}};
}
rt::NpyArray arrayOf(const Tensor &t) {
  std::vector<int64_t> shape;
  for (const Dim &size : t.spec().shape)
    shape.push_back(size.value());
  return {t.dtype(), shape, {t.bytes().begin(), t.bytes().end()}};
}
rt::NpyArray floats(const std::vector<int64_t> &shape, const std::vector<float> &values) {
  auto *data = reinterpret_cast<const std::byte *>(values.data());
  return {DType::f32, shape, {data, data + values.size() * sizeof(float)}};
}

class Packer {
public:
  explicit Packer(std::string folder) : folder(std::move(folder)) {
    std::filesystem::create_directories(this->folder + "/ops");
    std::filesystem::create_directories(this->folder + "/models");
    list.open(this->folder + "/" + bundle::kList);
  }

  /// With f32 products of a precision, as in targetsOf().
  void addOp(const Row &row, const std::string &precision = "") {
    const std::string name = row.op + precision, artifact = "ops/" + name + ".plate";
    size_t cases = 0;
    struct Run {
      Tensors inputs, want, scale;
      size_t bytes = SIZE_MAX;
    } smallest;
    auto add = [&](const Run &run) {
      addCase(row, name, artifact, "ops/" + name + "." + std::to_string(cases++) + ".safetensors", run.inputs, run.want,
              run.scale);
    };
    std::string different = tryRow(row, "packed", kSeed, [&](test::Graph &graph) -> Runner {
      bundle::write(folder + "/" + artifact, graph.artifact(bundle::targetsOf(precision)));
      return [&](const Tensors &inputs) {
        Run run{inputs, graph.interpret(inputs), {}};
        run.bytes = bytesOf(inputs) + bytesOf(run.want);
        if (row.isLinear())
          run.scale = graph.interpret(absolute(inputs));
        Tensors results = rounded(run.want);
        if (cases < 2 && run.bytes <= kMostBytes)
          add(run);
        else if (run.bytes < smallest.bytes)
          smallest = std::move(run);
        return results;
      };
    });
    if (!different.empty())
      fail(different);
    if (!cases)
      add(smallest);
  }

  /// Runs of functions one after the other, as the processor does them.
  using Calls = std::vector<std::pair<std::string, std::vector<Tensor>>>;
  void addModel(const std::string &name, const burin::Graph &graph, const Calls &calls) {
    const std::string artifact = "models/" + name + ".plate";
    bundle::writeArtifact(folder + "/" + artifact, graph, bundle::kTargetsOfModels);
    rt::Program::Ptr program;
    if (rt::Status status = rt::Program::loadFile(folder + "/" + artifact, {}, program); !status.ok())
      fail(status.message());
    TestSession session(program, "cpu");
    size_t number = 0;
    for (const auto &[function, inputs] : calls) {
      Outcome outcome = session.run(function, inputs);
      if (!outcome.status.ok())
        fail(outcome.status.message());
      bundle::Arrays arrays;
      for (size_t i = 0; i < inputs.size(); ++i)
        arrays["in" + std::to_string(i)] = arrayOf(inputs[i]);
      for (size_t i = 0; i < outcome.results.size(); ++i) {
        rt::NpyArray &array = arrays["out" + std::to_string(i)] = arrayOf(outcome.results[i]);
        std::vector<float> margins = outcome.results[i].to_vector<float>();
        for (float &x : margins)
          x = 1e-5f + 2e-4f * std::abs(x);
        if (isFloat(array.dtype))
          arrays["margin" + std::to_string(i)] = floats(array.shape, margins);
      }
      save("model:" + name, artifact, function, "models/" + name + "." + std::to_string(number++) + ".safetensors",
           arrays);
    }
  }

private:
  static size_t bytesOf(const Tensors &tensors) {
    size_t bytes = 0;
    for (const ir::RefTensor &t : tensors)
      bytes += size_t(t.size()) * byteWidth(t.dtype);
    return bytes;
  }
  static Tensors rounded(Tensors tensors) {
    for (ir::RefTensor &t : tensors)
      t = ir::RefTensor::fromBytes(t.dtype, t.shape, t.toBytes());
    return tensors;
  }
  static Tensors absolute(Tensors tensors) {
    for (ir::RefTensor &t : tensors)
      if (isFloat(t.dtype))
        for (double &x : t.reals())
          x = std::fabs(x);
    return tensors;
  }

  /// How far an element is from another one, both rounded to their type.
  static double between(const ir::RefTensor &want, size_t i, double margin) {
    const double x = want.reals()[i];
    return std::abs(ir::roundTo(want.dtype, x + margin) - ir::roundTo(want.dtype, x)) * (1 + 1e-6);
  }

  /// Tensor cores may cut each of the 33 addends of a product of 32 steps, four times per slice, by 2^-13 of the
  /// largest one, see numerics.md.
  static Tolerance toleranceOf(const Row &row, const Tensors &inputs) {
    constexpr double kCut = 4 * 33 * (1 << 10); // in epsilons of f32
    Tolerance tolerance = row.tolerance;
    if (row.op == "matmul" && isFloat8(inputs[0].dtype))
      tolerance.sumEpsilons += kCut;
    return tolerance;
  }

  void addCase(const Row &row, const std::string &name, const std::string &artifact, const std::string &file,
               const Tensors &inputs, const Tensors &want, const Tensors &scale) {
    bundle::Arrays arrays;
    for (size_t i = 0; i < inputs.size(); ++i)
      arrays["in" + std::to_string(i)] = arrayOf(inputs[i]);
    for (size_t i = 0; i < want.size(); ++i) {
      arrays["out" + std::to_string(i)] = arrayOf(want[i]);
      if (!isFloat(want[i].dtype))
        continue;
      std::vector<double> allowed = marginsOf(want[i], toleranceOf(row, inputs), scale.empty() ? nullptr : &scale[i]);
      std::vector<float> margins;
      for (size_t e = 0; e < allowed.size(); ++e) // from what is stored, to what the bounds are rounded to
        margins.push_back(float(std::max(between(want[i], e, allowed[e]), between(want[i], e, -allowed[e]))));
      arrays["margin" + std::to_string(i)] = floats(want[i].shape, margins);
    }
    save(name, artifact, "main", file, arrays);
  }

  void save(const std::string &name, const std::string &artifact, const std::string &function, const std::string &file,
            const bundle::Arrays &arrays) {
    std::string error;
    if (!bundle::save(folder + "/" + file, arrays, error))
      fail(error);
    list << name << ' ' << artifact << ' ' << function << ' ' << file << '\n';
  }

  const std::string folder;
  std::ofstream list;
};

void addModels(Packer &packer) {
  using namespace models;
  manual_seed(1);
  packer.addModel("mlp", trace(mlp(), {TensorSpec{f32, {Dim("batch"), 37}}}),
                  {{"main", {randn({1, 37})}}, {"main", {randn({70, 37})}}});
  auto net = resnet18(8);
  net(randn({4, 3, 32, 32}));
  net.eval();
  packer.addModel("resnet18", trace(net, {TensorSpec{f32, {Dim("batch"), 3, 32, 32}}}),
                  {{"main", {randn({1, 3, 32, 32})}}, {"main", {randn({2, 3, 32, 32})}}});
  Packer::Calls words{{"prefill", {randint(0, kWords, {kBatch, 7})}}};
  for (int64_t i = 0; i < 8; ++i)
    words.push_back({"decode", {randint(0, kWords, {kBatch}), zeros({kBatch}, i64) + (7 + i)}});
  packer.addModel("gpt", Gpt().graph(), words);
  Packer::Calls steps;
  for (int i = 0; i < 5; ++i)
    steps.push_back({"train_step", {randn({16, 6}), randint(0, 3, {16})}});
  steps.push_back({"predict", {randn({9, 6})}});
  packer.addModel("train", Learner().graph(), steps);
}

} // namespace

int main(int argc, char **argv) try {
  if (argc < 2) {
    std::cerr << "usage: gpu-pack FOLDER [OP…]\n";
    return 2;
  }
  Packer packer(argv[1]);
  std::set<std::string> chosen(argv + 2, argv + argc);
  for (const Row *row : allRows())
    if (chosen.empty() || chosen.count(row->op))
      packer.addOp(*row);
  for (const Row &row : contractionRows())
    if (chosen.empty() || chosen.count(row.op)) {
      packer.addOp(roundedToTf32(row), "+tf32");
      packer.addOp(splitToBf16(row), "+bf16x3");
    }
  if (chosen.empty() || chosen.count("models"))
    addModels(packer);
  if (chosen.empty() || chosen.count("speed"))
    bundle::packSpeed(argv[1]);
  return 0;
} catch (const std::exception &e) {
  std::cerr << e.what() << '\n';
  return 1;
}
