// Computes single elements, or vectors of elements, of any value in a kernel by recursion through the ops that define
// it. No op is materialised: `element(v, at)` emits exactly the code that this element needs.
#pragma once
#include "codegen/emit/builder/KernelBuilder.h"
#include "codegen/scalar/Elementwise.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/SlidingWindow.h"
#include "passes/analysis/StridedView.h"

namespace burin::codegen {

/// A tensor in memory, dense or seen through a transpose.
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

  /// The element(s) of `v` at a place; a scalar if it is equal for all lanes. Lanes where `mask` is off are
  /// unspecified but never fault.
  Value element(Value v, ArrayRef<Index> at);

  /// Sets the memory of a kernel operand.
  void bindMemory(Value v, Memory memory) { memories[v] = std::move(memory); }
  std::optional<Memory> memoryOf(Value v);
  /// The memory of `v`: an operand of the kernel, reshaped and optionally transposed.
  StridedMemory stridedMemoryOf(Value v);
  StridedMemory stridedMemoryOf(const passes::StridedView &);
  /// Caches computed elements for the duration of `body`. Required around every nested block, because elements computed
  /// in a block do not dominate the code after it.
  template <class Body> auto scoped(Body &&body) {
    known.emplace_back();
    positions.emplace_back();
    struct Pop {
      ElementEmitter &e;
      ~Pop() {
        e.known.pop_back();
        e.positions.pop_back();
      }
    } pop{*this};
    return body();
  }
  /// Runs `body` with the mask restricted by `extra`.
  Value masked(Value extra, llvm::function_ref<Value()> body);

  /// States that while `body` runs, every index that is computed from `base`, as `base` for all lanes or as `base +
  /// lane`, lies in [from, to) in all active lanes. Concats and pads then emit the code of one piece alone.
  template <class Body> auto knowing(Value base, const Dim &from, const Dim &to, Body &&body) {
    ranges.push_back({base, from, to});
    struct Pop {
      ElementEmitter &e;
      ~Pop() { e.ranges.pop_back(); }
    } pop{*this};
    return body();
  }

  KernelBuilder &k;
  Value mask; // active lanes; null: all

  // ---- shared with the emitters of structured kernels
  /// Splits a row-major position into one index per dimension.
  SmallVector<Index> delinearize(const Index &position, ArrayRef<Dim> shape);
  /// Lanes of i1: from <= i < to.
  Value inRange(const Index &i, Value from, Value to);
  /// Scalar i1: from <= i < to for all lanes. Null if that needs arithmetic per lane.
  Value allInRange(const Index &i, Value from, Value to);
  /// The value of `fast` if the scalar condition holds, else of `slow`; null stands for false.
  Value either(Value condition, DType type, llvm::function_ref<Value()> fast, llvm::function_ref<Value()> slow);
  /// Converts an element of an integer tensor to an index.
  Index asIndex(Value element, DType type);
  /// Reports an error of `check` where `isGood` (i1, or lanes) is false. `at` is the position in a tensor of this
  /// shape.
  void require(Value isGood, const Shape &shape, ArrayRef<Index> at, mlir::Operation *check);
  /// Reports the error of a CheckOp where an element of its condition is false.
  void require(ir::CheckOp, Value condition, ArrayRef<Index> at);
  /// The position along its axis at which a take or a gather reads, given the position in the indices. Checked.
  Index takenAt(mlir::Operation *op, ArrayRef<Index> where);
  /// Converts an index that may count from the end (negative) to one that counts from the start.
  Index fromStart(const Index &i, Value size);
  Value zeroOf(DType type);
  /// Whether the code of `times` elements of `v` is small enough to be emitted one after the other.
  bool mayRepeat(Value v, int64_t times) { return codeOf(v) * times <= kMostInBranches; }

private:
  static constexpr int64_t kMostInBranches = 64; // ops
  int64_t codeOf(Value v);
  /// Whether the code of an element of `v` is small enough to be emitted in several branches.
  bool mayBranch(Value v) { return mayRepeat(v, 1); }
  SmallVector<Index> throughReshape(ArrayRef<Index> at, ArrayRef<Dim> to, ArrayRef<Dim> from,
                                    const passes::SizeClasses &);
  /// Sizes that are equal in every run of the kernel with `op`.
  const passes::SizeClasses &classesAround(mlir::Operation *op);
  // Rules that op definitions name as `element`, in the order of the op table.
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
  Value padding(ir::PadOp pad);
  Value pairsOf(mlir::Operation *op, ArrayRef<Index> at);
  Index clampIndex(const Index &i, Value size);
  Index select(Value condition, const Index &x, const Index &y);
  Index reflect(const Index &i, Value size);

  struct Known {
    SmallVector<Index> at;
    Value mask;
    int64_t width;
    Value element;
  };
  struct Range {
    Value base;
    Dim from, to;
  };
  std::optional<Range> rangeOf(const Index &i);
  /// Whether a position is known to lie in [from, to) in all lanes.
  bool isWithin(const Index &i, const Dim &from, const Dim &to);
  /// Whether it is known to lie outside in all lanes.
  bool isOutside(const Index &i, const Dim &from, const Dim &to);
  SmallVector<Range> ranges;

  struct KnownPosition {
    mlir::Operation *op;
    SmallVector<Index> where;
    Value mask;
    int64_t width;
    Index position;
  };
  Value compute(Value v, ArrayRef<Index> at);

  llvm::DenseMap<Value, Memory> memories;
  llvm::DenseMap<Value, int64_t> codeSizes;
  std::optional<passes::SizeClasses> classes; // found on first use
  SmallVector<llvm::DenseMap<Value, SmallVector<Known, 1>>> known{1};
  SmallVector<SmallVector<KnownPosition, 1>> positions{1};
};

} // namespace burin::codegen
