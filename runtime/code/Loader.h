// A loaded artifact: validated plans, mapped weights, machine code for this processor. Immutable, and shared by all
// sessions that run it, on any thread.
#pragma once
#include "runtime/code/Elf.h"
#include "runtime/format/Archive.h"
#include "runtime/format/Stages.h"
#include <memory>
#include <string>
#include <string_view>

namespace burin::rt {

/// The signature of all kernels; see Kernel in Artifact.h.
using KernelFunction = int64_t (*)(void *const *operands, const int64_t *sizes, void *scratch, int64_t lo, int64_t hi);

struct LoadOptions {
  WeightCheck weights = WeightCheck::Verify;
};

class Program {
public:
  using Ptr = std::shared_ptr<const Program>;

  /// Maps the file. Weights are read from the mapping, so the file must not be modified while it is loaded. Replacing
  /// it by renaming another file over it, as saveArtifact does, is safe.
  static Status loadFile(const std::string &path, const LoadOptions &options, Ptr &out);

  /// Reads an artifact from memory. `owner` keeps `file` alive. Weights are copied if there is no owner or if they are
  /// not 64-byte aligned.
  static Status loadMemory(Bytes file, std::shared_ptr<const void> owner, const LoadOptions &options, Ptr &out);

  const Artifact &artifact() const { return content; }
  const Stages &stages(uint32_t plan) const { return pieces[plan]; }
  /// Index of the public function with this name, or UINT32_MAX.
  uint32_t function(std::string_view name) const;
  /// Whether the artifact has code for this processor; otherwise it has code for GPUs.
  bool runsOnCpu() const { return hasCpuCode; }
  /// Null-terminated PTX.
  const char *gpuCode(const Code &code) const { return gpuCodes[size_t(&code - content.codes.data())].c_str(); }
  /// The target whose code was chosen, such as "x86-64-v4"; the first one if there is code for GPUs only.
  const std::string &target() const { return content.codes[chosen].target; }
  KernelFunction kernel(uint32_t index) const { return kernels[index]; }
  const void *constant(uint32_t index) const { return weights.data() + content.constants[index].offset; }
  const void *weightData() const { return weights.data(); }
  uint64_t weightBytes() const { return weights.size(); }
  uint64_t codeBytes() const { return content.codes[chosen].bytes; }
  const std::string &location(uint32_t index) const { return content.locations[index]; }

private:
  Artifact content;
  std::vector<Stages> pieces; // per plan
  CodeImage image;
  std::vector<KernelFunction> kernels;
  size_t chosen = 0;
  bool hasCpuCode = false;
  std::vector<std::string> gpuCodes; // per entry of codes; empty for CPU code
  Bytes weights;
  std::shared_ptr<const void> weightOwner;

  Status chooseCode(const ArtifactView &view);
  Status keepWeights(Bytes bytes, std::shared_ptr<const void> owner);
};

} // namespace burin::rt
