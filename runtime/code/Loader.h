// A loaded artifact: validated plan, mapped weights, machine code for this processor. Immutable and shared by all
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

  /// Maps the file; the weights are read from the mapping, so the file must not be changed while it is loaded (replace
  /// it by renaming another over it, as saveArtifact does).
  static Status loadFile(const std::string &path, const LoadOptions &options, Ptr &out);

  /// Reads an artifact in memory. `owner` keeps `file` alive; without one, the weights are copied. Weights that are
  /// not 64-byte aligned are copied too.
  static Status loadMemory(Bytes file, std::shared_ptr<const void> owner, const LoadOptions &options, Ptr &out);

  const Artifact &artifact() const { return content; }
  const Stages &stages(uint32_t plan) const { return pieces[plan]; }
  /// The public function of this name; none: UINT32_MAX.
  uint32_t function(std::string_view name) const;
  /// Whether there is code for this processor; else there is some for GPUs.
  bool runsOnCpu() const { return hasCpuCode; }
  /// PTX, which ends with a null byte.
  const char *gpuCode(const Code &code) const { return gpuCodes[size_t(&code - content.codes.data())].c_str(); }
  /// The target whose code was chosen: "x86-64-v4". Of an artifact for GPUs alone, the first.
  const std::string &target() const { return content.codes[chosen].target; }
  KernelFunction kernel(uint32_t index) const { return kernels[index]; }
  const void *constant(uint32_t index) const { return weights.data() + content.constants[index].offset; }
  const void *weightData() const { return weights.data(); }
  uint64_t weightBytes() const { return weights.size(); }
  uint64_t codeBytes() const { return content.codes[chosen].bytes; }
  const std::string &location(uint32_t index) const { return content.locations[index]; }

private:
  Artifact content;
  std::vector<Stages> pieces; // of each plan
  CodeImage image;
  std::vector<KernelFunction> kernels;
  size_t chosen = 0;
  bool hasCpuCode = false;
  std::vector<std::string> gpuCodes; // of each of the codes; empty: for a processor
  Bytes weights;
  std::shared_ptr<const void> weightOwner;

  Status chooseCode(const ArtifactView &view);
  Status keepWeights(Bytes bytes, std::shared_ptr<const void> owner);
};

} // namespace burin::rt
