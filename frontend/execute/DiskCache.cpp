#include "frontend/execute/DiskCache.h"
#include "codegen/target/Target.h"
#include "passes/Pipelines.h"
#include "runtime/format/Archive.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/BLAKE3.h"
#include <algorithm>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace burin::detail {

static std::string defaultFolder() {
  if (const char *folder = std::getenv("BURIN_CACHE_DIR"))
    return folder;
  if (const char *folder = std::getenv("XDG_CACHE_HOME"); folder && *folder)
    return std::string(folder) + "/burin";
  const char *home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/burin" : "";
}

static bool isPrivate(const std::string &folder) {
  struct stat info;
  return ::stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         !(info.st_mode & (S_IWGRP | S_IWOTH));
}

/// The part of the cache key that is the same for all kernels: the compiler (identified by its library file, so that a
/// rebuilt one uses new entries), the native target with its tuning, and the disabled passes.
static std::string builder() {
  std::string text = "burin " BURIN_VERSION ", LLVM " LLVM_VERSION_STRING;
  if (const codegen::Target *native = codegen::findTarget("native"))
    text += ", " + codegen::describe(*native);
  for (const std::string &pass : passes::passesDisabledByEnvironment())
    text += ", without " + pass;
  Dl_info library;
  struct stat info;
  if (::dladdr(reinterpret_cast<const void *>(&builder), &library) && library.dli_fname &&
      ::stat(library.dli_fname, &info) == 0)
    text += ", " + std::to_string(info.st_size) + " " + std::to_string(info.st_mtim.tv_sec) + "." +
            std::to_string(info.st_mtim.tv_nsec);
  return text + "\n";
}

DiskCache &DiskCache::shared() {
  static auto *cache = new DiskCache(defaultFolder());
  return *cache;
}

DiskCache::DiskCache(std::string path, uint64_t limit) : folder(std::move(path)), limit(limit) {
  std::error_code error;
  if (folder.empty())
    return;
  fs::create_directories(fs::path(folder).parent_path(), error);
  ::mkdir(folder.c_str(), 0700);
  if (!isPrivate(folder))
    folder.clear();
}

std::string DiskCache::pathOf(const std::string &content) const {
  static const std::string prefix = builder();
  llvm::BLAKE3 hash;
  hash.update(prefix);
  hash.update(content);
  auto digest = hash.final<16>();
  return folder + "/" + llvm::toHex(llvm::ArrayRef<uint8_t>(digest.data(), digest.size()), /*LowerCase=*/true) +
         ".plate";
}

std::optional<std::vector<std::byte>> DiskCache::load(const std::string &content) const {
  if (folder.empty())
    return std::nullopt;
  const std::string path = pathOf(content);
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<std::byte> bytes(size_t(std::max<std::streamoff>(file.tellg(), 0)));
  if (!file.seekg(0).read(reinterpret_cast<char *>(bytes.data()), std::streamsize(bytes.size())))
    return std::nullopt;
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); // marks it as used
  return bytes;
}

void DiskCache::store(const std::string &content, const std::vector<std::byte> &bytes) {
  if (folder.empty() || !rt::writeFile(pathOf(content), std::as_bytes(std::span(bytes))).ok())
    return; // a full disk only costs a compilation
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  written += bytes.size();
  if (written > limit / 8) {
    written = 0;
    shrink(limit);
  }
}

void DiskCache::shrink(uint64_t bytes) const {
  struct File {
    fs::path path;
    fs::file_time_type used;
    uint64_t size;
  };
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code error;
  for (const auto &entry : fs::directory_iterator(folder, error))
    if (uint64_t size = entry.file_size(error); !error) {
      files.push_back({entry.path(), entry.last_write_time(error), size});
      total += size;
    }
  std::sort(files.begin(), files.end(), [](const File &a, const File &b) { return a.used < b.used; });
  for (const File &file : files) {
    if (total <= bytes)
      break;
    if (fs::remove(file.path, error))
      total -= file.size;
  }
}

} // namespace burin::detail
