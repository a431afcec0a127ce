// Stages of a launch plan: each one starts where a size computed by earlier steps must be known.
#pragma once
#include "runtime/format/Artifact.h"

namespace burin::rt {

struct Stages {
  struct Stage {
    uint32_t firstStep, endStep; // exclusive end
    uint32_t symbols;            // number of known symbols, which are the first ones of the table
  };
  std::vector<Stage> list; // at least one
  // The first stage in which an expression, the size of a buffer, or the shape of an output is known.
  std::vector<uint32_t> ofExpr, ofBuffer, ofOutput;

  uint32_t ofStep(uint32_t step) const;
};

/// The symbols must be in order, and all indices in range.
Stages stagesOf(const Plan &plan);

} // namespace burin::rt
