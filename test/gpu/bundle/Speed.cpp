#include "test/gpu/bundle/Speed.h"
#include "runtime/execute/session/Session.h"
#include "runtime/gpu/libraries/CublasLt.h"
#include "test/gpu/bundle/Meter.h"
#include "test/gpu/bundle/Numbers.h"
#include "test/gpu/bundle/Processes.h"
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>

namespace burin::test::bundle {

namespace gpu = rt::gpu;

namespace {

size_t countOf(std::span<const int64_t> shape) {
  return size_t(std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>()));
}

/// Elements from -1 to 1 in steps of 1/128, which f32, f16 and bf16 represent, rounded to 8-bit floats; or from -128 to
/// 127.
std::vector<std::byte> operand(DType dtype, size_t count, uint32_t seed) {
  std::vector<std::byte> bytes(count * byteWidth(dtype));
  std::array<uint16_t, 256> narrow{};
  for (int i = 0; i < 256 && dtype != DType::f32; ++i)
    narrow[size_t(i)] = isFloat(dtype) ? toNarrowFloat(dtype, (i - 128) / 128.0) : uint16_t(i - 128);
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525 + 1013904223;
    const float value = float(int(seed >> 24) - 128) / 128;
    const void *element = dtype == DType::f32 ? static_cast<const void *>(&value) : &narrow[seed >> 24];
    std::memcpy(&bytes[i * byteWidth(dtype)], element, byteWidth(dtype));
  }
  return bytes;
}

/// One row on one device: its session and operands.
class TimedRow {
public:
  TimedRow(const SpeedRow &row, gpu::Device &device, gpu::Lanes &lanes) : row(row), device(device), lanes(lanes) {}

  rt::Status open(const std::string &folder) {
    rt::Program::Ptr program;
    rt::Status status = rt::Program::loadFile(folder + "/" + row.artifact, {}, program);
    if (status.ok())
      status = rt::Session::create(
          program,
          {.threads = 1, .device = device.name(), .stream = {gpu::StreamChoice::Kind::Given, lanes.streams[0]}},
          session);
    for (size_t i = 0; i < row.shapes.size() && status.ok(); ++i) {
      std::vector<std::byte> bytes = operand(row.dtype, countOf(row.shapes[i]), uint32_t(7 * i + 1));
      status = device.upload(bytes.data(), bytes.size(), operands.emplace_back());
      moved += bytes.size();
    }
    return status;
  }

  rt::Status run() {
    std::vector<rt::TensorView> inputs;
    for (size_t i = 0; i < operands.size(); ++i)
      inputs.push_back(
          {operands[i]->data(), row.shapes[i].data(), uint32_t(row.shapes[i].size()), row.dtype, {.isGpu = 1}});
    return session->run(inputs, {&result, 1});
  }

  /// The time of one run by burin and, 0 if it has none, by cuBLASLt; compares their results.
  rt::Status measure(double &own, double &rival, std::string &difference) {
    Meter meter(device);
    meter.keep(run());
    if (meter.result.ok())
      own = meter.best([&] { return run(); });
    moved += resultBytes();
    if (meter.result.ok() && row.hasRival)
      meter.keep(measureRival(meter, rival, difference));
    return std::move(meter.result);
  }
  double bytes() const { return double(moved); }

private:
  size_t resultBytes() const { return countOf({result.shape, result.rank}) * byteWidth(result.dtype); }

  rt::Status measureRival(Meter &meter, double &rival, std::string &difference) {
    std::unique_ptr<gpu::CublasLt> library;
    if (!gpu::CublasLt::open(library).ok())
      return {};
    const int64_t m = row.shapes[0][0], k = row.shapes[0][1], n = row.shapes[1][1];
    rt::BufferRef other, workspace;
    rt::Status status = device.allocateBuffer(resultBytes(), other);
    if (status.ok())
      status = device.allocateBuffer(gpu::CublasLt::kWorkspaceBytes, workspace);
    if (!status.ok())
      return status;
    const gpu::MatrixProduct product{
        .type = row.dtype, .resultType = row.dtype, .rows = m, .columns = n, .depth = k, .leftStride = k};
    const gpu::CublasLt::Operands matrices{operands[0]->data(), operands[1]->data(), nullptr, other->data()};
    std::string problem;
    if (!library->choose(product, matrices, problem))
      return {};
    rival = meter.best([&] { return library->enqueue(matrices, workspace->data(), lanes.streams[0]); });
    std::vector<std::byte> mine(resultBytes()), theirs(resultBytes());
    meter.keep(device.download(mine.data(), result.data, mine.size()));
    meter.keep(device.download(theirs.data(), other->data(), theirs.size()));
    // Sums of k products of numbers up to 1, rounded to the type.
    const double depth = double(k), allowed = row.dtype == DType::f32 ? 1e-6 * depth : 0.01 * std::sqrt(depth);
    for (size_t i = 0; i < mine.size() / byteWidth(row.dtype) && difference.empty() && meter.result.ok(); ++i) {
      const double a = real(row.dtype, mine.data(), i), b = real(row.dtype, theirs.data(), i);
      if (!(std::abs(a - b) <= allowed + 0.01 * std::abs(b)))
        difference = "element " + std::to_string(i) + " is " + std::to_string(a) + ", by cuBLASLt " + std::to_string(b);
    }
    return {};
  }

  const SpeedRow &row;
  gpu::Device &device;
  gpu::Lanes &lanes;
  std::unique_ptr<rt::Session> session;
  std::vector<rt::BufferRef> operands;
  rt::TensorView result{.device = {.isGpu = 1}};
  size_t moved = 0;
};

std::string cell(const char *format, double value, bool isThere = true) {
  char text[40] = "–";
  if (isThere)
    std::snprintf(text, sizeof text, format, value);
  return std::string(" ") + text + " |";
}

/// A time of 0 if there is none.
struct Times {
  double own = 0, rival = 0, bytes = 0;
  std::string problem;
};

/// Runs in a process that has not used the GPU before: "own rival bytes problem".
std::string timesOf(const SpeedRow &row, const std::string &folder) {
  gpu::Device::Ptr device;
  gpu::Lanes *lanes = nullptr;
  Times times;
  rt::Status status = gpu::Device::open(0, device);
  if (status.ok()) {
    gpu::Device::Use use(*device);
    status = device->sharedLanes(lanes);
    if (status.ok()) {
      TimedRow timed(row, *device, *lanes);
      status = timed.open(folder);
      if (status.ok())
        status = timed.measure(times.own, times.rival, times.problem);
      times.bytes = timed.bytes();
    }
  }
  std::ostringstream out;
  out << times.own << ' ' << times.rival << ' ' << times.bytes << ' '
      << (status.ok() ? times.problem : status.message());
  return out.str();
}

Times measured(const SpeedRow &row, const std::string &folder) {
  const std::function<std::string()> job = [&] { return timesOf(row, folder); };
  const Ended ended = inProcesses({&job, 1}, 1, std::chrono::seconds(30))[0];
  Times times;
  std::istringstream in(ended.text);
  in >> times.own >> times.rival >> times.bytes >> std::ws;
  std::getline(in, times.problem, '\0');
  times.problem += ended.problem;
  return times;
}

std::string line(const SpeedRow &row, const Times &times) {
  std::string text = "| " + row.name + " | " + std::string(name(row.dtype));
  for (const std::vector<int64_t> &shape : row.shapes) {
    text += " [";
    for (size_t i = 0; i < shape.size(); ++i)
      text += (i ? ", " : "") + std::to_string(shape[i]);
    text += "]";
  }
  return text + " |" + cell("%.1f", times.own * 1e6) + cell("%.4g", times.bytes / times.own / 1e9) +
         cell("%.4g", row.operations / times.own / 1e12, row.operations > 0) +
         cell("%.1f", times.rival * 1e6, times.rival > 0) + cell("%.2f", times.rival / times.own, times.rival > 0) +
         "\n";
}

} // namespace

std::string measuredSpeed(const std::string &folder, std::string &problems) {
  constexpr double kNoGpu = 1e-3; // seconds for a small kernel
  std::ifstream list(folder + "/" + kSpeedList);
  std::string rows;
  std::optional<bool> isSlow; // whether the small version of the first row takes longer than on any GPU
  for (std::string text; std::getline(list, text);) {
    std::optional<SpeedRow> row = SpeedRow::parse(text);
    if (!row || (isSlow && row->isLarge == *isSlow))
      continue;
    const Times times = measured(*row, folder);
    if (!times.problem.empty())
      problems += "- speed of " + row->name + ": " + times.problem + "\n";
    if (!isSlow)
      isSlow = times.own > kNoGpu;
    if (times.own > 0 && row->isLarge != *isSlow)
      rows += line(*row, times);
  }
  return rows.empty() ? ""
                      : "| kernel | operands | µs | GB/s | TFLOP/s | cuBLASLt, µs | cuBLASLt / burin |\n"
                        "|---|---|---:|---:|---:|---:|---:|\n" +
                            rows;
}

} // namespace burin::test::bundle
