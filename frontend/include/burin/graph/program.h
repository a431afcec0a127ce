// Graphs with several functions.
#pragma once
#include "burin/graph/graph.h"

namespace burin {

/// Several traced functions over the same parameters and buffers. Values that one of them sets are states of the graph,
/// which the others read: for instance a training step and a prediction with the trained weights, or the two parts of
/// text generation that share a cache:
///
///   Program program;
///   program.add("train_step", step, {{DType::f32, {32, 784}}, {DType::i64, {32}}});
///   program.add("predict", [&](const Tensor &x) { return model(x); }, {{DType::f32, {Dim("batch"), 784}}});
///   Artifact artifact = compile(program.graph());
///   artifact.function("train_step").run({x, y});
///   Tensor scores = artifact.function("predict")(x);
///
/// Parameters that no function sets are constants. States have the names of state_dict() if they belong to `module`;
/// they start with the values at the time of graph().
class BURIN_API Program {
public:
  Program();
  /// Names weights and states after its state_dict().
  template <class M> explicit Program(const M &module) : Program(detail::namesOf(module)) {}

  /// Records `function` for inputs of these types, like trace(). Throws if a function of this name exists, or if
  /// graph() has been called.
  template <class F>
  void add(std::string name, F &&function, const std::vector<TensorSpec> &inputs,
           std::vector<std::string> inputNames = {}, std::vector<std::string> outputNames = {},
           Location where = Location::current()) {
    record(std::move(name), detail::erase(function), inputs, std::move(inputNames), std::move(outputNames),
           detail::namesOf(function), where);
  }
  /// The graph of all functions; its inputs() and outputs() are those of the first one. Throws if there is none.
  Graph graph(Location where = Location::current());

  ~Program();
  Program(Program &&) noexcept;
  Program &operator=(Program &&) noexcept;

private:
  explicit Program(detail::TensorNames names);
  void record(std::string name, const detail::Function &function, std::span<const TensorSpec> inputs,
              std::vector<std::string> inputNames, std::vector<std::string> outputNames, detail::TensorNames names,
              const Location &where);
  struct Data;
  std::unique_ptr<Data> data;
};

} // namespace burin
