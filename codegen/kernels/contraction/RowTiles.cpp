#include "codegen/kernels/contraction/RowTiles.h"

using namespace mlir;

namespace burin::codegen {

RowTiles::RowTiles(KernelBuilder &k, Value count, int64_t tallest, bool withSevens) {
  using enum arith::CmpIPredicate;
  const int64_t unit = tallest / 3;
  Value none = k.constant(0), one = k.constant(1), two = k.constant(2), three = k.constant(3);
  auto either = [&](Value condition, Value x, Value y) -> Value {
    return arith::SelectOp::create(k.b, k.loc, condition, x, y);
  };
  auto both = [&](Value x, Value y) -> Value { return arith::AndIOp::create(k.b, k.loc, x, y); };
  auto any = [&](Value x, Value y) -> Value { return arith::OrIOp::create(k.b, k.loc, x, y); };

  // Tiles of 7 rows leave whole units of 4, of which there must not be a single one.
  Value units = k.div(k.add(count, k.constant(unit - 1)), k.constant(unit)), sevens = none;
  Value isPartial = k.compare(ne, k.rem(count, k.constant(unit)), none);
  withSevens &= unit == 4;
  if (withSevens) {
    Value missing = k.rem(k.sub(k.constant(4), k.rem(count, k.constant(4))), k.constant(4));
    Value left = k.sub(count, k.mul(missing, k.constant(7)));
    Value fits = any(k.compare(eq, left, none), k.compare(sge, left, k.constant(8)));
    sevens = either(fits, missing, none);
    units = either(fits, k.div(k.maximum(left, none), k.constant(4)), units);
    isPartial = both(isPartial, k.compare(eq, sevens, none));
  }
  // 3 x + 2 y units, with as few tiles of 2 as possible. A tile of 1 serves a single unit, and a last one of 3 with
  // rows that do not exist.
  Value isSingle = k.compare(eq, units, one);
  Value endsInOne = any(isSingle, both(isPartial, k.compare(eq, k.rem(units, three), none)));
  Value ones = either(endsInOne, one, none);
  Value twos = either(endsInOne, either(isSingle, none, one), k.rem(k.mul(units, two), three));
  Value threes = k.div(k.sub(k.sub(units, k.mul(twos, two)), ones), three);
  runs.push_back({3 * unit, threes, 3 * unit});
  if (withSevens)
    runs.push_back({7, sevens, 7});
  runs.push_back({2 * unit, twos, unit + 1});
  runs.push_back({unit, ones, 1});
  all = k.add(k.add(threes, sevens), k.add(twos, ones));
}

} // namespace burin::codegen
