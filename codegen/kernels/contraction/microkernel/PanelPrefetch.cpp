#include "codegen/kernels/contraction/microkernel/PanelPrefetch.h"

using namespace mlir;

namespace burin::codegen {

void PanelPrefetch::share(Value next, Value depth, Value visit, Value visits) {
  Value all = k.constant(width * int64_t(chunks.size()));
  perStep = k.div(k.add(all, k.sub(visits, k.constant(1))), visits);
  shareFrom = k.add(next, k.mul(k.minimum(k.mul(visit, perStep), all), depth));
}

void PanelPrefetch::eachLine(Value step, llvm::function_ref<void(Value at)> body) {
  for (Value chunk : chunks)
    for (int64_t i = 0; i < taken; i += kLineBytes / byteWidth(panels.dtype))
      body(k.add(k.add(chunk, k.mul(step, k.constant(width))), k.constant(i)));
}

void PanelPrefetch::operator()(int64_t rows, int64_t ahead, Value step) {
  int64_t perLine = kLineBytes / byteWidth(panels.dtype);
  // In a panel that has been prefetched to L2, the hardware prefetches one line per step in time.
  bool near = chunks.size() == 1 && (!shareFrom || taken > perLine);
  // The streams of a single row are long enough for the hardware prefetcher. Of cached panels these prefetches cost
  // convolutions of 512 channels a tenth to a sixth of their time on a Granite Rapids, an LSTM of few rows an eighth.
  bool far = !shareFrom && !areCached && rows > 1;
  eachLine(step, [&](Value at) {
    if (near)
      line(k.add(at, k.constant(k.target.machine.prefetchNearSteps * width)), 3);
    if (far)
      line(k.add(at, k.constant(k.target.machine.prefetchFarSteps * width)), 2);
  });
  if (!shareFrom)
    return;
  auto known = k.constantOf(perStep);
  if (ahead % (known ? std::max<int64_t>(perLine / *known, 1) : 1) == 0)
    line(k.add(shareFrom, k.mul(step, perStep)), 2);
}

void PanelPrefetch::row(Value step) {
  eachLine(step, [&](Value at) { line(at, 3); });
}

/// `locality` 3 prefetches to L1, 2 to L2.
void PanelPrefetch::line(Value at, int64_t locality) {
  LLVM::Prefetch::create(k.b, k.loc, k.elementPointer(panels, at), 0, locality, 1);
}

} // namespace burin::codegen
