// Reports the memory that a run of an artifact needs, when the arena is fullest, and the buffers that are live then.
#pragma once
#include "tools/burin/model/ArtifactFacts.h"

namespace burin::cli {

struct MemoryReport {
  /// A buffer of the arena that is live at the peak.
  struct Held {
    size_t buffer;
    uint64_t bytes;
    uint32_t firstStep, lastStep;
    // The kernel that writes the buffer, and its source location; if several write it, the first.
    std::string value, source;
  };
  uint64_t weights = 0, states = 0, inputs = 0, outputs = 0; // bytes; outputs include the second buffers of states
  uint64_t arena = 0;
  uint32_t step = 0;      // at which the peak occurs
  std::vector<Held> held; // the largest first

  uint64_t total() const { return weights + states + inputs + outputs + arena; }
};

MemoryReport memoryReportOf(const ArtifactFacts &facts);
/// Names a kernel, and a library that may run in its place.
std::string kernelText(const rt::Artifact &artifact, uint32_t kernel);
/// Names the kernel of a step, or the functions that it runs.
std::string stepText(const rt::Artifact &artifact, const rt::Plan &plan, const rt::Step &step);
/// Prints the report, with the decisions of --memory-limit if there was one.
void printMemoryReport(const ArtifactFacts &facts);

} // namespace burin::cli
