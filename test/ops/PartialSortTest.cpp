// The first elements of a partial sort equal those of a full sort: with ties, NaN, in both directions, for rows shorter
// and longer than the buffer of candidates.
#include "test/Features.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <algorithm>
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using Ints = std::vector<int64_t>;

namespace {

/// Adds an argsort along `axis` of which only the first elements are used.
void sortFirst(Graph &g, const TensorSpec &spec, int64_t axis, int64_t first, bool descending) {
  Graph::Value order = g.apply("argsort", {g.input(spec)}, {{"axis", axis}, {"descending", descending}})[0];
  Shape stops = spec.shape;
  stops[size_t(axis)] = first;
  g.output(g.apply("slice", {order},
                   {{"starts", Shape(stops.size(), Dim(0))}, {"stops", stops}, {"steps", Ints(stops.size(), 1)}})[0]);
}

} // namespace

TEST_CASE("The first of a sorted line") {
  const DType type = GENERATE(DType::f32, DType::f16, DType::f64, DType::i64, DType::u8);
  const int64_t first = GENERATE(1, 7, 100), size = GENERATE(800, 5001, 40000);
  const bool descending = (first + size) % 2;
  static size_t number = 0;
  if (!isSampled(number++, 4))
    return;
  for (bool isSymbolic : {false, true}) {
    Graph g;
    sortFirst(g, {type, {2, isSymbolic ? Dim("n") : Dim(size)}}, 1, first, descending);
    for (const std::string &target : cpuTargets()) {
      auto compiled = g.compile(target);
      for (Mood mood : {Mood::Plain, Mood::Special}) {
        Random random(7);
        Tensors inputs{randomTensor(type, {2, size}, {-50, 50}, mood, random)};
        INFO(target << "\n" << g.text());
        CHECK(difference(compiled->run(inputs)[0], g.interpret(inputs)[0], {}) == "");
      }
    }
  }
}

TEST_CASE("The first of a sorted line whose elements all come in the wrong order, or are equal") {
  constexpr int64_t kSize = 30000, kFirst = 50;
  const double step = GENERATE(1., -1., 0.);
  Graph g;
  sortFirst(g, {DType::f32, {kSize, 2}}, 0, kFirst, true);
  ir::RefTensor x = ir::RefTensor::zeros(DType::f32, {kSize, 2});
  for (size_t i = 0; i < x.reals().size(); ++i) {
    const size_t line = i / 2;
    x.reals()[i] = step * double(line);
  }
  CHECK(difference(g.compile("native")->run({x})[0], g.interpret({x})[0], {}) == "");
}
