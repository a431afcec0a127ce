#include "passes/lower/contractions/Pack.h"
#include "passes/TargetIndependent.h"
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/IterationSpace.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {

int64_t panelWidth(Value v) {
  DType type = dtypeOf(v);
  bool wide = type == DType::f64 || type == DType::i64;
  return kPanelBytes / (wide ? 8 : 4);
}

static Value reshaped(OpBuilder &b, mlir::Location loc, Value x, Shape shape) {
  return shapeOf(x) == shape ? x : create<ReshapeOp>(b, loc, {x}, {{"shape", std::move(shape)}});
}

Value float8Of(OpBuilder &b, Value x) {
  Operation *op = x.getDefiningOp();
  if (auto cast = dyn_cast_or_null<CastOp>(op))
    return isFloat8(dtypeOf(cast.getX())) ? cast.getX() : Value();
  Value inner = isa_and_present<ReshapeOp, TransposeOp>(op) ? float8Of(b, op->getOperand(0)) : Value();
  if (!inner)
    return {};
  if (auto permuted = dyn_cast<TransposeOp>(op))
    return create<TransposeOp>(b, op->getLoc(), {inner}, {{"perm", std::vector<int64_t>(permuted.getPerm())}});
  return reshaped(b, op->getLoc(), inner, shapeOf(x));
}

/// Whether kernels for GPUs read a right side as it lies in memory: it would be packed in every run, or a library may
/// read it, and its lines may be multiples of 16 bytes, which are copied at once. A transpose writes all of it anyway,
/// into panels as well; that of a constant writes it once, unless the constant has other uses, which would keep it.
static bool isReadUnpacked(Value x, bool byLibraries) {
  constexpr int64_t kCopiedBytes = 16;
  const DType type = dtypeOf(x);
  const Dim columns = shapeOf(x).back();
  auto transpose = skipReshapes(x).getDefiningOp<TransposeOp>();
  if (!isFloat(type) || isFloat8(type) ||
      (isConstantExpression(x) ? !byLibraries || (transpose && !transpose.getX().hasOneUse()) : bool(transpose)))
    return false;
  return !columns.isStatic() || (columns.value() > 0 && columns.value() * int64_t(byteWidth(type)) % kCopiedBytes == 0);
}

/// Whether kernels for CPUs read a right side as it lies in memory: its columns would fill one panel at most, which
/// lies in memory in the same order, and packing would copy it in every run.
static bool isNarrow(Value x) {
  const DType type = dtypeOf(x);
  const Dim columns = shapeOf(x).back();
  return (type == DType::f32 || type == DType::f64) && columns.isStatic() && columns.value() > 0 &&
         columns.value() <= panelWidth(x) && !isConstantExpression(x);
}

Value columnPanels(OpBuilder &b, mlir::Location loc, Value x) {
  GraphBuilder g(b, loc);
  Value columns = g.transposeLastTwo(x);
  Shape shape = shapeOf(columns);
  shape.push_back(Dim(1));
  return g.reshape(columns, shape);
}

Value pack(OpBuilder &b, mlir::Location loc, Value x, Readers readers, bool isThin) {
  const DType type = dtypeOf(x);
  if (readers.onGpus && !isThin && byteWidth(type) == 1 && !isBool(type))
    return columnPanels(b, loc, x);
  Value stored = dtypeOf(x) == DType::f32 ? float8Of(b, x) : Value();
  if (!stored && ((readers.onGpus && isReadUnpacked(x, readers.libraries)) || (readers.onCpus && isNarrow(x)))) {
    Shape shape = shapeOf(x);
    shape.insert(shape.end() - 2, Dim(1));
    return reshaped(b, loc, x, shape);
  }
  return create<PackOp>(b, loc, {stored ? stored : x}, {{"width", panelWidth(x)}});
}

int64_t rowsOfLeftPanels(Value x, const Dim &columns) {
  constexpr int64_t kLineBytes = 64, kSharingBytes = 512, kLeastBytes = 1024; // with fewer bytes, packing is as slow
  constexpr int64_t kLeastDepth = 64, kLeastColumns = 128;                    // that make up for packing
  auto transpose = x.getDefiningOp<TransposeOp>();
  const Shape shape = shapeOf(x);
  const DType type = dtypeOf(x);
  if (!transpose || shape.size() != 2 || !shape[0].isStatic() || (type != DType::f32 && type != DType::f64))
    return 0;
  const int64_t width = byteWidth(type), bytes = shape[0].value() * width;
  if (bytes < kLeastBytes || bytes % kSharingBytes || lowerBound(columns).value_or(0) < kLeastColumns ||
      (shape[1].isStatic() && shape[1].value() < kLeastDepth))
    return 0;
  return kLineBytes / width;
}

} // namespace burin::passes
