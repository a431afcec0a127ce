#include "codegen/kernels/window/WindowSchedule.h"
#include "passes/TargetIndependent.h"
#include "passes/kernels/families/KernelFamily.h"

using namespace burin::ir;

namespace burin::codegen {

constexpr int64_t kFewestLanes = 4; // lanes of a position: those of the shortest register
constexpr int64_t kFewVectors = 4;  // vectors per pixel; fewer lie in few cache lines
/// Accumulators of a contraction's tile on the target that has most: tasks are equal on all targets.
constexpr int64_t kMostAccumulators = 24;

WindowSchedule::WindowSchedule(const Window &w, DType type, Shape resultShape, const Target &target, bool readsMemory)
    : w(w), type(type), sumType(passes::sumTypeOf(type)), x(shapeOf(w.x)), result(std::move(resultShape)),
      last(w.spatial), columns(result[last].value()), width(x[last].value()), lanes(target.lanes(byteWidth(sumType))),
      target(target), readsMemory(readsMemory) {
  const passes::WindowShare &most = isFar() ? passes::kFarWindow : passes::kNearWindow;
  // Tasks that split a cache line between pixels would both load it.
  cutChannels(endsWithLine() ? most.channels : passes::kFarWindow.channels);
  if (w.spatial > 1) {
    size_t d = w.spatial - 2;
    if (w.strides[d] % w.dilations[d] == 0)
      sharing = llvm::divideCeil(w.kernel[d], w.strides[d] / w.dilations[d]);
    fetchesNext = shouldFetchNext(most.rows);
    int64_t tapsOfRow = positions(sharing, kMostAccumulators) * w.kernel[d] * w.kernel.back();
    mostRows = std::max<int64_t>(passes::kMostUnrolledTaps / tapsOfRow, 1);
    rowsOfTask = sharing > 1 ? std::min(most.rows, mostRows) : 1;
  }
}

/// Whether an image exceeds L2.
bool WindowSchedule::isFar() const { return bytesOfImage() > passes::kCachedBytes; }

/// Bytes of x and of the result, per image.
int64_t WindowSchedule::bytesOfImage() const {
  int64_t read = byteWidth(dtypeOf(w.x)), written = byteWidth(type);
  for (size_t d = 1; d < x.size(); ++d) {
    if (!x[d].isStatic() || !result[d].isStatic())
      return std::numeric_limits<int64_t>::max();
    read *= x[d].value(), written *= result[d].value();
  }
  return read + written;
}

/// Splits channels into tasks of about equal size, in whole vectors of the widest target. The channels of an incomplete
/// last vector belong to the last task.
void WindowSchedule::cutChannels(int64_t most) {
  const Dim &size = result.back();
  channelBlock = most;
  blocks = ceildiv(size, most);
  if (size.isStatic() && size.value() > 0) {
    int64_t unit = kLineBytes / int64_t(byteWidth(sumType));
    int64_t whole = std::max<int64_t>(size.value() / unit, 1), parts = llvm::divideCeil(whole * unit, most);
    channelBlock = unit * llvm::divideCeil(whole, parts);
    blocks = llvm::divideCeil(whole * unit, channelBlock);
  }
}

/// A single row uses a third of the registers that contractions use as accumulators; elements of x and of the filter
/// use the others. Several rows that share elements use up to two thirds.
int64_t WindowSchedule::positions(int64_t rowsOfTile, int64_t accumulators) const {
  int64_t single = std::min(accumulators / 3, passes::kMostUnrolledTaps / w.kernel.back());
  return rowsOfTile == 1 ? single : std::max<int64_t>(2 * single / (std::min(rowsOfTile, sharing) + 1), 2);
}
/// On this target; one position less if each tile prefetches the pixels of the next tile.
int64_t WindowSchedule::positions(int64_t rowsOfTile) const {
  int64_t all = positions(rowsOfTile, target.tileRows * target.tileVectors);
  return fetchesNext && rowsOfTile > 1 ? std::max<int64_t>(all - 1, 2) : all;
}

int64_t WindowSchedule::reach(size_t d, int64_t windows) const {
  return (windows - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1;
}

/// Loads from L2 that cross cache lines take longer than the computation of a tile. So each tile prefetches to L1 the
/// pixels that only the next tile needs, if L1 holds both and pixels have many vectors.
bool WindowSchedule::shouldFetchNext(int64_t rowsOfTile) const {
  const Dim &channels = result.back();
  bool ofMany = channels.isStatic() && channels.value() >= kFewVectors * lanes;
  if (!ofMany || !storesSplit() || !isFar() || !readsMemory || sharing == 1)
    return false;
  int64_t narrower = positions(rowsOfTile) - 1;
  int64_t pixels = reach(w.spatial - 2, rowsOfTile) * reach(w.spatial - 1, 2 * narrower);
  int64_t ofTask = blocks == 1 ? channels.value() : channelBlock;
  return narrower > 2 && pixels * ofTask * int64_t(byteWidth(dtypeOf(w.x))) <= passes::kWindowTileBytes;
}

Dim WindowSchedule::bands() const {
  const Dim &size = result[last - 1];
  if (!size.isStatic() || rowsOfTask == 1 || size.value() <= rowsOfTask)
    return ceildiv(size, rowsOfTask);
  int64_t about = (size.value() + rowsOfTask) / (2 * rowsOfTask), fewest = llvm::divideCeil(size.value(), 2 * mostRows);
  return 2 * std::max(about, fewest);
}

Dim WindowSchedule::tasks() const {
  Dim tasks = blocks;
  for (size_t d = 0; d + 1 < last; ++d)
    tasks = tasks * result[d];
  return tasks * bands();
}

int64_t WindowSchedule::lanesOfRest() const {
  const Dim &size = result.back();
  if (!size.isStatic() || byteWidth(type) < 4)
    return lanes;
  return std::min(lanes, std::max<int64_t>(llvm::PowerOf2Ceil(size.value() % lanes), kFewestLanes));
}

bool WindowSchedule::isInside(int64_t from, int64_t size) const {
  size_t d = last - 1;
  int64_t first = from * w.strides[d] - w.low[d];
  return first >= 0 && first + reach(d, size) <= width;
}

bool WindowSchedule::storesSplit() const {
  return target.machine.splitStoresWait && target.vectorBytes == kLineBytes && !endsWithLine();
}

/// Whether the channels of a pixel fill whole cache lines.
bool WindowSchedule::endsWithLine() const {
  return result.back().isStatic() && result.back().value() * byteWidth(type) % kLineBytes == 0;
}

std::string WindowSchedule::text() const {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "  tasks: " << bands().str() << " band(s) of up to " << rowsOfTask << " row(s), " << blocks.str()
      << " block(s) of " << channelBlock << " channel(s)\n";
  out << "  tiles: about " << positions(rowsOfTask) << " of " << columns << " position(s) times " << lanes
      << " channel(s) in " << rowsOfTask << " row(s), sums in " << name(sumType) << "\n";
  if (sharing > 1)
    out << "  a row of the operand is loaded once for up to " << sharing << " row(s) of windows\n";
  if (fetchesNext)
    out << "  tiles fetch the pixels of the next one\n";
  return text;
}

} // namespace burin::codegen
