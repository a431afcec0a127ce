#include "tools/burin/Table.h"
#include <algorithm>
#include <cstdio>

namespace burin::cli {

/// The width of UTF-8 text in columns; wide and combining characters are not handled.
static size_t width(const std::string &text) {
  return size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

void Table::print(const std::string &title) const {
  std::printf("\n%s\n", title.c_str());
  printRows();
}

void Table::printRows() const {
  if (rows.size() == 1)
    return;
  std::vector<size_t> widths(rows[0].size());
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], width(row[i]));
  for (const auto &row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      std::string space(widths[i] - width(row[i]), ' ');
      line += "  " + (i < numbers ? space + row[i] : row[i] + space);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  }
}

std::string fixed(double x, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, x);
  return text;
}

} // namespace burin::cli
