// A temporary folder of a test.
#pragma once
#include <filesystem>
#include <string>
#include <unistd.h>

namespace burin::test {

/// A folder that is unique to this process and removed at the end.
struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / ("burin-onnx-" + std::to_string(getpid()))).string();
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string &name) const { return path + "/" + name; }
};

} // namespace burin::test
