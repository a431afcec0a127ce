// Plots bandwidth and latency over the working set on logarithmic axes, with the ends of the caches.
#include "tools/machine/Machine.h"
#include <algorithm>
#include <cmath>
#include <cstdarg>

namespace burin::machine {
namespace {

constexpr double kLeft = 60, kTop = 40, kWidth = 640, kHeight = 300;
constexpr const char *kBandwidthColour = "#1f6fb2", *kLatencyColour = "#c2571a";

[[gnu::format(printf, 2, 3)]] void add(std::string &out, const char *pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  char buffer[512];
  vsnprintf(buffer, sizeof buffer, pattern, arguments);
  va_end(arguments);
  out += buffer;
}

/// Returns the position of `value` between `low` (0) and `high` (1) on a logarithmic scale.
double place(double value, double low, double high) { return std::log(value / low) / std::log(high / low); }

std::string label(uint64_t bytes) {
  return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes >> 10) + " KiB";
}

} // namespace

std::string svg(const Machine &m) {
  if (m.curve.size() < 2)
    return "";
  auto first = double(m.curve.front().bytes), last = double(m.curve.back().bytes);
  double high = 1;
  for (const Point &p : m.curve)
    high = std::max({high, p.gigabytesPerSecond, p.latencyNs});
  high = std::pow(10, std::ceil(std::log10(high)));
  auto x = [&](double bytes) { return kLeft + kWidth * place(bytes, first, last); };
  auto y = [&](double value) { return kTop + kHeight * (1 - place(std::max(value, 1.0), 1, high)); };

  std::string out;
  add(out,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      kLeft + kWidth + 30, kTop + kHeight + 50);
  add(out, "<text x=\"%g\" y=\"20\" font-weight=\"bold\">%s: one core, by the memory it walks through</text>\n", kLeft,
      m.cpu.c_str());
  for (double tick = 1; tick <= high; tick *= 10) {
    add(out, "<line x1=\"%g\" x2=\"%g\" y1=\"%g\" y2=\"%g\" stroke=\"#ddd\"/>", kLeft, kLeft + kWidth, y(tick),
        y(tick));
    add(out, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">%g</text>\n", kLeft - 6, y(tick) + 4, tick);
  }
  for (size_t i = 0; i < m.curve.size(); i += 2)
    add(out, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">%s</text>\n", x(double(m.curve[i].bytes)),
        kTop + kHeight + 18, label(m.curve[i].bytes).c_str());
  for (const Cache &c : m.caches) {
    if (!c.measuredBytes)
      continue;
    double at = std::clamp(double(c.measuredBytes), first, last);
    add(out, "<line x1=\"%g\" x2=\"%g\" y1=\"%g\" y2=\"%g\" stroke=\"#888\" stroke-dasharray=\"4\"/>", x(at), x(at),
        kTop, kTop + kHeight);
    add(out, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\" fill=\"#555\">%s</text>\n", x(at) - 4, kTop + 12,
        c.name.c_str());
  }
  auto curve = [&](const char *colour, double Point::*value, const char *name, double line) {
    add(out, "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\" points=\"", colour);
    for (const Point &p : m.curve)
      add(out, "%.1f,%.1f ", x(double(p.bytes)), y(p.*value));
    add(out, "\"/>\n<text x=\"%g\" y=\"%g\" fill=\"%s\">%s</text>\n", kLeft + line, kTop + kHeight + 38, colour, name);
  };
  curve(kBandwidthColour, &Point::gigabytesPerSecond, "sequential reads, GB/s", 0);
  curve(kLatencyColour, &Point::latencyNs, "a dependent load, ns", 200);
  return out + "</svg>\n";
}

} // namespace burin::machine
