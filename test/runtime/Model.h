// Artifacts made by hand for the tests of the runtime.
#pragma once
#include "runtime/code/Loader.h"
#include "runtime/execute/session/Session.h"
#include "runtime/format/Archive.h"
#include <string>
#include <vector>

namespace burin::rt::test {

std::vector<std::byte> readBytes(const std::string &path);
/// The image of kernels.c.
const std::vector<std::byte> &kernelImage();
/// Returns the virtual address of an exported function of an ELF image, or 0 if it has none of that name.
uint64_t symbolAddress(const std::vector<std::byte> &elf, const std::string &name);

/// Builds an Artifact record by record.
struct Model {
  Artifact a;
  std::vector<float> weights;

  Model();
  size_t current = 0;
  Plan &plan() { return a.plans[current]; } // the function under construction
  /// Adds a private function; further calls build it.
  uint32_t function(const std::string &name);
  /// A size that the function's callers pass.
  ExprId passed(const std::string &name);
  ExprId constant(int64_t value);
  ExprId symbol(const std::string &name, uint32_t input, uint32_t axis, int64_t min = 0, int64_t max = INT64_MAX);
  /// An i64 that the steps before `step` compute.
  ExprId computed(const std::string &name, Slot count, uint32_t step, ExprId limit);
  ExprId op(Expr::Op op, ExprId left, ExprId right);
  void input(const std::string &name, std::vector<ExprId> dims, DType dtype = f32);
  void output(const std::string &name, std::vector<ExprId> dims, DType dtype = f32);
  Slot weight(const std::string &name, std::vector<float> values);
  Slot buffer(ExprId bytes, uint32_t firstStep, uint32_t lastStep);
  Slot part(Slot whole, ExprId begin, ExprId stride);
  uint32_t kernel(const std::string &name);
  Step &step(const std::string &kernel, std::vector<Slot> operands, std::vector<ExprId> sizes, ExprId tasks);
  /// A step that runs functions; `sizes` are the values of their symbols.
  Step &run(Step::Kind kind, std::vector<uint32_t> plans, std::vector<Slot> operands, std::vector<ExprId> sizes);
  uint32_t location(const std::string &where);

  std::vector<std::byte> bytes() { return bytes({"x86-64"}); }
  std::vector<std::byte> bytes(const std::vector<std::string> &targets);
  Program::Ptr load(); // must succeed
};

/// x[batch, n] -> reversed(exp(x * w + b)), with w = 1, 2, … and b = .5
Model threeSteps(int64_t n);
/// The same, one row per iteration of a loop.
Model loopOverRows(int64_t n);
/// first[4, n], w[iterations, n] -> all states h[iterations + 1, 4, n]: h[0] = first, h[t + 1] = h[t] * w[t] + .5, as a
/// loop with state whose steps are large enough for several threads. `reverse` iterates over the rows of w from the
/// last one to the first.
Model recurrence(int64_t n, bool reverse);
/// x[n] -> exp of its positive elements [k], and those of the exponentials that are above 1 [m]. k and m are computed
/// sizes.
Model positives();
/// Adds a private function y[n] = x[n] * factor + term; returns its index.
uint32_t affineFunction(Model &m, const std::string &name, float factor, float term);
/// x[n] -> y[n]: x = x * 2 + 1 while x[0] < 100.
Model looping();
/// The expected results of threeSteps.
std::vector<float> expectedThreeSteps(const std::vector<float> &x, int64_t n);

inline Slot in(uint32_t i) { return {Slot::Kind::Input, i}; }
inline Slot out(uint32_t i) { return {Slot::Kind::Output, i}; }

inline TensorView view(const std::vector<float> &data, const std::vector<int64_t> &shape) {
  return {const_cast<float *>(data.data()), shape.data(), uint32_t(shape.size()), f32};
}

} // namespace burin::rt::test
