#include "codegen/kernels/rowwise/SumOrder.h"
#include "codegen/emit/Reducer.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::codegen {
namespace {

using passes::IterationSpace;

/// The size along which sums use lanes; nullopt if they add in row-major order.
std::optional<Dim> rowOf(const IterationSpace &space) {
  return !space.space.empty() && space.reduced.back() ? std::optional(space.space.back()) : std::nullopt;
}

class SumOrder {
public:
  using Emit = llvm::function_ref<LaunchShape(const IterationSpace &)>;
  SumOrder(const KernelEmission &kernel, Emit emitSpace) : kernel(kernel), k(kernel.e.k), emitSpace(emitSpace) {}

  LaunchShape emit(const IterationSpace &space) { return emit(space, setsOfOnes(space)); }

private:
  /// `sets`: what setsOfOnes() returns, less those whose sizes are not all 1.
  LaunchShape emit(const IterationSpace &space, ArrayRef<Shape> sets) {
    if (sets.empty())
      return emitSpace(space);
    Value areOne;
    std::string names;
    for (const Dim &size : sets.front()) {
      Value isOne = k.compare(arith::CmpIPredicate::eq, k.dim(size), k.constant(1));
      areOne = areOne ? Value(arith::AndIOp::create(k.b, k.loc, areOne, isOne)) : isOne;
      names += (names.empty() ? "" : ", ") + size.str();
    }
    LaunchShape ones, others;
    k.when(areOne, [&] { kernel.e.scoped([&] { ones = emit(passes::withOnes(kernel.body, space, sets.front())); }); });
    k.unless(areOne, [&] { kernel.e.scoped([&] { others = emit(space, sets.drop_front()); }); });
    // Both have as many tasks where the sizes are 1: one for each point of the other parallel dimensions.
    return {others.tasks, max(others.scratchBytes, ones.scratchBytes),
            others.schedule + "  where 1: " + names + "\n" + ones.schedule};
  }

  /// The smallest sets of symbolic sizes that change the order of sums when all of them are 1.
  std::vector<Shape> setsOfOnes(const IterationSpace &space) const {
    Shape candidates; // innermost first
    for (const Dim &size : llvm::reverse(space.space))
      if (!size.isStatic() && lowerBound(size).value_or(0) <= 1 && upperBound(size).value_or(1) >= 1 &&
          !llvm::is_contained(candidates, size))
        candidates.push_back(size);
    std::vector<std::pair<int, uint64_t>> numbers; // bits of candidates, by their count
    for (uint64_t bits = 1; bits < uint64_t(1) << candidates.size(); ++bits)
      numbers.push_back({llvm::popcount(bits), bits});
    llvm::sort(numbers);
    std::vector<Shape> sets;
    SmallVector<uint64_t> found;
    for (auto [count, bits] : numbers) {
      if (llvm::any_of(found, [&](uint64_t other) { return (bits & other) == other; }))
        continue;
      Shape ones;
      for (size_t i = 0; i < candidates.size(); ++i)
        if (bits >> i & 1)
          ones.push_back(candidates[i]);
      if (!changeOrder(space, ones))
        continue;
      found.push_back(bits);
      sets.push_back(ones);
    }
    return sets;
  }

  bool changeOrder(const IterationSpace &space, const Shape &ones) const {
    std::optional<Dim> before = rowOf(space), after = rowOf(passes::withOnes(kernel.body, space, ones));
    if (before && llvm::is_contained(ones, *before))
      before = {}; // rows of one element: in row-major order
    return after && after != before;
  }

  const KernelEmission &kernel;
  KernelBuilder &k;
  Emit emitSpace;
};

} // namespace

LaunchShape emitInOrderOfSums(const KernelEmission &kernel,
                              llvm::function_ref<LaunchShape(const IterationSpace &)> emit) {
  const bool depends = llvm::any_of(kernel.body, [&](Operation &op) {
    return !passes::reducedAxes(&op).empty() && Reducer(kernel.e.k, &op).dependsOnOrder();
  });
  return depends ? SumOrder(kernel, emit).emit(*kernel.space) : emit(*kernel.space);
}

} // namespace burin::codegen
