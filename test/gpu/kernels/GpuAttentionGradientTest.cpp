// Gradients of attention on a GPU's kernels, without a matrix of weights: lengths around the size of a tile, columns
// around those of a piece of 16 bytes and a chunk, static and symbolic, masks, infinite values.
#include "test/Features.h"
#include "test/gpu/emulator/Emulate.h"
#include "test/gpu/emulator/Simt.h"
#include "test/gpu/ptx/Ptx.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

using namespace burin;
using namespace burin::test;
using Ints = std::vector<int64_t>;

namespace {

struct Sides {
  DType dtype;
  Shape heads;
  Dim rows, keys;
  int64_t width;
  std::optional<TensorSpec> mask = {};
  bool isCausal = false;
};

/// The gradients of attention as one op.
class Subject {
public:
  explicit Subject(const Sides &sides) : dtype(sides.dtype) {
    Attrs attrs{{"scale", 0.25}};
    if (sides.isCausal)
      attrs["is_causal"] = true;
    auto input = [&](const Dim &rows) {
      Shape shape(sides.heads);
      shape.insert(shape.end(), {rows, sides.width});
      return graph.input({dtype, shape});
    };
    Graph::Values v{input(sides.rows), input(sides.keys), input(sides.keys), input(sides.rows)};
    v.push_back(sides.mask ? graph.input(*sides.mask) : Graph::none);
    graph.output(graph.apply("attention_gradient", v, attrs)[0]);
    compiled = graph.compile("cuda-sm_80+ptx", [&](codegen::CompileOptions &options) {
      options.emulate = [](llvm::Module &module, llvm::ArrayRef<std::string> symbols) {
        checkedPtx(module, "cuda-sm_80+ptx");
        return emulated(module, symbols);
      };
    });
  }

  void check(const Tensors &inputs) {
    INFO(graph.text());
    const ir::RefTensor got = compiled->run(inputs)[0], wanted = graph.interpret(inputs)[0];
    REQUIRE(got.shape == wanted.shape);
    double top = 1; // the largest element
    for (double x : wanted.reals())
      top = std::isfinite(x) ? std::max(top, std::abs(x)) : top;
    // P and dS are rounded to 16 bits between products.
    const double bound = (byteWidth(dtype) == 2 ? 8e-3 : 1e-5) * top;
    for (size_t i = 0; i < wanted.reals().size(); ++i) {
      const double x = got[i], y = wanted[i];
      if (std::isfinite(y) ? !(std::abs(x - y) <= bound) : std::isfinite(x))
        FAIL_CHECK("element " << i << " is " << x << ", but should be " << y);
    }
    for (const std::string &error : simt::takeErrors())
      FAIL_CHECK(error);
  }
  void check(const std::vector<Ints> &shapes) { check(inputsOf(shapes)); }
  Tensors inputsOf(const std::vector<Ints> &shapes) {
    Random random(5);
    Tensors inputs;
    for (size_t i = 0; i < shapes.size(); ++i)
      inputs.push_back(randomTensor(graph.spec(graph.inputs()[i]).dtype, shapes[i], {-2, 2}, Mood::Plain, random));
    return inputs;
  }
  /// Heads, rows, keys, columns.
  static std::vector<Ints> shapesOf(int64_t h, int64_t l, int64_t s, int64_t e) {
    return {{h, l, e}, {h, s, e}, {h, s, e}, {h, l, e}};
  }

private:
  DType dtype;
  Graph graph;
  std::unique_ptr<Compiled> compiled;
};

} // namespace

TEST_CASE("Gradients of attention on GPUs, whatever the sizes", "[gpu]") {
  struct Sizes {
    int64_t rows, keys, width;
  };
  const Sizes sizes = GENERATE(Sizes{1, 1, 1}, Sizes{70, 33, 24}, Sizes{13, 130, 40}, Sizes{64, 64, 64},
                               Sizes{65, 70, 72}, Sizes{3, 5, 128}, Sizes{40, 20, 129});
  const auto [rows, keys, width] = sizes;
  static size_t number = 0; // without --long a third of the cases of each size
  for (DType dtype : {f32, f16, bf16})
    for (bool isCausal : {false, true})
      if (isSampled(number++, 3))
        Subject({dtype, {2}, rows, keys, width, {}, isCausal}).check(Subject::shapesOf(2, rows, keys, width));
}

TEST_CASE("Gradients of attention on GPUs with symbolic lengths, also empty ones", "[gpu]") {
  Dim rows("rows"), keys("keys");
  for (DType dtype : {f32, bf16}) {
    Subject subject({dtype, {2}, rows, keys, 20, {}, /*isCausal=*/true});
    for (auto [l, s] : {std::pair{70, 40}, {40, 70}, {0, 3}, {3, 0}, {0, 0}})
      subject.check(Subject::shapesOf(2, l, s, 20));
  }
}

TEST_CASE("Gradients of attention on GPUs see what a mask shows", "[gpu]") {
  for (DType dtype : {f32, f16})
    for (DType maskType : {boolean, dtype}) {
      std::vector<Ints> shapes = Subject::shapesOf(2, 40, 70, 16);
      shapes.push_back({2, 1, 70});
      Subject subject({dtype, {2}, 40, 70, 16, TensorSpec{maskType, {2, 1, 70}}, maskType == dtype});
      subject.check(shapes);
    }
  std::vector<Ints> shapes = Subject::shapesOf(1, 20, 30, 8);
  shapes.push_back({20, 30});
  Subject subject({f32, {1}, 20, 30, 8, TensorSpec{boolean, {20, 30}}});
  Tensors inputs = subject.inputsOf(shapes);
  for (size_t i = 0; i < 30; ++i) // a row that sees no key
    inputs[4].ints()[3 * 30 + i] = 0;
  subject.check(inputs);
}

TEST_CASE("Gradients of attention on GPUs keep infinite values to their rows", "[gpu]") {
  for (DType dtype : {f32, bf16}) {
    Subject subject({dtype, {2}, 40, 40, 16, {}, /*isCausal=*/true});
    for (size_t operand : {0, 1, 2, 3}) {
      Tensors inputs = subject.inputsOf(Subject::shapesOf(2, 40, 40, 16));
      inputs[operand].reals()[20 * 16 + 3] = std::numeric_limits<double>::infinity(); // of the first head
      subject.check(inputs);
    }
  }
}
