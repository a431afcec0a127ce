// The work of modules.
#pragma once
#include "burin/graph/graph.h"
#include "burin/nn/module.h"

namespace burin {

namespace detail {
BURIN_API std::string summary(const nn::Module &module, const Graph &graph);
} // namespace detail

/// The tree of modules with their sizes, and the number of parameters: module.str().
inline std::string str(const nn::Module &module) { return module.str(); }

/// The tree of modules with the parameters and the FLOP of each for inputs of these types: two per product of matmul,
/// dot_general, convolutions and attention, as torch.utils.flop_counter counts. Sizes may be symbolic. The body of a
/// scan counts for all of its iterations, that of a while_loop once, and of two branches the larger one.
///
///   std::cout << str(net, {TensorSpec{f32, {1, 1, 28, 28}}});
template <std::derived_from<nn::Module> M>
std::string str(const M &module, const std::vector<TensorSpec> &inputs, Location where = Location::current()) {
  return detail::summary(module, trace(module, inputs, {}, {}, where));
}

} // namespace burin
