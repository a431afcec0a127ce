// Runs one artifact through the runtime's C interface: what burin-run, burin run, bench and verify share.
#pragma once
#include "burin/runtime.h"
#include "tools/common/Report.h"
#include <cstddef>
#include <span>

namespace burin::run {

/// Each step returns whether it went well; if not, it has said why on stderr and `exitCode` is set.
class Runner {
public:
  /// The options must outlive the runner.
  explicit Runner(const Options &options);
  ~Runner();
  Runner(const Runner &) = delete;
  Runner &operator=(const Runner &) = delete;

  /// The artifact, from the file of the options or, if given, from memory that outlives the runner.
  bool load(std::span<const std::byte> artifact = {});
  /// Reads, fills and makes up the inputs.
  bool prepareInputs();
  /// Replaces the session that runs use.
  bool openSession(int threads);
  /// From now on the times of steps are added up in report.steps.
  bool startProfile();
  bool runOnce();
  /// States: those of --state, or of the artifact.
  bool startStates();
  bool saveStates();
  bool writeOutputs();
  /// With the files of --expect. An exit code.
  int compareOutputs();

  /// Everything burin-run does, from load to comparison. An exit code.
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
    bool given = false; // by a file
  };
  std::vector<Input> inputs;
  struct Data {
    uint32_t input;
    rt::NpyArray array;
  };
  std::vector<Data> data;
  int64_t dataRuns = 0;
  std::vector<int64_t> symbolValues;
  std::vector<burin_tensor> given, produced;

  bool ok(burin_status *status);
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
