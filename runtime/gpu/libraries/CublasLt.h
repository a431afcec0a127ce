// Matrix products by cuBLASLt, a library of the CUDA toolkit, opened at run time: nothing links to it. Not thread-safe.
#pragma once
#include "burin/dtype.h"
#include "runtime/gpu/libraries/Driver.h"
#include <memory>
#include <string>
#include <vector>

namespace burin::rt::gpu {

/// A product of row-major matrices of f32, f16 or bf16, with f32 sums; f32 without tensor cores. See rt::Product.
struct MatrixProduct {
  DType type = DType::f32, resultType = DType::f32;
  bool hasBias = false;
  int64_t rows = 0, columns = 0, depth = 0, batches = 1;
  int64_t leftStride = 0, leftBatchStride = 0;
  friend bool operator==(const MatrixProduct &, const MatrixProduct &) = default;
};

class CublasLt {
public:
  /// Memory on the GPU that a product may use, and no other work at the same time: what the library recommends for
  /// compute capability 9.0.
  static constexpr size_t kWorkspaceBytes = size_t(32) << 20;

  /// Opens the library, which stays open: that of the path in BURIN_CUBLASLT, or the installed one. Unsupported if
  /// there is none, or the variable is 0. The context of the device must be current, as for all functions.
  static Status open(std::unique_ptr<CublasLt> &out);
  ~CublasLt();
  CublasLt(const CublasLt &) = delete;

  struct Operands {
    const void *left, *right, *bias; // bias: null if there is none
    void *result;
  };
  /// Chooses a way to compute a product, the same one whenever sizes and alignments are the same. False if the library
  /// has none: the first time, `problem` says why.
  bool choose(const MatrixProduct &, const Operands &, std::string &problem);
  /// Enqueues the product that has been chosen last.
  Status enqueue(const Operands &, void *workspace, Stream);

private:
  struct Library;
  struct Choice;
  CublasLt();
  std::unique_ptr<Library> library;
  std::vector<std::unique_ptr<Choice>> choices;
  Choice *current = nullptr;
};

} // namespace burin::rt::gpu
