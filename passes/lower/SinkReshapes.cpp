// Moves the reshape after a product below the elementwise ops that follow: x @ w + b of a batch of sequences becomes
// one matrix product with its bias in one iteration space. Only reshapes that split the rows of a product move.
#include "ir/dialect/Burin.h"
#include "passes/Passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_SINKRESHAPESPASS
#include "passes/Passes.h.inc"

namespace {

/// Whether it splits [rows, n] into [a, b, …, n].
bool splitsRows(ReshapeOp op) {
  Shape from = shapeOf(op.getX()), to = shapeOf(op.getResult());
  return from.size() == 2 && to.size() > 2 && from.back() == to.back();
}

class Sinker {
public:
  explicit Sinker(ReshapeOp op) { work.push_back(op); }

  void run() {
    while (!work.empty()) {
      ReshapeOp reshape = work.pop_back_val();
      llvm::SmallSetVector<Operation *, 4> users; // x * x uses x twice
      for (Operation *user : reshape->getUsers())
        if (user->hasTrait<ir::Elementwise>())
          users.insert(user);
      for (Operation *user : users)
        sink(reshape, user);
      if (reshape.use_empty())
        reshape.erase();
    }
  }

private:
  void sink(ReshapeOp reshape, Operation *user) {
    Shape full = shapeOf(reshape.getResult()), rows = shapeOf(reshape.getX());
    if (llvm::any_of(user->getOperands(), [&](Value v) { return !mayJoin(v, full); }))
      return;
    OpBuilder b(user);
    SmallVector<Value> operands;
    for (Value v : user->getOperands())
      operands.push_back(v == reshape.getResult() ? reshape.getX() : joined(b, v, rows));
    auto type = tensorType(user->getContext(), {dtypeOf(user->getResult(0)), rows});
    OperationState state(user->getLoc(), user->getName(), operands, {type}, user->getAttrs());
    Operation *below = b.create(state);
    Value back = create<ReshapeOp>(b, user->getLoc(), {below->getResult(0)}, {{"shape", full}});
    user->getResult(0).replaceAllUsesWith(back);
    user->erase();
    work.push_back(back.getDefiningOp<ReshapeOp>());
  }

  /// Broadcasts must remain broadcasts on the rows: those along all leading dimensions do, and those along none of
  /// them.
  static bool mayJoin(Value v, const Shape &full) {
    if (shapeOf(v) != full)
      return false;
    auto broadcast = v.getDefiningOp<BroadcastToOp>();
    return !broadcast || repeatsRows(broadcast) || keepsRows(broadcast);
  }
  static bool repeatsRows(BroadcastToOp op) {
    Shape from = shapeOf(op.getX());
    return from.empty() || llvm::all_of(ArrayRef<Dim>(from).drop_back(), [](const Dim &d) { return d == Dim(1); });
  }
  static bool keepsRows(BroadcastToOp op) {
    Shape from = shapeOf(op.getX()), to = shapeOf(op.getResult());
    return from.size() == to.size() && ArrayRef<Dim>(from).drop_back() == ArrayRef<Dim>(to).drop_back();
  }

  Value joined(OpBuilder &b, Value v, const Shape &rows) {
    auto broadcast = v.getDefiningOp<BroadcastToOp>();
    if (!broadcast)
      return create<ReshapeOp>(b, v.getLoc(), {v}, {{"shape", rows}});
    Shape from = shapeOf(broadcast.getX());
    Dim last = from.empty() ? Dim(1) : from.back();
    Shape flat{repeatsRows(broadcast) ? Dim(1) : rows.front(), last};
    Value x = create<ReshapeOp>(b, v.getLoc(), {broadcast.getX()}, {{"shape", flat}});
    return create<BroadcastToOp>(b, v.getLoc(), {x}, {{"shape", rows}});
  }

  SmallVector<ReshapeOp> work;
};

struct SinkReshapesPass : impl::SinkReshapesPassBase<SinkReshapesPass> {
  void runOnOperation() override {
    SmallVector<ReshapeOp> found;
    getOperation().walk([&](ReshapeOp op) {
      if (op.getX().getDefiningOp<ContractOp>() && splitsRows(op))
        found.push_back(op);
    });
    for (ReshapeOp op : found)
      Sinker(op).run();
  }
};

} // namespace

} // namespace burin::passes
