// A folder for the files of a test.
#pragma once
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

/// A folder that the destructor removes.
struct Folder {
  std::filesystem::path path;
  Folder() {
    char name[] = "/tmp/burin-data-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder &) = delete;
  std::string file(const std::string &name) const { return (path / name).string(); }
  /// Writes a file, and returns its path.
  std::string write(const std::string &name, const std::string &text) const {
    std::filesystem::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << text;
    return file(name);
  }
  std::string read(const std::string &name) const {
    std::ifstream in(path / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};
