// Sorts of lines of many lengths on a GPU's kernels: around the sizes of a warp and of a block, merges of several runs,
// and the first results alone. Equal elements and NaN are in all of them.
#include "test/gpu/emulator/Emulate.h"
#include "test/gpu/emulator/Simt.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using Ints = std::vector<int64_t>;

namespace {

/// An argsort of lines of `size` elements, of which the `first` results are read, if that is not 0.
struct Sort {
  DType type;
  Dim size;
  int64_t axis = 1;
  bool descending = false;
  int64_t first = 0;

  void build(Graph &g) const {
    Shape shape = axis == 1 ? Shape{2, size} : Shape{size, 3};
    Graph::Value order = g.apply("argsort", {g.input({type, shape})}, {{"axis", axis}, {"descending", descending}})[0];
    Shape stops = shape;
    stops[size_t(axis)] = first;
    if (first)
      order = g.apply("slice", {order}, {{"starts", Shape{0, 0}}, {"stops", stops}, {"steps", Ints{1, 1}}})[0];
    g.output(order);
  }

  /// Sorts lines of these lengths; the sizes of a static sort are one.
  void check(const Ints &lengths) const {
    Graph g;
    build(g);
    auto compiled =
        g.compile("cuda-sm_80+ptx", [](burin::codegen::CompileOptions &options) { options.emulate = emulated; });
    Random random(5);
    for (int64_t length : lengths)
      for (Mood mood : {Mood::Plain, Mood::Special}) {
        Ints shape = axis == 1 ? Ints{2, length} : Ints{length, 3};
        Tensors inputs{randomTensor(type, shape, {-50, 50}, mood, random)};
        INFO(std::string(name(type)) << " " << length << " first " << first);
        CHECK(difference(compiled->run(inputs)[0], g.interpret(inputs)[0], {}) == "");
        for (const std::string &error : simt::takeErrors())
          FAIL_CHECK(error);
      }
  }
};

} // namespace

TEST_CASE("Short lines are sorted by a warp, or by several", "[gpu]") {
  for (int64_t size : {1, 2, 31, 32, 33, 64, 200, 256, 257, 700, 1500, 2047, 2048}) {
    simt::Counters before = simt::counters();
    Sort{size % 2 ? DType::f32 : DType::f64, size, 1, size % 3 == 0}.check({size});
    simt::Counters after = simt::counters();
    CHECK((after.shuffles > before.shuffles) == (size > 1));
    CHECK((after.barriers > before.barriers) == (size > 256));
  }
}

TEST_CASE("Pieces of long lines are sorted and merged", "[gpu]") {
  for (DType type : {DType::f32, DType::i64, DType::u8})
    Sort{type, 2049, 1, type == DType::u8}.check({2049});
  Sort{DType::f16, 6150, 0, true}.check({6150});
  Sort{DType::i32, 9000}.check({9000});
  Sort{DType::f32, Dim("n")}.check({0, 1, 40, 2048, 4097, 6144, 8200});
  Sort{DType::i8, Dim("n", 1, 5000), 0}.check({1, 3000});
}

TEST_CASE("The first results of a sort are selected in one pass", "[gpu]") {
  for (int64_t first : {1, 50, 1024}) {
    Sort{DType::f32, 9000, 1, true, std::min<int64_t>(first, 1000)}.check({9000});
    Sort{DType::f64, 3100, 0, false, std::min<int64_t>(first, 380)}.check({3100});
    Sort{DType::f32, Dim("n"), 1, false, first}.check({first, 2000, 5001});
  }
  Sort{DType::f32, 40000, 1, true, 2000}.check({40000}); // too many to be selected
  Sort{DType::bf16, 600, 1, false, 7}.check({600});      // sorted as a whole
}

TEST_CASE("The first results of lines that come in order, or are equal, are selected", "[gpu]") {
  constexpr int64_t kSize = 7000;
  for (double step : {1., -1., 0.}) {
    Sort sort{DType::f32, kSize, 1, true, 50};
    Graph g;
    sort.build(g);
    auto compiled =
        g.compile("cuda-sm_80+ptx", [](burin::codegen::CompileOptions &options) { options.emulate = emulated; });
    ir::RefTensor x = ir::RefTensor::zeros(DType::f32, {2, kSize});
    for (size_t i = 0; i < x.reals().size(); ++i)
      x.reals()[i] = step * double(i % kSize);
    CHECK(difference(compiled->run({x})[0], g.interpret({x})[0], {}) == "");
    CHECK(simt::takeErrors().empty());
  }
}
