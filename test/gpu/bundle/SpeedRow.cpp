#include "test/gpu/bundle/Speed.h"
#include <sstream>

namespace burin::test::bundle {

std::string SpeedRow::text() const {
  std::ostringstream out;
  out << name << ' ' << isLarge << ' ' << hasRival << ' ' << artifact << ' ' << operations << ' ' << int(dtype);
  for (const std::vector<int64_t> &shape : shapes) {
    out << ' ' << shape.size();
    for (int64_t size : shape)
      out << ' ' << size;
  }
  return out.str();
}

std::optional<SpeedRow> SpeedRow::parse(const std::string &line) {
  std::istringstream in(line);
  SpeedRow row;
  int dtype = 0;
  if (!(in >> row.name >> row.isLarge >> row.hasRival >> row.artifact >> row.operations >> dtype))
    return std::nullopt;
  row.dtype = DType(dtype);
  for (size_t rank; in >> rank;) {
    std::vector<int64_t> &shape = row.shapes.emplace_back(rank);
    for (int64_t &size : shape)
      in >> size;
  }
  return row;
}

} // namespace burin::test::bundle
