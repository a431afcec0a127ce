#include "test/gpu/bundle/Peaks.h"
#include "test/gpu/bundle/Meter.h"
#include "test/gpu/bundle/Processes.h"
#include <array>
#include <cstdio>

namespace burin::test::bundle {

namespace gpu = rt::gpu;

namespace {

constexpr int kThreads = 256, kSums = 128, kUnrolled = 16;
constexpr unsigned kLeftBytes = 64 * 64, kRightBytes = 16 * 256 * 2; // of the operands of wgmma in shared memory

std::string registers(const std::string &prefix, int from, int count) {
  std::string all;
  for (int i = from; i < from + count; ++i)
    all += (i == from ? "" : ", ") + prefix + std::to_string(i);
  return all;
}

/// A kernel `peak(results, iterations)` around a loop over `products`, which add to the registers %f0, …
std::string kernelOf(const std::string &target, const std::string &before, const std::string &products) {
  std::string text = ".version 8.0\n.target " + target + "\n.address_size 64\n" +
                     ".extern .shared .align 1024 .b8 sharedPool[];\n"
                     ".visible .entry peak(.param .u64 results, .param .u64 iterations)\n.reqntid 256\n{\n"
                     ".reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<16>;\n.reg .f32 %f<130>;\n"
                     "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %ctaid.x;\n"
                     "ld.param.u64 %rd0, [results];\nld.param.u64 %rd1, [iterations];\n";
  for (int i = 0; i < kSums; ++i)
    text += "mov.b32 %f" + std::to_string(i) + ", 0f00000000;\n";
  text += before + "$turn:\n" + products + "add.s64 %rd1, %rd1, -1;\nsetp.gt.s64 %p1, %rd1, 0;\n@%p1 bra $turn;\n";
  for (int i = 1; i < kSums; ++i)
    text += "add.rn.f32 %f0, %f0, %f" + std::to_string(i) + ";\n";
  return text + "mad.lo.s32 %r2, %r1, 256, %r0;\nmul.wide.u32 %rd2, %r2, 4;\ncvta.to.global.u64 %rd3, %rd0;\n"
                "add.s64 %rd4, %rd3, %rd2;\nst.global.f32 [%rd4], %f0;\nret;\n}\n";
}

/// Each warp multiplies 16 by 16 by 8 elements, to sums of its own in turn.
std::string byWarps() {
  const std::string operands = "{%r3, %r4, %r5, %r6}, {%r7, %r8}, ";
  std::string before, products;
  for (int i = 3; i <= 8; ++i) { // signs and fractions differ: power, and so clocks, depend on the bits
    const std::string own = "%r" + std::to_string(i);
    before.append("mul.lo.s32 ").append(own).append(", %r0, ").append(std::to_string(40503 * i)).append(";\n");
    before.append("and.b32 ").append(own).append(", ").append(own).append(", -2139127681;\n");
    before.append("or.b32 ").append(own).append(", ").append(own).append(", 1065369472;\n");
  }
  for (int i = 0; i < kUnrolled; ++i) {
    const std::string sums = "{" + registers("%f", i % 8 * 4, 4) + "}";
    products.append("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 ").append(sums).append(", ");
    products.append(operands).append(sums).append(";\n");
  }
  return kernelOf("sm_80", before, products);
}

/// Each of two warpgroups multiplies 64 by 16 by 256 elements from shared memory.
std::string byWarpgroups() {
  std::string before = "mov.b64 %rd5, sharedPool;\nmov.u32 %r3, %r0;\n$fill:\nmul.lo.s32 %r4, %r3, 1103515245;\n"
                       "and.b32 %r4, %r4, -2139127681;\nor.b32 %r4, %r4, 1065369472;\n"
                       "mul.wide.u32 %rd6, %r3, 4;\nadd.s64 %rd7, %rd5, %rd6;\nst.shared.b32 [%rd7], %r4;\n"
                       "add.s32 %r3, %r3, 256;\nsetp.lt.s32 %p2, %r3, " +
                       std::to_string((kLeftBytes + kRightBytes) / 4) +
                       ";\n@%p2 bra $fill;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n";
  // Lines of 64 bytes, eight to a group; 16 lines to a panel. See Descriptor.
  constexpr uint64_t kLines = uint64_t(2) << 62 | uint64_t(512 / 16) << 32 | uint64_t(1024 / 16) << 16;
  before += "and.b64 %rd8, %rd5, 262143;\nshr.u64 %rd8, %rd8, 4;\nor.b64 %rd9, %rd8, " +
            std::to_string(int64_t(kLines)) + ";\nadd.s64 %rd10, %rd9, " + std::to_string(kLeftBytes / 16) +
            ";\nsetp.ne.s32 %p3, 1, 0;\n";
  std::string products = "wgmma.fence.sync.aligned;\n";
  for (int i = 0; i < kUnrolled; ++i)
    products += "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" + registers("%f", 0, kSums) +
                "}, %rd9, %rd10, %p3, 1, 1, 0, 1;\n";
  return kernelOf("sm_90a", before, products + "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n");
}

std::string row(const char *what, double value, const char *unit) {
  char text[120];
  std::snprintf(text, sizeof text, "| %s | %.4g %s |\n", what, value, unit);
  return text;
}

std::string copies(gpu::Device &device, gpu::Stream stream, Meter &meter) {
  const size_t bytes = std::clamp(device.info().memoryBytes / 64, size_t(1) << 24, size_t(1) << 30);
  rt::BufferRef from, to;
  for (rt::BufferRef *buffer : {&from, &to})
    if (meter.result.ok())
      meter.result = device.allocateBuffer(bytes, *buffer);
  if (!meter.result.ok())
    return "";
  device->fill(address(from), 0x5A, bytes, stream);
  double best = meter.best(
      [&] { return device.check(device->copyWithin(address(to), address(from), bytes, stream), "copying"); });
  return row("copies, read and written", 2 * double(bytes) / best / 1e9, "GB/s");
}

std::string products(gpu::Device &device, gpu::Stream stream, Meter &meter, bool groups) {
  gpu::Module module = nullptr;
  gpu::Function function = nullptr;
  const int blocks = device.info().multiprocessors * (groups ? 1 : 2);
  rt::BufferRef results;
  meter.result = device.allocateBuffer(size_t(blocks) * kThreads * sizeof(float), results);
  if (meter.result.ok())
    meter.result = device.check(device->moduleLoadData(&module, (groups ? byWarpgroups() : byWarps()).c_str()),
                                "loading the kernel that measures products");
  if (meter.result.ok())
    meter.result = device.check(device->moduleGetFunction(&function, module, "peak"), "finding a kernel");
  const double perTurn = kUnrolled * (groups ? 2 * 2.0 * 64 * 256 * 16 : 8 * 2.0 * 16 * 8 * 16); // of a block
  double rate = 0;
  auto launch = [&](unsigned count, uint64_t turns) {
    uint64_t at = address(results);
    std::array<void *, 2> arguments{&at, &turns};
    gpu::Result result = device->launchKernel(function, count, 1, 1, kThreads, 1, 1,
                                              groups ? kLeftBytes + kRightBytes : 0, stream, arguments.data(), nullptr);
    return device.check(result, "measuring products");
  };
  // A GPU needs microseconds for one block, an emulator much longer.
  constexpr double kTooSlow = 0.002;
  const uint64_t few = groups ? 4 : 64;
  if (meter.result.ok() && !groups)
    meter.seconds([&] { return launch(1, 1); }); // which may load code
  double first = meter.result.ok() ? meter.seconds([&] { return launch(1, few); }) : 0;
  rate = perTurn * double(few) / first;
  if (meter.result.ok() && first < kTooSlow) {
    constexpr uint64_t kTurns = 1000;
    rate = perTurn * double(kTurns) * blocks / meter.best([&] { return launch(unsigned(blocks), kTurns); });
  }
  if (module)
    device->moduleUnload(module);
  return meter.result.ok()
             ? row(groups ? "products of bf16 by wgmma" : "products of bf16 by mma.sync", rate / 1e12, "TFLOP/s")
             : "";
}

/// Rows, and a line for a failure, which starts with "-".
std::string measured() {
  gpu::Device::Ptr device;
  rt::Status status = gpu::Device::open(0, device);
  std::string rows;
  if (status.ok()) {
    gpu::Device::Use use(*device);
    gpu::Lanes *lanes = nullptr;
    Meter meter(*device);
    meter.result = device->sharedLanes(lanes);
    if (meter.result.ok())
      rows += copies(*device, lanes->streams[0], meter);
    for (bool groups : {false, true})
      if (meter.result.ok() && (!groups || device->info().major == 9))
        rows += products(*device, lanes->streams[0], meter, groups);
    status = std::move(meter.result);
  }
  return status.ok() ? rows : rows + "- peaks: " + status.message() + "\n";
}

} // namespace

std::string measuredPeaks(std::string &problems) {
  const std::function<std::string()> job = measured;
  const Ended ended = inProcesses({&job, 1}, 1, std::chrono::seconds(60))[0];
  const size_t rows = std::min(ended.text.find("- "), ended.text.size());
  problems += ended.text.substr(rows);
  if (!ended.problem.empty())
    problems += "- peaks: " + ended.problem + "\n";
  return ended.text.substr(0, rows);
}

} // namespace burin::test::bundle
