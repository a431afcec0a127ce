// Products by warpgroups, whose blocks compute several tiles, and products with few rows: on the emulator, and as PTX
// on the driver for tests.
#include "runtime/execute/session/Session.h"
#include "runtime/gpu/Device.h"
#include "test/gpu/driver/FakeCuda.h"
#include "test/gpu/emulator/Emulate.h"
#include "test/gpu/emulator/Simt.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

using namespace burin;
using namespace burin::test;
using Ints = std::vector<int64_t>;

TEST_CASE("Products by warpgroups are the same for any number of blocks", "[gpu]") {
  Graph g;
  Graph::Value x = g.input({f16, {Dim("rows"), 80}}), w = g.input({f16, {80, 300}}),
               y = g.input({f16, {Dim("rows"), 300}});
  g.output(g.apply("add", {g.apply("matmul", {x, w})[0], y})[0]);
  auto compiled =
      g.compile("cuda-sm_90a+ptx", [](burin::codegen::CompileOptions &options) { options.emulate = emulated; });
  Random random(3);
  Tensors inputs;
  for (const Ints &shape : {Ints{300, 80}, Ints{80, 300}, Ints{300, 300}}) // six tiles
    inputs.push_back(randomTensor(f16, shape, {-2, 2}, Mood::Plain, random));
  const ir::RefTensor expected = g.interpret(inputs)[0];
  std::vector<char> first;
  for (int64_t blocks : {1, 2, 4, 6, 100}) {
    simt::setMultiprocessors(blocks);
    const simt::Counters before = simt::counters();
    const ir::RefTensor result = compiled->run(inputs)[0];
    for (const std::string &error : simt::takeErrors())
      FAIL_CHECK(error);
    CHECK(simt::counters().groupProducts > before.groupProducts);
    CHECK(simt::counters().bulkCopies - before.bulkCopies >= 2 * 2 * 6); // of both sides of two slices per tile
    CHECK(difference(result, expected, {.ulps = 4, .epsilons = 128, .zeroSigns = false}) == "");
    if (first.empty())
      first = result.toBytes();
    CHECK(result.toBytes() == first);
  }
  simt::setMultiprocessors(3);
}

// Within one wgmma after the other, sums of 1600 products of numbers up to 1 would be cut to multiples of 2^-3.
TEST_CASE("Sums of 8-bit floats by warpgroups are added to f32 sums", "[gpu]") {
  constexpr int64_t kDepth = 1600;
  for (DType left : {f8e4m3fn, f8e5m2})
    for (DType right : {f8e4m3fn, f8e5m2}) {
      Graph g;
      g.output(g.apply("matmul", {g.input({left, {Dim("rows"), kDepth}}), g.input({right, {kDepth, 136}})})[0]);
      auto compiled =
          g.compile("cuda-sm_90a+ptx", [](burin::codegen::CompileOptions &options) { options.emulate = emulated; });
      Random random(3);
      const Tensors inputs = {randomTensor(left, {130, kDepth}, {.5, 1}, Mood::Plain, random),
                              randomTensor(right, {kDepth, 136}, {.5, 1}, Mood::Plain, random)};
      const simt::Counters before = simt::counters();
      const ir::RefTensor result = compiled->run(inputs)[0], expected = g.interpret(inputs)[0];
      for (const std::string &error : simt::takeErrors())
        FAIL_CHECK(error);
      CHECK(simt::counters().groupProducts > before.groupProducts);
      double largest = 0;
      for (size_t i = 0; i < result.reals().size(); ++i)
        largest = std::max(largest, std::abs(result.reals()[i] / expected.reals()[i] - 1));
      INFO(name(left) << " " << name(right));
      CHECK(largest < std::ldexp(1, -12));
    }
}

namespace {

void require(const rt::Status &status) {
  if (!status.ok())
    throw std::runtime_error(status.message());
}

} // namespace

/// Runs a product of that type with operands at two offsets, each three times, the last ones by a CUDA graph.
static void runUnaligned(DType dtype) {
  Graph g;
  g.output(g.apply("matmul", {g.input({dtype, {Dim("rows"), 80}}), g.input({dtype, {80, 72}})})[0]);
  rt::Program::Ptr program;
  require(rt::Program::loadMemory(g.artifact({"cuda-sm_90a+ptx"}), nullptr, {}, program));
  std::unique_ptr<rt::Session> session;
  require(rt::Session::create(program, {.threads = 1, .device = "cuda:0"}, session));
  rt::gpu::Device::Ptr device;
  require(rt::gpu::Device::open(0, device));
  rt::gpu::Device::Use use(*device);
  Random random(3);
  const int64_t replays = fake::replays();
  for (int64_t rows : {130, 300, 130})
    for (size_t offset : {0, 8}) { // bytes
      const Tensors inputs = {randomTensor(dtype, {rows, 80}, {-2, 2}, Mood::Plain, random),
                              randomTensor(dtype, {80, 72}, {-2, 2}, Mood::Plain, random)};
      const ir::RefTensor expected = g.interpret(inputs)[0];
      const Ints shapes[] = {inputs[0].shape, inputs[1].shape};
      std::vector<rt::BufferRef> buffers;
      std::vector<rt::TensorView> views;
      for (size_t i = 0; i < 2; ++i) {
        std::vector<char> bytes = inputs[i].toBytes();
        bytes.insert(bytes.begin(), offset, 0);
        require(device->upload(bytes.data(), bytes.size(), buffers.emplace_back()));
        views.push_back(
            {static_cast<char *>(buffers.back()->data()) + offset, shapes[i].data(), 2, dtype, {.isGpu = 1}});
      }
      require(device->synchronize());
      for (int run = 0; run < 3; ++run) {
        std::vector<rt::TensorView> outputs(1);
        require(session->run(views, outputs));
        const auto *data = static_cast<const char *>(outputs[0].data);
        const auto result =
            ir::RefTensor::fromBytes(expected.dtype, {rows, 72}, {data, size_t(session->outputBytes(0))});
        // Of 8-bit floats, sums of up to 64 are cut by 2^-13.
        const Tolerance tolerance{.ulps = 4, .epsilons = isFloat8(dtype) ? double(1 << 18) : 128, .zeroSigns = false};
        CHECK(difference(result, expected, tolerance) == "");
      }
    }
  CHECK(fake::replays() > replays);
}

TEST_CASE("Products by warpgroups take unaligned operands, sizes that change, and graphs", "[gpu]") {
  fake::failCall(0);
  fake::setMultiprocessors(2);
  for (DType dtype : {bf16, f8e4m3fn, i8}) {
    INFO(name(dtype));
    runUnaligned(dtype);
  }
  fake::setMultiprocessors(132);
  CHECK(fake::problems() == "");
}

namespace {

void checkThin(const Shape &left, const Shape &right, DType type, const std::vector<std::array<Ints, 2>> &shapes) {
  Graph g;
  g.output(g.apply("matmul", {g.input({type, left}), g.input({type, right})})[0]);
  auto compiled =
      g.compile("cuda-sm_80+ptx", [](burin::codegen::CompileOptions &options) { options.emulate = emulated; });
  Random random(5);
  for (const auto &[x, w] : shapes) {
    INFO(name(type) << " [" << x[0] << ", " << x[1] << "] [" << w[0] << ", " << w[1] << "]");
    Tensors inputs{randomTensor(type, x, {-2, 2}, Mood::Plain, random),
                   randomTensor(type, w, {-2, 2}, Mood::Plain, random)};
    const simt::Counters before = simt::counters();
    const ir::RefTensor result = compiled->run(inputs)[0], expected = g.interpret(inputs)[0];
    for (const std::string &error : simt::takeErrors())
      FAIL_CHECK(error);
    CHECK(difference(result, expected, {.ulps = 4, .epsilons = 256, .zeroSigns = false, .absolute = 1e-2}) == "");
    // Columns of a known number that are no multiple of 16 bytes are packed in panels.
    const bool isInPieces = (right[1].isStatic() || w[1] * int64_t(byteWidth(type)) % 16 == 0) && w[0] > 0;
    CHECK((simt::counters().copies > before.copies) == isInPieces);
  }
}

} // namespace

// A turn has up to four pieces per thread; four turns are in shared memory.
TEST_CASE("Products with few rows copy several turns of steps ahead", "[gpu]") {
  for (int64_t depth : {1, 7, 255, 256, 257, 1024, 3000, 4097, 9000})
    checkThin({2, depth}, {depth, 40}, bf16, {{{{2, depth}, {depth, 40}}}});
  for (DType type : {f32, f16, f8e5m2})
    checkThin({3, 1500}, {1500, 48}, type, {{{{3, 1500}, {1500, 48}}}});
  checkThin({1, 300}, {300, 4104}, bf16, {{{{1, 300}, {300, 4104}}}}); // wide strips
  checkThin({1, 600}, {600, 33}, bf16, {{{{1, 600}, {600, 33}}}});
  checkThin({1, 300}, {300, 4100}, bf16, {{{{1, 300}, {300, 4100}}}}); // the last strip has a single panel
  const Dim k("k"), n("n");
  checkThin({4, k}, {k, n}, f16,
            {{{{4, 0}, {0, 24}}}, {{{4, 1}, {1, 24}}}, {{{4, 70}, {70, 33}}}, {{{4, 2500}, {2500, 64}}}});
}

// Bf16 rounds the largest f32 to infinity, and an infinity times the second term of 1, which is 0, is NaN.
TEST_CASE("Products in terms of bf16 keep infinities and the largest numbers", "[gpu]") {
  constexpr float kLargest = std::numeric_limits<float>::max(), kInfinity = std::numeric_limits<float>::infinity();
  for (int64_t columns : {20, 21}) { // written by four, and one by one
    Graph g;
    g.output(g.apply("matmul", {g.input({f32, {7, 40}}), g.input({f32, {40, columns}})})[0]);
    auto compiled =
        g.compile("cuda-sm_80+ptx+bf16x3", [](burin::codegen::CompileOptions &options) { options.emulate = emulated; });
    Tensors inputs{ir::RefTensor::zeros(f32, {7, 40}), ir::RefTensor::zeros(f32, {40, columns})};
    auto set = [&](size_t row, size_t step, float x) { inputs[0].reals()[row * 40 + step] = double(x); };
    set(0, 0, kLargest), set(0, 1, -kLargest); // finite: 3 / 8 of the first
    set(1, 2, kInfinity);
    set(2, 2, kInfinity), set(2, 3, -kInfinity);
    set(3, 2, NAN);
    set(4, 39, kLargest); // times 0
    set(5, 5, 0x1.23p-125F);
    set(6, 4, 1.2345678F), set(6, 2, -0.0F);
    const std::array<float, 6> right{.5F, .125F, 1, 1, .7654321F, 0x1p20F};
    for (size_t step = 0; step < right.size(); ++step)
      for (size_t column = 0; column < size_t(columns); ++column)
        inputs[1].reals()[step * size_t(columns) + column] = double(right[step]);
    const ir::RefTensor result = compiled->run(inputs)[0], expected = g.interpret(inputs)[0];
    for (const std::string &error : simt::takeErrors())
      FAIL_CHECK(error);
    constexpr double kLost = 1 << 9; // 2^-15 of a product, in units of its last place
    CHECK(difference(result, expected, {.ulps = kLost, .zeroSigns = false, .absolute = 0x1p-114}) == "");
    CHECK(std::isfinite(result[0]));
    CHECK(std::isinf(result[size_t(columns)]));
  }
}
