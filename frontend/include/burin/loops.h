// Loops with state: recurrent layers, sums along a sequence, anything where a step needs what the one before has left.
#pragma once
#include "burin/tensor.h"
#include <functional>

namespace burin {

/// What one step of a loop gives, or all of them: the states after it, and the outputs.
struct ScanResult {
  std::vector<Tensor> states, outputs;
};
/// From the states and one element of each of the tensors that the loop goes through.
using ScanStep = std::function<ScanResult(const std::vector<Tensor> &states, const std::vector<Tensor> &elements)>;

/// Calls `step` for each element of `xs` along dimension 0, from the last one to the first with `reverse`; the first
/// call gets the initial states, the others those that the call before has returned, of the same shapes and element
/// types. Returns the final states, and the outputs of all steps: each one stacked along a new dimension 0, the output
/// for an element where the element is. As jax.lax.scan.
///
/// In a trace `step` is called once, and becomes a loop of the graph: the length may be symbolic, also that of a
/// loop within a loop.
BURIN_API ScanResult scan(const ScanStep &step, const std::vector<Tensor> &initial, const std::vector<Tensor> &xs,
                          bool reverse = false, Location where = Location::current());

} // namespace burin
