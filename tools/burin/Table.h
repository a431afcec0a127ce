// Formats text tables.
#pragma once
#include <string>
#include <vector>

namespace burin::cli {

class Table {
public:
  /// The first `numbers` columns are right-aligned.
  explicit Table(std::vector<std::string> header, size_t numbers = 0) : rows{std::move(header)}, numbers(numbers) {}
  void row(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
  /// Prints an empty line, the title and the indented rows to stdout.
  void print(const std::string &title) const;
  void printRows() const;

private:
  std::vector<std::vector<std::string>> rows;
  size_t numbers;
};

/// Formats `x` with `digits` digits after the decimal point.
std::string fixed(double x, int digits);

} // namespace burin::cli
