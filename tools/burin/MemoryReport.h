// What a run of an artifact needs of memory, when it needs most, and what holds it then.
#pragma once
#include "tools/burin/ArtifactFacts.h"

namespace burin::cli {

struct MemoryReport {
  /// A buffer of the arena that is in use at the peak.
  struct Held {
    size_t buffer;
    uint64_t bytes;
    uint32_t firstStep, lastStep;
    std::string value, source; // the kernel that makes it, and its place; of one that is written again, the first
  };
  uint64_t weights = 0, states = 0, inputs = 0, outputs = 0; // bytes; outputs with the second buffers of states
  uint64_t arena = 0;
  uint32_t step = 0;      // of the peak
  std::vector<Held> held; // the largest first

  uint64_t total() const { return weights + states + inputs + outputs + arena; }
};

MemoryReport memoryReportOf(const ArtifactFacts &facts);
/// The kernel, or the functions that a step runs.
std::string stepText(const rt::Artifact &artifact, const rt::Plan &plan, const rt::Step &step);
/// With the choices of a memory limit, if there was one.
void printMemoryReport(const ArtifactFacts &facts);

} // namespace burin::cli
