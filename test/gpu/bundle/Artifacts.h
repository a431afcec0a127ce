// Artifacts of the bundle for machines with a GPU.
#pragma once
#include <burin/burin.h>
#include <span>
#include <string>
#include <vector>

namespace burin::test::bundle {

/// Code for the kinds of GPUs; of models also for the processor that their expected results come from.
inline const std::vector<std::string> kTargets{"cuda-sm_80+ptx", "cuda-sm_90a+ptx"},
    kTargetsOfModels{"x86-64-v3", "cuda-sm_80+ptx", "cuda-sm_90a+ptx"};
/// The targets for GPUs with f32 products of a precision, "+tf32" or "+bf16x3".
inline std::vector<std::string> targetsOf(const std::string &precision) {
  std::vector<std::string> targets = kTargets;
  for (std::string &target : targets)
    target += precision;
  return targets;
}

/// Write a file. Throws std::runtime_error.
void write(const std::string &path, std::span<const std::byte> bytes);
/// Compiles a graph for these targets, to a file; cuBLASLt may compute products (`isProvided`). Throws
/// std::runtime_error.
void writeArtifact(const std::string &path, const Graph &graph, const std::vector<std::string> &targets,
                   bool isProvided = false);

/// Writes the artifacts and the list of what gpu-check times, see Speed.h.
void packSpeed(const std::string &folder);

} // namespace burin::test::bundle
