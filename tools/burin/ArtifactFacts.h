// An artifact taken apart for given values of its symbols, without running or even mapping its code.
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
  rt::ArtifactView view;              // into `file`
  std::vector<int64_t> symbols;       // one per symbol; those not given are 1, or their minimum if that is larger
  std::vector<int64_t> values;        // of all expressions
  std::vector<rt::LiveRange> buffers; // as one thread needs them
  rt::Placement placement;
  uint64_t largestLiveBytes = 0; // the most bytes of buffers in use at one time: no plan can need less
  uint32_t largestLiveStep = 0;
  uint64_t scratchBytes = 0; // per thread
  int chosenCode = -1;       // index of the code this machine takes; -1: none
  uint64_t metaBytes = 0;

  uint32_t function = 0; // what follows is of its plan

  const rt::Artifact &artifact() const { return view.artifact; }
  const rt::Plan &plan() const { return view.artifact.plans[function]; }
  /// "f32[batch, 10]"
  std::string type(const rt::TensorInfo &) const;
  /// "batch=7, n=1"
  std::string symbolText() const;
  /// "x", "conv1.weight", "buffer 3"
  std::string slotName(const rt::Slot &) const;
  /// How often a step runs: once, or once per turn of its loop.
  int64_t turns(size_t step) const;
  double plannedOverLive() const {
    return largestLiveBytes ? double(placement.arenaBytes) / double(largestLiveBytes) : 1;
  }
};

/// An exit code: kOk, or another one after a message on stderr. `function`: whose plan is shown; empty: the first.
int readFacts(const std::string &path, const std::string &function, const Dims &dims, ArtifactFacts &out);
/// The same of bytes in memory; `path` names them in messages.
int factsOf(std::vector<std::byte> file, const std::string &path, const std::string &function, const Dims &dims,
            ArtifactFacts &out);

/// Rows from the top of the arena down, columns for steps; each cell is the letter of the buffer that lives there.
std::vector<std::string> memoryPicture(const ArtifactFacts &);
/// The letter of a buffer in the picture.
char bufferLetter(size_t buffer);

} // namespace burin::cli
