// Loops with state: recurrent layers, sums along a sequence, and other computations in which a step needs the previous
// one.
#pragma once
#include "burin/tensor.h"
#include <functional>

namespace burin {

/// The result of one step of a loop, or of the whole loop: the states after it, and the outputs.
struct ScanResult {
  std::vector<Tensor> states, outputs;
};
/// Takes the states and one slice of each tensor that the loop iterates over.
using ScanStep = std::function<ScanResult(const std::vector<Tensor> &states, const std::vector<Tensor> &elements)>;

/// Calls `step` for each slice of `xs` along dimension 0, in reverse order with `reverse`. The first call gets the
/// initial states, later ones the states that the previous call returned, of the same shapes and element types. Returns
/// the final states, and the outputs of all steps, each stacked along a new dimension 0, at the position of the slice.
/// As jax.lax.scan.
///
/// In a trace `step` is called once, and becomes a loop of the graph. The length may be symbolic, also in nested loops.
BURIN_API ScanResult scan(const ScanStep &step, const std::vector<Tensor> &initial, const std::vector<Tensor> &xs,
                          bool reverse = false, Location where = Location::current());

} // namespace burin
