// The op table once more, as the PTX that a driver gets: the driver for tests interprets it. `gpu-ptx-tests "ptx:
// add"`.
#include "runtime/execute/session/Session.h"
#include "test/Features.h"
#include "test/gpu/driver/FakeCuda.h"
#include "test/ops/Row.h"
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <stdexcept>

using namespace burin;
using namespace burin::test;

namespace {

constexpr uint64_t kSeed = 20240;
constexpr const char *kAmpere = "cuda-sm_80+ptx", *kHopper = "cuda-sm_90a+ptx";

void require(const rt::Status &status) {
  if (!status.ok())
    throw std::runtime_error(status.message());
}

Tensors runOn(rt::Session &session, const Tensors &inputs) {
  std::vector<std::vector<char>> bytes;
  std::vector<rt::TensorView> views, outputs(session.program().artifact().plans[0].outputs.size());
  for (const ir::RefTensor &t : inputs)
    bytes.push_back(t.toBytes());
  for (size_t i = 0; i < inputs.size(); ++i)
    views.push_back({bytes[i].data(), inputs[i].shape.data(), uint32_t(inputs[i].shape.size()), inputs[i].dtype});
  require(session.run(views, outputs));
  Tensors results;
  for (uint32_t i = 0; i < outputs.size(); ++i)
    results.push_back(
        ir::RefTensor::fromBytes(outputs[i].dtype, {outputs[i].shape, outputs[i].shape + outputs[i].rank},
                                 {static_cast<const char *>(outputs[i].data), size_t(session.outputBytes(i))}));
  return results;
}

class PtxRowCase : public Catch::ITestInvoker {
public:
  PtxRowCase(const Row &row, const char *target, Share share, const char *inLongForm)
      : row(row), target(target), inLongForm(inLongForm), share(share) {}
  void invoke() const override {
    check(target);
    if (isLong() && inLongForm)
      check(inLongForm);
  }

private:
  void check(const char *target) const {
    fake::failCall(0);
    std::string different = tryRow(
        row, target, kSeed,
        [&](Graph &graph) -> Runner {
          rt::Program::Ptr program;
          require(rt::Program::loadMemory(graph.artifact({target}), nullptr, {}, program));
          std::shared_ptr<rt::Session> session;
          std::unique_ptr<rt::Session> made;
          require(rt::Session::create(program, {.threads = 1, .device = "cuda:0"}, made));
          session = std::move(made);
          return [session](const Tensors &inputs) { return runOn(*session, inputs); };
        },
        share);
    INFO(different);
    CHECK(different.empty());
    CHECK(fake::problems() == "");
  }

  const Row &row;
  const char *target, *inLongForm; // null: no other target
  Share share;                     // the emulator runs the same kernels
};

/// Of the examples; the emulator runs others. Products and convolutions take long.
constexpr Share kThird{3}, kQuarter{4}, kTenth{10};

struct Registered {
  Registered() {
    size_t n = 0;
    // Every other row for each architecture, in the long form for both; products for both, see below.
    for (const Row *row : allRows()) {
      const bool isForAmpere = n++ % 2 || isOfContraction(*row);
      const char *other = isOfContraction(*row) ? nullptr : isForAmpere ? kHopper : kAmpere;
      add(*row, row->op, isForAmpere ? kAmpere : kHopper, isOfContraction(*row) ? kTenth : kThird, other);
    }
    static std::deque<Row> tf32, bf16x3;
    for (const Row &row : contractionRows()) {
      add(tf32.emplace_back(roundedToTf32(row)), row.op + " in tf32", "cuda-sm_80+ptx+tf32", kTenth);
      add(bf16x3.emplace_back(splitToBf16(row)), row.op + " in bf16x3", "cuda-sm_90a+ptx+bf16x3", kTenth);
    }
    static const Row attention = attentionByWarpgroups();
    add(attention, attention.op + " on sm_90a", kHopper);
    static std::deque<Row> hopper; // what runs by warpgroups
    for (const Row &row : rowsByWarpgroups())
      add(hopper.emplace_back(row), nameByWarpgroups(row), kHopper, kQuarter);
  }

private:
  /// Declares a test case.
  static void add(const Row &row, const std::string &name, const char *target, Share share = kThird,
                  const char *inLongForm = nullptr) {
    const Catch::AutoReg added(new PtxRowCase(row, target, share, inLongForm), CATCH_INTERNAL_LINEINFO, "",
                               Catch::NameAndTags("ptx: " + name, "[gpu]"));
  }
} registered;

} // namespace
