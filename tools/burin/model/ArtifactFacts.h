// The contents of an artifact and its memory plan for given values of its symbols. No code is run or even mapped.
#pragma once
#include "runtime/format/Archive.h"
#include "runtime/format/ArenaPlacement.h"
#include <string>
#include <utility>
#include <vector>

namespace burin::cli {

/// Symbol values by name.
using Dims = std::vector<std::pair<std::string, int64_t>>;

struct ArtifactFacts {
  std::vector<std::byte> file;
  rt::ArtifactView view; // into `file`
  // One per symbol; a symbol that is not given is 1, or its minimum if that is larger.
  std::vector<int64_t> symbols;
  std::vector<int64_t> values;        // of all expressions, by id
  std::vector<rt::LiveRange> buffers; // lifetimes of the arena's buffers for a run on one thread
  rt::Placement placement;
  uint64_t largestLiveBytes = 0; // maximum over all steps of the bytes of live buffers: a lower bound of any placement
  uint32_t largestLiveStep = 0;
  uint64_t scratchBytes = 0; // per thread
  int chosenCode = -1;       // index of the code variant that this machine would run; -1: none
  uint64_t metaBytes = 0;

  uint32_t function = 0; // the function whose plan the members below describe

  const rt::Artifact &artifact() const { return view.artifact; }
  const rt::Plan &plan() const { return view.artifact.plans[function]; }
  /// "f32[batch, 10]"
  std::string type(const rt::TensorInfo &) const;
  /// "batch=7, n=1"
  std::string symbolText() const;
  /// "x", "conv1.weight", "buffer 3"
  std::string slotName(const rt::Slot &) const;
  /// How often a step runs: once, or once per iteration of its loop.
  int64_t iterations(size_t step) const;
  double plannedOverLive() const {
    return largestLiveBytes ? double(placement.arenaBytes) / double(largestLiveBytes) : 1;
  }
};

/// Reads an artifact. `function` selects the function whose plan is evaluated; empty selects the first. Returns kOk, or
/// another exit code after a message on stderr.
int readFacts(const std::string &path, const std::string &function, const Dims &dims, ArtifactFacts &out);
/// The same for an artifact in memory; `path` names it in messages.
int factsOf(std::vector<std::byte> file, const std::string &path, const std::string &function, const Dims &dims,
            ArtifactFacts &out);

/// Draws the arena: rows are offsets, from the top down, and columns are steps. Each cell has the letter of the buffer
/// that occupies it.
std::vector<std::string> memoryPicture(const ArtifactFacts &);
/// The letter of a buffer in the picture.
char bufferLetter(size_t buffer);

} // namespace burin::cli
