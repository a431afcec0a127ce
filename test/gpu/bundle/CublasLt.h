// Products by cuBLASLt, to compare with; opened at run time.
#pragma once
#include "burin/dtype.h"
#include "runtime/gpu/Device.h"
#include <memory>

namespace burin::test::bundle {

/// The product of row-major matrices [m, k] and [k, n] of f32, f16 or bf16, with f32 sums; f32 without tensor cores.
class CublasLtProduct {
public:
  /// Null, with a status that is ok, if the library is not installed or has no code for this product.
  static rt::Status create(rt::gpu::Device &device, int64_t m, int64_t k, int64_t n, DType dtype,
                           std::unique_ptr<CublasLtProduct> &out);
  ~CublasLtProduct();
  CublasLtProduct(const CublasLtProduct &) = delete;

  /// Enqueues it; the operands are device memory.
  rt::Status run(const void *left, const void *right, void *result, rt::gpu::Stream stream);

private:
  CublasLtProduct() = default;
  struct Library;
  struct Handles;
  std::unique_ptr<Handles> handles;
  static const Library *library();
};

} // namespace burin::test::bundle
