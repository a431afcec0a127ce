#include "codegen/emit/builder/RowVectors.h"

using namespace mlir;
using arith::CmpIPredicate;

namespace burin::codegen {
namespace {

class RowVectors {
public:
  RowVectors(KernelBuilder &k, const RowRange &range, VisitVector visit) : k(k), range(range), visit(visit) {}

  void emit() {
    Value step = k.constant(range.lanes);
    whole = k.add(range.from, k.mul(k.div(k.sub(range.to, range.from), step), step));
    const bool isShort = isAtMost(range.end - range.begin, Dim(range.lanes - 1));
    if (!isShort)
      k.loop(range.from, whole, step, [&](Value i) { visit(i, range.lanes, {}); });
    if (isMultipleOf(range.begin, range.lanes) && isMultipleOf(range.end, range.lanes))
      return;
    if (isMultipleOf(range.begin, range.lanes) && range.end.isStatic())
      return knownRest(range.end.value() % range.lanes);
    if (isShort || !range.mayRepeat)
      return ifSome([&] { masked(range.lanes); });
    Value isLong = k.compare(CmpIPredicate::sgt, whole, range.from);
    k.when(isLong, [&] { ifSome([&] { overlapping(range.varies ? fewest() : range.lanes); }); });
    k.unless(isLong, [&] { ifSome([&] { masked(range.lanes); }); });
  }

private:
  int64_t fewest() const { return std::max<int64_t>(range.lanes / 4, 2); }

  /// Runs `body` if elements are left.
  void ifSome(llvm::function_ref<void()> body) { k.when(k.compare(CmpIPredicate::slt, whole, range.to), body); }

  /// The last block of the range has `rest` elements left, other blocks none.
  void knownRest(int64_t rest) {
    int64_t lanes = range.lanes;
    if (range.varies)
      lanes = std::clamp(int64_t(llvm::bit_ceil(uint64_t(rest))), fewest(), range.lanes);
    auto last = [&] { rest == lanes ? visit(whole, lanes, {}) : masked(lanes); };
    if (k.constantOf(whole) && k.constantOf(range.to)) // one block
      return last();
    ifSome(last);
  }

  /// Vectors that end with the range; a narrow one if few elements are left.
  void overlapping(int64_t lanes) {
    if (lanes >= range.lanes)
      return visit(k.sub(range.to, k.constant(range.lanes)), range.lanes, {});
    Value areFew = k.compare(CmpIPredicate::sle, k.sub(range.to, whole), k.constant(lanes));
    k.when(areFew, [&] { visit(k.sub(range.to, k.constant(lanes)), lanes, {}); });
    k.unless(areFew, [&] { overlapping(2 * lanes); });
  }

  void masked(int64_t lanes) {
    Value end = k.maskBound(range.end, range.stored);
    if (!isMultipleOf(range.begin, range.lanes)) // the last vector of a block may cross its end
      end = k.minimum(range.to, end);
    visit(whole, lanes, k.below(whole, end, lanes));
  }

  KernelBuilder &k;
  const RowRange &range;
  VisitVector visit;
  Value whole; // end of the whole vectors
};

} // namespace

void eachVector(KernelBuilder &k, const RowRange &range, VisitVector visit) { RowVectors(k, range, visit).emit(); }

} // namespace burin::codegen
