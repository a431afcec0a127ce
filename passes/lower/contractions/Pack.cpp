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

/// Rows of a panel of a left side: a line of the cache for each step of the sum.
static int64_t rowsOfLeftPanel(DType type) {
  constexpr int64_t kLineBytes = 64;
  return kLineBytes / int64_t(byteWidth(type));
}

/// Whether the first dimension of x, which is not 1, is the last one of the value that x is a transpose of, but for
/// dimensions of 1.
static bool isTransposedFromLast(Value x) {
  auto isOne = [](const Dim &size) { return size == Dim(1); };
  auto others = [&](Shape shape) {
    llvm::erase_if(shape, isOne);
    return shape;
  };
  size_t dim = 0, size = others(shapeOf(x)).size(); // of the sizes that are not 1
  while (Operation *op = x.getDefiningOp()) {
    const Shape shape = shapeOf(x);
    if (auto transpose = dyn_cast<TransposeOp>(op)) {
      size_t before = 0, at = 0; // the dimension of `transpose` that is number `dim` of those that are not 1
      while (isOne(shape[at]) || before++ != dim)
        ++at;
      const Shape source = shapeOf(transpose.getX());
      dim = others(Shape(source.begin(), source.begin() + transpose.getPerm()[at])).size();
    } else if (!isa<ReshapeOp>(op) || others(shapeOf(op->getOperand(0))) != others(shape)) {
      break;
    }
    x = op->getOperand(0);
  }
  return size > 1 && dim + 1 == size;
}

bool isPackedLeft(Value x, const Dim &columns) {
  constexpr int64_t kSharingBytes = 512, kLeastBytes = 1024; // of the rows of a matrix; with fewer, packing is as slow
  constexpr int64_t kLeastDepth = 64;
  constexpr int64_t kLeastColumns = 128, kLeastOutputs = 64; // of a product, of a convolution, that make up for packing
  const Shape shape = shapeOf(x);
  const DType type = dtypeOf(x);
  if (!shape[0].isStatic() || shape[0].value() <= 1 || (type != DType::f32 && type != DType::f64) ||
      shape[0].value() % rowsOfLeftPanel(type) || !isTransposedFromLast(x))
    return false;
  const bool isMatrix = shape.size() == 2;
  const int64_t bytes = shape[0].value() * int64_t(byteWidth(type));
  if (isMatrix && (bytes < kLeastBytes || bytes % kSharingBytes))
    return false;
  const Dim depth = elements(Shape(shape.begin() + 1, shape.end()));
  return lowerBound(columns).value_or(0) >= (isMatrix ? kLeastColumns : kLeastOutputs) &&
         (!depth.isStatic() || depth.value() >= kLeastDepth);
}

Value packLeft(GraphBuilder &g, Value x) {
  const Shape shape = shapeOf(x);
  const int64_t width = rowsOfLeftPanel(dtypeOf(x));
  std::vector<int64_t> rowsLast, rowsSecond{0, int64_t(shape.size())};
  for (size_t d = 1; d < shape.size(); ++d) {
    rowsLast.push_back(int64_t(d));
    rowsSecond.push_back(int64_t(d));
  }
  rowsLast.push_back(0);
  const Dim depth = elements(Shape(shape.begin() + 1, shape.end()));
  Value packed = g.op<PackOp>({g.reshape(g.transpose(x, rowsLast), {depth, shape[0]})}, {{"width", width}});
  Shape whole{floordiv(shape[0], width)};
  whole.insert(whole.end(), shape.begin() + 1, shape.end());
  whole.push_back(width);
  return g.transpose(g.reshape(packed, whole), rowsSecond);
}

Windows Windows::byPanels() const {
  Windows w = *this;
  for (std::vector<int64_t> *list : {&w.kernel, &w.strides, &w.dilations})
    list->insert(list->begin(), 1);
  for (size_t at : {padding.size() / 2, size_t(0)})
    if (!padding.empty())
      w.padding.insert(w.padding.begin() + int64_t(at), 0);
  return w;
}

Value contract(OpBuilder &b, mlir::Location loc, Value lhs, Value packed, Value tail, int64_t batch, Dim columns,
               Windows w, bool wide) {
  return create<ContractOp>(b, loc, {lhs, packed, tail, {}},
                            {{"batch", batch},
                             {"columns", Shape{columns}},
                             {"kernel", std::move(w.kernel)},
                             {"strides", std::move(w.strides)},
                             {"padding", std::move(w.padding)},
                             {"dilations", std::move(w.dilations)},
                             {"wide", wide}});
}

} // namespace burin::passes
