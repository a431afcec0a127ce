// Runs one artifact through the runtime's C interface; shared by burin-run and burin run, bench and verify.
#pragma once
#include "burin/runtime.h"
#include "tools/common/Report.h"
#include <cstddef>
#include <span>

namespace burin::run {

/// Each step returns true on success. On failure it has printed a message to stderr and set `exitCode`.
class Runner {
public:
  /// The options must outlive the runner.
  explicit Runner(const Options &options);
  ~Runner();
  Runner(const Runner &) = delete;
  Runner &operator=(const Runner &) = delete;

  /// Loads the artifact from the file that the options name or, if given, from memory, which must outlive the runner.
  bool load(std::span<const std::byte> artifact = {});
  /// Reads inputs from files, fills them with constants, or generates random ones.
  bool prepareInputs();
  /// Opens a session with so many threads, which replaces the previous one.
  bool openSession(int threads);
  /// Plans a run for the shapes of the inputs, which a run with new shapes does first; `us` is the time that it took.
  bool bind(double &us);
  /// Starts to accumulate the times of steps in report.steps.
  bool startProfile();
  bool runOnce();
  /// Initializes the states from --state or from the artifact.
  bool startStates();
  bool saveStates();
  /// Saves the states of the runs before one that has failed, and says so.
  void keepStates();
  bool writeOutputs();
  /// Compares the outputs with the files of --expect. Returns an exit code.
  int compareOutputs();

  /// Does everything that burin-run does, from load to comparison. Returns an exit code.
  int runAll(std::span<const std::byte> artifact = {});

  bool fail(int code, const std::string &message);

  Report report;
  int exitCode = kOk;

private:
  const Options &o;
  const burin_runtime_api &rt;
  burin_artifact *artifact = nullptr;
  burin_session *session = nullptr;
  struct Input {
    rt::NpyArray array;
    bool given = false; // read from a file
  };
  std::vector<Input> inputs;
  struct Data {
    uint32_t input;
    rt::NpyArray array;
  };
  std::vector<Data> data;
  int64_t dataRuns = 0, finished = 0; // runs of the data; runs without an error
  std::vector<int64_t> symbolValues;
  std::vector<burin_tensor> given, produced;

  bool ok(burin_status *status);
  bool fileOk(burin_status *status);
  bool checkNames(const Options::Named &named, const std::vector<NamedTensor> &tensors, const char *what);
  bool readInputs();
  bool chooseSizes();
  bool makeInput(uint32_t i);
  bool chooseFunction();
  std::optional<rt::NpyArray> arrayFor(uint32_t input, const std::string &path, bool isData);
  bool readData();
  bool runOverData();
  bool runAgain();
};

/// Microseconds of a steady clock.
double nowUs();

} // namespace burin::run
