// A launch plan falls into stages: each starts where a size has to be known that the steps before it compute.
#pragma once
#include "runtime/format/Artifact.h"

namespace burin::rt {

struct Stages {
  struct Stage {
    uint32_t firstStep, endStep; // one behind the last
    uint32_t symbols;            // how many are known: the first ones of the table
  };
  std::vector<Stage> list; // at least one
  // The stage from which on the value of an expression, the place of a buffer, the shape of an output is known.
  std::vector<uint32_t> ofExpr, ofBuffer, ofOutput;

  uint32_t ofStep(uint32_t step) const;
};

/// The symbols must be in order, all indices in range.
Stages stagesOf(const Plan &plan);

} // namespace burin::rt
