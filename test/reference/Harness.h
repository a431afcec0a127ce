// Evaluates single ops and functions for the tests of the reference interpreter. Does not expose MLIR, so that the
// tests compile fast.
#pragma once
#include "ir/infer/OpInfo.h"
#include "ir/reference/ReferenceTensor.h"
#include <functional>
#include <map>
#include <string>

namespace burin::test {

using Attrs = std::map<std::string, ir::Attr>;

struct Outcome {
  std::vector<ir::RefTensor> results;
  std::string error; // the diagnostics, one per line; empty if the evaluation succeeded
  bool ok() const { return error.empty(); }
  const ir::RefTensor &operator*() const { return results.at(0); }
  const ir::RefTensor *operator->() const { return &results.at(0); }
};

/// Records one op as the frontend does (loose attributes become canonical) and evaluates it. A null operand is an
/// absent optional one.
Outcome evaluateOp(const std::string &name, std::vector<const ir::RefTensor *> operands, const Attrs &attrs = {},
                   const ir::RefOptions &options = {});
Outcome evaluateOp(const std::string &name, std::initializer_list<ir::RefTensor> operands, const Attrs &attrs = {},
                   const ir::RefOptions &options = {});

/// Folds the same op on constants and returns the bytes of the results; empty if it does not fold. `bytes` are those of
/// the operands; where empty, those of the tensors.
std::vector<std::vector<char>> foldedBytes(const std::string &name, std::vector<const ir::RefTensor *> operands,
                                           const Attrs &attrs = {}, const std::vector<std::vector<char>> &bytes = {});

/// Called with the name of each evaluated op and its results.
using Observer = std::function<void(const std::string &op, const std::vector<ir::RefTensor> &results)>;
/// Parses a module and runs @main.
Outcome interpretText(const std::string &text, const std::vector<ir::RefTensor> &inputs, const Observer &onOp = {},
                      const ir::RefOptions &options = {});

ir::RefTensor reals(std::vector<double> elements, std::vector<int64_t> shape = {}, DType dtype = f32);
ir::RefTensor integers(std::vector<int64_t> elements, std::vector<int64_t> shape = {}, DType dtype = i64);

/// Returns "" for equal types, shapes and elements (NaN equals NaN), else a message about the difference.
std::string difference(const ir::RefTensor &got, const ir::RefTensor &expected, double tolerance = 0);

} // namespace burin::test
