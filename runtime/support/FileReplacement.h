// Atomic replacement of files.
#pragma once
#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <span>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace burin::rt {

/// Writes a temporary file beside the target and renames it when it is complete and on disk, so that readers see the
/// old file or the new one, even after a crash of the process or machine. Devices and pipes are written directly.
///
/// Each function returns false on failure; problem() is then the error number, and at() the path that it refers to.
class FileReplacement {
public:
  explicit FileReplacement(std::string path) : path(std::move(path)), isStream(isDevice(this->path)) {
    temporary = isStream ? this->path : this->path + ".tmp" + std::to_string(::getpid());
    fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
      error = errno;
  }
  ~FileReplacement() { discard(); }
  FileReplacement(const FileReplacement &) = delete;
  FileReplacement &operator=(const FileReplacement &) = delete;

  bool isOpen() const { return fd >= 0; }

  bool write(std::span<const std::byte> bytes) {
    while (!bytes.empty() && error == 0) {
      ssize_t n = ::write(fd, bytes.data(), bytes.size() < kMostAtOnce ? bytes.size() : kMostAtOnce);
      if (n < 0 && errno != EINTR)
        error = errno;
      if (n > 0)
        bytes = bytes.subspan(size_t(n));
    }
    return error == 0;
  }

  /// Renames the file to its final path.
  bool commit() {
    if (error != 0)
      return false;
    if (!isStream && ::fsync(fd) != 0)
      error = errno;
    if (::close(fd) != 0 && error == 0)
      error = errno;
    fd = -1;
    if (isStream)
      return error == 0;
    if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) {
      error = errno;
      isAtPlace = true;
    }
    if (error != 0)
      ::unlink(temporary.c_str());
    else
      syncFolder();
    return error == 0;
  }

  int problem() const { return error; }
  const std::string &at() const { return isAtPlace ? path : temporary; }

private:
  static constexpr size_t kMostAtOnce = size_t(1) << 30; // Linux writes less than 2 GiB in one call

  std::string path, temporary;
  bool isStream, isAtPlace = false;
  int fd = -1, error = 0;

  static bool isDevice(const std::string &path) {
    struct stat status;
    return ::stat(path.c_str(), &status) == 0 &&
           (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode) || S_ISFIFO(status.st_mode));
  }

  void discard() {
    if (fd < 0)
      return;
    ::close(fd);
    fd = -1;
    if (!isStream)
      ::unlink(temporary.c_str());
  }

  /// Makes the rename durable; file systems that do not support that are tolerated.
  void syncFolder() const {
    size_t slash = path.rfind('/');
    std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    int opened = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0)
      return;
    ::fsync(opened);
    ::close(opened);
  }
};

} // namespace burin::rt
