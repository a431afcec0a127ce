// Kernels that only transpose, or pack the transposed: squares of lanes are read along one dimension, turned in
// registers and written along another, so that every line of the cache is read and written whole.
#include "codegen/emit/PointEmitter.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

constexpr int64_t kBlock = 64;    // elements of a task along each of the two dimensions
constexpr int64_t kLeastSize = 8; // what is known to be shorter is not worth a square

/// The result as it lies in memory, dimension by dimension, and where its elements come from.
struct Movement {
  struct Along {
    Dim size;
    Dim from, to; // elements of the source, of the result, from one index to the next
  };
  SmallVector<Along> dims;
  Memory source;
  DType type;
  int inner = -1;     // the dimension that the source is contiguous along; the result is along the last
  Dim filled;         // of a packed matrix: columns that are there, over all panels; the others are zero
  int64_t panels = 0; // of a packed matrix: how wide, else 0
};

/// As integers of the same size: nothing is computed.
DType movedAs(DType type) {
  constexpr DType bySize[] = {DType::i8, DType::i8, DType::i16, DType::i16, DType::i32};
  size_t bytes = byteWidth(type);
  return bytes == 8 ? DType::i64 : bySize[bytes];
}

/// Neighbours that lie behind each other in the source as they do in the result become one.
void merge(SmallVector<Movement::Along> &dims) {
  for (size_t i = dims.size(); i-- > 1;)
    if (dims[i - 1].from == dims[i].size * dims[i].from) {
      dims[i - 1] = {dims[i - 1].size * dims[i].size, dims[i].from, dims[i].to};
      dims.erase(dims.begin() + i);
    }
}

std::optional<Movement> movementOf(ElementEmitter &e, Block &body) {
  if (body.getTerminator()->getNumOperands() != 1)
    return std::nullopt;
  Value root = passes::skipReshapes(body.getTerminator()->getOperand(0));
  auto pack = root.getDefiningOp<PackOp>();
  Value view = pack ? pack.getX() : root;
  auto transpose = view.getDefiningOp<TransposeOp>();
  if (!transpose || !e.memoryOf(passes::skipReshapes(transpose.getX())))
    return std::nullopt;
  StridedMemory source = e.stridedMemoryOf(view);
  Movement m;
  m.type = movedAs(dtypeOf(root));
  m.source = {source.memory.pointer, m.type, {}};
  Shape shape = shapeOf(root);
  SmallVector<Dim> from = source.strides, to = rowMajorStrides(shape);
  if (pack) { // [batch…, K, N] -> [batch…, panel, K, width]
    Dim rows = from[from.size() - 2], columns = from.back();
    from.back() = rows;
    from[from.size() - 2] = columns * Dim(pack.getWidth());
    from.push_back(columns);
    m.panels = pack.getWidth();
    m.filled = shapeOf(view).back();
  }
  for (size_t i = 0; i < shape.size(); ++i)
    m.dims.push_back({shape[i], from[i], to[i]});
  if (!pack) {
    llvm::erase_if(m.dims, [](const Movement::Along &d) { return d.size == Dim(1); });
    merge(m.dims);
  }
  auto isLong = [](const Dim &size) { return upperBound(size).value_or(INT64_MAX) >= kLeastSize; };
  for (size_t i = 0; i + 1 < m.dims.size(); ++i)
    if (m.dims[i].from == Dim(1) && isLong(m.dims[i].size))
      m.inner = int(i);
  if (m.inner < 0 || m.dims.back().from == Dim(1) || !isLong(m.dims.back().size))
    return std::nullopt;
  return m;
}

class TransposeKernel {
public:
  TransposeKernel(ElementEmitter &e, const Movement &m, Value result)
      : e(e), k(e.k), m(m), target{result, m.type, {}}, inner(m.dims[m.inner]), last(m.dims.back()),
        lanes(std::min(k.target.lanes(4), k.target.lanes(int64_t(byteWidth(m.type))))) {}

  LaunchShape emit() {
    Shape counts; // of tasks: one index of each other dimension, a block of the two
    Dim tasks = 1;
    for (size_t i = 0; i < m.dims.size(); ++i) {
      bool isBlocked = int(i) == m.inner || i + 1 == m.dims.size();
      counts.push_back(isBlocked ? ceildiv(m.dims[i].size, kBlock) : m.dims[i].size);
      tasks = tasks * counts.back();
    }
    k.loop(k.lo, k.hi, k.constant(1), [&](Value task) { block(e.delinearize({task}, counts)); });
    return {tasks, 0};
  }

private:
  void block(ArrayRef<Index> at) {
    from = to = k.constant(0);
    for (size_t i = 0; i + 1 < m.dims.size(); ++i)
      if (int(i) != m.inner) {
        from = k.add(from, k.mul(at[i].base, k.dim(m.dims[i].from)));
        to = k.add(to, k.mul(at[i].base, k.dim(m.dims[i].to)));
      }
    innerEnd = k.dim(inner.size);
    lastEnd = filledEnd = k.dim(last.size);
    isFilled = true;
    if (m.panels && !isMultipleOf(m.filled, m.panels)) {
      Value panel = at[m.dims.size() - 3].base;
      filledEnd = k.minimum(lastEnd, k.sub(k.dim(m.filled), k.mul(panel, k.constant(m.panels))));
      isFilled = false;
    }
    auto each = [&](Value block, Value end, llvm::function_ref<void(Value)> body) {
      Value begin = k.mul(block, k.constant(kBlock));
      k.loop(begin, k.minimum(k.add(begin, k.constant(kBlock)), end), k.constant(lanes), body);
    };
    each(at.back().base, lastEnd, [&](Value column) {
      each(at[m.inner].base, innerEnd, [&](Value row) {
        Value isWhole = arith::AndIOp::create(k.b, k.loc, fits(row, innerEnd), fits(column, filledEnd));
        k.when(isWhole, [&] { square(row, column, false); });
        k.unless(isWhole, [&] { square(row, column, true); });
      });
    });
  }

  Value fits(Value begin, Value end) {
    return k.compare(arith::CmpIPredicate::sle, k.add(begin, k.constant(lanes)), end);
  }

  /// `isCut`: it reaches beyond what is there. What is read from beyond repeats the last element that is.
  void square(Value row, Value column, bool isCut) {
    SmallVector<Value> vectors;
    for (int64_t i = 0; i < lanes; ++i) {
      Value c = k.add(column, k.constant(i));
      if (isCut)
        c = k.minimum(c, k.sub(filledEnd, k.constant(1)));
      Value start = k.add(k.add(from, row), k.mul(c, k.dim(last.from)));
      vectors.push_back(k.load(m.source, {start, 1}, lanes, isCut ? k.below(row, innerEnd, lanes) : Value()));
    }
    k.turn(vectors);
    for (int64_t i = 0; i < lanes; ++i) {
      Value r = k.add(row, k.constant(i));
      Value start = k.add(k.add(to, column), k.mul(r, k.dim(inner.to)));
      auto write = [&] {
        Value v = vectors[i];
        if (isCut && !isFilled) {
          Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(v.getType()));
          v = arith::SelectOp::create(k.b, k.loc, k.below(column, filledEnd, lanes), v, zero);
        }
        k.store(target, {start, 1}, v, lanes, isCut ? k.below(column, k.maskBound(last.size, m.type), lanes) : Value());
      };
      isCut ? k.when(k.compare(arith::CmpIPredicate::slt, r, innerEnd), write) : write();
    }
  }

  ElementEmitter &e;
  KernelBuilder &k;
  const Movement &m;
  Memory target;
  const Movement::Along &inner, &last;
  int64_t lanes;
  Value from, to; // where the task's elements begin
  Value innerEnd, lastEnd, filledEnd;
  bool isFilled = true; // a packed matrix has all columns of all panels
};

} // namespace

std::optional<LaunchShape> emitTransposeKernel(ElementEmitter &e, Block &body, Value result) {
  if (auto movement = movementOf(e, body))
    return TransposeKernel(e, *movement, result).emit();
  return std::nullopt;
}

} // namespace burin::codegen
