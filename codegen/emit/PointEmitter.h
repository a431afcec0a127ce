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

/// Emits a kernel without contraction: elementwise work, movement, reductions over the rows of its space.
/// `results[i]` is where the i-th yielded value goes. Returns the number of tasks and the scratch bytes per worker.
struct LaunchShape {
  Dim tasks;
  Dim scratchBytes;
};
LaunchShape emitRowwiseKernel(ElementEmitter &, mlir::Block &body, const passes::IterationSpace &,
                              ArrayRef<Value> results);
/// Emits a kernel around one `burin.contract` (codegen/kernels/contraction/ContractionKernel.cpp).
LaunchShape emitContractionKernel(ElementEmitter &, mlir::Block &body, const passes::IterationSpace &,
                                  ArrayRef<Value> results);
/// Emits a kernel around one depthwise convolution or max_pool with channels last and known row sizes; nothing, and
/// no code, for other bodies (codegen/kernels/WindowKernel.cpp).
std::optional<LaunchShape> emitWindowKernel(ElementEmitter &, mlir::Block &body, const passes::IterationSpace &,
                                            ArrayRef<Value> results);
/// Emits a kernel around one max_pool of rows and columns with channels before them; nothing, and no code, for other
/// bodies (codegen/kernels/PlanePoolKernel.cpp).
std::optional<LaunchShape> emitPlanePoolKernel(ElementEmitter &, mlir::Block &body, const passes::IterationSpace &,
                                               ArrayRef<Value> results);
/// The same for avg_pool (codegen/kernels/PlaneMeanKernel.cpp).
std::optional<LaunchShape> emitPlaneMeanKernel(ElementEmitter &, mlir::Block &body, const passes::IterationSpace &,
                                               ArrayRef<Value> results);
/// Emits a kernel that only transposes, or packs what it transposes, so that neither side is read or written element by
/// element; nothing, and no code, for other bodies (codegen/kernels/TransposeKernel.cpp).
std::optional<LaunchShape> emitTransposeKernel(ElementEmitter &, mlir::Block &body, Value result);
/// Emits an elementwise kernel that reads transposed operands; nothing, and no code, for other bodies
/// (codegen/kernels/TurningKernel.cpp).
std::optional<LaunchShape> emitTurningKernel(ElementEmitter &, mlir::Block &body, const passes::IterationSpace &,
                                             ArrayRef<Value> results);
/// Emits a kernel around one attention (codegen/kernels/AttentionKernel.cpp).
LaunchShape emitAttentionKernel(ElementEmitter &, mlir::Block &body, const passes::IterationSpace &,
                                ArrayRef<Value> results);
/// Emits an op that works along an axis in order: cumsum, argsort, scatter (codegen/kernels/SequentialKernel.cpp).
LaunchShape emitSequentialKernel(ElementEmitter &, mlir::Block &body, ArrayRef<Value> results);
/// Emits a kernel that is one `burin.bf16_terms` (codegen/kernels/contraction/Bf16x3Gemm.cpp).
LaunchShape emitBf16Terms(ElementEmitter &, ir::Bf16TermsOp, Value result);
/// codegen/kernels/SuppressionKernel.cpp.
LaunchShape emitSuppression(ElementEmitter &, ir::NonMaxSuppressionOp, Value result);

} // namespace burin::codegen
