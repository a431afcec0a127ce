// Kernels of every family of GPUs, as artifacts with PTX that the driver for tests interprets.
#pragma once
#include "runtime/execute/session/Session.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <span>

namespace burin::test {

/// What tests have to know about a case.
enum class KernelTrait {
  None,
  Open,             // only a run knows the first size, which counts as large
  PackedOperand,    // whose alignment matters: also run with all memory 4 bytes after an aligned address
  Reordered,        // sums have another order where operands are not aligned
  WideKeys,         // of 64 bits, where the lower or the upper half seldom matters
  BranchesOnValues, // some code is for special numbers
};

struct KernelCase {
  const char *name;
  std::function<Graph::Value(Graph &, const Graph::Values &inputs)> build;
  std::vector<std::vector<int64_t>> inputs; // sizes that end between blocks, vectors and slices
  DType dtype = f32;
  const char *target = "cuda-sm_80+ptx";
  KernelTrait trait = KernelTrait::None;
  std::vector<int64_t> further = {}; // if it is open: other values of the first size
};

std::span<const KernelCase> kernelCases();

/// How a run differs from one with plain numbers in aligned memory of a device with one multiprocessor, whose block of
/// a persistent kernel computes all tiles.
struct RunKind {
  bool hasShiftedInputs = false, hasShiftedOutput = false; // by one element from an aligned address
  Mood mood = Mood::Plain;
  int64_t firstSize = 0; // of the first input, which has to be open; 0: that of the case
  int multiprocessors = 1;
  size_t memoryShift = 0; // in bytes, of all that the driver allocates, from an aligned address
  double largest = 4;     // plain numbers are between this and its negative
};

/// The runs that together come to every path of the kernels of a case.
std::vector<RunKind> runKinds(const KernelCase &);

/// An artifact of one case, with inputs of pseudorandom numbers.
class KernelSubject {
public:
  struct Outcome {
    std::string error;
    std::vector<std::byte> results;
  };

  explicit KernelSubject(const KernelCase &);

  /// As `burin compile --emit schedule` prints it.
  const std::string &schedule() const { return schedules; }
  std::string ptx() const { return program->gpuCode(program->artifact().codes[0]); }
  Outcome run(const RunKind &kind = {}) const;

private:
  const KernelCase &kernel;
  rt::Program::Ptr program;
  std::string schedules;

  std::string runOne(const RunKind &kind, std::vector<std::byte> &results) const;
};

/// Without line ends.
std::vector<std::string> linesOf(const std::string &text);

} // namespace burin::test
