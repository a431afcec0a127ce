// The training step of the benchmarks.
#pragma once
#include <burin/burin.h>
#include <optional>

namespace burin::bench {

/// A function of images or tokens and class numbers: a step of the optimiser by the cross entropy of net(x); returns
/// the loss. With `inBf16` the loss is computed under Autocast.
template <class Net> auto trainingStep(Net net, optim::Optimizer optimizer, bool inBf16 = false) {
  return [net, optimizer, inBf16](const Tensor &x, const Tensor &y) mutable {
    std::optional<Autocast> scope;
    if (inBf16)
      scope.emplace(bf16);
    Tensor loss = cross_entropy(net(x), y);
    scope.reset();
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return loss.detach();
  };
}

} // namespace burin::bench
