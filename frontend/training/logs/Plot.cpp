// Curves as SVG.
#include "burin/training/logs.h"
#include "frontend/tensor/context/LocationScope.h"
#include "runtime/support/FileReplacement.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstring>

namespace burin {

using detail::inScope;

namespace {

constexpr double kLeft = 64, kTop = 34, kRight = 16, kBottom = 46;
constexpr std::array kColors{"#b03030", "#3050b0", "#2f8f4e", "#c27a12", "#7a3fa0", "#3a8f9c", "#8c564b", "#606060"};

[[gnu::format(printf, 2, 3)]] void add(std::string &out, const char *pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  char buffer[256];
  vsnprintf(buffer, sizeof buffer, pattern, arguments);
  va_end(arguments);
  out += buffer;
}

std::string escaped(const std::string &text) {
  std::string result;
  for (char c : text)
    switch (c) {
    case '&':
      result += "&amp;";
      break;
    case '<':
      result += "&lt;";
      break;
    case '>':
      result += "&gt;";
      break;
    default:
      result += uint8_t(c) < 0x20 ? ' ' : c;
    }
  return result;
}

/// One axis: its interval, and the numbers shown beside it.
class Axis {
public:
  explicit Axis(bool isLog) : isLog(isLog) {}

  bool shows(double value) const { return std::isfinite(value) && (!isLog || value > 0); }
  void include(double value) {
    if (!shows(value))
      return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// Widens the interval to round numbers. `isTight`: only where it is empty.
  void finish(bool isTight) {
    if (low > high)
      low = high = isLog ? 1 : 0;
    if (isLog) {
      low = std::pow(10, std::floor(std::log10(low)));
      high = std::pow(10, std::ceil(std::log10(high)));
      if (low == high)
        high *= 10;
      return;
    }
    if (low == high) {
      const double half = low == 0 ? 0.5 : std::abs(low) / 2;
      low -= half;
      high += half;
    }
    step = roundStep((high - low) / 5);
    if (!isTight) {
      low = std::floor(low / step) * step;
      high = std::ceil(high / step) * step;
    }
  }
  /// From 0 to 1.
  double at(double value) const {
    return isLog ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  }
  std::vector<double> ticks() const {
    std::vector<double> result;
    if (isLog) {
      const double factor = std::pow(10, std::max(1.0, std::ceil(std::log10(high / low) / 8)));
      for (double tick = low; tick <= high * 1.0001; tick *= factor)
        result.push_back(tick);
      return result;
    }
    for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i)
      result.push_back(i == 0 ? 0 : i * step);
    return result;
  }

private:
  const bool isLog;
  double low = INFINITY, high = -INFINITY, step = 0;

  /// 1, 2 or 5 times a power of ten, at least `least`.
  static double roundStep(double least) {
    const double power = std::pow(10, std::floor(std::log10(least)));
    for (double factor : {1.0, 2.0, 5.0})
      if (factor * power >= least * (1 - 1e-9))
        return factor * power;
    return 10 * power;
  }
};

double xOf(const Curve &curve, size_t i) { return curve.x.empty() ? double(i + 1) : curve.x[i]; }

struct Picture {
  Axis x, y;
  double width, height; // of the area within the axes
  std::string out;

  double right(double value) const { return kLeft + width * x.at(value); }
  double down(double value) const { return kTop + height * (1 - y.at(value)); }

  void drawAxes(const PlotOptions &options) {
    for (double tick : y.ticks()) {
      add(out, "<line x1=\"%g\" x2=\"%g\" y1=\"%.2f\" y2=\"%.2f\" stroke=\"#ddd\"/>", kLeft, kLeft + width, down(tick),
          down(tick));
      add(out, "<text x=\"%g\" y=\"%.2f\" text-anchor=\"end\">%.6g</text>\n", kLeft - 6, down(tick) + 4, tick);
    }
    for (double tick : x.ticks()) {
      add(out, "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%g\" y2=\"%g\" stroke=\"#999\"/>", right(tick), right(tick),
          kTop + height, kTop + height + 4);
      add(out, "<text x=\"%.2f\" y=\"%g\" text-anchor=\"middle\">%.6g</text>\n", right(tick), kTop + height + 18, tick);
    }
    add(out, "<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"none\" stroke=\"#999\"/>\n", kLeft, kTop, width,
        height);
    add(out, "<text x=\"%g\" y=\"20\" font-weight=\"bold\">", kLeft);
    out += escaped(options.title) + "</text>\n";
    add(out, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">", kLeft + width / 2, kTop + height + 38);
    out += escaped(options.x_label) + "</text>\n";
  }

  /// A line per run of points that are shown; a point alone is a dot.
  void drawCurve(const Curve &curve, const char *color) {
    for (size_t i = 0; i < curve.y.size();) {
      size_t end = i;
      std::string points;
      for (; end < curve.y.size() && x.shows(xOf(curve, end)) && y.shows(curve.y[end]); ++end)
        add(points, "%.2f,%.2f ", right(xOf(curve, end)), down(curve.y[end]));
      if (end == i + 1)
        add(out, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3\" fill=\"%s\"/>\n", right(xOf(curve, i)), down(curve.y[i]),
            color);
      else if (end > i)
        out += "<polyline fill=\"none\" stroke-width=\"2\" stroke-linejoin=\"round\" stroke=\"" + std::string(color) +
               "\" points=\"" + points + "\"/>\n";
      i = std::max(end, i + 1);
    }
  }

  /// The name and the last value of each curve.
  void drawLegend(const std::vector<Curve> &curves) {
    for (size_t i = 0; i < curves.size(); ++i) {
      const double y = kTop + 18 + 16 * double(i);
      add(out, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\" fill=\"%s\">", kLeft + width - 8, y,
          kColors[i % kColors.size()]);
      out += escaped(curves[i].name);
      if (!curves[i].y.empty())
        add(out, " %.4g", curves[i].y.back());
      out += "</text>\n";
    }
  }
};

} // namespace

std::string plot_svg(const std::vector<Curve> &curves, const PlotOptions &options, Location where) {
  const Location place = inScope(where);
  if (options.width < 160 || options.height < 120)
    throw Error(place, "plot", "the picture has less than 160 by 120 pixels");
  Picture picture{Axis(options.log_x), Axis(options.log_y), options.width - kLeft - kRight,
                  options.height - kTop - kBottom, ""};
  for (const Curve &curve : curves) {
    if (!curve.x.empty() && curve.x.size() != curve.y.size())
      throw Error(place, "plot",
                  "the curve \"" + curve.name + "\" has " + std::to_string(curve.x.size()) + " x and " +
                      std::to_string(curve.y.size()) + " y");
    for (size_t i = 0; i < curve.y.size(); ++i)
      if (picture.x.shows(xOf(curve, i)) && picture.y.shows(curve.y[i])) {
        picture.x.include(xOf(curve, i));
        picture.y.include(curve.y[i]);
      }
  }
  picture.x.finish(true);
  picture.y.finish(false);
  add(picture.out,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      options.width, options.height);
  picture.drawAxes(options);
  for (size_t i = 0; i < curves.size(); ++i)
    picture.drawCurve(curves[i], kColors[i % kColors.size()]);
  picture.drawLegend(curves);
  return picture.out + "</svg>\n";
}

void plot(const std::string &path, const std::vector<Curve> &curves, const PlotOptions &options, Location where) {
  const Location place = inScope(where);
  const std::string svg = plot_svg(curves, options, place);
  rt::FileReplacement file(path);
  if (!file.isOpen() || !file.write(std::as_bytes(std::span(svg))) || !file.commit())
    throw Error(place, "plot", "cannot write " + file.at() + ": " + std::strerror(file.problem()));
}

} // namespace burin
