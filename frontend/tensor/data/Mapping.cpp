#include "frontend/tensor/data/Mapping.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace burin::detail {

std::shared_ptr<const Mapping> Mapping::open(const std::string &path, std::string &problem) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    problem = std::strerror(errno);
    return nullptr;
  }
  auto mapping = ofFile(file, problem);
  ::close(file);
  return mapping;
}

std::shared_ptr<const Mapping> Mapping::ofFile(int file, std::string &problem) {
  auto mapping = std::make_shared<Mapping>();
  struct stat info;
  if (::fstat(file, &info) != 0) {
    problem = std::strerror(errno);
  } else if (!S_ISREG(info.st_mode)) {
    problem = "not a regular file";
  } else if (info.st_size > 0) {
    void *start = ::mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    if (start == MAP_FAILED) {
      problem = std::strerror(errno);
    } else {
      mapping->start = start;
      mapping->size = size_t(info.st_size);
    }
  }
  return problem.empty() ? mapping : nullptr;
}

void Mapping::forget(std::span<const std::byte> part) const {
  const auto page = uintptr_t(::sysconf(_SC_PAGESIZE));
  auto from = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page;
  auto to = reinterpret_cast<uintptr_t>(part.data() + part.size()) / page * page;
  if (from < to)
    ::madvise(reinterpret_cast<void *>(from), to - from, MADV_DONTNEED);
}

Mapping::~Mapping() {
  if (start)
    ::munmap(start, size);
}

} // namespace burin::detail
