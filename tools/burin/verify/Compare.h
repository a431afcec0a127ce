// Tolerances for comparing results with those of the reference interpreter.
#pragma once
#include "ir/reference/ReferenceTensor.h"
#include "tools/burin/Commands.h"
#include "tools/common/Values.h"

namespace burin::cli {

/// Allowed difference: atol + rtol * |reference|.
struct Tolerance {
  double rtol, atol;
};

/// The options --rtol and --atol; the default depends on the element type.
struct ToleranceArguments {
  double rtol = -1, atol = -1; // negative: not given

  void addTo(CLI::App &command);
  Tolerance of(DType) const;
};

run::Values valuesOf(const rt::NpyArray &);
ir::RefTensor toReference(const run::Values &);
rt::NpyArray copyOf(const run::Values &);

/// Compares two tensors of the same shape.
run::Difference compare(const run::Values &got, const ir::RefTensor &expected, Tolerance);
bool sameType(const run::Values &, const ir::RefTensor &);

/// "1.23e-04", "0.333333333"
std::string scientific(double);
std::string exact(double);

} // namespace burin::cli
