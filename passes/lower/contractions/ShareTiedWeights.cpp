// Shares weights that an embedding is tied to. A language model often multiplies by the transposed matrix of its
// embeddings: y = matmul(x, transpose(w)), with x computed from take(w, tokens). The product reads the matrix in
// panels, so an artifact would hold it twice. This pass makes `take` read the panels: row v, column d of w is element
// (v / width, d, v % width) of the panels [ceil(V / width), D, width]. In panels of pairs of bf16 it is half d % 2 of
// element (v / width, d / 2, v % width); `take` then reads the same bytes as bf16.
//
// The two are recognised by their elements, because model files may store the transposed matrix separately.
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/ValueChecks.h"
#include <bit>
#include <cstring>

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_SHARETIEDWEIGHTSPASS
#include "passes/Passes.h.inc"

namespace {

/// Smaller tables do not justify reading one element per cache line.
constexpr int64_t kLeastBytes = int64_t(1) << 20;

bool isTable(ConstantOp constant) {
  const Shape &shape = shapeOf(constant.getResult());
  if (shape.size() != 2 || !shape[0].isStatic() || !shape[1].isStatic())
    return false;
  auto readsRows = [](Operation *user) {
    auto take = dyn_cast<TakeOp>(user);
    return take && take.getAxis() == 0;
  };
  return shape[0].value() * shape[1].value() * int64_t(byteWidth(dtypeOf(constant.getResult()))) >= kLeastBytes &&
         llvm::all_of(constant->getUsers(), readsRows) &&
         llvm::all_of(constant->getUses(), [](OpOperand &use) { return use.getOperandNumber() == 0; });
}

/// Consecutive elements of a row of the table that are neighbours in the panels: 2 in pairs of bf16; 0: the element
/// types do not fit.
int64_t neighboursIn(Value panels, Value table) {
  const DType of = dtypeOf(panels), wanted = dtypeOf(table);
  return of == wanted ? 1 : of == DType::i32 && wanted == DType::bf16 ? 2 : 0;
}

/// Whether `panels` contain the transposed table.
bool holds(ConstantOp panels, ConstantOp table) {
  const Shape &packed = shapeOf(panels.getResult()), &shape = shapeOf(table.getResult());
  const auto neighbours = size_t(neighboursIn(panels.getResult(), table.getResult()));
  if (packed.size() != 3 || !neighbours || !packed[2].isStatic() ||
      packed[1] != ceildiv(shape[1], int64_t(neighbours)) || packed[0] != ceildiv(shape[0], packed[2]) ||
      !std::has_single_bit(uint64_t(packed[2].value())))
    return false;
  std::vector<char> storage, panelStorage;
  ArrayRef<char> rows = constantBytes(table.getValue(), storage),
                 columns = constantBytes(panels.getValue(), panelStorage);
  const size_t width = size_t(packed[2].value()), depth = size_t(shape[1].value()), count = size_t(shape[0].value()),
               steps = size_t(packed[1].value()), element = byteWidth(dtypeOf(table.getResult()));
  for (size_t first = 0; first < count; first += width)
    for (size_t v = first; v < std::min(first + width, count); ++v)
      for (size_t d = 0; d < depth; ++d)
        if (std::memcmp(rows.data() + (v * depth + d) * element,
                        columns.data() +
                            ((first * steps + d / neighbours * width + v - first) * neighbours + d % neighbours) *
                                element,
                        element) != 0)
          return false;
  return true;
}

/// The bytes of panels of pairs as bf16. The artifact stores them once.
Value asBf16(OpBuilder &b, ConstantOp panels) {
  std::vector<char> storage;
  ArrayRef<char> bytes = constantBytes(panels.getValue(), storage);
  std::shared_ptr<const void> owner; // the context, unless `storage` holds the bytes
  if (storage.empty())
    owner = std::shared_ptr<const void>(bytes.data(), [](const void *) {});
  return createConstant(b, panels.getLoc(), {DType::bf16, {elements(shapeOf(panels.getResult())) * 2}}, bytes,
                        panels.getName().value_or(""), std::move(owner));
}

/// take(table, indices) from the elements of panels in one dimension.
Value takeFromPanels(TakeOp take, Value flat, const Shape &packed, int64_t neighbours) {
  OpBuilder b(take);
  GraphBuilder g(b, take.getLoc());
  const Shape table = shapeOf(take.getX());
  const int64_t count = table[0].value(), depth = table[1].value(), width = packed[2].value();
  Value index = g.cast(take.getIndices(), DType::i64);
  auto number = [&](int64_t value) { return g.fullLike(index, double(value)); };
  // Index semantics of `take`: negative indices count from the end, indices out of range are an error.
  index = g.where(g.op<LtOp>({index, number(0)}), g.add(index, number(count)), index);
  Value isRow = g.op<BitwiseAndOp>({g.op<GeOp>({index, number(0)}), g.op<LtOp>({index, number(count)})});
  index = g.op<CheckOp>({isRow, index}, {{"message", errorOf(take)}});
  index = g.op<MaximumOp>({g.op<MinimumOp>({index, number(count - 1)}), number(0)});
  Value column = g.op<BitwiseAndOp>({index, number(width - 1)});
  Value first = g.add(g.mul(g.sub(index, column), number(packed[1].value())), column);
  if (neighbours > 1)
    first = g.mul(first, number(neighbours));
  Shape shape = shapeOf(index), all = shape;
  shape.push_back(1);
  all.push_back(depth);
  auto ofAll = [&](int64_t value) { return g.full(all, double(value), DType::i64); };
  Value step = g.iota(all, int64_t(all.size()) - 1, DType::i64), steps = g.mul(step, ofAll(width));
  if (neighbours > 1) { // step d is at d / 2 * 2 * width + d % 2
    Value half = g.op<BitwiseAndOp>({step, ofAll(neighbours - 1)});
    steps = g.add(g.mul(g.sub(step, half), ofAll(width)), half);
  }
  Value at = g.add(g.broadcast(g.reshape(first, shape), all), steps);
  return g.op<TakeOp>({flat, at}, {{"axis", int64_t(0)}});
}

struct ShareTiedWeightsPass : impl::ShareTiedWeightsPassBase<ShareTiedWeightsPass> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      share(function);
  }

private:
  static void share(func::FuncOp function) {
    SmallVector<ConstantOp> tables, packed;
    function.walk([&](ConstantOp constant) {
      if (isTable(constant))
        tables.push_back(constant);
      else if (llvm::any_of(constant->getUses(), [](OpOperand &use) {
                 return isa<ContractOp>(use.getOwner()) && use.getOperandNumber() == 1;
               }))
        packed.push_back(constant);
    });
    for (ConstantOp table : tables)
      if (auto *panels = llvm::find_if(packed, [&](ConstantOp c) { return holds(c, table); }); panels != packed.end()) {
        (*panels)->moveBefore(table);
        OpBuilder b(table);
        Value packed = panels->getResult();
        const Shape shape = shapeOf(packed);
        const int64_t neighbours = neighboursIn(packed, table.getResult());
        Value flat =
            neighbours > 1 ? asBf16(b, *panels) : GraphBuilder(b, table.getLoc()).reshape(packed, {elements(shape)});
        for (Operation *user : llvm::make_early_inc_range(table->getUsers())) {
          user->getResult(0).replaceAllUsesWith(takeFromPanels(cast<TakeOp>(user), flat, shape, neighbours));
          user->erase();
        }
        table->erase();
      }
  }
};

} // namespace

} // namespace burin::passes
