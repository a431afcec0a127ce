// Tables in files of comma-separated values.
#include "burin/tensor/creation.h"
#include "burin/training/readers.h"
#include "frontend/tensor/context/LocationScope.h"
#include "runtime/npy/Npy.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace burin::data {

using detail::inScope;

namespace {

constexpr const char *kOp = "csv_dataset";

struct Record {
  std::vector<std::string> fields;
  size_t line = 0; // of its start, from 1
};

/// Reads records one after the other.
class CsvReader {
public:
  CsvReader(std::string_view text, char delimiter, const std::string &path, const Location &where)
      : rest(text), delimiter(delimiter), path(path), where(where) {
    if (rest.starts_with("\xef\xbb\xbf")) // byte order mark of UTF-8
      rest.remove_prefix(3);
  }

  /// The next record that is no empty line; false at the end.
  bool next(Record &record) {
    while (!rest.empty() && (rest.front() == '\n' || rest.starts_with("\r\n")))
      endLine();
    if (rest.empty())
      return false;
    record.line = line;
    record.fields.clear();
    bool isLast = false;
    while (!isLast)
      isLast = addField(record);
    return true;
  }
  [[noreturn]] void refuse(size_t atLine, const std::string &what) const {
    throw Error(where, kOp, path + ":" + std::to_string(atLine) + ": " + what);
  }

private:
  std::string_view rest;
  const char delimiter;
  const std::string &path;
  const Location &where;
  size_t line = 1;

  void endLine() {
    rest.remove_prefix(rest.front() == '\r' ? 2 : 1);
    ++line;
  }
  /// Returns whether the field is the last of its record.
  bool addField(Record &record) {
    std::string field;
    if (!rest.empty() && rest.front() == '"') {
      field = quotedField();
    } else {
      const size_t end = std::min(rest.find_first_of(std::string{delimiter, '\n'}), rest.size());
      field = rest.substr(0, end);
      rest.remove_prefix(end);
      if (field.ends_with('\r') && (rest.empty() || rest.front() == '\n'))
        field.pop_back();
    }
    record.fields.push_back(std::move(field));
    if (rest.empty())
      return true;
    if (rest.front() == delimiter) {
      rest.remove_prefix(1);
      return false;
    }
    if (rest.front() != '\n' && !rest.starts_with("\r\n"))
      refuse(line, "there is text behind the closing quote of field " + std::to_string(record.fields.size()));
    endLine();
    return true;
  }
  std::string quotedField() {
    const size_t start = line;
    std::string field;
    for (size_t i = 1; i < rest.size(); ++i) {
      if (rest[i] == '"' && (i + 1 == rest.size() || rest[i + 1] != '"')) {
        rest.remove_prefix(i + 1);
        return field;
      }
      i += rest[i] == '"';
      line += rest[i] == '\n';
      field += rest[i];
    }
    refuse(start, "a field begins with a quote that is not closed");
  }
};

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last - first + 1);
}

/// A piece of text for a message.
std::string shown(std::string_view text) {
  constexpr size_t kMost = 40;
  return "\"" + std::string(text.substr(0, kMost)) + (text.size() > kMost ? "…\"" : "\"");
}

std::optional<double> numberOf(std::string_view text) {
  if (text.starts_with('+'))
    text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool isWhole = end == text.data() + text.size() && !text.empty();
  return isWhole && error == std::errc() ? std::optional(value) : std::nullopt;
}

} // namespace

struct CsvDataset::Table {
  std::vector<std::string> columns, classes;
  Tensor features, targets;
  DatasetRef rows;
};

namespace {

/// A file as it is read: numbers of features and targets by rows.
class TableReader {
public:
  TableReader(const std::string &path, const CsvOptions &options, const Location &where)
      : path(path), options(options), where(where) {}

  std::vector<std::string> names; // of all columns
  std::vector<size_t> featureAt, targetAt;
  std::vector<float> features;
  std::vector<double> targets;
  std::vector<std::string> targetNames; // with class_targets
  int64_t rows = 0;

  void read() {
    std::string problem;
    auto file = rt::readWholeFile(path, problem);
    if (!file)
      throw Error(where, kOp, problem);
    CsvReader reader({reinterpret_cast<const char *>(file->data()), file->size()}, options.delimiter, path, where);
    Record record;
    for (bool isFirst = true; reader.next(record); isFirst = false) {
      if (isFirst)
        chooseColumns(record);
      if (!isFirst || !options.header)
        addRow(reader, record);
    }
    if (rows == 0)
      throw Error(where, kOp, path + ": there are no rows");
  }

private:
  const std::string &path;
  const CsvOptions &options;
  const Location &where;

  void chooseColumns(const Record &record) {
    for (size_t i = 0; i < record.fields.size(); ++i)
      names.push_back(options.header ? std::string(trimmed(record.fields[i])) : std::to_string(i));
    for (size_t i = 0; i < names.size(); ++i)
      if (std::find(names.begin(), names.begin() + ptrdiff_t(i), names[i]) != names.begin() + ptrdiff_t(i))
        throw Error(where, kOp, path + ": two columns have the name " + shown(names[i]));
    auto find = [&](const std::string &name) {
      const auto at = std::ranges::find(names, name);
      if (at != names.end())
        return size_t(at - names.begin());
      std::string all;
      for (const std::string &each : names)
        all += (all.empty() ? "" : ", ") + shown(each);
      throw Error(where, kOp, path + ": there is no column " + shown(name) + " among " + all);
    };
    for (const std::string &name : options.targets)
      targetAt.push_back(find(name));
    if (targetAt.empty())
      targetAt.push_back(names.size() - 1);
    for (const std::string &name : options.features)
      featureAt.push_back(find(name));
    for (size_t i = 0; i < names.size() && options.features.empty(); ++i)
      if (std::ranges::find(targetAt, i) == targetAt.end())
        featureAt.push_back(i);
    if (featureAt.empty())
      throw Error(where, kOp, path + ": all columns are targets; which delimiter does the file have?");
  }

  void addRow(const CsvReader &reader, const Record &record) {
    if (record.fields.size() != names.size())
      reader.refuse(record.line, "the row has " + std::to_string(record.fields.size()) + " fields, not " +
                                     std::to_string(names.size()));
    for (size_t column : featureAt)
      features.push_back(float(number(reader, record, column)));
    for (size_t column : targetAt)
      if (options.class_targets)
        targetNames.emplace_back(trimmed(record.fields[column]));
      else
        targets.push_back(target(reader, record, column));
    ++rows;
  }

  double number(const CsvReader &reader, const Record &record, size_t column) const {
    const std::string_view text = trimmed(record.fields[column]);
    if (text.empty() && options.missing)
      return *options.missing;
    if (auto value = numberOf(text))
      return *value;
    reader.refuse(record.line, "column " + shown(names[column]) +
                                   (text.empty() ? " is empty; the option `missing` gives such fields a value"
                                                 : " is no number but " + shown(text)));
  }
  double target(const CsvReader &reader, const Record &record, size_t column) const {
    const double value = number(reader, record, column);
    if (isInteger(options.target_dtype) && (value != std::trunc(value) || std::abs(value) > 9e15))
      reader.refuse(record.line,
                    "column " + shown(names[column]) + " is no integer but " + shown(trimmed(record.fields[column])));
    return value;
  }
};

} // namespace

CsvDataset::CsvDataset(const std::string &path, CsvOptions options, Location where) {
  const Location place = inScope(where);
  if (options.delimiter == '"' || options.delimiter == '\n' || options.delimiter == '\r')
    throw Error(place, kOp, "the delimiter cannot be a quote or the end of a line");
  if (!isFloat(options.target_dtype) && !isInteger(options.target_dtype))
    throw Error(place, kOp, "targets are numbers, not of type " + std::string(name(options.target_dtype)));
  TableReader reader(path, options, place);
  reader.read();
  auto made = std::make_unique<Table>();
  for (size_t column : reader.featureAt)
    made->columns.push_back(reader.names[column]);
  if (options.class_targets) {
    const std::set<std::string> different(reader.targetNames.begin(), reader.targetNames.end());
    made->classes.assign(different.begin(), different.end());
    for (const std::string &name : reader.targetNames)
      reader.targets.push_back(double(std::ranges::lower_bound(made->classes, name) - made->classes.begin()));
  }
  Shape shape{reader.rows};
  if (reader.targetAt.size() > 1)
    shape.push_back(int64_t(reader.targetAt.size()));
  made->targets =
      from_vector(reader.targets, shape, place).to(options.class_targets ? DType::i64 : options.target_dtype, place);
  made->features = from_vector(reader.features, Shape{reader.rows, int64_t(reader.featureAt.size())}, place);
  made->rows = tensor_dataset({made->features, made->targets}, place);
  table = std::move(made);
}
CsvDataset::~CsvDataset() = default;

int64_t CsvDataset::size() const { return table->rows->size(); }
Example CsvDataset::get(int64_t index) const { return table->rows->get(index); }
Example CsvDataset::batch(std::span<const int64_t> indices) const { return table->rows->batch(indices); }
const Tensor &CsvDataset::features() const { return table->features; }
const Tensor &CsvDataset::targets() const { return table->targets; }
const std::vector<std::string> &CsvDataset::columns() const { return table->columns; }
const std::vector<std::string> &CsvDataset::classes() const { return table->classes; }

std::shared_ptr<const CsvDataset> csv_dataset(const std::string &path, CsvOptions options, Location where) {
  return std::make_shared<CsvDataset>(path, std::move(options), inScope(where));
}

} // namespace burin::data
