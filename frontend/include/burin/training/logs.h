// What a training writes for people and other programs: curves, tables, TensorBoard's event files.
#pragma once
#include "burin/tensor.h"
#include <map>
#include <memory>
#include <utility>

namespace burin {

// ---- curves

/// A line of a plot. Points that are not finite are gaps.
struct Curve {
  std::string name;
  std::vector<double> y;
  std::vector<double> x = {}; ///< by default 1, 2, …; otherwise as many as y
};
/// Options of plot().
struct PlotOptions {
  std::string title = "", x_label = "";
  bool log_x = false, log_y = false; ///< logarithmic axes, on which numbers that are not positive are gaps
  int width = 640, height = 400;     ///< pixels
};
/// Draws curves as SVG: axes with round numbers, a legend with the last value of each curve.
BURIN_API std::string plot_svg(const std::vector<Curve> &curves, const PlotOptions &options = {},
                               Location where = Location::current());
/// Writes that to a file, again and again while a training goes on: the file is replaced as a whole, so that a viewer
/// never sees half of it. Throws if it cannot be written.
BURIN_API void plot(const std::string &path, const std::vector<Curve> &curves, const PlotOptions &options = {},
                    Location where = Location::current());

// ---- tables

/// Numbers with names, in the order of a table's columns.
using LogRow = std::vector<std::pair<std::string, double>>;

/// A file with a row of numbers per step: CSV with a header if the path ends in .csv, otherwise JSON lines. Rows are
/// written at once, so that a process that is killed loses none; a row that it cut off is removed by the next one that
/// opens the file.
///
///   MetricLog log("runs/lenet/log.csv", loader.epoch()); // after a restart, goes on behind that row
///   log.add(epoch, {{"loss", loss.value()}, {"accuracy", right.value()}});
///   plot("runs/lenet/log.svg", {log.curve("loss"), log.curve("accuracy")});
class BURIN_API MetricLog {
public:
  /// Creates the folder. Without `resume`, replaces an existing file. With it, keeps the rows up to that step, which
  /// may be none, and drops later ones, so that a training that goes on from a checkpoint leaves the file of one that
  /// was never interrupted. Throws if the file cannot be written, or is no such table.
  explicit MetricLog(std::string path, std::optional<int64_t> resume = std::nullopt,
                     Location where = Location::current());
  ~MetricLog();
  MetricLog(MetricLog &&) noexcept;
  /// Appends a row. In a CSV file the first row decides the columns: later ones may leave out some, but have no others.
  /// NaN and infinities are written as nan, inf and -inf, in JSON as null. Throws if the step is not higher than the
  /// last one, or if the file cannot be written.
  void add(int64_t step, const LogRow &row, Location where = Location::current());
  /// The values of a column with their steps, for plot(); also those from before a restart.
  Curve curve(const std::string &name) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

// ---- TensorBoard

/// Writes event files of TensorBoard, as torch.utils.tensorboard.SummaryWriter: `tensorboard --logdir runs`.
/// Thread-safe. Events are buffered; flush(), the destructor, and each two seconds an event after them, write them.
class BURIN_API SummaryWriter {
public:
  /// Creates the folder, and in it a new file events.out.tfevents.TIME.HOST.PROCESS. Throws if that fails.
  explicit SummaryWriter(std::string folder, Location where = Location::current());
  ~SummaryWriter();
  SummaryWriter(SummaryWriter &&) noexcept;
  void add_scalar(const std::string &tag, double value, int64_t step, Location where = Location::current());
  /// The distribution of the elements of a tensor of numbers, which must all be finite and at least one, in `bins`
  /// intervals of equal width.
  void add_histogram(const std::string &tag, const Tensor &values, int64_t step, int64_t bins = 64,
                     Location where = Location::current());
  /// An image f32 in [0, 1] or u8, [1, H, W] or [3, H, W]; values beyond are clamped.
  void add_image(const std::string &tag, const Tensor &image, int64_t step, Location where = Location::current());
  void add_text(const std::string &tag, const std::string &text, int64_t step, Location where = Location::current());
  /// Throws if the file cannot be written.
  void flush(Location where = Location::current());
  const std::string &path() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace burin
