#include "passes/kernels/fusion/RepeatOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/cost/KernelCost.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
namespace {

constexpr size_t kMostOps = 4;         // that are computed again for one value
constexpr int64_t kLeastBytes = 4096;  // smaller values cost little to store
constexpr int64_t kSmallFraction = 16; // a value of this part of another's size is read at no cost beside it

/// Whether the broadcast repeats elements along some, but not all, of the last dimensions, over which `row` reduces. A
/// kernel of both cannot merge these dimensions into one, so its sums add in another order.
bool changesOrder(BroadcastToOp broadcast, Operation *row) {
  const Shape from = shapeOf(broadcast.getX()), to = shapeOf(broadcast.getResult());
  const SmallVector<int64_t> axes = rowAxes(row);
  const size_t rank = shapeOf(row->getOperand(0)).size();
  if (to.size() != rank)
    return true;
  const size_t added = rank - from.size();
  std::optional<bool> isRepeated; // of the dimensions behind d
  for (size_t d = rank; d-- > 0;) {
    if (to[d] == Dim(1))
      continue;
    if (!llvm::is_contained(axes, int64_t(d)))
      return false;
    const bool isOwn = d < added || from[d - added] != to[d];
    if (isRepeated.value_or(isOwn) != isOwn)
      return true;
    isRepeated = isOwn;
  }
  return false;
}

class Repeater {
public:
  Repeater(Block &block, OpGroups groups) : block(block), groups(groups) {}

  void run() {
    for (auto [op, group] : groups.groupOf)
      if (rowAxes(op).size() > 1)
        rowsOf[group].push_back(op);
    SmallVector<Operation *> ops = llvm::map_to_vector(block, [](Operation &op) { return &op; });
    for (Operation *op : ops)
      if (isLight(op) && bytesOf(op->getResult(0)) >= kLeastBytes)
        repeat(op);
  }

private:
  using Readers = llvm::MapVector<size_t, SmallVector<OpOperand *>>; // uses of a value by group

  static int64_t bytesOf(Value v) { return typicalSize(byteSize(v)); }

  bool isLight(Operation *op) {
    return factsOf(op).oneInstruction && groups.kindOf(op) == Kind::Pointwise && groups.groupOf.contains(op) &&
           op->getNumResults() == 1;
  }

  void repeat(Operation *op) {
    const std::optional<Readers> readers = readersOf(op);
    if (!readers || readers->empty())
      return;
    own = groups.groupOf.lookup(op);
    copied.clear();
    sources.clear();
    broadcasts.clear();
    const bool isCheap = collect(op, op->getResult(0));
    llvm::sort(copied, [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
    if (!isCheap || movesSums(own) || llvm::any_of(*readers, [&](auto &reader) {
          return !isWorthwhile(op->getResult(0), reader.first) || movesSums(reader.first);
        }))
      return;
    for (auto &[group, uses] : *readers)
      copyTo(group, uses, op->getResult(0));
    for (Operation *other : llvm::reverse(copied)) // users before definitions
      if (other->use_empty()) {
        groups.remove(other);
        other->erase();
      }
  }

  /// The uses of the result by other groups, at the position of the element that they compute or in the rows that they
  /// reduce; nullopt if there are others, which may need it in memory.
  std::optional<Readers> readersOf(Operation *op) {
    Readers readers;
    for (OpOperand &use : op->getUses()) {
      Operation *user = use.getOwner();
      auto group = groups.groupOf.find(user);
      const Kind kind = groups.kindOf(user);
      const bool isElement = kind == Kind::Pointwise && shapeOf(user->getResult(0)) == shapeOf(op->getResult(0)),
                 isOfRow = kind == Kind::Row && use.getOperandNumber() == 0;
      if (group == groups.groupOf.end() || !(isElement || isOfRow))
        return std::nullopt;
      if (group->second != groups.groupOf.lookup(op))
        readers[group->second].push_back(&use);
    }
    return readers;
  }

  /// Adds the op, and ops of its group that it needs and that are not stored, to `copied`, and to `sources` the values
  /// that they read. Returns false if that is too much.
  bool collect(Operation *op, Value wanted) {
    if (llvm::is_contained(copied, op))
      return true;
    copied.push_back(op);
    if (copied.size() > kMostOps)
      return false;
    return llvm::all_of(op->getOperands(), [&](Value v) { return collectOperand(v, wanted); });
  }
  bool collectOperand(Value v, Value wanted) {
    Operation *op = v.getDefiningOp();
    const Kind kind = op ? groups.kindOf(op) : Kind::None;
    if (kind == Kind::Free || kind == Kind::View) {
      if (auto broadcast = dyn_cast<BroadcastToOp>(op))
        broadcasts.push_back(broadcast);
      return llvm::all_of(op->getOperands(), [&](Value operand) { return collectOperand(operand, wanted); });
    }
    auto group = groups.groupOf.find(op);
    if (group != groups.groupOf.end() && group->second == own && !isStored(op)) {
      if (isLight(op))
        return collect(op, wanted);
      if (bytesOf(v) * kSmallFraction > bytesOf(wanted))
        return false;
    }
    sources.insert(v);
    return true;
  }

  /// Whether another group, or the function's end, uses a result of the op.
  bool isStored(Operation *op) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      auto group = groups.groupOf.find(user);
      if (group != groups.groupOf.end())
        return group->second != own;
      return user->hasTrait<OpTrait::IsTerminator>() || isStored(user);
    });
  }

  /// Whether sums of the group would add in another order with, or without, the copies.
  bool movesSums(size_t group) {
    return llvm::any_of(rowsOf.lookup(group), [&](Operation *row) {
      return llvm::any_of(broadcasts, [&](BroadcastToOp broadcast) { return changesOrder(broadcast, row); });
    });
  }

  /// Whether the group reads no more bytes with the copies than without.
  bool isWorthwhile(Value v, size_t group) {
    int64_t more = 0;
    for (Value source : sources)
      if (bytesOf(source) * kSmallFraction > bytesOf(v) && !isReadBy(source, group))
        more += bytesOf(source);
    return more <= bytesOf(v);
  }
  bool isReadBy(Value v, size_t group) {
    return llvm::any_of(v.getUsers(), [&](Operation *user) {
      auto found = groups.groupOf.find(user);
      return found != groups.groupOf.end() && found->second == group;
    });
  }

  void copyTo(size_t group, ArrayRef<OpOperand *> uses, Value v) {
    Operation *first = uses.front()->getOwner();
    for (OpOperand *use : uses)
      if (use->getOwner()->isBeforeInBlock(first))
        first = use->getOwner();
    OpBuilder b(first);
    IRMapping map;
    for (Operation *op : copied)
      groups.add(b.clone(*op, map), group);
    for (OpOperand *use : uses)
      use->set(map.lookup(v));
  }

  Block &block;
  OpGroups groups;
  size_t own = 0;                  // group of the op whose result is to be computed again
  SmallVector<Operation *> copied; // in the order of the block
  llvm::SetVector<Value> sources;
  SmallVector<BroadcastToOp> broadcasts;                      // that the copied ops read
  llvm::DenseMap<size_t, SmallVector<Operation *, 1>> rowsOf; // the ops of a group that reduce several dimensions
};

} // namespace

void repeatOps(Block &block, OpGroups groups) { Repeater(block, groups).run(); }

} // namespace burin::passes
