#include "burin/training/checkpoint.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <future>

namespace burin {

using detail::inScope;
namespace fs = std::filesystem;

struct Checkpoint::State {
  fs::path folder;
  CheckpointOptions options;
  std::future<void> writing;

  ~State() {
    if (writing.valid())
      writing.wait();
  }
  fs::path pathOf(int64_t step) const { return folder / ("step-" + std::to_string(step) + ".safetensors"); }
  std::vector<int64_t> steps() const;
  std::optional<double> metricOf(int64_t step) const;
  std::optional<int64_t> best() const;
  void prune() const;
  void removeUnfinished() const;
};

/// The steps of the files in the folder, ascending.
std::vector<int64_t> Checkpoint::State::steps() const {
  constexpr std::string_view prefix = "step-", ending = ".safetensors";
  std::vector<int64_t> steps;
  std::error_code ignored;
  for (const auto &file : fs::directory_iterator(folder, ignored)) {
    const std::string name = file.path().filename();
    if (!name.starts_with(prefix) || !name.ends_with(ending) || name.size() <= prefix.size() + ending.size())
      continue;
    const std::string digits = name.substr(prefix.size(), name.size() - prefix.size() - ending.size());
    if (digits.size() < 19 && std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; }))
      steps.push_back(std::stoll(digits));
  }
  std::ranges::sort(steps);
  return steps;
}

std::optional<double> Checkpoint::State::metricOf(int64_t step) const {
  std::map<std::string, std::string> metadata;
  load_safetensors(pathOf(step), &metadata);
  auto found = metadata.find("metric");
  return found == metadata.end() ? std::nullopt : std::optional(std::strtod(found->second.c_str(), nullptr));
}

std::optional<int64_t> Checkpoint::State::best() const {
  std::optional<int64_t> result;
  double lowest = 0;
  for (int64_t step : steps())
    if (auto metric = metricOf(step); metric && !std::isnan(*metric) && (!result || *metric < lowest)) {
      result = step;
      lowest = *metric;
    }
  return result;
}

/// Deletes all checkpoints except the last ones and the best one.
void Checkpoint::State::prune() const {
  std::vector<int64_t> all = steps();
  if (int64_t(all.size()) <= options.keep_last)
    return;
  std::optional<int64_t> kept = options.keep_best ? best() : std::nullopt;
  all.resize(all.size() - size_t(options.keep_last));
  for (int64_t step : all)
    if (step != kept)
      fs::remove(pathOf(step));
}

/// Deletes incomplete files of killed processes: step-<number>.safetensors.tmp<process>.
void Checkpoint::State::removeUnfinished() const {
  std::error_code ignored;
  std::vector<fs::path> unfinished;
  for (const auto &file : fs::directory_iterator(folder, ignored))
    if (const std::string name = file.path().filename();
        name.starts_with("step-") && name.find(".safetensors.tmp") != std::string::npos)
      unfinished.push_back(file.path());
  for (const fs::path &path : unfinished)
    fs::remove(path, ignored);
}

Checkpoint::Checkpoint(std::string folder, CheckpointOptions options, Location where) : state(new State) {
  if (options.keep_last < 1)
    throw Error(inScope(where), "Checkpoint", "at least one checkpoint must be kept");
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem)
    throw Error(inScope(where), "Checkpoint", "cannot make the folder \"" + folder + "\": " + problem.message());
  state->folder = std::move(folder);
  state->options = options;
  state->removeUnfinished();
}

void Checkpoint::wait(Location where) {
  if (!state->writing.valid())
    return;
  try {
    state->writing.get();
  } catch (const std::exception &error) {
    throw Error(inScope(where), "Checkpoint", error.what());
  }
}

void Checkpoint::save(int64_t step, const StateDict &tensors, std::optional<double> metric, Location where) {
  const Location place = inScope(where);
  if (step < 0)
    throw Error(place, "Checkpoint", "the step is negative");
  wait(place);
  std::map<std::string, std::string> metadata{{"step", std::to_string(step)}};
  if (metric) {
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.17g", *metric);
    metadata["metric"] = digits;
  }
  // The thread does not outlive the state, whose destructor waits for it.
  state->writing = std::async(std::launch::async, [self = state.get(), step, tensors, metadata, place] {
    save_safetensors(self->pathOf(step), tensors, metadata, place);
    self->prune();
  });
}

std::vector<int64_t> Checkpoint::steps() const { return state->steps(); }

std::optional<StateDict> Checkpoint::load_latest(int64_t *step, Location where) {
  wait(where);
  std::vector<int64_t> all = state->steps();
  if (all.empty())
    return std::nullopt;
  if (step)
    *step = all.back();
  return load_safetensors(state->pathOf(all.back()), nullptr, where);
}

std::optional<StateDict> Checkpoint::load_best(int64_t *step, Location where) {
  wait(where);
  std::optional<int64_t> best = state->best();
  if (!best)
    return std::nullopt;
  if (step)
    *step = *best;
  return load_safetensors(state->pathOf(*best), nullptr, where);
}

} // namespace burin
