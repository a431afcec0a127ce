#include "tools/common/Report.h"
#include <algorithm>
#include <cmath>
#include <cstdio>

namespace burin::run {
namespace {

void printValues(const Values &values) {
  constexpr int64_t kShown = 8;
  int64_t n = values.count();
  std::printf("  [");
  for (int64_t i = 0; i < std::min(n, kShown); ++i)
    std::printf("%s%.6g", i ? ", " : "", values[i]);
  std::printf("%s]\n", n > kShown ? ", …" : "");
}

void jsonString(const std::string &text) {
  std::putchar('"');
  for (unsigned char c : text)
    if (c == '"' || c == '\\')
      std::printf("\\%c", c);
    else if (c < ' ')
      std::printf("\\u%04x", c);
    else
      std::putchar(c);
  std::putchar('"');
}

void jsonTensor(const NamedTensor &t, bool isOutput) {
  std::printf("{\"name\": ");
  jsonString(t.name);
  std::printf(", \"dtype\": \"%s\", \"shape\": [", std::string(name(DType(t.tensor.dtype))).c_str());
  for (uint32_t i = 0; i < t.tensor.rank; ++i)
    std::printf("%s%lld", i ? ", " : "", static_cast<long long>(t.tensor.shape[i]));
  std::printf("]");
  if (isOutput) {
    Summary s = summarize(t.values());
    std::printf(", \"min\": %.9g, \"mean\": %.9g, \"max\": %.9g, \"not_finite\": %lld", s.min, s.mean, s.max,
                static_cast<long long>(s.notFinite));
  } else {
    std::printf(", \"source\": ");
    jsonString(t.source);
  }
  std::printf("}");
}

template <class T, class F> void jsonList(const char *key, const std::vector<T> &list, F print) {
  std::printf(",\n \"%s\": [", key);
  for (size_t i = 0; i < list.size(); ++i) {
    std::printf("%s", i ? ",\n  " : "");
    print(list[i]);
  }
  std::printf("]");
}

/// The kernel, and the library that has run in its place, if one has.
std::string nameOf(const burin_step_profile &step) {
  return step.provider ? std::string(step.kernel) + " (" + step.provider + ")" : step.kernel;
}

void jsonStep(const StepTimes &s) {
  std::printf("{\"step\": %u, \"kernel\": ", s.step.step);
  jsonString(nameOf(s.step));
  std::printf(", \"location\": ");
  jsonString(s.step.location);
  std::printf(", \"us\": %.3f, \"tasks\": %lld, \"flops\": %lld, \"bytes\": %lld, \"parallel\": %s}", s.medianUs(),
              static_cast<long long>(s.step.tasks), static_cast<long long>(s.step.flops),
              static_cast<long long>(s.step.bytes), s.step.parallel ? "true" : "false");
}

} // namespace

Times quantiles(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  auto at = [&](double q) { return us[size_t(std::lround(q * double(us.size() - 1)))]; };
  return {at(.5), at(.1), at(.9)};
}

void printSteps(std::FILE *out, const std::vector<StepTimes> &steps) {
  double total = 0;
  for (const StepTimes &s : steps)
    total += s.medianUs() * 1e3;
  std::fprintf(out, "%5s %11s %6s %9s %8s  %-28s %s\n", "step", "µs", "share", "GFLOP/s", "GB/s", "kernel", "source");
  for (const StepTimes &s : steps) {
    double ns = s.medianUs() * 1e3;
    std::fprintf(out, "%5u %10.2f %5.1f%% %9.1f %8.1f  %-28s %s\n", s.step.step, ns / 1e3,
                 total > 0 ? 100 * ns / total : 0, double(s.step.flops) / ns, double(s.step.bytes) / ns,
                 nameOf(s.step).c_str(), s.step.location);
  }
  std::fprintf(out, "%5s %10.2f\n", "all", total / 1e3);
}

void printText(const Report &report, const Options &options) {
  for (const NamedTensor &input : report.inputs)
    if (input.source == "random")
      std::fprintf(stderr, "input %s %s: random, seed %llu\n", input.name.c_str(),
                   typeText(DType(input.tensor.dtype), {input.tensor.shape, input.tensor.rank}).c_str(),
                   static_cast<unsigned long long>(options.seed));
  for (const NamedTensor &output : report.outputs) {
    bool written = std::any_of(options.outputs.begin(), options.outputs.end(),
                               [&](const auto &named) { return named.first == output.name; });
    if (written)
      continue;
    Values values = output.values();
    Summary s = summarize(values);
    std::printf("%s %s min %.6g mean %.6g max %.6g", output.name.c_str(), typeText(values.dtype, values.shape).c_str(),
                s.min, s.mean, s.max);
    if (s.notFinite)
      std::printf(" not finite: %lld", static_cast<long long>(s.notFinite));
    std::printf("\n");
    printValues(values);
  }
  if (!report.steps.empty())
    printSteps(stderr, report.steps);
  if (!report.runUs.empty()) {
    Times t = quantiles(report.runUs);
    std::fprintf(stderr, "%zu runs after 1 warm-up: median %.2f µs, p10 %.2f, p90 %.2f; load %.2f ms; %s\n",
                 report.runUs.size(), t.median, t.p10, t.p90, report.loadMs, report.target.c_str());
  }
}

void printJson(const Report &report) {
  std::printf("{\"model\": ");
  jsonString(report.model);
  std::printf(", \"target\": \"%s\", \"load_ms\": %.3f, \"arena_bytes\": %llu", report.target.c_str(), report.loadMs,
              static_cast<unsigned long long>(report.arenaBytes));
  if (!report.runUs.empty()) {
    Times t = quantiles(report.runUs);
    std::printf(", \"runs\": %zu, \"median_us\": %.3f, \"p10_us\": %.3f, \"p90_us\": %.3f", report.runUs.size(),
                t.median, t.p10, t.p90);
  }
  jsonList("inputs", report.inputs, [](const NamedTensor &t) { jsonTensor(t, false); });
  jsonList("outputs", report.outputs, [](const NamedTensor &t) { jsonTensor(t, true); });
  if (!report.steps.empty())
    jsonList("steps", report.steps, jsonStep);
  std::printf("}\n");
}

} // namespace burin::run
