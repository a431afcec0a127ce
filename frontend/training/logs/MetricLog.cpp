// Tables of numbers per step, as CSV or JSON lines.
#include "burin/training/logs.h"
#include "frontend/tensor/context/LocationScope.h"
#include "runtime/support/FileReplacement.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace burin {

using detail::inScope;

namespace {

constexpr const char *kOp = "MetricLog";

std::string shortest(double value) { // from_chars() reads the same value
  char digits[40];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t at = 0;;) {
    const size_t comma = line.find(',', at);
    fields.push_back(line.substr(at, comma - at));
    if (comma == std::string_view::npos)
      return fields;
    at = comma + 1;
  }
}

template <class T> bool parse(std::string_view text, T &value) {
  return std::from_chars(text.data(), text.data() + text.size(), value).ptr == text.data() + text.size() &&
         !text.empty();
}

} // namespace

struct MetricLog::State {
  std::string path;
  bool isCsv = false;
  int file = -1;
  std::vector<std::string> columns; // of a CSV file
  std::vector<std::pair<int64_t, LogRow>> rows;

  ~State() {
    if (file >= 0)
      ::close(file);
  }
  std::string textOf(int64_t step, const LogRow &row) const;
  bool parseRow(std::string_view line, int64_t &step, LogRow &row) const;
  void read(int64_t last, const Location &where);
  void replace(const Location &where);
  void write(std::string_view text, const Location &where);
  [[noreturn]] void fail(const std::string &what, const Location &where) const {
    throw Error(where, kOp, path + ": " + what);
  }
};

std::string MetricLog::State::textOf(int64_t step, const LogRow &row) const {
  auto valueOf = [&](const std::string &name) {
    auto at = std::ranges::find(row, name, [](const auto &entry) { return entry.first; });
    return at == row.end() ? std::string() : shortest(at->second);
  };
  if (isCsv) {
    std::string line = std::to_string(step);
    for (const std::string &column : columns)
      line += "," + valueOf(column);
    return line + "\n";
  }
  nlohmann::ordered_json object{{"step", step}};
  for (const auto &[name, value] : row)
    object[name] = value; // null if it is not finite
  return object.dump() + "\n";
}

/// Returns false if the line is none of this table.
bool MetricLog::State::parseRow(std::string_view line, int64_t &step, LogRow &row) const {
  if (isCsv) {
    const std::vector<std::string_view> fields = split(line);
    if (fields.size() != columns.size() + 1 || !parse(fields[0], step))
      return false;
    for (size_t i = 0; i < columns.size(); ++i) {
      double value = 0;
      if (fields[i + 1].empty())
        continue;
      if (!parse(fields[i + 1], value))
        return false;
      row.emplace_back(columns[i], value);
    }
    return true;
  }
  const auto object = nlohmann::ordered_json::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains("step") || !object["step"].is_number_integer())
    return false;
  step = object["step"].get<int64_t>();
  for (const auto &[name, value] : object.items())
    if (name != "step" && (value.is_number() || value.is_null()))
      row.emplace_back(name, value.is_null() ? double(NAN) : value.get<double>());
  return true;
}

/// Reads the rows up to the step; a last line without an end was cut off.
void MetricLog::State::read(int64_t last, const Location &where) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::string_view rest = text;
  for (size_t number = 1; rest.find('\n') != std::string_view::npos; ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    if (isCsv && number == 1) {
      const auto names = split(line);
      if (names[0] != "step")
        fail("line 1 is no header that begins with \"step\"", where);
      columns.assign(names.begin() + 1, names.end());
      continue;
    }
    int64_t step = 0;
    LogRow row;
    if (!parseRow(line, step, row))
      fail("line " + std::to_string(number) + " is no row of this table", where);
    if (step <= last)
      rows.emplace_back(step, std::move(row));
  }
  if (rows.empty())
    columns.clear();
}

/// Writes the file with the rows that are kept, and opens it to append.
void MetricLog::State::replace(const Location &where) {
  std::string text;
  if (!rows.empty() && isCsv) {
    text = "step";
    for (const std::string &column : columns)
      text += "," + column;
    text += "\n";
  }
  for (const auto &[step, row] : rows)
    text += textOf(step, row);
  rt::FileReplacement made(path);
  if (!made.isOpen() || !made.write(std::as_bytes(std::span(text))) || !made.commit())
    throw Error(where, kOp, "cannot write " + made.at() + ": " + std::strerror(made.problem()));
  file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0)
    fail(std::string("cannot be opened: ") + std::strerror(errno), where);
}

void MetricLog::State::write(std::string_view text, const Location &where) {
  while (!text.empty()) {
    const ssize_t count = ::write(file, text.data(), text.size());
    if (count < 0 && errno != EINTR)
      fail(std::string("cannot be written: ") + std::strerror(errno), where);
    text.remove_prefix(size_t(std::max<ssize_t>(count, 0)));
  }
}

MetricLog::MetricLog(std::string path, std::optional<int64_t> resume, Location where) : state(new State) {
  const Location place = inScope(where);
  state->path = std::move(path);
  state->isCsv = state->path.ends_with(".csv");
  if (const auto folder = std::filesystem::path(state->path).parent_path(); !folder.empty()) {
    std::error_code problem;
    std::filesystem::create_directories(folder, problem);
    if (problem)
      throw Error(place, kOp, "cannot make the folder \"" + folder.string() + "\": " + problem.message());
  }
  if (resume)
    state->read(*resume, place);
  state->replace(place);
}
MetricLog::~MetricLog() = default;
MetricLog::MetricLog(MetricLog &&) noexcept = default;

void MetricLog::add(int64_t step, const LogRow &row, Location where) {
  const Location place = inScope(where);
  if (!state->rows.empty() && step <= state->rows.back().first)
    throw Error(place, kOp,
                "step " + std::to_string(step) + " comes after step " + std::to_string(state->rows.back().first));
  std::string text;
  std::vector<std::string> columns = state->columns;
  for (size_t i = 0; i < row.size(); ++i) {
    const std::string &name = row[i].first;
    if (std::any_of(row.begin(), row.begin() + ptrdiff_t(i), [&](const auto &known) { return known.first == name; }))
      throw Error(place, kOp, "the row has two values for \"" + name + "\"");
    if (name.empty() || name == "step" || name.find_first_of(",\"\n\r") != std::string::npos)
      throw Error(place, kOp, "\"" + name + "\" cannot be the name of a column");
    const bool isKnown = std::ranges::find(columns, name) != columns.end();
    if (state->isCsv && !isKnown && !state->rows.empty())
      throw Error(place, kOp,
                  "the table of " + state->path + " has no column \"" + name + "\"; its first row has none");
    if (state->isCsv && !isKnown)
      columns.push_back(name);
  }
  state->columns = std::move(columns);
  if (state->isCsv && state->rows.empty()) {
    text = "step";
    for (const std::string &column : state->columns)
      text += "," + column;
    text += "\n";
  }
  state->write(text + state->textOf(step, row), place);
  state->rows.emplace_back(step, row);
}

Curve MetricLog::curve(const std::string &name) const {
  Curve curve{name, {}, {}};
  for (const auto &[step, row] : state->rows)
    for (const auto &[column, value] : row)
      if (column == name) {
        curve.x.push_back(double(step));
        curve.y.push_back(value);
      }
  return curve;
}

} // namespace burin
