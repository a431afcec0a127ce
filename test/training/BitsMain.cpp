// training-bits [FOLDER]: trains five networks for 50 steps, jitted and as artifacts, and prints hashes of the bits of
// losses and parameters. With FOLDER: also writes graphs, artifacts, their batches and final states, for burin-run.
// training-bits --eager: eagerly and jitted.
#include "test/training/Hash.h"
#include "test/training/Networks.h"
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

using namespace burin;
using namespace burin::test;

namespace {

constexpr int kSteps = 50;
/// Blocks of the residual network: all eight of a ResNet-18 in the long tests.
const int kBlocks = std::getenv("BURIN_LONG_TESTS") ? Residual::kBlocks : 3;

struct Batches {
  std::vector<Tensor> inputs, targets;
  explicit Batches(const Training &t) {
    for (int i = 0; i < kSteps; ++i) {
      auto [x, target] = t.batch(i);
      inputs.push_back(isFloat(x.dtype()) ? x.to(f32) : x);
      targets.push_back(target);
    }
  }
};

unsigned long long runJitted(Training t) {
  auto step = jit([&](const Tensor &x, const Tensor &target) { return trainStep(t, x, target); });
  Hash hash;
  Batches batches(t);
  for (int i = 0; i < kSteps; ++i)
    hash.add(step(batches.inputs[size_t(i)], batches.targets[size_t(i)]));
  for (const auto &[name, value] : t.module.state_dict())
    if (isFloat(value.dtype()))
      hash.add(value);
  if (step.traces() != 1)
    throw std::runtime_error("a training step was traced " + std::to_string(step.traces()) + " times");
  return hash.value();
}

unsigned long long runEagerly(Training t) {
  Hash hash;
  Batches batches(t);
  for (int i = 0; i < kSteps; ++i)
    hash.add(trainStep(t, batches.inputs[size_t(i)], batches.targets[size_t(i)]).detach());
  for (const auto &[name, value] : t.module.state_dict())
    if (isFloat(value.dtype()))
      hash.add(value);
  return hash.value();
}

/// Trains with the artifact and hashes the losses and the states, under the module's names.
unsigned long long hashOf(const Artifact &artifact, const Training &t, const Batches &batches) {
  Hash hash;
  for (int i = 0; i < kSteps; ++i)
    hash.add(artifact(batches.inputs[size_t(i)], batches.targets[size_t(i)]));
  for (const auto &[name, value] : t.module.state_dict())
    if (isFloat(value.dtype())) {
      bool isState = false;
      for (const NamedSpec &state : artifact.states())
        isState |= state.name == name;
      hash.add(isState ? artifact.state(name) : value);
    }
  return hash.value();
}

unsigned long long runArtifact(Training t, const std::string &prefix) {
  Batches batches(t);
  Program program(t.module);
  program.add("train_step", [&](const Tensor &x, const Tensor &target) { return trainStep(t, x, target); },
              {batches.inputs[0].spec(), batches.targets[0].spec()}, {"x", "target"}, {"loss"});
  Artifact artifact = compile(program.graph());
  if (!prefix.empty()) {
    program.graph().save(prefix + ".burin");
    artifact.save(prefix + ".plate");
    save_npy(prefix + "-x.npy", stack(batches.inputs));
    save_npy(prefix + "-target.npy", stack(batches.targets));
  }
  const unsigned long long hash = hashOf(artifact, t, batches);
  if (!prefix.empty())
    artifact.save_states(prefix + "-expected.safetensors");
  return hash;
}

} // namespace

int main(int argc, char **argv) {
  const std::pair<const char *, std::function<Training()>> networks[] = {
      {"mlp", [] { return mlp(f32); }},
      {"lenet", [] { return leNet(f32); }},
      {"resnet", [] { return residual(f32, kSteps, kBlocks); }},
      {"gpt", [] { return gpt(f32); }},
      {"lstm", [] { return lstm(f32); }},
  };
  for (const auto &[name, make] : networks) {
    if (argc > 1 && std::string(argv[1]) == "--eager") {
      std::printf("%s %016llx\n", name, runEagerly(make()));
      std::printf("%s %016llx\n", name, runJitted(make()));
      continue;
    }
    const std::string prefix = argc > 1 ? std::string(argv[1]) + "/" + name : "";
    std::printf("%s %016llx\n", name, runJitted(make()));
    std::printf("%s %016llx\n", name, runArtifact(make(), prefix));
  }
}
