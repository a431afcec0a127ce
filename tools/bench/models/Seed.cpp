#include "tools/bench/models/Models.h"
#include <cmath>

namespace burin::bench {

static bool endsWith(const std::string &name, std::string_view end) { return name.ends_with(end); }

static Tensor seeded(const std::string &name, const Tensor &old) {
  const Shape &shape = old.shape();
  if (endsWith(name, "num_batches_tracked"))
    return old;
  if (endsWith(name, "running_var"))
    return uniform(shape, 0.5, 1.5);
  if (endsWith(name, "running_mean") || endsWith(name, "bias"))
    return randn(shape) * 0.1;
  if (shape.size() == 1) // the scale of a normalisation
    return uniform(shape, 0.5, 1.5);
  return randn(shape) * (1 / std::sqrt(double(nn::init::fans(shape).first)));
}

void seedWeights(nn::Module &net) {
  manual_seed(2024);
  StateDict state = net.state_dict();
  for (auto &[name, value] : state)
    value = seeded(name, value);
  net.load_state_dict(state);
  net.eval();
}

} // namespace burin::bench
