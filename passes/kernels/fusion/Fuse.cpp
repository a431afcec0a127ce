// Fusion: groups ops into kernels. Ops are visited in the order of the block; each starts a group, which merges with
// the groups that compute its operands if the result is still one loop nest over one iteration space:
//   Pointwise ops join any group but sequential ones. Row ops (reductions, softmax, norms) join pointwise groups and
//   row groups over the same rows. Movement (transpose, slice, pad, …) absorbs pointwise work that has no other users.
//   A contraction, a window op and a sequential op always start a group. MergeRules.cpp has the exact tables.
// Broadcasts, fills and reshapes cost nothing: every kernel that uses them repeats them (others: RepeatOps.h), or they
// are views of a buffer between kernels, as a burin.prefix (the first rows of a value) always is.
#include "ir/dialect/Burin.h"
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/cost/DataDependentSizes.h"
#include "passes/kernels/families/KernelFamily.h"
#include "passes/kernels/fusion/FusionKind.h"
#include "passes/kernels/fusion/MergeRules.h"
#include "passes/kernels/fusion/RepeatOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_FUSEPASS
#include "passes/Passes.h.inc"

namespace {

constexpr size_t kMaxOps = 256, kMaxInputs = 64, kMaxCode = 256; // limits of one kernel; code: see Group

struct Group {
  llvm::SetVector<Operation *> ops;
  GroupForm form = GroupForm::Pointwise;
  size_t code = 1;           // emitted ops: an op counts once for each place at which its code is emitted
  SmallVector<int64_t> axes; // of row groups: the reduced axes of …
  Shape rows;                // … this iteration space
};

class Fuser {
public:
  Fuser(func::FuncOp function, FusionTargets targets)
      : targets(targets), function(function), block(function.getBody().front()), classes(function) {}

  LogicalResult run() {
    for (Operation &op : block)
      if (targets.kindOf(&op) == Kind::Free && isReadFromMemory(op.getResult(0)))
        stored.insert(&op);
    // Ops with effects keep their order, as if each used a result of the previous one.
    effectBefore = orderOfEffects(block);
    for (auto [op, before] : effectBefore)
      effectAfter[before] = op;
    for (Operation &op : block)
      addToGroups(&op);
    auto add = [this](Operation *op, GroupId id) { groups[groupOf[op] = id].ops.insert(op); };
    auto remove = [this](Operation *op) { groups[groupOf.lookup(op)].ops.remove(op), groupOf.erase(op); };
    repeatOps(block, {groupOf, [this](Operation *op) { return kindOf(op); }, add, remove});
    for (Operation &op : block)
      op.removeAttr(kMemoryOrder);
    copyPlainResults();
    return emit();
  }

private:
  using GroupId = size_t;

  // ---- grouping
  /// The role of an op, see FusionKind; None for null. A free op whose result is read from memory needs a kernel that
  /// stores it, so it counts as movement.
  Kind kindOf(Operation *op) {
    if (!op)
      return Kind::None;
    return stored.contains(op) ? Kind::Movement : targets.kindOf(op);
  }

  bool isReadFromMemory(Value v) {
    return llvm::any_of(v.getUsers(), [&](Operation *user) {
      Kind kind = targets.kindOf(user);
      return needsMemory(user) || user->hasTrait<OpTrait::IsTerminator>() || isa<PrefixOp>(user) ||
             (kind == Kind::View && isReadFromMemory(user->getResult(0)));
    });
  }

  /// Starts a group with the op, and merges it with the groups of its operands where that is allowed.
  void addToGroups(Operation *op) {
    added = op;
    Kind kind = kindOf(op);
    if (kind == Kind::None || kind == Kind::Free || kind == Kind::View)
      return;
    GroupId id = groups.size();
    groups.emplace_back();
    Group &group = groups.back();
    group.ops.insert(op);
    group.form = formOf(kind);
    if (kind == Kind::Row) {
      group.axes = rowAxes(op);
      group.rows = shapeOf(op->getOperand(0));
    }
    groupOf[op] = id;
    if (kind != Kind::Pointwise && kind != Kind::Row && kind != Kind::Movement)
      return;
    for (Value operand : op->getOperands()) {
      auto candidate = producerGroup(operand);
      if (!candidate || *candidate == id)
        continue;
      size_t code = groups[id].code + groups[*candidate].code * placesOf(op, *candidate);
      if (code > kMaxCode || !mayMerge(*candidate, id, op, operand))
        continue;
      id = merge(*candidate, id);
      groups[id].code = code;
    }
  }
  /// Number of times that the code of a group is emitted for `user`: for movement (a concat) once per operand.
  size_t placesOf(Operation *user, GroupId producer) {
    if (kindOf(user) != Kind::Movement)
      return 1;
    return llvm::count_if(user->getOperands(), [&](Value v) { return producerGroup(v) == producer; });
  }

  /// The op of a group that computes `v`, looking through free ops and views; null if `v` is an argument or constant.
  Operation *producerOf(Value v) {
    Operation *op = v.getDefiningOp();
    while (op && (kindOf(op) == Kind::Free || kindOf(op) == Kind::View) && op->getNumOperands())
      op = op->getOperand(0).getDefiningOp();
    return groupOf.count(op) ? op : nullptr;
  }
  std::optional<GroupId> producerGroup(Value v) {
    Operation *op = producerOf(v);
    return op ? std::optional(groupOf.lookup(op)) : std::nullopt;
  }

  /// Whether the group that computes `operand` of `user` may join the group of `user`, the op that is being added. That
  /// group holds `user` and the groups of its earlier operands.
  bool mayMerge(GroupId producer, GroupId consumer, Operation *user, Value operand) {
    const Group &p = groups[producer], &c = groups[consumer];
    Merge allowed = mergeOf(p.form, c.form);
    if (allowed == Merge::Never || p.ops.size() + c.ops.size() > kMaxOps || llvm::any_of(p.ops, isEarlyCheck))
      return false;
    if (allowed == Merge::IfSameRows && (p.axes != c.axes || !classes.areSame(p.rows, c.rows)))
      return false;
    if (mustStayApart(p.ops.getArrayRef(), c.ops.getArrayRef()) || readsFrom(producer, consumer) ||
        readsFrom(consumer, producer))
      return false;
    return isLinked(linkOf(p.form, kindOf(user)), p, user, operand) && !wouldCycle(producer, consumer);
  }

  /// Whether `user` uses a value of the group as the link requires.
  bool isLinked(Link link, const Group &group, Operation *user, Value operand) {
    Operation *source = operand.getDefiningOp();
    bool direct = groupOf.count(source); // not through a view or a free op
    bool isRows = shapeOf(operand) == groups[groupOf[user]].rows;
    switch (link) {
    case Link::Never:
      return false;
    case Link::SameSpace:
      return direct || computesShape(group, shapeOf(user->getResult(0)), operand);
    case Link::RowOperand:
      return isRows && (direct || (source && kindOf(source) == Kind::View && unitReshape(source)));
    case Link::DirectRow:
      return isRows && direct;
    case Link::OnlyUser:
      return usedOnlyBy(group, user, operand);
    }
    llvm_unreachable("a link");
  }

  /// Whether an op of `reader` needs a result of `writer` in memory, so that they cannot be one kernel. Movement needs
  /// elements at other positions than the current one, which loops over rows, sums or windows do not compute.
  bool readsFrom(GroupId reader, GroupId writer) {
    return llvm::any_of(groups[reader].ops, [&](Operation *op) {
      if (hasOwnLoops(groups[writer].form) && kindOf(op) == Kind::Movement)
        return dependsOn(op, reader, writer);
      return needsMemory(op) && llvm::any_of(op->getOperands(), [&](Value v) { return comesFrom(v, writer); });
    });
  }
  /// Whether `v` is a result of a group, or views and free ops of one.
  bool comesFrom(Value v, GroupId writer) {
    bool isFound = false;
    forEachSource(v, [&](Operation *source) { isFound |= groupOf.lookup(source) == writer; });
    return isFound;
  }
  /// Whether `op` uses a value of `writer`, directly or by way of other ops of its group `own`.
  bool dependsOn(Operation *op, GroupId own, GroupId writer) {
    llvm::SetVector<Operation *> open;
    open.insert(op);
    for (size_t i = 0; i < open.size(); ++i)
      for (Value v : open[i]->getOperands()) {
        Operation *source = producerOf(v);
        if (source && groupOf.lookup(source) == writer)
          return true;
        if (source && groupOf.lookup(source) == own)
          open.insert(source);
      }
    return false;
  }

  /// Whether the group's iteration space has this shape, and only broadcasts and reshapes that add or drop dimensions
  /// of size 1 lie between the group and `operand`.
  bool computesShape(const Group &group, const Shape &shape, Value operand) {
    for (Operation *op = operand.getDefiningOp(); op && !groupOf.count(op); op = op->getOperand(0).getDefiningOp()) {
      if (kindOf(op) == Kind::View && !unitReshape(op, classes))
        return false;
      if (op->getNumOperands() == 0)
        return false;
    }
    if (isRow(group.form))
      return classes.areSame(group.rows, shape);
    return llvm::all_of(group.ops, [&](Operation *op) { return classes.areSame(shapeOf(op->getResult(0)), shape); });
  }

  /// Whether `operand` is a result of the group, and `user` is the only op outside of it that uses its results.
  bool usedOnlyBy(const Group &group, Operation *user, Value operand) {
    Operation *source = operand.getDefiningOp();
    while (source && !groupOf.count(source) && isRenaming(source, classes))
      source = source->getOperand(0).getDefiningOp();
    if (!groupOf.count(source))
      return false;
    for (Operation *op : group.ops)
      for (Operation *next : op->getUsers())
        if (next != user && !group.ops.contains(next) && !onlyInside(next, group, user))
          return false;
    return true;
  }
  /// Whether the op is a view or a free op whose users, perhaps through others, are `user` and ops of the group.
  bool onlyInside(Operation *op, const Group &group, Operation *user) {
    Kind kind = kindOf(op);
    return (kind == Kind::View || kind == Kind::Free) && llvm::all_of(op->getUsers(), [&](Operation *next) {
             return next == user || group.ops.contains(next) || onlyInside(next, group, user);
           });
  }

  /// Whether a kernel of both groups would depend on itself: a path from one to the other passes a third group.
  bool wouldCycle(GroupId a, GroupId b) { return reachesThroughOthers(a, b) || reachesThroughOthers(b, a); }
  /// Whether a path of uses leaves `from`, passes another group, and enters `to`. Ops after the one being added have no
  /// groups yet, and no path leads back from them.
  bool reachesThroughOthers(GroupId from, GroupId to) {
    llvm::DenseSet<llvm::PointerIntPair<Operation *, 1, bool>> seen;
    llvm::DenseSet<GroupId> entered;
    SmallVector<std::pair<Operation *, bool>> stack; // op, whether another group was passed
    auto leave = [&](ArrayRef<Operation *> ops, bool passed) {
      for (Operation *op : ops) {
        for (Operation *user : op->getUsers())
          stack.push_back({user, passed});
        if (Operation *next = effectAfter.lookup(op))
          stack.push_back({next, passed});
      }
    };
    leave(groups[from].ops.getArrayRef(), false);
    while (!stack.empty()) {
      auto [op, passed] = stack.pop_back_val();
      auto it = groupOf.find(op);
      bool inFrom = it != groupOf.end() && it->second == from;
      bool inTo = it != groupOf.end() && it->second == to;
      if (inTo && passed)
        return true;
      if (inFrom || inTo || added->isBeforeInBlock(op) || !seen.insert({op, passed}).second)
        continue;
      if (it == groupOf.end())
        leave(op, passed || isa<PrefixOp>(op));   // a prefix separates kernels
      else if (entered.insert(it->second).second) // a group runs as a whole: a path may leave it from any op
        leave(groups[it->second].ops.getArrayRef(), true);
    }
    return false;
  }

  GroupId merge(GroupId into, GroupId from) {
    Group &a = groups[into], &b = groups[from];
    for (Operation *op : b.ops) {
      a.ops.insert(op);
      groupOf[op] = into;
    }
    a.form = joined(a.form, b.form);
    if (isRow(b.form)) {
      a.axes = b.axes;
      a.rows = b.rows;
    }
    b = {};
    return into;
  }

  // ---- results that no kernel computes
  /// Copies results that are inputs, constants or other results: the launch plan gives each result its own buffer.
  void copyPlainResults() {
    Operation *terminator = block.getTerminator();
    llvm::DenseSet<Value> taken;
    for (OpOperand &operand : terminator->getOpOperands()) {
      Value from = operand.get(), source = skipReshapes(from);
      if (source.getDefiningOp() && groupOf.count(source.getDefiningOp()) && taken.insert(source).second)
        continue;
      copyByKernel(operand);
    }
    // Initial states of a loop share a buffer with the states that its iterations append.
    for (auto scan : block.getOps<ScanOp>())
      for (OpOperand &operand : scan->getOpOperands().take_front(scan.getStates()))
        copyByKernel(operand);
  }

  // ---- emission
  LogicalResult emit() {
    SmallVector<GroupId> order = topologicalOrder();
    OpBuilder b(block.getTerminator());
    for (GroupId id : order) {
      if (groups[id].ops.empty())
        continue;
      if (Operation *op = groups[id].ops.front(); isOwnStep(op)) {
        op->moveBefore(block.getTerminator()); // functions that it runs have kernels of their own
        continue;
      }
      // The group may have no common iteration space after all, or too many inputs: then each op is a kernel.
      if (failed(emitGroup(b, groups[id].ops.getArrayRef())))
        for (Operation *op : groups[id].ops)
          if (failed(emitGroup(b, {op})))
            return op->emitError("no kernel can be made of this op");
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (op.use_empty() && isPure(&op) && !op.hasTrait<OpTrait::IsTerminator>())
        op.erase();
    sortBySizes(block);
    return success();
  }

  SmallVector<GroupId> topologicalOrder() {
    SmallVector<GroupId> order;
    SmallVector<char> state(groups.size(), 0);
    std::function<void(GroupId)> visit = [&](GroupId id) {
      if (state[id])
        return;
      state[id] = 1;
      for (Operation *op : groups[id].ops)
        if (Operation *before = effectBefore.lookup(op))
          visit(groupOf.lookup(before));
      for (Operation *op : groups[id].ops)
        for (Value operand : op->getOperands())
          forEachSource(operand, [&](Operation *source) {
            if (auto it = groupOf.find(source); it != groupOf.end() && it->second != id)
              visit(it->second);
          });
      order.push_back(id);
    };
    for (Operation &op : block)
      if (auto it = groupOf.find(&op); it != groupOf.end())
        visit(it->second);
    return order;
  }

  /// Visits the grouped ops that `v` depends on directly, or through ops without a group.
  void forEachSource(Value v, llvm::function_ref<void(Operation *)> visit) {
    Operation *op = v.getDefiningOp();
    if (!op)
      return;
    if (groupOf.count(op))
      return visit(op);
    for (Value operand : op->getOperands())
      forEachSource(operand, visit);
  }

  /// Makes a kernel of these ops before the insertion point of `b`; fails if no kernel family accepts it.
  LogicalResult emitGroup(OpBuilder &b, ArrayRef<Operation *> ops) {
    llvm::SetVector<Operation *> members;
    SmallVector<Operation *> sorted(ops);
    llvm::sort(sorted, [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
    members.insert(sorted.begin(), sorted.end());
    SmallVector<Value> results;
    for (Operation *op : sorted)
      for (Value v : op->getResults())
        if (llvm::any_of(v.getUsers(),
                         [&](Operation *user) { return !members.contains(user) && neededOutside(user, members); }))
          results.push_back(v);
    if (results.empty())
      return success();
    Body body = bodyOf(members, results, /*isShared=*/true);
    auto isKernel = [&] { return isKernelBody(KernelBody(body.region->front(), classes)); };
    // An iota that two ops read along different dimensions, for example, fits no single iteration space.
    if (!isKernel())
      body = bodyOf(members, results, /*isShared=*/false);
    if ((body.inputs.size() > kMaxInputs && sorted.size() > 1) || !isKernel())
      return failure();
    SmallVector<Type> types = llvm::map_to_vector(results, [](Value v) { return v.getType(); });
    auto kernel = KernelOp::create(b, targets.mainOp(sorted)->getLoc(), types, body.inputs.getArrayRef(),
                                   b.getStringAttr(kernelName(sorted)),
                                   /*in_place=*/DenseI64ArrayAttr());
    kernel.getBody().takeBody(*body.region);
    for (auto [from, to] : llvm::zip(results, kernel.getResults()))
      from.replaceUsesWithIf(to, [&](OpOperand &use) { return !members.contains(use.getOwner()); });
    return success();
  }

  /// The body of a kernel.
  struct Body {
    std::unique_ptr<Region> region = std::make_unique<Region>();
    llvm::SetVector<Value> inputs; // of the kernel
    IRMapping map;
    OpBuilder builder;
    bool isShared;                // one copy of a free op serves all its users; otherwise each user has its own
    llvm::DenseSet<Value> copies; // copies of free ops, views and fills

    Body(MLIRContext *context, bool isShared) : builder(context), isShared(isShared) {
      builder.setInsertionPointToEnd(&region->emplaceBlock());
    }
    /// Makes later users get copies of their own, unless copies are shared.
    void forgetCopies(Operation *user) {
      for (Value v : user->getOperands())
        if (!isShared && copies.contains(v))
          map.erase(v);
    }
  };
  /// A region with copies of `members`, which yields `results`.
  Body bodyOf(const llvm::SetVector<Operation *> &members, ArrayRef<Value> results, bool isShared) {
    Body body(function.getContext(), isShared);
    for (Operation *op : members) {
      for (Value operand : op->getOperands())
        bring(operand, members, body, needsMemory(op));
      Operation *clone = body.builder.clone(*op, body.map);
      body.forgetCopies(op);
      for (auto [from, to] : llvm::zip(op->getResults(), clone->getResults()))
        body.map.map(from, to);
    }
    auto yielded = llvm::map_to_vector(results, [&](Value v) { return body.map.lookup(v); });
    YieldOp::create(body.builder, members.front()->getLoc(), yielded);
    return body;
  }

  /// Whether the op reads its operands from memory, many times or as a step of the plan.
  static bool needsMemory(Operation *op) { return readsMemory(op) || isOwnStep(op); }

  /// Whether `user`, an op outside of the kernel, needs its operand in memory; views and free ops: if a user of them
  /// does.
  bool neededOutside(Operation *user, const llvm::SetVector<Operation *> &members) {
    Kind kind = kindOf(user);
    if (kind != Kind::Free && kind != Kind::View)
      return true;
    return llvm::any_of(user->getUsers(),
                        [&](Operation *next) { return !members.contains(next) && neededOutside(next, members); });
  }

  /// Makes `v` available in the body: free ops and views of computed values are copied there, other values that are no
  /// members become inputs. `inMemory`: the user reads `v` from memory.
  void bring(Value v, const llvm::SetVector<Operation *> &members, Body &body, bool inMemory) {
    if (body.map.contains(v))
      return;
    Operation *op = v.getDefiningOp();
    Kind kind = op ? kindOf(op) : Kind::None;
    // A view of a value in memory is an input; a view of a value computed here, or of a free op, is repeated here.
    bool viewOfComputed =
        kind == Kind::View && (comesFrom(v, members) || kindOf(skipReshapes(v).getDefiningOp()) == Kind::Free);
    if (targets.isStridedView(op) || (!inMemory && (kind == Kind::Free || viewOfComputed))) {
      for (Value operand : op->getOperands())
        bring(operand, members, body, inMemory);
      Operation *clone = body.builder.clone(*op, body.map);
      body.forgetCopies(op);
      body.copies.insert(v);
      body.map.map(v, clone->getResult(0));
      return;
    }
    if (auto constant = dyn_cast_or_null<ConstantOp>(op); constant && !inMemory)
      if (Value fill = fillFor(constant, body.builder)) {
        body.copies.insert(v);
        body.map.map(v, fill);
        return;
      }
    body.inputs.insert(v);
    body.map.map(v, body.region->front().addArgument(v.getType(), v.getLoc()));
  }

  /// Whether `v` is a member's result, or views and free ops of one.
  bool comesFrom(Value v, const llvm::SetVector<Operation *> &members) {
    Operation *op = v.getDefiningOp();
    if (!op || members.contains(op))
      return op;
    Kind kind = kindOf(op);
    return (kind == Kind::View || kind == Kind::Free) &&
           llvm::any_of(op->getOperands(), [&](Value operand) { return comesFrom(operand, members); });
  }

  const FusionTargets targets;
  func::FuncOp function;
  Block &block;
  SizeClasses classes;
  std::vector<Group> groups;
  llvm::DenseMap<Operation *, GroupId> groupOf;
  llvm::DenseSet<Operation *> stored;
  llvm::DenseMap<Operation *, Operation *> effectBefore, effectAfter;
  Operation *added = nullptr; // the op that is being added, or the last one
};

struct FusePass : impl::FusePassBase<FusePass> {
  using FusePassBase::FusePassBase;
  void runOnOperation() override {
    // Barriers keep CSE from merging recomputed ops with the original ones; CSE does not run after fusion.
    getOperation().walk([](BarrierOp op) {
      op.getResult().replaceAllUsesWith(op.getX());
      op.erase();
    });
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(Fuser(function, {.onGpus = onGpus, .gpusAlone = gpusAlone}).run()))
        return signalPassFailure();
  }
};

} // namespace

} // namespace burin::passes
