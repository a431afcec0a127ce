// Computes the values of an aligned kernel at one point (or a vector of points) of its iteration space.
#pragma once
#include "codegen/emit/ElementEmitter.h"
#include "passes/analysis/IterationSpace.h"

namespace burin::codegen {

class PointEmitter {
public:
  PointEmitter(ElementEmitter &elements, const passes::IterationSpace &alignment)
      : e(elements), k(elements.k), alignment(alignment), point(alignment.space.size()) {}

  ElementEmitter &e;
  KernelBuilder &k;
  const passes::IterationSpace &alignment;
  /// Whether stores go past the cache, see Memory.
  bool streamed = false;
  /// Where we are, per dimension of the space.
  SmallVector<Index> point;
  /// Where we are soon: operands are fetched from there, too. Empty: nowhere.
  SmallVector<Index> later;

  /// The element of `v` at the point; a scalar when it is the same for all lanes.
  Value at(Value v);
  /// Sets the element of `v` at the point, for the rest of the scope.
  void bind(Value v, Value element) { known.back()[v] = element; }
  /// With `element` of `main` computed at a position of its shape: what is fused behind it, and the stores of all that
  /// the body yields. One element, or a vector with e.mask.
  void finish(Value main, ArrayRef<Index> at, Value element, mlir::Block &body, ArrayRef<Value> results);
  /// Fetches the lines that finish() will write there.
  void fetchResults(Value main, ArrayRef<Index> at, mlir::Block &body, ArrayRef<Value> results);
  /// What is already known of `v` at the point, or null.
  Value bound(Value v);
  /// Writes `element` of `v` to memory laid out as `v` is.
  void store(Value v, Value element, Value pointer);
  /// What becomes known while it lives is forgotten when it ends.
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

  /// The row-major position in `v`'s memory of a point. Merged dimensions count once.
  Index position(Value v, ArrayRef<Index> point);

private:
  /// Goes to a position in the shape of `v`.
  void goTo(Value v, ArrayRef<Index> at);
  /// What the point of a yielded value is known by.
  Value shown(Value yielded) { return alignment.contains(yielded) ? yielded : passes::skipReshapes(yielded); }
  void prefetch(Value v, const Memory &memory, const Index &from);
  SmallVector<llvm::DenseMap<Value, Value>> known{1};
};

/// The narrowest element type among `type` and what the body yields: for masks of stores, see maskBound.
DType narrowest(mlir::Block &body, DType type);

} // namespace burin::codegen
