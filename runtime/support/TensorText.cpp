// Aligns numbers in columns and abbreviates long dimensions, by NumPy's rules.
#include "runtime/support/TensorText.h"
#include "burin/narrow_float.h"
#include "runtime/support/Format.h"
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <unistd.h>
#include <vector>

namespace burin::rt {

namespace {
constexpr int64_t kSummarizeAbove = 1000, kEdgeItems = 3;
constexpr size_t kLineWidth = 75;
constexpr int kPrecision = 4;

int64_t elementsOf(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

/// A number in parts, so that columns can be aligned at the decimal point.
struct Cell {
  std::string left, fraction, exponent; // "-3", ".25" and "e-05"; integers, bools and nan use `left` only
};

std::string printed(const char *format, double value, int precision) {
  char text[512];
  std::snprintf(text, sizeof text, format, precision, value);
  return text;
}

/// Splits `text` at the decimal point, without trailing zeros of the fraction.
Cell cut(const std::string &text, size_t end) {
  size_t point = text.find('.'), last = text.find_last_not_of('0', end - 1);
  return {text.substr(0, point), text.substr(point, last + 1 - point), text.substr(end)};
}
Cell fixedCell(double value) {
  std::string text = printed("%.*f", value, kPrecision);
  return cut(text, text.size());
}
Cell scientificCell(double value) {
  std::string text = printed("%.*e", value, kPrecision);
  return cut(text, text.find('e'));
}

/// The shortest text that reads back as the same number of the type.
std::string scalarText(double value, DType type) {
  char text[64];
  bool isPlain = value == 0 || (std::fabs(value) >= 1e-4 && std::fabs(value) < 1e16);
  auto format = isPlain ? std::chars_format::fixed : std::chars_format::scientific;
  auto end = type == DType::f64 ? std::to_chars(text, text + sizeof text, value, format)
             : type == DType::f32 || isFloat8(type)
                 ? std::to_chars(text, text + sizeof text, float(value), format)
                 : std::to_chars(text, text + sizeof text, value, format, type == DType::f16 ? 4 : 3);
  std::string result(text, end.ptr);
  return result.find_first_of(".en") == std::string::npos ? result + ".0" : result;
}

class Printer {
public:
  Printer(DType dtype, std::span<const int64_t> sizes, const void *elements)
      : dtype(dtype), sizes(sizes), elements(static_cast<const char *>(elements)),
        isShortened(elementsOf(sizes) > kSummarizeAbove) {
    chooseFormat();
    size_t whole = 0; // widest cell without a point
    for (size_t i : shown()) {
      Cell cell = cellOf(i);
      if (cell.fraction.empty()) {
        whole = std::max(whole, cell.left.size());
        continue;
      }
      leftWidth = std::max(leftWidth, cell.left.size());
      fractionWidth = std::max(fractionWidth, cell.fraction.size());
      exponentWidth = std::max(exponentWidth, cell.exponent.size());
    }
    leftWidth = std::max(leftWidth, whole - std::min(whole, fractionWidth + exponentWidth));
  }
  std::string print() {
    if (!sizes.empty())
      return block(0, 0);
    bool isReal = isFloat(dtype) && std::isfinite(realAt(0));
    return isReal ? scalarText(realAt(0), dtype) : cellOf(0).left;
  }

private:
  const DType dtype;
  const std::span<const int64_t> sizes;
  const char *const elements;
  const bool isShortened;
  bool isScientific = false;
  size_t leftWidth = 0, fractionWidth = 0, exponentWidth = 0;

  template <class T> T load(size_t i) const {
    T value;
    std::memcpy(&value, elements + i * sizeof(T), sizeof(T));
    return value;
  }
  double realAt(size_t i) const {
    switch (dtype) {
    case DType::f32:
      return load<float>(i);
    case DType::f64:
      return load<double>(i);
    default:
      return fromNarrowFloat(dtype, isFloat8(dtype) ? load<uint8_t>(i) : load<uint16_t>(i));
    }
  }
  int64_t integerAt(size_t i) const {
    switch (dtype) {
    case DType::i8:
      return load<int8_t>(i);
    case DType::i16:
      return load<int16_t>(i);
    case DType::i32:
      return load<int32_t>(i);
    case DType::i64:
      return load<int64_t>(i);
    default:
      return load<uint8_t>(i);
    }
  }

  /// The indices that are printed along a dimension; -1 stands for "...".
  std::vector<int64_t> indices(size_t axis) const {
    std::vector<int64_t> list;
    bool skips = isShortened && sizes[axis] > 2 * kEdgeItems;
    for (int64_t i = 0; i < sizes[axis]; ++i) {
      if (skips && i == kEdgeItems) {
        list.push_back(-1);
        i = sizes[axis] - kEdgeItems;
      }
      list.push_back(i);
    }
    return list;
  }
  std::vector<size_t> shown() const {
    std::vector<size_t> list{0};
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      std::vector<size_t> next;
      for (size_t base : list)
        for (int64_t i : indices(axis))
          if (i >= 0)
            next.push_back(base * size_t(sizes[axis]) + size_t(i));
      list = std::move(next);
    }
    return list;
  }

  void chooseFormat() {
    if (!isFloat(dtype))
      return;
    double largest = 0, smallest = HUGE_VAL;
    for (size_t i : shown())
      if (double value = std::fabs(realAt(i)); std::isfinite(value) && value != 0) {
        largest = std::max(largest, value);
        smallest = std::min(smallest, value);
      }
    isScientific = largest > 0 && (largest >= 1e8 || smallest < 1e-4 || largest / smallest > 1000);
  }

  Cell cellOf(size_t i) const {
    if (isBool(dtype))
      return {elements[i] ? "True" : "False", "", ""};
    if (!isFloat(dtype))
      return {std::to_string(integerAt(i)), "", ""};
    double value = realAt(i);
    if (std::isnan(value))
      return {"nan", "", ""};
    if (std::isinf(value))
      return {value < 0 ? "-inf" : "inf", "", ""};
    return isScientific ? scientificCell(value) : fixedCell(value);
  }
  std::string cellText(size_t i) const {
    Cell cell = cellOf(i);
    if (cell.fraction.empty())
      return std::string(leftWidth + fractionWidth + exponentWidth - cell.left.size(), ' ') + cell.left;
    std::string fill(fractionWidth - cell.fraction.size(), cell.exponent.empty() ? ' ' : '0');
    return std::string(leftWidth - cell.left.size(), ' ') + cell.left + cell.fraction + fill + cell.exponent;
  }

  /// A row, broken into lines of limited width.
  std::string row(size_t base) const {
    const std::string indent(sizes.size(), ' ');
    std::string text = "[", line = std::string(sizes.size(), ' ');
    bool isFirst = true;
    for (int64_t i : indices(sizes.size() - 1)) {
      std::string cell = i < 0 ? "..." : cellText(base + size_t(i));
      if (!isFirst && line.size() + 1 + cell.size() + sizes.size() > kLineWidth) {
        text += "\n" + indent;
        line = indent;
        isFirst = true;
      }
      text += (isFirst ? "" : " ") + cell;
      line += (isFirst ? "" : " ") + cell;
      isFirst = false;
    }
    return text + "]";
  }

  std::string block(size_t axis, size_t base) const {
    if (axis + 1 == sizes.size())
      return row(base * size_t(sizes[axis]));
    const std::string separator = std::string(sizes.size() - axis - 1, '\n') + std::string(axis + 1, ' ');
    std::string text = "[";
    bool isFirst = true;
    for (int64_t i : indices(axis)) {
      text += isFirst ? "" : separator;
      text += i < 0 ? "..." : block(axis + 1, base * size_t(sizes[axis]) + size_t(i));
      isFirst = false;
    }
    return text + "]";
  }
};
} // namespace

std::string elementsText(DType dtype, std::span<const int64_t> shape, const void *elements) {
  return elementsOf(shape) == 0 ? "[]" : Printer(dtype, shape, elements).print();
}

std::string printText(std::string_view where, std::string_view label, DType dtype, std::span<const int64_t> shape,
                      const void *elements) {
  std::string sizes;
  for (int64_t size : shape)
    sizes += text(sizes.empty() ? "" : ", ", size);
  return text(where, where.empty() ? "" : ": ", label, label.empty() ? "" : ": ", name(dtype), "[", sizes, "]",
              shape.size() < 2 ? " " : "\n", elementsText(dtype, shape, elements), "\n");
}

void writeToStandardError(std::string_view message) {
  while (!message.empty()) {
    ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
    if (written < 0 && errno != EINTR)
      return;
    message.remove_prefix(written < 0 ? 0 : size_t(written));
  }
}

} // namespace burin::rt
