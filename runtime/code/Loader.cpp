#include "runtime/code/Loader.h"
#include "runtime/code/MappedFile.h"
#include "runtime/format/Target.h"
#include "runtime/support/Format.h"
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace burin::rt {

static Status ioError(const char *what, const std::string &path, int error) {
  return {ErrorCode::Io,
          text("cannot ", what, " ", path, ": ", std::strerror(error), "\n  check the path and its permissions")};
}

Status mapFile(const std::string &path, Bytes &bytes, std::shared_ptr<const void> &owner) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return ioError("open", path, errno);
  struct stat info;
  int error = ::fstat(fd, &info) != 0 ? errno : S_ISDIR(info.st_mode) ? EISDIR : 0;
  size_t size = error ? 0 : size_t(info.st_size);
  void *memory = nullptr;
  if (!error && size) {
    memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (memory == MAP_FAILED)
      error = errno;
  }
  ::close(fd);
  if (error)
    return ioError("read", path, error);
  bytes = {static_cast<const std::byte *>(memory), size};
  owner = std::shared_ptr<const void>(memory, [size](const void *p) {
    if (p)
      ::munmap(const_cast<void *>(p), size);
  });
  return {};
}

static std::string targetList(const std::vector<Code> &codes) {
  std::string out;
  for (const Code &code : codes)
    out += (out.empty() ? "" : ", ") + code.target;
  return out.empty() ? "none" : out;
}

Status Program::chooseCode(const ArtifactView &view) {
  int best = -1;
  bool hasGpuCode = false;
  gpuCodes.resize(content.codes.size());
  for (size_t i = 0; i < content.codes.size(); ++i)
    if (content.codes[i].isForGpu()) {
      chosen = hasGpuCode || best >= 0 ? chosen : i;
      hasGpuCode = true;
      gpuCodes[i].assign(reinterpret_cast<const char *>(view.code[i].data()), view.code[i].size());
    } else if (int rank = targetRank(content.codes[i].target); rank > best) {
      best = rank;
      chosen = i;
    }
  hasCpuCode = best >= 0;
  if (!hasCpuCode && hasGpuCode)
    return {};
  if (!hasCpuCode)
    return {ErrorCode::Unsupported,
            text("the artifact has no code for this processor: it has ", targetList(content.codes), ", this is ",
                 hostTarget(), "\n  compile it again with --target ", hostTarget())};
  if (content.kernels.empty())
    return {};
  if (Status s = CodeImage::load(view.code[chosen], image); !s.ok())
    return s;
  for (size_t i = 0; i < content.kernels.size(); ++i) {
    void *function = image.function(content.codes[chosen].entries[i]);
    if (!function)
      return {ErrorCode::BadArtifact,
              text("the artifact is malformed: kernel ", i, " (", content.kernels[i].name, ") is not in its code")};
    kernels.push_back(reinterpret_cast<KernelFunction>(function));
  }
  return {};
}

uint32_t Program::function(std::string_view name) const {
  for (uint32_t i = 0; i < content.plans.size() && !content.plans[i].isPrivate; ++i)
    if (content.plans[i].name == name)
      return i;
  return UINT32_MAX;
}

Status Program::keepWeights(Bytes bytes, std::shared_ptr<const void> owner) {
  bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % 64 == 0;
  if (bytes.empty() || (aligned && owner)) {
    weights = bytes;
    weightOwner = std::move(owner);
    return {};
  }
  void *copy = std::aligned_alloc(64, (bytes.size() + 63) / 64 * 64);
  if (!copy)
    return {ErrorCode::OutOfMemory, text("no memory for ", bytes.size(), " bytes of weights")};
  std::memcpy(copy, bytes.data(), bytes.size());
  weights = {static_cast<const std::byte *>(copy), bytes.size()};
  weightOwner = std::shared_ptr<const void>(copy, [](const void *p) { std::free(const_cast<void *>(p)); });
  return {};
}

Status Program::loadMemory(Bytes file, std::shared_ptr<const void> owner, const LoadOptions &options, Ptr &out) {
  ArtifactView view;
  if (Status s = parseArtifact(file, options.weights, view); !s.ok())
    return s;
  auto program = std::make_shared<Program>();
  program->content = std::move(view.artifact);
  for (const Plan &plan : program->content.plans)
    program->pieces.push_back(stagesOf(plan));
  if (Status s = program->chooseCode(view); !s.ok())
    return s;
  if (Status s = program->keepWeights(view.weights, std::move(owner)); !s.ok())
    return s;
  out = std::move(program);
  return {};
}

Status Program::loadFile(const std::string &path, const LoadOptions &options, Ptr &out) {
  Bytes bytes;
  std::shared_ptr<const void> owner;
  if (Status s = mapFile(path, bytes, owner); !s.ok())
    return s;
  Status s = loadMemory(bytes, std::move(owner), options, out);
  return s.ok() ? Status() : Status(s.code(), text(path, ": ", s.message()));
}

} // namespace burin::rt
