#include "codegen/kernels/contraction/ContractionSchedule.h"
#include "codegen/kernels/contraction/ZeroRow.h"
#include "codegen/kernels/contraction/microkernel/CompressedRow.h"
#include "codegen/kernels/contraction/microkernel/KeptSums.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

DType accumulatorType(DType type) {
  if (type == DType::f64 || type == DType::i64)
    return type;
  return isFloat(type) ? DType::f32 : DType::i32;
}

} // namespace

Target targetOfColumns(ContractOp op, const Target &target) {
  Target used = target;
  const Dim columns = shapeOf(op.getResult()).back();
  const DType type = dtypeOf(op.getLhs());
  if (target.avx512 && (type == DType::f32 || type == DType::f64) && !op.getTerms() && columns.isStatic() &&
      columns.value() * int64_t(byteWidth(type)) <= target.vectorBytes / 2)
    used.vectorBytes /= 2;
  return used;
}

/// Rows of a tile of pairs with 16 registers: sums, and two vectors of columns as pairs and as f32.
constexpr int64_t kRowsOfPairs = 5;

ContractionSchedule::ContractionSchedule(ContractOp op, StridedMemory leftSide, const Target &target)
    : ContractionLoopNest(op, std::move(leftSide)), sumType(accumulatorType(dtypeOf(op.getLhs()))),
      lanes(target.lanes(byteWidth(sumType))), panelWidth(shapeOf(op.getRhs()).back().value()),
      isPacked(panelWidth == passes::kPanelBytes / byteWidth(sumType)), chunkWidth(target.tileVectors * lanes),
      sumsOfTile(target.tileRows * target.tileVectors) {
  chooseTile(target);
  skipsZeros = op.getFinite() && sum.size() == 1 && left.strides.back() == Dim(1);
  cutColumns(target);
  cutTasks();
  chooseChunks();
  staysCached = keepsSums || rightSidesStayCached();
}

bool ContractionSchedule::isInLoop() {
  auto function = op->getParentOfType<func::FuncOp>();
  return function && function.isPrivate();
}

/// Whether the right sides of all products of the function fit in L2, where the next iteration of a loop, or the next
/// run, finds them.
bool ContractionSchedule::rightSidesStayCached() {
  auto function = op->getParentOfType<func::FuncOp>();
  if (!function)
    return false;
  int64_t bytes = 0;
  auto walked = function.walk([&](ContractOp product) {
    const Dim count = elements(shapeOf(product.getRhs()));
    bytes += count.isStatic() ? count.value() * byteWidth(dtypeOf(product.getRhs())) : passes::kCachedBytes + 1;
    return bytes > passes::kCachedBytes ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !walked.wasInterrupted();
}

/// Tiles of several chunks have fewer rows, so they read more of the panels for each product, and their panels must
/// stay in L2.
void ContractionSchedule::chooseChunks() {
  constexpr double kLeastHeight = 4.5; // rows; measured on an Ice Lake, where 7 rows in tiles of 4 and 3 are slower
  if (along.size.isStatic() && (!byRows || tiling.unitsPerBlock.isStatic())) {
    const int64_t all = along.size.value(), rows = byRows ? std::min(all, tiling.unitsPerBlock.value()) : all;
    const int64_t tiles = llvm::divideCeil(rows, rowsOf(tileChunks * chunkVectors()));
    if ((tiles > 1 && double(rows) < kLeastHeight * double(tiles)) || (byRows && rows < leastRows()))
      tileChunks = 1;
  }
  const bool areFew = rowsOfTask.isStatic() && rowsOfTask.value() <= tileRows;
  keepsSums = !areFew && (!byRows || rowsOfTask.isStatic()) && isDeepOverWindows(tileChunks);
  const int64_t bytesPerStep = tileChunks * chunkWidth * byteWidth(dtypeOf(op.getRhs()));
  if (!keepsSums && depth.isStatic() && depth.value() * bytesPerStep > passes::kCachedBytes / 4 * 3)
    tileChunks = 1;
}

/// Lower tiles read panels more often, which few rows do not hide. On a Granite Rapids products with tiles of two
/// chunks take 0.85 to 0.9 of the time for 24 to 96 rows if the panels stay in L2, but 1.03 to 1.1 for 24 to 64 rows if
/// they come from memory, and 1.4 for 14.
int64_t ContractionSchedule::leastRows() const {
  constexpr int64_t kOfCached = 24, kOfOthers = 72;
  const Dim bytes = depth * columns * Dim(byteWidth(sumType));
  return bytes.isStatic() && bytes.value() <= passes::kCachedBytes ? kOfCached : kOfOthers;
}

void ContractionSchedule::chooseTile(const Target &target) {
  // If rows are a multiple of the way size apart, their cache lines share a set of L1, so a tile must not have more
  // rows than L1 has ways.
  const Machine &machine = target.machine;
  bool shareSet = gathered.empty() && along.stride.isStatic() &&
                  along.stride.value() * byteWidth(left.memory.dtype) % machine.l1WayBytes == 0;
  tileRows = shareSet ? std::min(target.tileRows, machine.l1Ways) : target.tileRows;
  if (pairs && !target.avx512)
    tileRows = std::min(tileRows, kRowsOfPairs);
  // Chunks of bf16 terms are squares of AMX tiles.
  tileChunks = op.getTerms() ? 1 : machine.tileChunks;
  if (rowGroup > rowsOf(tileChunks * chunkVectors()))
    tileChunks = 1;
}

int64_t ContractionSchedule::rowsOf(int64_t vectors) const {
  return std::min(tileRows, std::max<int64_t>(sumsOfTile / vectors, 1));
}

void ContractionSchedule::cutColumns(const Target &target) {
  columns = allColumns = shapeOf(op.getResult()).back();
  if (Value tail = op.getTail())
    columns = columns - (tailColumns = shapeOf(tail)[op.getBatch() + 1].value());
  if (columns.isStatic() && columns.value() % chunkWidth)
    narrowVectors = (columns.value() % chunkWidth + lanes - 1) / lanes;
  // A separate last chunk spares full chunks their masks, which are cheap only with AVX-512.
  if (narrowVectors == target.tileVectors && target.avx512)
    narrowVectors = 0;
}

/// Tasks are batches times blocks of units times blocks of panels. The split is the same on every target.
void ContractionSchedule::cutTasks() {
  batches = 1;
  for (size_t i = 0; i < op.getBatch(); ++i)
    batches = batches * shapeOf(op.getResult())[i];
  byRows = outer.empty() && !along.cut;
  units = byRows ? along.size : Dim(1);
  for (Step &dim : outer)
    units = units * dim.size;
  if (rowGroup > 1)
    units = floordiv(units, rowGroup);
  tiling = ContractionTiling(byRows && rowGroup == 1, units, byRows ? Dim(rowGroup) : along.size, depth, columns,
                             byteWidth(dtypeOf(op.getRhs())), byteWidth(sumType), bool(op.getTerms()));
  if (rowGroup > 1) {
    units = units * Dim(rowGroup);
    tiling.unitsPerBlock = tiling.unitsPerBlock * Dim(rowGroup);
  }
  rowsOfTask = byRows ? tiling.unitsPerBlock : tiling.unitsPerBlock * along.size;
}

Dim ContractionSchedule::tasks() const {
  return batches * tiling.unitBlocks * ceildiv(tiling.panels, tiling.panelsPerBlock);
}

Dim ContractionSchedule::scratchBytes() const {
  if (keepsSums)
    return KeptSums::scratchBytes(rowsOfTask, sumType, tileChunks * chunkWidth);
  if (ZeroRow::isNeeded(*this))
    return ZeroRow::scratchBytes(*this);
  return skipsZeros ? CompressedRow::scratchBytes(depth, sumType) : Dim(0);
}

std::string ContractionSchedule::text() const {
  std::string result;
  llvm::raw_string_ostream out(result);
  out << "  tasks: " << batches.str() << " batch(es), " << tiling.unitBlocks.str() << " block(s) of "
      << tiling.unitsPerBlock.str() << (byRows ? " row(s), blocks of " : " outer position(s), blocks of ")
      << tiling.panelsPerBlock.str() << " of " << tiling.panels.str() << " panel(s)\n";
  out << "  tiles: up to " << tileRows << " of " << along.size.str() << " row(s) times " << chunkWidth << " of "
      << columns.str() << " column(s), ";
  if (tileChunks > 1)
    out << "or up to " << rowsOf(tileChunks * chunkVectors()) << " times " << tileChunks * chunkWidth << ", ";
  out << "sums in " << name(sumType) << ", vectors of " << lanes << "\n";
  out << "  sum over";
  for (const Step &step : sum)
    out << " " << step.size.str() << (step.cut ? " (inside the left side)" : "");
  out << (pairs ? " pairs\n" : "\n");
  if (tailColumns)
    out << "  " << tailColumns << " column(s) more are summed by lanes\n";
  if (keepsSums)
    out << "  sums wait in scratch memory between blocks of the depth\n";
  if (ZeroRow::isNeeded(*this))
    out << "  rows outside the left side read zeros\n";
  if (skipsZeros)
    out << "  single rows may leave out their zeros\n";
  return result;
}

} // namespace burin::codegen
