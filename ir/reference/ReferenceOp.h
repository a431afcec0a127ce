// One evaluation of a table op by the reference interpreter, in plain C++ without MLIR.
// Each family of ops has a file Reference<Family>.cpp that ends with the table of its kernels.
#pragma once
#include "ir/infer/OpInfo.h"
#include "ir/reference/ElementMove.h"
#include "ir/reference/ReferenceTensor.h"
#include <string_view>

namespace burin::ir {

struct RefCall {
  const OpInfo &info;
  std::vector<const RefTensor *> operands; // nullptr for an absent optional one
  const std::vector<Attr> &attrs;          // in the order of info.attrs; shapes are static
  std::vector<RefTensor> results;          // zeroed, of the inferred types; without rows if the op defines its size
  std::string error;

  const RefTensor &in(size_t i = 0) const { return *operands[i]; }
  bool has(size_t i) const { return i < operands.size() && operands[i]; }
  RefTensor &out(size_t i = 0) { return results[i]; }
  template <class T> const T &attr(std::string_view name) const {
    for (size_t i = 0; i < info.attrs.size(); ++i)
      if (name == info.attrs[i].name)
        return std::get<T>(attrs[i]);
    std::abort(); // the table and the kernel disagree
  }
  bool fail(std::string message) {
    error = std::move(message);
    return false;
  }
  /// Fails with `what` unless `holds`.
  bool require(bool holds, std::string_view what) { return holds || fail(std::string(what)); }
};

/// Fills the results, or sets `error` and returns false. Results may be more precise than their type; the caller
/// rounds.
using RefKernel = bool (*)(RefCall &);

struct RefKernelEntry {
  std::string_view op;
  RefKernel kernel;
};
/// nullptr if `op` is not in the table.
RefKernel findReferenceKernel(std::string_view op);
/// Runs the kernel; exceptions, such as failed allocations, become errors.
bool runGuarded(RefKernel kernel, RefCall &call);

namespace ref {
// The families.
bool elementwise(RefCall &);
std::span<const RefKernelEntry> moveKernels();
std::span<const RefKernelEntry> indexKernels();
std::span<const RefKernelEntry> orderKernels();
std::span<const RefKernelEntry> reductionKernels();
std::span<const RefKernelEntry> productKernels();
std::span<const RefKernelEntry> convolutionKernels();
std::span<const RefKernelEntry> poolKernels();
std::span<const RefKernelEntry> normKernels();
std::span<const RefKernelEntry> randomKernels();
} // namespace ref

} // namespace burin::ir
