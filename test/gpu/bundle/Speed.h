// Kernels that are timed on a machine with a GPU, products beside cuBLASLt.
#pragma once
#include "burin/dtype.h"
#include <optional>
#include <string>
#include <vector>

namespace burin::test::bundle {

/// The list of kernels, in the folder of the bundle.
inline constexpr const char *kSpeedList = "speed.txt";

/// One of them, with operands of static shapes: a line of the list.
struct SpeedRow {
  std::string name;
  bool isLarge = false;  // else a small version, for devices that are too slow for the large one
  bool hasRival = false; // the product of two matrices, in one type: cuBLASLt computes it, too
  std::string artifact;  // relative to the folder
  double operations = 0; // floating-point operations; 0: bound by memory
  DType dtype = DType::f32;
  std::vector<std::vector<int64_t>> shapes; // of the inputs

  std::string text() const;
  static std::optional<SpeedRow> parse(const std::string &line);
};

/// A table of times in Markdown, "" without a list; failures, and differences to cuBLASLt, add lines to `problems`.
/// Times on the device, of enough runs in a row, with operands in its memory; a process for each row.
std::string measuredSpeed(const std::string &folder, std::string &problems);

} // namespace burin::test::bundle
