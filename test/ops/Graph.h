// Builds graphs op by op, as the frontend records them, and evaluates them both compiled and interpreted. This header
// does not expose MLIR.
#pragma once
#include "ir/infer/OpInfo.h"
#include "ir/reference/ReferenceTensor.h"
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace burin::codegen {
struct CompileOptions;
}

namespace burin::test {

using Attrs = std::map<std::string, ir::Attr>;
using Tensors = std::vector<ir::RefTensor>;

/// A loaded artifact. Operands and results are next to inaccessible pages, so that an access beyond a tensor crashes.
/// The memory of the run is initialised with garbage.
class Compiled {
public:
  explicit Compiled(std::vector<std::byte> artifact);
  ~Compiled();

  /// Runs on one thread, and then on two with every step cut into as many chunks as it has tasks. Throws if the results
  /// are not the same bits.
  Tensors run(const Tensors &inputs);

private:
  struct Sessions;
  std::unique_ptr<Sessions> sessions;
};

/// Targets that compiled code is tested on: "native", and "x86-64-v3" if that is another one; with BURIN_LONG_TESTS all
/// that this machine supports.
std::vector<std::string> cpuTargets();

/// A graph with one function, @main. Errors are thrown as std::runtime_error with the diagnostics.
class Graph {
public:
  using Value = size_t;
  static constexpr Value none = SIZE_MAX; // an optional operand that is absent

  Graph();
  ~Graph();
  Graph(Graph &&) noexcept;

  Value input(const TensorSpec &spec);
  Value constant(const ir::RefTensor &tensor);
  /// Attributes may be loose (see InferCall::strict); operands must already agree.
  std::vector<Value> apply(const std::string &op, const std::vector<Value> &operands, const Attrs &attrs = {});
  using Values = std::vector<Value>;
  /// A loop. `body` takes the states and one slice of each element (of size 1 along dimension 0), and returns the new
  /// states and further results. It may use values from outside.
  Values loop(const Values &states, const Values &elements, bool reverse,
              const std::function<Values(const Values &states, const Values &elements)> &body);
  void output(Value v);

  const TensorSpec &spec(Value v) const;
  const std::vector<Value> &inputs() const;

  Tensors interpret(const Tensors &inputs, const ir::RefOptions &options = {});
  /// `tune` modifies the compile options.
  std::unique_ptr<Compiled> compile(const std::string &target,
                                    const std::function<void(codegen::CompileOptions &)> &tune = {});
  /// Returns the bytes of an artifact with code for these targets.
  std::vector<std::byte> artifact(const std::vector<std::string> &targets,
                                  const std::function<void(codegen::CompileOptions &)> &tune = {});
  /// Returns the schedules of a target's kernels, as `burin compile --emit schedule` prints them.
  std::string schedule(const std::string &target);
  std::string text();
  /// Returns the same graph with numbers for its symbols, by repeating every call.
  Graph fixed(const std::map<std::string, int64_t> &sizes) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace burin::test
