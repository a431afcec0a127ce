// Per-sample gradients by vmap, compared with PyTorch's.
#include "test/training/Cases.h"
#include <catch2/catch.hpp>

using namespace burin;

TEST_CASE("vmap gives the gradients of each sample that PyTorch gives") {
  const test::Tensors known = test::loadCases("samples.json").at("convolutions");
  std::vector<Tensor> inputs;
  const std::vector<std::string> names{"w0", "b0", "w1", "b1", "w2", "b2"};
  for (const std::string &name : names)
    inputs.push_back(known.at(name));
  inputs.push_back(known.at("images"));
  inputs.push_back(known.at("labels"));
  auto gradients = [](const std::vector<Tensor> &in) { // maps a sample to its gradients and its loss
    Tensor x = conv(unsqueeze(in[6], {0}), in[0], in[1], {1, 1}, {1, 1});
    x = relu(conv(max_pool(tanh(x), {2, 2}), in[2], in[3]));
    Tensor loss = cross_entropy(linear(x.flatten(1), in[4], in[5]), unsqueeze(in[7], {0}));
    std::vector<Tensor> found = grad(loss, {in.begin(), in.begin() + 6});
    found.push_back(loss);
    return found;
  };
  const BatchAxes axes{None, None, None, None, None, None, 0, 0};
  auto all = vmap(gradients, axes);
  Graph symbolic = [&] {
    std::vector<TensorSpec> specs;
    for (const Tensor &input : inputs)
      specs.push_back(input.spec());
    specs[6].shape[0] = specs[7].shape[0] = Dim("samples");
    return trace(all, specs);
  }();
  const std::pair<const char *, std::vector<Tensor>> ways[]{
      {"eager", all(inputs)}, {"jitted", jit(all)(inputs)}, {"symbolic", symbolic.run(inputs)}};
  for (const auto &[way, found] : ways) {
    for (size_t i = 0; i < names.size(); ++i)
      test::checkClose(found[i], known.at("grad." + names[i]), 1e-10, way + (" " + names[i]));
    test::checkClose(found.back(), known.at("losses"), 1e-10, way);
  }
}
