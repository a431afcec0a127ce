// gpu-check FOLDER [DEVICE]: runs the cases of the bundle on a GPU (or "cpu"), and compares. Prints what differs and
// the times of models and kernels and what the GPU can do at most, and writes it to FOLDER/report.md. Exit code 1 if
// anything differs. Needs nothing but the C++ library and the driver.
#include "runtime/execute/session/Session.h"
#include "runtime/gpu/Driver.h"
#include "test/gpu/bundle/Case.h"
#include "test/gpu/bundle/Numbers.h"
#include "test/gpu/bundle/Peaks.h"
#include "test/gpu/bundle/Speed.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

using namespace burin;
using namespace burin::test;

namespace {

/// "" if the result is near enough to what is expected.
std::string difference(const rt::TensorView &got, const rt::NpyArray &want, const rt::NpyArray *margins) {
  if (got.dtype != want.dtype || !std::ranges::equal(std::span(got.shape, got.rank), want.shape))
    return "has another type or shape";
  const auto *x = static_cast<const std::byte *>(got.data);
  if (std::equal(want.data.begin(), want.data.end(), x))
    return "";
  if (!isFloat(want.dtype) || !margins)
    return "differs";
  for (size_t i = 0; i < want.data.size() / byteWidth(want.dtype); ++i) {
    double a = bundle::real(got.dtype, x, i), b = bundle::real(want.dtype, want.data.data(), i);
    bool isNear = a == b || (std::isnan(a) && std::isnan(b)) ||
                  std::abs(a - b) <= bundle::elementAt<float>(margins->data.data(), i);
    if (!isNear)
      return "element " + std::to_string(i) + " is " + std::to_string(a) + " instead of " + std::to_string(b);
  }
  return "";
}

class Checker {
public:
  Checker(std::string folder, std::string device) : folder(std::move(folder)), device(std::move(device)) {}

  int run() {
    std::ifstream list(folder + "/" + bundle::kList);
    for (std::string line; std::getline(list, line);) {
      std::istringstream words(line);
      std::string name, artifact, function, file;
      words >> name >> artifact >> function >> file;
      std::string problem = runCase(name, artifact, function, file);
      ++cases;
      if (!problem.empty())
        problems += "- " + name + " " + function + ": " + problem + "\n";
    }
    if (device != "cpu") {
      std::string problem;
      peaks = bundle::measuredPeaks(problem);
      if (!problem.empty())
        problems += "- peaks: " + problem + "\n";
      problem.clear();
      speed = bundle::measuredSpeed(folder, problem);
      if (!problem.empty())
        problems += "- speed: " + problem + "\n";
    }
    std::string text = report();
    std::fputs(text.c_str(), stdout);
    std::ofstream(folder + "/report.md") << text;
    return problems.empty() && cases ? 0 : 1;
  }

private:
  std::string runCase(const std::string &name, const std::string &artifact, const std::string &function,
                      const std::string &file) {
    if (artifact != current)
      if (std::string problem = open(artifact); !problem.empty())
        return problem;
    std::string error;
    auto arrays = bundle::load(folder + "/" + file, error);
    if (!arrays)
      return error;
    const std::vector<rt::Plan> &plans = session->program().artifact().plans;
    auto plan = std::ranges::find(plans, function, &rt::Plan::name);
    if (plan == plans.end())
      return "no such function";
    const auto index = uint32_t(plan - plans.begin());
    std::vector<rt::TensorView> inputs, outputs(plan->callerOutputs());
    for (size_t i = 0; i < plan->callerInputs(); ++i) {
      const rt::NpyArray &array = arrays->at("in" + std::to_string(i));
      inputs.push_back(
          {const_cast<std::byte *>(array.data.data()), array.shape.data(), uint32_t(array.shape.size()), array.dtype});
    }
    const auto start = std::chrono::steady_clock::now();
    rt::Status status = session->run(inputs, outputs, index);
    if (!status.ok())
      return status.message();
    const bool isFast = std::chrono::steady_clock::now() - start < std::chrono::milliseconds(200); // no interpreter
    for (size_t i = 0; i < outputs.size(); ++i) {
      auto margins = arrays->find("margin" + std::to_string(i));
      std::string different = difference(outputs[i], arrays->at("out" + std::to_string(i)),
                                         margins == arrays->end() ? nullptr : &margins->second);
      if (!different.empty())
        return "result " + std::to_string(i) + " " + different;
    }
    if (isFast && name.starts_with("model:") && plan->stateOutputs.empty())
      time(name, inputs, outputs, index);
    return "";
  }

  std::string open(const std::string &artifact) {
    session.reset();
    current.clear();
    rt::Program::Ptr program;
    rt::Status status = rt::Program::loadFile(folder + "/" + artifact, {}, program);
    if (status.ok())
      status = rt::Session::create(program, {.threads = 1, .device = device}, session);
    if (status.ok())
      current = artifact;
    return status.message();
  }

  /// The middle one of 21 runs, with the copies of inputs and results.
  void time(const std::string &name, std::span<const rt::TensorView> inputs, std::span<rt::TensorView> outputs,
            uint32_t index) {
    std::vector<double> all;
    for (int i = 0; i < 21; ++i) {
      auto start = std::chrono::steady_clock::now();
      if (!session->run(inputs, outputs, index).ok())
        return;
      all.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::ranges::nth_element(all, all.begin() + 10);
    char text[200];
    std::snprintf(text, sizeof text, "| %s | %.1f |\n", name.c_str(), all[10]);
    times += text;
  }

  std::string report() const {
    std::string text = "# burin on " + deviceName() + "\n\n" + std::to_string(cases) + " cases, ";
    text += problems.empty() ? "all right\n" : "of which these are wrong:\n" + problems;
    if (!peaks.empty())
      text += "\n| peak | measured in this run |\n|---|---:|\n" + peaks;
    if (!speed.empty())
      text += "\n" + speed;
    return text + "\n| model | µs per run, with copies |\n|---|---:|\n" + times;
  }
  std::string deviceName() const {
    rt::gpu::Driver driver;
    std::vector<rt::gpu::DeviceInfo> devices;
    if (device == "cpu" || !rt::gpu::Driver::open(driver).ok() || !driver.devices(devices).ok() || devices.empty())
      return device;
    const rt::gpu::DeviceInfo &info = devices[0];
    return info.name + ", compute capability " + std::to_string(info.major) + "." + std::to_string(info.minor);
  }

  const std::string folder, device;
  std::string current; // artifact
  std::unique_ptr<rt::Session> session;
  size_t cases = 0;
  std::string problems, times, peaks, speed;
};

} // namespace

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    std::fputs("usage: gpu-check FOLDER [DEVICE]\n", stderr);
    return 2;
  }
  return Checker(argv[1], argc > 2 ? argv[2] : "cuda:0").run();
}
