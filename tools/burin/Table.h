// Text tables for people.
#pragma once
#include <string>
#include <vector>

namespace burin::cli {

class Table {
public:
  /// The first `numbers` columns are right-aligned.
  explicit Table(std::vector<std::string> header, size_t numbers = 0) : rows{std::move(header)}, numbers(numbers) {}
  void row(std::vector<std::string> cells) { rows.push_back(std::move(cells)); }
  /// An empty line and the title, then the rows, each indented, on stdout.
  void print(const std::string &title) const;
  void printRows() const;

private:
  std::vector<std::vector<std::string>> rows;
  size_t numbers;
};

/// With so many digits after the point.
std::string fixed(double x, int digits);

} // namespace burin::cli
