// Products by cuBLASLt: when it computes them, and what happens where it cannot. Driver and library are those for
// tests.
#include "runtime/execute/session/Session.h"
#include "runtime/format/Archive.h"
#include "test/gpu/driver/FakeCublasLt.h"
#include "test/gpu/driver/FakeCuda.h"
#include "test/gpu/runs/RunOnGpu.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>

using namespace burin;
using namespace burin::test;

namespace {

constexpr const char *kTarget = "cuda-sm_80+ptx";

ir::RefTensor random(DType dtype, std::vector<int64_t> shape, uint64_t seed) {
  Random random(seed);
  return randomTensor(dtype, std::move(shape), {-1, 1, Specials::None}, Mood::Plain, random);
}

rt::Program::Ptr compiled(Graph &g, passes::Provider provider = passes::Provider::CublasLt) {
  std::vector<std::byte> bytes = g.artifact({kTarget}, [&](codegen::CompileOptions &options) {
    options.emulate = ptxForFakeDriver(kTarget);
    options.pipeline.provider = provider;
  });
  rt::Program::Ptr program;
  rt::Status status = rt::Program::loadMemory(bytes, nullptr, {}, program);
  INFO(status.message());
  REQUIRE(status.ok());
  return program;
}

size_t productsOf(const rt::Program::Ptr &program) { return program->artifact().products.size(); }

/// Messages of the runtime that name the library.
struct Notes {
  std::string text;
  rt::Logger logger{this, [](void *self, int, const char *message) {
                      if (std::string_view(message).find("cuBLASLt") != std::string_view::npos)
                        static_cast<Notes *>(self)->text += std::string(message) + "\n";
                    }};
};

struct Variable {
  explicit Variable(const char *value) { setenv("BURIN_CUBLASLT", value, 1); }
  ~Variable() { unsetenv("BURIN_CUBLASLT"); }
};

struct Outcome {
  rt::Status status;
  Tensors results;
  int64_t products = 0; // that the library has computed
};

/// Runs of one session: the second one is recorded, the third replayed.
Outcome run(const rt::Program::Ptr &program, const Tensors &inputs, int runs = 3, Notes *notes = nullptr) {
  Outcome out;
  const int64_t before = fake::products();
  std::unique_ptr<rt::Session> session;
  out.status = rt::Session::create(
      program, {.threads = 1, .logger = notes ? notes->logger : rt::Logger(), .device = "cuda:0"}, session);
  for (int i = 0; i < runs && out.status.ok(); ++i) {
    std::vector<std::vector<char>> bytes;
    std::vector<rt::TensorView> views, outputs(program->artifact().plans[0].callerOutputs());
    for (const ir::RefTensor &t : inputs)
      bytes.push_back(t.toBytes());
    for (size_t n = 0; n < bytes.size(); ++n)
      views.push_back({bytes[n].data(), inputs[n].shape.data(), uint32_t(inputs[n].shape.size()), inputs[n].dtype});
    out.status = session->run(views, outputs);
    out.results.clear();
    for (const rt::TensorView &view : outputs)
      if (out.status.ok()) {
        std::vector<int64_t> shape(view.shape, view.shape + view.rank);
        const size_t size = size_t(*ir::elementCount(shape)) * byteWidth(view.dtype);
        out.results.push_back(
            ir::RefTensor::fromBytes(view.dtype, shape, {static_cast<const char *>(view.data), size}));
      }
  }
  session.reset();
  out.products = fake::products() - before;
  CHECK(fake::problems() == "");
  CHECK(fake::libraryProblems() == "");
  return out;
}

void checkClose(const Outcome &got, const Tensors &want) {
  INFO(got.status.message());
  REQUIRE(got.status.ok());
  REQUIRE(got.results.size() == want.size());
  for (size_t n = 0; n < want.size(); ++n) {
    REQUIRE(got.results[n].shape == want[n].shape);
    const double bound = want[n].dtype == f32 ? 1e-5 : 0.02;
    for (size_t i = 0; i < size_t(want[n].size()); ++i) {
      INFO("result " << n << ", element " << i);
      REQUIRE(std::abs(got.results[n][i] - want[n][i]) <= bound * (1 + std::abs(want[n][i])));
    }
  }
}

/// A product of x [rows, 24], and with a bias another one of that.
struct Layers {
  Graph g;
  explicit Layers(DType dtype = f32, bool hasBias = false, const char *then = nullptr) {
    auto apply = [&](const char *op, Graph::Values v, Attrs attrs = {}) { return g.apply(op, v, attrs)[0]; };
    Graph::Value x = g.input({dtype, {Dim("rows"), 24}});
    x = apply("matmul", {x, g.constant(random(dtype, {24, 40}, 1))});
    if (hasBias) {
      Graph::Value bias = g.constant(random(dtype, {40}, 2));
      x = apply("add", {x, apply("broadcast_to", {bias}, {{"shape", Shape{Dim("rows"), 40}}})});
    }
    g.output(then ? apply(then, {x}) : x);
  }
  static Tensors inputs(int64_t rows, DType dtype = f32) { return {random(dtype, {rows, 24}, 3)}; }
};

} // namespace

TEST_CASE("gpu library: computes products where it is asked for", "[gpu]") {
  fake::failCall(0);
  for (DType dtype : {f32, f16, bf16}) {
    INFO(name(dtype));
    Layers layers(dtype);
    const Tensors inputs = Layers::inputs(33, dtype), want = layers.g.interpret(inputs);
    const rt::Program::Ptr asked = compiled(layers.g), own = compiled(layers.g, passes::Provider::None);
    CHECK(productsOf(asked) == 1);
    CHECK(asked->artifact().version() == rt::kArtifactVersion);
    CHECK(productsOf(own) == 0);
    CHECK(own->artifact().version() == rt::kVersionWithoutProducts);
    const int64_t replays = fake::replays();
    Outcome library = run(asked, inputs);
    CHECK(fake::replays() == replays + 2);
    CHECK(library.products == 3);
    checkClose(library, want);
    Outcome kernels = run(own, inputs);
    CHECK(kernels.products == 0);
    checkClose(kernels, want);
  }
}

TEST_CASE("gpu library: symbolic sizes, none and one among them", "[gpu]") {
  fake::failCall(0);
  Layers layers;
  const rt::Program::Ptr program = compiled(layers.g);
  for (int64_t rows : {0, 1, 5, 130}) {
    INFO(rows << " rows");
    const Tensors inputs = Layers::inputs(rows);
    Outcome out = run(program, inputs);
    CHECK(out.products == (rows ? 3 : 0));
    checkClose(out, layers.g.interpret(inputs));
  }
}

TEST_CASE("gpu library: adds a bias in f32, where that rounds as declared", "[gpu]") {
  fake::failCall(0);
  for (DType dtype : {f32, bf16}) {
    Layers layers(dtype, /*hasBias=*/true);
    const rt::Program::Ptr program = compiled(layers.g);
    CHECK(productsOf(program) == (dtype == f32)); // in bf16 sums are rounded before the bias is added
    const Tensors inputs = Layers::inputs(17, dtype);
    Outcome out = run(program, inputs);
    CHECK(out.products == (dtype == f32 ? 3 : 0));
    checkClose(out, layers.g.interpret(inputs));
  }
}

TEST_CASE("gpu library: other epilogues are left to kernels", "[gpu]") {
  fake::failCall(0);
  Layers layers(f32, true, "relu");
  const rt::Program::Ptr program = compiled(layers.g);
  CHECK(productsOf(program) == 0);
  const Tensors inputs = Layers::inputs(9);
  checkClose(run(program, inputs), layers.g.interpret(inputs));
}

TEST_CASE("gpu library: batches, and operands that are parts of others", "[gpu]") {
  fake::failCall(0);
  Graph g;
  auto apply = [&](const char *op, Graph::Values v, Attrs attrs = {}) { return g.apply(op, v, attrs)[0]; };
  Graph::Value x = g.input({bf16, {6, Dim("rows"), 32}}), y = g.input({bf16, {6, 32, 24}});
  g.output(apply("matmul", {x, y}));
  // Heads of [rows, heads, depth], which are rows of a batch at a distance.
  Graph::Value heads =
      apply("transpose", {g.input({f32, {Dim("rows"), 3, 16}})}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
  g.output(apply("matmul", {heads, g.input({f32, {3, 16, 8}})}));
  const rt::Program::Ptr program = compiled(g);
  CHECK(productsOf(program) == 2);
  const Tensors inputs{random(bf16, {6, 11, 32}, 1), random(bf16, {6, 32, 24}, 2), random(f32, {11, 3, 16}, 3),
                       random(f32, {3, 16, 8}, 4)};
  Outcome out = run(program, inputs);
  CHECK(out.products == 6);
  checkClose(out, g.interpret(inputs));
}

TEST_CASE("gpu library: products on several streams do not share a workspace", "[gpu]") {
  fake::failCall(0);
  Graph g;
  Tensors inputs;
  // Constants of 576 bytes lie at multiples of 64 bytes only: algorithms that need more cannot be chosen.
  for (uint64_t i = 0; i < 6; ++i) {
    Graph::Value x = g.input({f32, {8, 12}});
    g.output(g.apply("matmul", {x, g.constant(random(f32, {12, 12}, i))})[0]);
    inputs.push_back(random(f32, {8, 12}, 10 + i));
  }
  const rt::Program::Ptr program = compiled(g);
  CHECK(productsOf(program) == 1); // of six steps
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    fake::failRandomly(seed, 0);
    fake::rankStreams(seed % 2 ? seed : 0);
    Outcome out = run(program, inputs);
    CHECK(out.products == 18);
    checkClose(out, g.interpret(inputs));
  }
  fake::rankStreams(0);
}

TEST_CASE("gpu library: where it is not there kernels run, and a message says so", "[gpu]") {
  fake::failCall(0);
  Layers layers;
  const rt::Program::Ptr program = compiled(layers.g);
  const Tensors inputs = Layers::inputs(20), want = layers.g.interpret(inputs);
  for (const char *value : {"0", "/none/libcublasLt.so.13", "libm.so.6"}) {
    Variable variable(value);
    Notes notes;
    Outcome out = run(program, inputs, 3, &notes);
    CHECK(out.products == 0);
    checkClose(out, want);
    INFO(notes.text);
    CHECK(notes.text.starts_with("cuBLASLt is not used: "));
    CHECK(std::count(notes.text.begin(), notes.text.end(), '\n') == 1);
  }
}

TEST_CASE("gpu library: each of its functions fails", "[gpu]") {
  fake::failCall(0);
  Layers layers(f32, /*hasBias=*/true);
  const rt::Program::Ptr program = compiled(layers.g);
  const Tensors inputs = Layers::inputs(20), want = layers.g.interpret(inputs);
  for (const char *function : {"Create", "MatmulDescCreate", "MatmulDescSetAttribute", "MatrixLayoutCreate",
                               "MatmulPreferenceCreate", "MatmulPreferenceSetAttribute", "MatmulAlgoGetHeuristic"}) {
    INFO(function);
    fake::failLibrary(std::string("cublasLt") + function, 14);
    Notes notes;
    Outcome out = run(program, inputs, 3, &notes);
    fake::failLibrary("");
    CHECK(out.products == 0);
    checkClose(out, want);
    INFO(notes.text);
    CHECK(notes.text.starts_with("cuBLASLt is not used"));
    CHECK(notes.text.ends_with(": cublasLt" + std::string(function) + " returned 14\n"));
    CHECK(std::count(notes.text.begin(), notes.text.end(), '\n') == 1);
  }
  // A product that has been chosen but cannot be enqueued ends the run.
  fake::failLibrary("cublasLtMatmul", 13);
  Outcome out = run(program, inputs);
  fake::failLibrary("");
  CHECK(out.status.message() == "cuda:0: launching contract+add: cublasLtMatmul returned 13");
  checkClose(run(program, inputs), want);
}

TEST_CASE("gpu library: each driver call fails in turn", "[gpu]") {
  Layers layers;
  const rt::Program::Ptr program = compiled(layers.g);
  const Tensors inputs = Layers::inputs(7);
  fake::failCall(0);
  REQUIRE(run(program, inputs).status.ok());
  const int64_t calls = fake::calls();
  for (int64_t n = 1; n <= calls; ++n) {
    fake::failCall(n);
    Outcome out = run(program, inputs);
    INFO("call " << n << " of " << calls << ": " << out.status.message());
    CHECK((out.status.ok() || out.status.message().find("CUDA_ERROR_UNKNOWN (999)") != std::string::npos));
  }
  fake::failCall(0);
  CHECK(run(program, inputs).status.ok());
}

TEST_CASE("gpu library: artifacts with products are checked when they are read", "[gpu]") {
  rt::Artifact a;
  a.locations = {""};
  a.kernels = {{"contract", 0, {}}};
  a.plans.emplace_back();
  const std::vector<rt::LaunchSize> sizes(rt::Product::kSizes, rt::LaunchSize{rt::LaunchSize::kNone, 8});
  a.products = {{0, f32, f32, {0, 1, 2}, sizes}};
  auto problemOf = [&] {
    rt::ArtifactView view;
    rt::Artifact copy = a;
    return std::string(
        rt::parseArtifact(rt::writeArtifact(copy, {}, rt::Bytes()), rt::WeightCheck::Verify, view).message());
  };
  CHECK(problemOf() == "");
  a.products[0].kernel = 1;
  CHECK(problemOf().find("product 0: not well formed") != std::string::npos);
  a.products = {{0, f32, f32, {0, 1}, sizes}};
  CHECK(problemOf().find("product 0: not well formed") != std::string::npos);
  a.products = {{0, f32, f32, {0, 1, 2}, {}}};
  CHECK(problemOf().find("product 0: not well formed") != std::string::npos);
}
