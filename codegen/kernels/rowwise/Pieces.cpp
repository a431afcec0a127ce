#include "codegen/kernels/rowwise/Pieces.h"

using namespace mlir;
using namespace burin::ir;
using arith::CmpIPredicate;

namespace burin::codegen {

/// Inserts a cut unless its order among the others is unknown.
static void insert(Shape &cuts, const Dim &cut) {
  size_t at = 0;
  while (at < cuts.size() && isAtMost(cuts[at], cut))
    if (cuts[at++] == cut)
      return;
  if (at == cuts.size() || isAtMost(cut, cuts[at]))
    cuts.insert(cuts.begin() + at, cut);
}

Pieces::Pieces(ElementEmitter &e, Block &body, const passes::IterationSpace &a)
    : e(e), k(e.k), space(a.space), cuts(a.space.size()) {
  if (llvm::none_of(a.reduced, [](bool reduced) { return reduced; }))
    findCuts(body, a);
}

void Pieces::findCuts(Block &body, const passes::IterationSpace &a) {
  constexpr size_t kMostPieces = 12, kMostOps = 96; // in all pieces
  auto add = [&](Value v, size_t axis, const Dim &cut) {
    auto dims = a.dims.find(v);
    if (dims == a.dims.end() || dims->second[axis] < 0 || cut == Dim(0))
      return;
    if (llvm::count(dims->second, dims->second[axis]) == 1)
      insert(cuts[dims->second[axis]], cut);
  };
  for (Operation &op : body) {
    if (auto concat = dyn_cast<ConcatOp>(op)) {
      Dim end = 0;
      for (Value x : concat.getXs().drop_back())
        add(concat.getResult(), concat.getAxis(), end = end + shapeOf(x)[concat.getAxis()]);
    } else if (auto pad = dyn_cast<PadOp>(op);
               pad && llvm::all_of(pad.getInterior(), [](int64_t gap) { return !gap; })) {
      Shape from = shapeOf(pad.getX());
      for (size_t d = 0; d < from.size(); ++d) {
        if (pad.getLow()[d] > 0)
          add(pad.getResult(), d, Dim(pad.getLow()[d]));
        if (pad.getHigh()[d] > 0)
          add(pad.getResult(), d, from[d] + Dim(pad.getLow()[d]));
      }
    } else if (auto pack = dyn_cast<PackOp>(op)) {
      Shape from = shapeOf(pack.getX());
      if (!isMultipleOf(from.back(), pack.getWidth())) // the last panel is filled with zeros
        add(pack.getResult(), from.size() - 2, floordiv(from.back(), pack.getWidth()));
    }
  }
  // The innermost dimensions matter most.
  size_t pieces = 1, ops = std::distance(body.begin(), body.end());
  for (Shape &own : llvm::reverse(cuts)) {
    if (pieces * (own.size() + 1) > kMostPieces || pieces * (own.size() + 1) * ops > kMostOps)
      own.clear();
    pieces *= own.size() + 1;
  }
}

void Pieces::choose(ArrayRef<Index> place, ArrayRef<int> dims, llvm::function_ref<void()> body) {
  if (dims.empty())
    return body();
  int d = dims[0];
  Value at = place[d].base;
  if (cuts[d].empty() || k.constantOf(at))
    return choose(place, dims.drop_front(), body);
  std::function<void(size_t)> from = [&](size_t n) {
    bool isLast = n == cuts[d].size();
    auto emit = [&] {
      e.scoped([&] {
        e.knowing(at, n ? cuts[d][n - 1] : Dim(0), isLast ? space[d] : cuts[d][n],
                  [&] { choose(place, dims.drop_front(), body); });
      });
    };
    if (isLast)
      return emit();
    Value isHere = k.compare(CmpIPredicate::slt, at, k.dim(cuts[d][n]));
    k.when(isHere, emit);
    k.unless(isHere, [&] { from(n + 1); });
  };
  from(0);
}

void Pieces::walk(int d, RowRange row, VisitVector visit) {
  for (size_t n = 0; n <= cuts[d].size(); ++n) {
    Dim begin = n ? cuts[d][n - 1] : Dim(0), end = n < cuts[d].size() ? cuts[d][n] : space[d];
    RowRange piece = row;
    piece.from = n ? k.maximum(row.from, k.dim(begin)) : row.from;
    piece.to = k.maximum(k.minimum(row.to, k.dim(end)), piece.from); // a block may lie outside of the piece
    piece.begin = begin;
    piece.end = end;
    eachVector(k, piece,
               [&](Value i, int64_t lanes, Value mask) { e.knowing(i, begin, end, [&] { visit(i, lanes, mask); }); });
  }
}

} // namespace burin::codegen
