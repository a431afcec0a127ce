#include "tools/machine/Machine.h"
#include <cstdarg>
#include <nlohmann/json.hpp>

namespace burin::machine {
namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char *pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  char buffer[512];
  vsnprintf(buffer, sizeof buffer, pattern, arguments);
  va_end(arguments);
  return buffer;
}

std::string sizeText(uint64_t bytes) {
  if (bytes >= 1 << 20)
    return format("%.3g MiB", double(bytes) / (1 << 20));
  return format("%.3g KiB", double(bytes) / (1 << 10));
}

std::string nanoseconds(double ns) { return ns < 1000 ? format("%.0f ns", ns) : format("%.1f µs", ns / 1e3); }

} // namespace

std::string text(const Machine &m) {
  std::string out = m.cpu + ", code for " + m.target + "\n";
  std::string mask;
  for (int core : m.mask)
    mask += (mask.empty() ? "" : ",") + std::to_string(core);
  out += format("cores      %d, may use %s; cgroup quota %s; burin uses %d\n", m.cores, mask.c_str(),
                m.quota ? format("%.2f", m.quota).c_str() : "none", m.threads);
  for (const Cache &c : m.caches)
    out += format("%-10s %s by the system, %s\n", c.name.c_str(), sizeText(c.reportedBytes).c_str(),
                  c.measuredBytes ? (sizeText(c.measuredBytes) + " measured").c_str() : "its end is not to be seen");
  if (m.barrierNs)
    out += format("threads    meet in %s, after a sleep in %s\n", nanoseconds(m.barrierNs).c_str(),
                  nanoseconds(m.wakeNs).c_str());
  out += "\nGop/s, two per multiplication and addition\n";
  for (const Peak &p : m.peaks)
    out += format("  %-10s %d thread%s %8.1f\n", p.type.c_str(), p.threads, p.threads > 1 ? "s" : " ", p.gops);
  out += "\nGB/s       threads   in memory of  sequential  strided  backward  unaligned     copy\n";
  for (const Bandwidth &b : m.bandwidths)
    out += format("  %-8s %7d %14s %11.1f %8.1f %9.1f %10.1f %8.1f\n", b.level.c_str(), b.threads,
                  sizeText(b.bytes).c_str(), b.sequential, b.strided, b.backward, b.unaligned, b.copy);
  return out;
}

std::string json(const Machine &m) {
  using Json = nlohmann::ordered_json;
  Json out{{"cpu", m.cpu},
           {"target", m.target},
           {"cores", m.cores},
           {"mask", m.mask},
           {"threads", m.threads},
           {"quota", m.quota},
           {"caches", Json::array()},
           {"peaks", Json::array()},
           {"bandwidths", Json::array()},
           {"curve", Json::array()},
           {"barrier_ns", m.barrierNs},
           {"wake_ns", m.wakeNs}};
  for (const Cache &c : m.caches)
    out["caches"].push_back(
        {{"name", c.name}, {"reported_bytes", c.reportedBytes}, {"measured_bytes", c.measuredBytes}});
  for (const Peak &p : m.peaks)
    out["peaks"].push_back({{"type", p.type}, {"threads", p.threads}, {"gops", p.gops}});
  for (const Bandwidth &b : m.bandwidths)
    out["bandwidths"].push_back({{"level", b.level},
                                 {"bytes", b.bytes},
                                 {"threads", b.threads},
                                 {"sequential", b.sequential},
                                 {"strided", b.strided},
                                 {"backward", b.backward},
                                 {"unaligned", b.unaligned},
                                 {"copy", b.copy}});
  for (const Point &p : m.curve)
    out["curve"].push_back({{"bytes", p.bytes}, {"latency_ns", p.latencyNs}, {"gb_per_s", p.gigabytesPerSecond}});
  return out.dump(2) + "\n";
}

} // namespace burin::machine
