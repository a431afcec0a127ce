// Computes the values of a kernel at one point, or a vector of points, of its iteration space. A kernel family emits
// the loops over the space and moves the point; the pointwise ops before and after its main op are emitted here.
#pragma once
#include "codegen/emit/element/ElementEmitter.h"
#include "passes/analysis/IterationSpace.h"

namespace burin::codegen {

class PointEmitter {
public:
  PointEmitter(ElementEmitter &elements, const passes::IterationSpace &alignment)
      : e(elements), k(elements.k), alignment(alignment), point(alignment.space.size()) {}

  ElementEmitter &e;
  KernelBuilder &k;
  const passes::IterationSpace &alignment;
  /// Use non-temporal stores, see Memory.
  bool streamed = false;
  /// The current point: an index per dimension of the space.
  SmallVector<Index> point;
  /// A future point at which operands are prefetched; empty: none.
  SmallVector<Index> later;

  /// The element of `v` at the point, loaded or computed on first use; a scalar when it is the same for all lanes.
  Value at(Value v);
  /// Sets the element of `v` at the point, until the end of the scope.
  void bind(Value v, Value element) { known.back()[v] = element; }
  /// Computes the epilogue and stores all values that the kernel yields, given an element of `main`, the value that the
  /// loops of the family compute, at a place of its shape. `element` is a scalar, or a vector under e.mask.
  /// `results` are the pointers of the yielded values.
  void finish(Value main, ArrayRef<Index> at, Value element, mlir::Block &body, ArrayRef<Value> results);
  /// The same at several places, whose elements `element` computes in turn. Loads the operands of all of them before
  /// the first store, so that they do not wait for each other's stores.
  void finishAll(Value main, ArrayRef<SmallVector<Index>> positions, llvm::function_ref<Value(size_t)> element,
                 mlir::Block &body, ArrayRef<Value> results);
  /// The same for a point whose elements are bound, or can be computed from operands.
  void storeResults(mlir::Block &body, ArrayRef<Value> results);
  /// Prefetches the cache lines that finish() will write at this place.
  void fetchResults(Value main, ArrayRef<Index> at, mlir::Block &body, ArrayRef<Value> results);
  /// The known element of `v` at the point, or null.
  Value bound(Value v);
  /// Stores `element` of `v` to memory with the layout of `v`.
  void store(Value v, Value element, Value pointer);
  /// Values bound during its lifetime are forgotten at its end.
  class Scope {
  public:
    explicit Scope(PointEmitter &p) : p(p) { p.known.emplace_back(); }
    ~Scope() { p.known.pop_back(); }
    Scope(const Scope &) = delete;

  private:
    PointEmitter &p;
  };
  template <class Body> auto scoped(Body &&body) {
    Scope scope(*this);
    return e.scoped(body);
  }

  /// The row-major position of a point in the memory of `v`. Merged dimensions count once.
  Index position(Value v, ArrayRef<Index> point);

private:
  /// Moves the point to a position in the shape of `v`.
  void goTo(Value v, ArrayRef<Index> at);
  /// A yielded reshape that is not aligned with the space has the bytes of its source, which is aligned: returns that.
  Value shown(Value yielded) { return alignment.contains(yielded) ? yielded : passes::skipReshapes(yielded); }
  void prefetch(Value v, const Memory &memory, const Index &from);
  SmallVector<llvm::DenseMap<Value, Value>> known{1};
};

/// The narrowest element type among `type` and the yielded values, for masks of stores (see maskBound).
DType narrowest(mlir::Block &body, DType type);

} // namespace burin::codegen
