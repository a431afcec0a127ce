// Kernels that are matrix products, by cuBLASLt where the artifact asks for it and the library is there.
#include "runtime/gpu/Gpu.h"
#include "runtime/gpu/libraries/Ranges.h"
#include "runtime/support/Format.h"
#include <algorithm>

namespace burin::rt::gpu {

void Gpu::openLibrary() {
  if (program->artifact().products.empty())
    return;
  if (Status s = CublasLt::open(library); !s.ok())
    note = text("cuBLASLt is not used: ", s.message());
}

static MatrixProduct boundTo(const Product &product, const int64_t *sizes) {
  auto size = [&](Product::Size which) {
    const LaunchSize &n = product.sizes[which];
    return n.index == LaunchSize::kNone ? n.value : sizes[n.index];
  };
  return {.type = product.type,
          .resultType = product.resultType,
          .hasBias = product.hasBias(),
          .rows = size(Product::Rows),
          .columns = size(Product::Columns),
          .depth = size(Product::Depth),
          .batches = size(Product::Batches),
          .leftStride = size(Product::LeftStride),
          .leftBatchStride = size(Product::LeftBatchStride)};
}

/// Returns false if the kernel has to be launched instead.
bool Gpu::multiply(const Product &product, const Launch &launch, const std::string &what) {
  const MatrixProduct asked = boundTo(product, launch.sizes);
  // The library takes no empty sums.
  if (std::min({asked.rows, asked.columns, asked.depth, asked.batches}) < 1 || asked.batches > INT32_MAX)
    return false;
  auto operand = [&](Product::Operand which) { return launch.operands[product.operands[which]]; };
  const CublasLt::Operands operands{operand(Product::Left), operand(Product::Right),
                                    asked.hasBias ? operand(Product::Bias) : nullptr, operand(Product::Result)};
  // The library loads its kernels at their first use, which a capture would refuse.
  constexpr int kRelaxed = 2; // CU_STREAM_CAPTURE_MODE_RELAXED
  int before = kRelaxed;
  if (isInGraph() && !works(driver()->exchangeCaptureMode(&before), "recording"))
    return true;
  std::string problem;
  usedLibrary = library->choose(asked, operands, problem);
  if (!problem.empty())
    note = text("cuBLASLt is not used for ", what, ": ", problem);
  if (usedLibrary) {
    Range range(!Range::isUsed() ? "" : text(what, " (cuBLASLt)"));
    ++enqueued;
    lastKernels = nullptr;
    if (Status s = library->enqueue(operands, launch.scratch, current); !s.ok())
      failure = {s.code(), text(target->name(), ": launching ", what, ": ", s.message())};
    else if (isChecking && !capturing)
      works(driver()->streamSynchronize(current), text("launching ", what).c_str());
  }
  Result result = kSuccess;
  for (int i = 0; i < kTries && isInGraph(); ++i) { // the thread must not stay as it is
    int mode = before;
    if (result = driver()->exchangeCaptureMode(&mode); result == kSuccess)
      break;
  }
  works(result, "recording");
  return usedLibrary;
}

} // namespace burin::rt::gpu
