// Attention with few query rows on a GPU's kernels: keys that are split between blocks, numbers of keys and columns
// around the sizes of a turn, a part and a piece of 16 bytes, static and symbolic, masks that hide whole parts, views.
#include "test/gpu/emulator/Emulate.h"
#include "test/gpu/emulator/Simt.h"
#include "test/gpu/ptx/Ptx.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;
using Ints = std::vector<int64_t>;

namespace {

const Tolerance kTolerance{.ulps = 4, .epsilons = 128, .zeroSigns = false};

/// A compiled graph with attention; notes the number of kernels, and whether blocks are launched in groups.
class Subject {
public:
  explicit Subject(Graph graph) : graph(std::move(graph)) {
    compiled = this->graph.compile("cuda-sm_80+ptx", [&](burin::codegen::CompileOptions &options) {
      options.emulate = [this](llvm::Module &module, llvm::ArrayRef<std::string> symbols) {
        checkedPtx(module, "cuda-sm_80+ptx");
        kernels = symbols.size();
        for (const std::string &symbol : symbols)
          isSplit |= module.getFunction(symbol)->hasFnAttribute("burin-groups");
        return emulated(module, symbols);
      };
    });
  }

  void check(const Tensors &inputs) {
    std::string sizes;
    for (const ir::RefTensor &t : inputs)
      sizes += " " + std::string(name(t.dtype)) + str(t.shape);
    INFO(graph.text() << sizes);
    CHECK(difference(compiled->run(inputs)[0], graph.interpret(inputs)[0], kTolerance) == "");
    for (const std::string &error : simt::takeErrors())
      FAIL_CHECK(error);
  }

  /// Inputs of these shapes.
  void check(const std::vector<Ints> &shapes) {
    Random random(11);
    Tensors inputs;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const DType dtype = graph.spec(graph.inputs()[i]).dtype;
      inputs.push_back(randomTensor(dtype, shapes[i], {-2, 2}, Mood::Plain, random));
    }
    check(inputs);
  }

  bool isSplit = false;
  size_t kernels = 0;

private:
  Graph graph;
  std::unique_ptr<Compiled> compiled;
};

struct Sides {
  DType dtype = f32;
  Shape query, key, value;
  std::optional<TensorSpec> mask = {};
  Attrs attrs = {};
};

Subject attention(const Sides &sides) {
  Graph g;
  Graph::Values v;
  for (const Shape &shape : {sides.query, sides.key, sides.value})
    v.push_back(g.input({sides.dtype, shape}));
  v.push_back(sides.mask ? g.input(*sides.mask) : Graph::none);
  g.output(g.apply("scaled_dot_product_attention", v, sides.attrs)[0]);
  return Subject(std::move(g));
}

} // namespace

TEST_CASE("Attention with few rows splits keys between blocks", "[gpu]") {
  struct {
    DType dtype;
    int64_t rows, keys, depth, width;
  } const cases[] = {{f16, 1, 300, 64, 64},  {bf16, 1, 129, 128, 128}, {f32, 1, 200, 64, 64},   {f32, 1, 70, 200, 256},
                     {f16, 3, 200, 80, 80},  {bf16, 4, 130, 256, 40},  {f32, 4, 150, 80, 128},  {f16, 1, 1200, 8, 3},
                     {f16, 5, 200, 64, 64},  {bf16, 9, 100, 64, 128},  {f32, 16, 90, 128, 128}, {f32, 8, 70, 256, 256},
                     {f16, 2, 200, 65, 65},  {f32, 1, 200, 33, 18},    {bf16, 16, 90, 64, 250}, {f32, 1, 1100, 1, 1},
                     {f16, 16, 70, 256, 256}};
  for (auto [dtype, rows, keys, depth, width] : cases) {
    auto subject = attention({dtype, {2, rows, depth}, {2, keys, depth}, {2, keys, width}});
    CHECK(subject.isSplit);
    subject.check({{2, rows, depth}, {2, keys, depth}, {2, keys, width}});
  }
}

TEST_CASE("Attention with few rows and few keys is one launch", "[gpu]") {
  for (int64_t keys : {1, 3, 64, 100, 128})
    for (int64_t rows : {1, 7}) {
      auto subject = attention({f16, {3, rows, 64}, {3, keys, 64}, {3, keys, 64}});
      CHECK(subject.isSplit == (rows == 1 && keys > 128));
      subject.check({{3, rows, 64}, {3, keys, 64}, {3, keys, 64}});
    }
}

TEST_CASE("Attention with few rows and a symbolic number of keys", "[gpu]") {
  const Dim b("b"), n("n");
  auto halves = attention({bf16, {b, 2, 1, 64}, {b, 2, n, 64}, {b, 2, n, 64}});
  CHECK(halves.isSplit);
  for (int64_t keys : {0, 1, 63, 64, 65, 128, 500})
    halves.check({{3, 2, 1, 64}, {3, 2, keys, 64}, {3, 2, keys, 64}});
  halves.check({{0, 2, 1, 64}, {0, 2, 70, 64}, {0, 2, 70, 64}});
  auto many = attention({f32, {2, 6, 40}, {2, n, 40}, {2, n, 20}});
  for (int64_t keys : {0, 1, 33, 200})
    many.check({{2, 6, 40}, {2, keys, 40}, {2, keys, 20}});
  auto odd = attention({f16, {1, 3, 9}, {1, n, 9}, {1, n, 11}}); // more rows than parts, or not
  for (int64_t keys : {0, 65, 130, 700})
    odd.check({{1, 3, 9}, {1, keys, 9}, {1, keys, 11}});
}

TEST_CASE("Attention with few rows sees what its mask shows", "[gpu]") {
  const Dim n("n");
  attention({f16, {2, 2, 64}, {2, 300, 64}, {2, 300, 64}, TensorSpec{boolean, {2, 300}}})
      .check({{2, 2, 64}, {2, 300, 64}, {2, 300, 64}, {2, 300}});
  attention({f32, {2, 3, 1, 64}, {2, 3, n, 64}, {2, 3, n, 64}, TensorSpec{f32, {2, 1, 1, n}}, {{"scale", 0.3}}})
      .check({{2, 3, 1, 64}, {2, 3, 130, 64}, {2, 3, 130, 64}, {2, 1, 1, 130}});
  attention({f32, {2, 12, 20}, {2, 300, 20}, {2, 300, 20}, {}, {{"is_causal", true}}})
      .check({{2, 12, 20}, {2, 300, 20}, {2, 300, 20}});
  attention({f32, {16, 256}, {16, 256}, {16, 12}, TensorSpec{f32, {1, 16}}, {{"is_causal", true}}})
      .check({{16, 256}, {16, 256}, {16, 12}, {1, 16}});
}

TEST_CASE("Parts of which a mask shows nothing add nothing", "[gpu]") {
  Random random(5);
  for (DType dtype : {f16, f32}) {
    auto numbers = [&](Ints shape) { return randomTensor(dtype, std::move(shape), {-2, 2}, Mood::Plain, random); };
    const Tensors sides{numbers({1, 2, 64}), numbers({1, 400, 64}), numbers({1, 400, 64})};
    auto bools = attention({dtype, {1, 2, 64}, {1, 400, 64}, {1, 400, 64}, TensorSpec{boolean, {2, 400}}});
    auto floats = attention({dtype, {1, 2, 64}, {1, 400, 64}, {1, 400, 64}, TensorSpec{dtype, {2, 400}}});
    for (auto [from, to] : {std::pair<size_t, size_t>{200, 210}, {0, 0}, {399, 400}, {0, 64}}) {
      Tensors shown = sides, added = sides;
      shown.push_back(ir::RefTensor::zeros(boolean, {2, 400})); // row 0 sees some keys, row 1 sees none
      added.push_back(ir::RefTensor::zeros(dtype, {2, 400}));
      for (size_t i = 0; i < 800; ++i) {
        const bool sees = i >= from && i < to;
        shown.back().ints()[i] = sees, added.back().reals()[i] = sees ? 0.5 : -INFINITY;
      }
      bools.check(shown);
      floats.check(added);
    }
  }
}

TEST_CASE("Attention with few rows reads views of keys and values", "[gpu]") {
  for (int64_t more : {0, 1, 8}) { // rows that are aligned to 16 bytes, or not
    Graph g;
    auto heads = [&](int64_t length) { // [length, heads, columns]
      Graph::Value all = g.input({f16, {length, 2, 24 + more}});
      Graph::Value some = g.apply(
          "slice", {all}, {{"starts", Shape{0, 0, 0}}, {"stops", Shape{length, 2, 24}}, {"steps", Ints{1, 1, 1}}})[0];
      return g.apply("transpose", {some}, {{"perm", Ints{1, 0, 2}}})[0];
    };
    Graph::Value q = heads(3), k = heads(600), v = heads(600);
    g.output(g.apply("scaled_dot_product_attention", {q, k, v, Graph::none})[0]);
    Subject subject(std::move(g));
    CHECK(subject.isSplit);
    subject.check({{3, 2, 24 + more}, {600, 2, 24 + more}, {600, 2, 24 + more}});
  }
}

TEST_CASE("Attention with few rows ends with other work", "[gpu]") {
  Graph g;
  Graph::Value q = g.input({bf16, {2, 2, 40}}), k = g.input({bf16, {2, 300, 40}}), v = g.input({bf16, {2, 300, 40}});
  Graph::Value mixed = g.apply("scaled_dot_product_attention", {q, k, v, Graph::none})[0];
  g.output(g.apply("add", {g.apply("tanh", {mixed})[0], q})[0]);
  Subject subject(std::move(g));
  CHECK(subject.isSplit);
  subject.check({{2, 2, 40}, {2, 300, 40}, {2, 300, 40}});
}

namespace {

/// Attention of `heads` heads that share keys and values in groups: [2, heads / group, keys, 64].
Graph sharedHeads(int64_t heads, int64_t group, Dim keys, int64_t rows, std::optional<TensorSpec> mask) {
  Graph g;
  const int64_t own = heads / group;
  Graph::Value q = g.input({f16, {2, heads, rows, 64}});
  auto repeated = [&] {
    Graph::Value all = g.input({f16, {2, own, keys, 64}});
    Graph::Value one = g.apply("reshape", {all}, {{"shape", Shape{2, own, 1, keys, 64}}})[0];
    Graph::Value many = g.apply("broadcast_to", {one}, {{"shape", Shape{2, own, group, keys, 64}}})[0];
    return g.apply("reshape", {many}, {{"shape", Shape{2, heads, keys, 64}}})[0];
  };
  Graph::Value k = repeated(), v = repeated(), m = mask ? g.input(*mask) : Graph::none;
  g.output(g.apply("scaled_dot_product_attention", {q, k, v, m})[0]);
  return g;
}

} // namespace

TEST_CASE("Heads that share keys read them once", "[gpu]") {
  struct {
    int64_t heads, group, rows;
    std::optional<TensorSpec> mask;
  } const cases[] = {{6, 3, 1, {}},
                     {8, 4, 1, TensorSpec{boolean, {2, 1, 1, 300}}},
                     {4, 2, 3, TensorSpec{f16, {2, 4, 3, 300}}},
                     {8, 8, 2, TensorSpec{f16, {1, 300}}},
                     {4, 2, 40, {}}};
  for (auto &[heads, group, rows, mask] : cases) {
    Subject subject(sharedHeads(heads, group, 300, rows, mask));
    CHECK(subject.kernels == 1);
    CHECK(subject.isSplit == (rows * group <= 16));
    std::vector<Ints> shapes{{2, heads, rows, 64}, {2, heads / group, 300, 64}, {2, heads / group, 300, 64}};
    if (mask) {
      shapes.emplace_back();
      for (const Dim &d : mask->shape)
        shapes.back().push_back(d.value());
    }
    subject.check(shapes);
  }
  Subject subject(sharedHeads(6, 3, Dim("n"), 1, {}));
  CHECK(subject.kernels == 1);
  for (int64_t keys : {0, 1, 100, 300})
    subject.check({{2, 6, 1, 64}, {2, 2, keys, 64}, {2, 2, keys, 64}});
}

TEST_CASE("Heads that share keys on a processor") {
  Graph g = sharedHeads(6, 3, 70, 5, {});
  Random random(4);
  Tensors inputs;
  for (const Ints &shape : {Ints{2, 6, 5, 64}, {2, 2, 70, 64}, {2, 2, 70, 64}})
    inputs.push_back(randomTensor(f16, shape, {-2, 2}, Mood::Plain, random));
  CHECK(difference(g.compile("x86-64-v3")->run(inputs)[0], g.interpret(inputs)[0], kTolerance) == "");
}

TEST_CASE("All heads share one key", "[gpu]") {
  Graph g;
  Graph::Value q = g.input({bf16, {2, 5, 1, 80}});
  auto repeated = [&] {
    return g.apply("broadcast_to", {g.input({bf16, {2, 1, 200, 80}})}, {{"shape", Shape{2, 5, 200, 80}}})[0];
  };
  Graph::Value k = repeated(), v = repeated();
  g.output(g.apply("scaled_dot_product_attention", {q, k, v, Graph::none})[0]);
  Subject subject(std::move(g));
  CHECK(subject.kernels == 1);
  CHECK(subject.isSplit);
  subject.check({{2, 5, 1, 80}, {2, 1, 200, 80}, {2, 1, 200, 80}});
}

namespace {

/// How a cache and new keys become the keys of attention.
struct Cached {
  DType dtype = f16;
  int64_t heads = 2, group = 1, rows = 1, columns = 64;
  Dim past = 300;
  bool isResult = false; // the joined keys are a result, too
  bool isJoinedThrice = false;
};

Graph cached(const Cached &c) {
  Graph g;
  Graph::Value q = g.input({c.dtype, {2, c.heads, c.rows, c.columns}});
  const int64_t own = c.heads / c.group;
  auto joined = [&] {
    Graph::Value past = g.input({c.dtype, {2, own, c.past, c.columns}});
    Graph::Value next = g.input({c.dtype, {2, own, c.rows, c.columns}});
    Graph::Values all{past, next};
    if (c.isJoinedThrice)
      all.push_back(next);
    return g.apply("concat", all, {{"axis", int64_t(2)}})[0];
  };
  auto repeated = [&](Graph::Value x) {
    if (c.group == 1)
      return x;
    const Dim length = g.spec(x).shape[2];
    x = g.apply("reshape", {x}, {{"shape", Shape{2, own, 1, length, c.columns}}})[0];
    x = g.apply("broadcast_to", {x}, {{"shape", Shape{2, own, c.group, length, c.columns}}})[0];
    return g.apply("reshape", {x}, {{"shape", Shape{2, c.heads, length, c.columns}}})[0];
  };
  Graph::Value k = joined(), v = joined();
  g.output(g.apply("scaled_dot_product_attention", {q, repeated(k), repeated(v), Graph::none})[0]);
  if (c.isResult)
    g.output(k);
  return g;
}

void checkCached(const Cached &c, size_t kernels, Ints pasts = {300}) {
  Subject subject(cached(c));
  CHECK(subject.kernels == kernels);
  const int64_t own = c.heads / c.group;
  for (int64_t past : pasts)
    subject.check({{2, c.heads, c.rows, c.columns},
                   {2, own, past, c.columns},
                   {2, own, c.rows, c.columns},
                   {2, own, past, c.columns},
                   {2, own, c.rows, c.columns}});
}

} // namespace

TEST_CASE("Attention with few rows joins new keys with a cache while it reads them", "[gpu]") {
  checkCached({}, 1);
  checkCached({.dtype = f32, .rows = 3}, 1);
  checkCached({.past = Dim("past")}, 1, {0, 1, 63, 64, 200});
  checkCached({.rows = 5, .columns = 33, .past = Dim("past")}, 1, {0, 100});
  checkCached({.heads = 6, .group = 3, .past = Dim("past")}, 1, {0, 130});
  checkCached({.rows = 2, .isJoinedThrice = true}, 1);
  checkCached({.heads = 70, .rows = 6, .past = 20}, 1, {20}); // as many heads as would go to tensor cores
}

TEST_CASE("Keys that others read are joined in memory", "[gpu]") {
  checkCached({.isResult = true}, 2); // values are not
  checkCached({.rows = 20}, 2);       // one kernel joins keys, and values, too
}

TEST_CASE("Attention with few rows reads slices of a product in place", "[gpu]") {
  constexpr int64_t kHeads = 3, kColumns = 24, kWidth = kHeads * kColumns;
  for (const auto &[rows, past] : {std::pair<int64_t, Dim>{1, 200}, {2, Dim("past")}, {1, 0}}) {
    Graph g;
    Graph::Value all = g.apply("matmul", {g.input({f16, {1, rows, 16}}), g.input({f16, {1, 16, 3 * kWidth}})})[0];
    auto heads = [&](int64_t part) { // [1, heads, rows, columns]
      Graph::Value x = g.apply("slice", {all},
                               {{"starts", Shape{0, 0, part * kWidth}},
                                {"stops", Shape{1, rows, (part + 1) * kWidth}},
                                {"steps", Ints{1, 1, 1}}})[0];
      x = g.apply("reshape", {x}, {{"shape", Shape{1, rows, kHeads, kColumns}}})[0];
      return g.apply("transpose", {x}, {{"perm", Ints{0, 2, 1, 3}}})[0];
    };
    Graph::Value q = heads(0), k = heads(1), v = heads(2);
    auto joined = [&](Graph::Value next) {
      Graph::Value cache = g.input({f16, {1, kHeads, past, kColumns}});
      return g.apply("concat", {cache, next}, {{"axis", int64_t(2)}})[0];
    };
    g.output(g.apply("scaled_dot_product_attention", {q, joined(k), joined(v), Graph::none})[0]);
    g.output(k);
    Subject subject(std::move(g));
    if (rows == 1)
      CHECK(subject.kernels == 3); // the product, the copy of new keys, which is a result, and attention
    for (int64_t length : past.isStatic() ? Ints{past.value()} : Ints{0, 1, 150})
      subject.check({{1, rows, 16}, {1, 16, 3 * kWidth}, {1, kHeads, length, kColumns}, {1, kHeads, length, kColumns}});
  }
}
