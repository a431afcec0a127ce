// Computes single elements (or vectors of them) of any value inside a kernel by pulling them through the ops that
// define it. Ops are never materialised here: `element(v, at)` emits exactly what that element needs.
#pragma once
#include "codegen/emit/KernelBuilder.h"
#include "codegen/scalar/Elementwise.h"
#include "passes/analysis/SlidingWindow.h"
#include "passes/analysis/StridedView.h"

namespace burin::codegen {

/// Memory whose elements are read by position: a tensor as it lies, or seen through a transpose.
struct StridedMemory {
  Memory memory;
  SmallVector<Dim> strides; // in elements, per dimension of the value
};

using passes::rowMajorStrides;
using passes::Window;
using passes::windowOf;

class ElementEmitter {
public:
  explicit ElementEmitter(KernelBuilder &k) : k(k) {}

  /// The element(s) of `v` at a position; a scalar when it is the same for all lanes. Lanes where `mask` is off may
  /// hold anything, but never fault.
  Value element(Value v, ArrayRef<Index> at);

  /// Where a kernel operand lives.
  void bindMemory(Value v, Memory memory) { memories[v] = std::move(memory); }
  std::optional<Memory> memoryOf(Value v);
  /// Where `v` lives: an operand of the kernel, reshaped, and perhaps transposed then.
  StridedMemory stridedMemoryOf(Value v);
  /// Elements already computed are reused; those computed inside `body` are forgotten after it. Needed around every
  /// nested block.
  template <class Body> auto scoped(Body &&body) {
    known.emplace_back();
    struct Pop {
      ElementEmitter &e;
      ~Pop() { e.known.pop_back(); }
    } pop{*this};
    return body();
  }
  /// Runs `body` with `extra` also required of every lane.
  Value masked(Value extra, llvm::function_ref<Value()> body);

  KernelBuilder &k;
  Value mask; // lanes that count, null for all

  // ---- shared with the emitters of structured kernels
  /// Splits a row-major position into one index per dimension.
  SmallVector<Index> delinearize(const Index &position, ArrayRef<Dim> shape);
  /// i1 (lanes): from <= i < to.
  Value inRange(const Index &i, Value from, Value to);
  /// Scalar i1: from <= i < to for all lanes. Null if that takes arithmetic on lanes.
  Value allInRange(const Index &i, Value from, Value to);
  /// Lanes of `type`: those of `fast` where the scalar condition holds, else of `slow`; without a condition, `slow`.
  Value either(Value condition, DType type, llvm::function_ref<Value()> fast, llvm::function_ref<Value()> slow);
  /// An i64 tensor element as an index.
  Index asIndex(Value element, DType type);
  /// Reports an error of `check` where `isGood` (i1, or lanes) does not hold; `at` is the position in a tensor of this
  /// shape.
  void require(Value isGood, const Shape &shape, ArrayRef<Index> at, mlir::Operation *check);
  /// The same for an element of the condition.
  void require(ir::CheckOp, Value condition, ArrayRef<Index> at);
  /// The index `i` counted from 0, where it may count from the end.
  Index fromStart(const Index &i, Value size);
  Value zeroOf(DType type);

private:
  static constexpr int64_t kMostInBranches = 64; // ops
  int64_t codeOf(Value v);
  /// Whether code for an element of `v` may be there several times, in branches.
  bool mayBranch(Value v) { return codeOf(v) <= kMostInBranches; }
  SmallVector<Index> throughReshape(ArrayRef<Index> at, ArrayRef<Dim> to, ArrayRef<Dim> from);
  // The rules that op definitions name as `element`, in the order of the op table.
  using Rule = Value (ElementEmitter::*)(mlir::Operation *op, ArrayRef<Index> at);
  static Rule const rules[];
  Value none(mlir::Operation *op, ArrayRef<Index> at);
  Value repeated(mlir::Operation *op, ArrayRef<Index> at);
  Value transposed(mlir::Operation *op, ArrayRef<Index> at);
  Value sliced(mlir::Operation *op, ArrayRef<Index> at);
  Value flipped(mlir::Operation *op, ArrayRef<Index> at);
  Value counted(mlir::Operation *op, ArrayRef<Index> at);
  Value filled(mlir::Operation *op, ArrayRef<Index> at);
  Value lowerTriangle(mlir::Operation *op, ArrayRef<Index> at) { return triangle(op, at, true); }
  Value upperTriangle(mlir::Operation *op, ArrayRef<Index> at) { return triangle(op, at, false); }
  Value reshaped(mlir::Operation *op, ArrayRef<Index> at);
  Value padded(mlir::Operation *op, ArrayRef<Index> at);
  Value paddedAnywhere(ir::PadOp pad, ArrayRef<Index> at);
  Value concatenated(mlir::Operation *op, ArrayRef<Index> at);
  Value taken(mlir::Operation *op, ArrayRef<Index> at);
  Value triangle(mlir::Operation *op, ArrayRef<Index> at, bool lower);
  Value random(mlir::Operation *op, ArrayRef<Index> at);
  Value windowed(mlir::Operation *op, ArrayRef<Index> at);
  Value windowsInside(const Window &, ArrayRef<Index> at);
  Value averaged(mlir::Operation *op, ArrayRef<Index> at);
  Value averagedAnywhere(mlir::Operation *op, ArrayRef<Index> at, bool areInside);
  Value packed(mlir::Operation *op, ArrayRef<Index> at);
  Index clampIndex(const Index &i, Value size);
  Index select(Value condition, const Index &x, const Index &y);
  Index reflect(const Index &i, Value size);

  struct Known {
    SmallVector<Index> at;
    Value mask;
    int64_t width;
    Value element;
  };
  Value compute(Value v, ArrayRef<Index> at);

  llvm::DenseMap<Value, Memory> memories;
  llvm::DenseMap<Value, int64_t> codeSizes;
  SmallVector<llvm::DenseMap<Value, SmallVector<Known, 1>>> known{1};
};

} // namespace burin::codegen
