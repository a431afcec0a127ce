// Traced programs on this processor and on the CUDA driver for tests, side by side.
#pragma once
#include "runtime/execute/session/Session.h"
#include <burin/burin.h>

namespace burin::test {

/// One artifact with code for both, loaded: for this processor as compile() would make it, and for `gpuTarget`, which
/// the driver for tests runs on the emulator. Throws std::runtime_error.
rt::Program::Ptr programForBoth(const Graph &graph, const std::string &gpuTarget = "cuda-sm_80+ptx");

struct Outcome {
  rt::Status status;
  std::vector<Tensor> results; // of a run that succeeded
};

/// A session, with tensors instead of views.
class TestSession {
public:
  /// Throws std::runtime_error.
  TestSession(const rt::Program::Ptr &program, const std::string &device);

  Outcome run(const std::string &function, const std::vector<Tensor> &inputs);
  /// All states, by name.
  std::vector<std::pair<std::string, Tensor>> states() const;

  std::unique_ptr<rt::Session> session;
};

/// A session on each device.
struct TwoDevices {
  explicit TwoDevices(const Graph &graph, const std::string &gpuTarget = "cuda-sm_80+ptx")
      : TwoDevices(programForBoth(graph, gpuTarget)) {}
  explicit TwoDevices(const rt::Program::Ptr &program)
      : program(program), cpu(program, "cpu"), gpu(program, "cuda:0") {}

  /// Runs on both and returns what differs, or "": statuses, element types, shapes, and elements by more than
  /// `atol + rtol * |element|`, where both 0 means that they must be equal.
  std::string differences(const std::string &function, const std::vector<Tensor> &inputs, double atol = 0,
                          double rtol = 0);
  /// The same for the results of the last run.
  std::string resultDifferences(double atol = 0, double rtol = 0) const;
  /// The same for the states.
  std::string differentStates(double atol = 0, double rtol = 0) const;

  rt::Program::Ptr program;
  TestSession cpu, gpu;
  Outcome onCpu, onGpu; // of the last run
};

/// What the emulator has found wrong since the last call, a line each: "" if there is nothing.
std::string emulatorErrors();

} // namespace burin::test
