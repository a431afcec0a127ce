// gpu-check FOLDER [DEVICE [NAME…]]: runs the cases of the bundle (with these names) on a GPU (or "cpu"), and compares.
// Prints what differs and the times of models and kernels and what the GPU can do at most, and writes it to
// FOLDER/report.md. Exit code 1 if anything differs. Needs nothing but the C++ library and the driver.
#include "runtime/execute/session/Session.h"
#include "runtime/gpu/libraries/Driver.h"
#include "test/gpu/bundle/Case.h"
#include "test/gpu/bundle/Numbers.h"
#include "test/gpu/bundle/Peaks.h"
#include "test/gpu/bundle/Processes.h"
#include "test/gpu/bundle/Speed.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

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

/// A line of the list of cases.
struct Case {
  std::string name, artifact, function, file;
  bool isModel() const { return name.starts_with("model:"); }
};

/// Runs the cases of one artifact, in order.
class ArtifactRun {
public:
  ArtifactRun(const std::string &folder, const std::string &device) : folder(folder), device(device) {}

  /// A line per case that is wrong, starting with "-", and one per model that was timed, starting with "|".
  std::string run(std::span<const Case> cases) {
    std::string lines;
    for (const Case &one : cases) {
      std::string time, problem = session ? "" : open(one.artifact);
      if (problem.empty())
        problem = runCase(one, time);
      lines += time;
      if (!problem.empty())
        lines += "- " + one.name + " " + one.function + ": " + problem + "\n";
    }
    return lines;
  }

private:
  std::string open(const std::string &artifact) {
    rt::Program::Ptr program;
    rt::Status status = rt::Program::loadFile(folder + "/" + artifact, {}, program);
    if (status.ok())
      status = rt::Session::create(program, {.threads = 1, .device = device}, session);
    return status.message();
  }

  std::string runCase(const Case &one, std::string &time) {
    std::string error;
    auto arrays = bundle::load(folder + "/" + one.file, error);
    if (!arrays)
      return error;
    const std::vector<rt::Plan> &plans = session->program().artifact().plans;
    auto plan = std::ranges::find(plans, one.function, &rt::Plan::name);
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
    if (isFast && one.isModel() && plan->stateOutputs.empty())
      time = timed(one.name, inputs, outputs, index);
    return "";
  }

  /// The middle one of 21 runs, with the copies of inputs and results.
  std::string timed(const std::string &name, std::span<const rt::TensorView> inputs, std::span<rt::TensorView> outputs,
                    uint32_t index) {
    std::vector<double> all;
    for (int i = 0; i < 21; ++i) {
      auto start = std::chrono::steady_clock::now();
      if (!session->run(inputs, outputs, index).ok())
        return "";
      all.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::ranges::nth_element(all, all.begin() + 10);
    char text[200];
    std::snprintf(text, sizeof text, "| %s | %.1f |\n", name.c_str(), all[10]);
    return text;
  }

  const std::string &folder, &device;
  std::unique_ptr<rt::Session> session;
};

class Checker {
  static constexpr std::chrono::seconds kLimit{60}; // for an artifact

public:
  Checker(std::string folder, std::string device, std::set<std::string> names)
      : folder(std::move(folder)), device(std::move(device)), names(std::move(names)) {}

  int run() {
    std::vector<std::vector<Case>> ops, models;
    std::ifstream list(folder + "/" + bundle::kList);
    for (std::string line; std::getline(list, line);) {
      std::istringstream words(line);
      Case one;
      words >> one.name >> one.artifact >> one.function >> one.file;
      if (!names.empty() && !names.count(one.name))
        continue;
      std::vector<std::vector<Case>> &group = one.isModel() ? models : ops;
      if (group.empty() || group.back()[0].artifact != one.artifact)
        group.emplace_back();
      group.back().push_back(one);
    }
    runCases(ops, std::clamp(std::thread::hardware_concurrency(), 1u, 12u));
    runCases(models, 1); // as they are timed
    if (device != "cpu" && names.empty())
      measure();
    std::string text = report();
    std::fputs(text.c_str(), stdout);
    std::ofstream(folder + "/report.md") << text;
    return problems.empty() && cases ? 0 : 1;
  }

private:
  void runCases(const std::vector<std::vector<Case>> &groups, size_t atOnce) {
    std::vector<std::function<std::string()>> jobs;
    for (const std::vector<Case> &group : groups) {
      jobs.emplace_back([&] { return ArtifactRun(folder, device).run(group); });
      cases += group.size();
    }
    std::vector<bundle::Ended> all = bundle::inProcesses(jobs, atOnce, kLimit);
    for (size_t i = 0; i < all.size(); ++i) {
      std::istringstream lines(all[i].text);
      for (std::string line; std::getline(lines, line);)
        (line.starts_with("-") ? problems : times) += line + "\n";
      if (!all[i].problem.empty())
        problems += "- " + groups[i][0].name + ": " + all[i].problem + "\n";
    }
  }

  void measure() {
    std::string problem;
    peaks = bundle::measuredPeaks(problem);
    speed = bundle::measuredSpeed(folder, problem);
    problems += problem;
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
  const std::set<std::string> names;
  size_t cases = 0;
  std::string problems, times, peaks, speed;
};

} // namespace

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fputs("usage: gpu-check FOLDER [DEVICE [NAME…]]\n", stderr);
    return 2;
  }
  return Checker(argv[1], argc > 2 ? argv[2] : "cuda:0", {argv + std::min(argc, 3), argv + argc}).run();
}
