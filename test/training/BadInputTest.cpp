// Inputs that a training step refuses, eager, jitted and as an artifact: the message names the problem, and parameters
// and optimiser state are unchanged. DataTest.cpp tests missing and damaged files, crash.py full disks.
#include "test/frontend/Check.h"
#include <filesystem>
#include <limits>

namespace {

constexpr int64_t kClasses = 3;

/// A small network and its optimiser.
struct Learner {
  nn::Linear net{4, kClasses};
  optim::Adam optimizer{net.parameters(), {.lr = 0.1}};
  bool checksLoss = false;

  Tensor step(const Tensor &x, const Tensor &target) {
    Tensor loss = cross_entropy(net(x), target);
    if (checksLoss)
      check(is_finite(loss), "the loss is no number");
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    return loss.detach();
  }
  Artifact compiled() {
    Program program(net);
    Dim n("n", 1, 1024);
    program.add("train_step", [this](const Tensor &x, const Tensor &target) { return step(x, target); },
                {{f32, {n, 4}}, {i64, {n}}}, {"x", "target"}, {"loss"});
    return compile(program.graph());
  }
};

/// Weights, moments and step counts.
std::vector<std::vector<float>> valuesOf(const StateDict &state) {
  std::vector<std::vector<float>> all;
  for (const auto &[name, value] : state)
    all.push_back(value.to(f32).to_vector<float>());
  return all;
}
std::vector<std::vector<float>> valuesOf(Learner &learner) {
  auto all = valuesOf(learner.net.state_dict());
  for (std::vector<float> &value : valuesOf(learner.optimizer.state_dict()))
    all.push_back(std::move(value));
  return all;
}
std::vector<std::vector<float>> valuesOf(const Artifact &artifact) {
  std::vector<std::vector<float>> all;
  for (const NamedSpec &state : artifact.states())
    all.push_back(artifact.state(state.name).to(f32).to_vector<float>());
  return all;
}

Tensor goodRows() { return sin(arange(20).to(f32)).reshape({5, 4}); }
Tensor goodClasses() { return arange(5) % kClasses; }

using Step = std::function<Tensor(const Tensor &, const Tensor &)>;
enum class How { Eager, Jitted, Artifact };

/// A step with these arguments fails with a message that contains `parts` and changes no state; the next step succeeds.
void checkRefused(How how, const Tensor &x, const Tensor &target, std::vector<const char *> parts,
                  bool checksLoss = false) {
  manual_seed(5);
  Learner learner;
  learner.checksLoss = checksLoss;
  learner.step(goodRows(), goodClasses());
  std::optional<Artifact> artifact;
  Step step = [&](const Tensor &x, const Tensor &target) { return learner.step(x, target); };
  if (how == How::Jitted)
    step = jit(step);
  if (how == How::Artifact) {
    artifact = learner.compiled();
    step = [&](const Tensor &x, const Tensor &target) { return (*artifact)(x, target); };
  }
  auto values = [&] { return artifact ? valuesOf(*artifact) : valuesOf(learner); };
  INFO((how == How::Eager ? "eager" : how == How::Jitted ? "jitted" : "artifact"));
  step(goodRows(), goodClasses()).item();
  const auto before = values();
  const std::string message = messageOf([&] { step(x, target).item(); });
  INFO(message);
  for (const char *part : parts)
    CHECK(contains(message, part));
  learner.optimizer.zero_grad(); // the eager step failed after backward()
  CHECK(values() == before);
  CHECK(std::isfinite(step(goodRows(), goodClasses()).item()));
  CHECK(values() != before);
}

Tensor rowsWithNan() { return where(iota({5, 4}, i64, 1) == 2, std::numeric_limits<float>::quiet_NaN(), goodRows()); }

} // namespace

TEST_CASE("targets of a wrong shape are refused") {
  for (How how : {How::Eager, How::Jitted})
    checkRefused(how, goodRows(), goodClasses().reshape({5, 1}), {"i64[5, 1]", "f32[5, 3]", "must be [5]"});
  checkRefused(How::Artifact, goodRows(), goodClasses().reshape({5, 1}), {"target", "i64[5, 1]"});
  checkRefused(How::Artifact, goodRows(), arange(4) % kClasses, {"target", "got 4"});
}

TEST_CASE("targets of a wrong element type are refused") {
  for (How how : {How::Eager, How::Jitted})
    checkRefused(how, goodRows(), goodClasses().to(f32), {"f32[5]", "probabilities", "f32[5, 3]"});
  checkRefused(How::Artifact, goodRows(), goodClasses().to(f32), {"target", "i64", "f32[5]"});
}

TEST_CASE("classes that do not exist are refused") {
  for (How how : {How::Eager, How::Jitted, How::Artifact})
    for (int64_t wrong : {kClasses, int64_t(-1)})
      checkRefused(how, goodRows(), where(arange(5) == 3, wrong, goodClasses()), {"is no class: there are 3"});
}

TEST_CASE("empty batches are refused") {
  for (How how : {How::Eager, How::Jitted})
    checkRefused(how, zeros({0, 4}), zeros({0}, i64), {"empty batch"});
  checkRefused(How::Artifact, zeros({0, 4}), zeros({0}, i64), {"n", "0", "1"});
}

TEST_CASE("a loss that is no number ends the step, if that is checked") {
  for (How how : {How::Eager, How::Jitted, How::Artifact})
    checkRefused(how, rowsWithNan(), goodClasses(), {"the loss is no number", "BadInputTest.cpp"}, /*checksLoss=*/true);
}

TEST_CASE("what makes a loss no number is found by DetectAnomaly, before anything has changed") {
  Learner learner;
  const auto before = valuesOf(learner);
  DetectAnomaly detect;
  const std::string message = messageOf([&] { learner.step(rowsWithNan(), goodClasses()); });
  INFO(message);
  CHECK(contains(message, "NaN"));
  CHECK(valuesOf(learner) == before);
}

TEST_CASE("states that do not fit are refused as a whole") {
  Learner learner;
  learner.step(goodRows(), goodClasses());
  const auto before = valuesOf(learner);
  auto changed = [](StateDict state, const std::string &name, Tensor value) {
    for (auto &entry : state)
      entry.second = entry.first == name ? value : entry.second + 1;
    return state;
  };
  StateDict weights = changed(learner.net.state_dict(), "weight", zeros({4, kClasses}));
  CHECK_ERROR(learner.net.load_state_dict(weights), "weight", "[4, 3]", "[3, 4]");
  StateDict moments = changed(learner.optimizer.state_dict(), "state.0.exp_avg", zeros({2}));
  CHECK_ERROR(learner.optimizer.load_state_dict(moments), "state.0.exp_avg", "f32[2]", "nothing has been changed");
  CHECK(valuesOf(learner) == before);

  Artifact artifact = learner.compiled();
  const auto states = valuesOf(artifact);
  std::vector<std::pair<std::string, Tensor>> saved;
  for (const NamedSpec &state : artifact.states())
    saved.emplace_back(state.name, artifact.state(state.name));
  const std::string path = (std::filesystem::temp_directory_path() / "burin-bad-states.safetensors").string();
  for (auto &[name, value] : saved)
    if (isFloat(value.dtype()))
      value = name == "weight" ? zeros({4, kClasses}) : value + 1;
  save_safetensors(path, StateDict(saved.begin(), saved.end()));
  CHECK_ERROR(artifact.load_states(path), "weight", "f32[3, 4]", "f32[4, 3]");
  CHECK(valuesOf(artifact) == states);
  std::filesystem::remove(path);
}
