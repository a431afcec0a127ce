// Layout assignment: convolutions and pooling run channels-last, and so do the ops between them where that saves
// transposes.
//
// A value has two forms: channels first, as the graph has it, and channels last (Form in LayoutModel.h). Some ops have
// one form; flexible ops work in either. The pass gives each flexible op the form for which the fewest bytes are
// transposed. That is a minimum cut: the source stands for channels last (convolutions), the sink for channels first,
// every flexible op is a node, and an edge that is cut costs the bytes of the transpose between the forms of its ends.
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/LayoutModel.h"
#include "passes/analysis/cost/MinCut.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_LAYOUTASSIGNMENTPASS
#include "passes/Passes.h.inc"

namespace {

/// Penalty of pooling with channels first, as a fraction of the bytes of its operand: vectors along a row of the image
/// read with strides.
constexpr double kStridedWindow = 0.5;
/// Penalty in bytes of a transpose that moves nothing. Above 0 because it becomes a reshape, which prevents fusion;
/// below any real transpose.
constexpr double kReshape = 1.0 / 64;

/// Bytes of a value, with kTypicalImageSize for each symbol.
double bytesOf(Value v) {
  double bytes = double(byteWidth(dtypeOf(v)));
  for (const Dim &d : shapeOf(v))
    bytes *= double(
        d.evaluate([](std::string_view) { return std::optional(kTypicalImageSize); }).value_or(kTypicalImageSize));
  return std::max(bytes, 1.0);
}

/// Whether a transpose by `perm` keeps the order of elements in memory: the dimensions whose size is not 1 stay in
/// order.
bool movesNothing(const Shape &shape, ArrayRef<int64_t> perm) {
  int64_t last = -1;
  for (int64_t d : perm) {
    if (shape[d] == Dim(1))
      continue;
    if (d < last)
      return false;
    last = d;
  }
  return true;
}

template <class T> std::vector<T> permuted(const std::vector<T> &entries, ArrayRef<int64_t> perm) {
  std::vector<T> result;
  for (int64_t d : perm)
    result.push_back(entries[d]);
  return result;
}

/// Reshapes `v` to `shape`, then transposes it by `perm` (by a reshape if that moves nothing).
Value permute(GraphBuilder &g, Value v, const Shape &shape, const std::vector<int64_t> &perm) {
  return movesNothing(shape, perm) ? g.reshape(v, permuted(shape, perm)) : g.transpose(g.reshape(v, shape), perm);
}

Value permute(GraphBuilder &g, Value v, const std::vector<int64_t> &perm) { return permute(g, v, shapeOf(v), perm); }

/// The shape that broadcasting gives a value of lower rank.
Shape withRank(const Shape &shape, size_t rank) {
  Shape result(rank - shape.size(), Dim(1));
  result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

/// Assigns a form to each flexible op.
class Assignment {
public:
  Assignment(Block &block, const LayoutModel &model) : model(model) {
    for (Operation &op : block)
      if (model.rule(&op).isFlexible())
        nodes[&op] = cut.addNode();
    for (Operation &op : block) {
      addPreferences(&op);
      for (Value result : op.getResults())
        addTransposes(result, nodeOf(&op, model.rule(&op).result));
    }
    for (BlockArgument argument : block.getArguments())
      addTransposes(argument, MinCut::kSink);
    side = cut.solve();
  }

  bool isLast(Operation *op) const {
    auto it = nodes.find(op);
    return it != nodes.end() ? side[it->second] : model.rule(op).result == Form::Last;
  }

private:
  static constexpr int kNoNode = -1; // an operand without a layout

  /// The node that stands for this form of an operand or result of the op.
  int nodeOf(Operation *op, Form form) {
    switch (form) {
    case Form::First:
      return MinCut::kSink;
    case Form::Last:
      return MinCut::kSource;
    case Form::Own:
      return nodes.find(op)->second;
    case Form::Any:
      return kNoNode;
    }
    llvm_unreachable("form");
  }

  /// Adds costs of the op's own form.
  void addPreferences(Operation *op) {
    if (LayoutModel::isWindow(op) && nodes.contains(op))
      cut.addEdge(MinCut::kSource, nodes[op], kStridedWindow * bytesOf(op->getOperand(0)));
    // An operand of lower rank is transposed if the result's form reorders its dimensions.
    if (auto broadcast = dyn_cast<BroadcastToOp>(op); broadcast && nodes.contains(op)) {
      Value x = broadcast.getX();
      std::vector<int64_t> perm = model.toLast(broadcast);
      Shape shape = withRank(shapeOf(x), perm.size());
      if (shapeOf(x).size() < perm.size() && !movesNothing(shape, perm) && !isConstantExpression(x))
        cut.addEdge(nodes[op], MinCut::kSink, bytesOf(x));
    }
  }

  /// Adds the cost of a transpose if a user needs another form than the value has. All users that need it share one
  /// transpose: wantedLast is on the source's side as soon as one of them is, wantedFirst on the sink's side likewise.
  void addTransposes(Value v, int producer) {
    if (producer == kNoNode || v.use_empty() || !isa<RankedTensorType>(v.getType()) || isConstantExpression(v))
      return;
    std::vector<int64_t> perm = model.toLast(v);
    if (llvm::is_sorted(perm))
      return;
    double bytes = movesNothing(shapeOf(v), perm) ? kReshape : bytesOf(v);
    int wantedLast = cut.addNode(), wantedFirst = cut.addNode();
    cut.addEdge(wantedLast, producer, bytes);
    cut.addEdge(producer, wantedFirst, bytes);
    for (OpOperand &use : v.getUses()) {
      bool inside = use.getOwner()->getBlock() != v.getParentBlock(); // in a region: read as the graph has it
      int user =
          inside ? MinCut::kSink : nodeOf(use.getOwner(), model.rule(use.getOwner()).operands[use.getOperandNumber()]);
      if (user == kNoNode)
        continue;
      cut.addEdge(user, wantedLast, MinCut::kForbidden);
      cut.addEdge(wantedFirst, user, MinCut::kForbidden);
    }
  }

  const LayoutModel &model;
  MinCut cut;
  llvm::DenseMap<Operation *, int> nodes;
  std::vector<bool> side;
};

/// Rewrites the ops of a block in their assigned forms. A value in the form that it does not have is made where it is
/// first needed, and found in firstForm or lastForm afterwards.
class LayoutRewriter {
public:
  LayoutRewriter(const LayoutModel &model, const Assignment &assignment) : model(model), assignment(assignment) {}

  void run(Block &block) {
    std::vector<Operation *> ops;
    for (Operation &op : block)
      ops.push_back(&op);
    for (Operation *op : ops)
      rewrite(op);
    for (Operation *op : llvm::reverse(ops))
      if (isOpTriviallyDead(op))
        op->erase();
  }

private:
  void rewrite(Operation *op) {
    OpBuilder b(op);
    GraphBuilder g(b, op->getLoc());
    const LayoutRule &rule = model.rule(op);
    // A transpose between the two forms of a value disappears: its result is the value in the other form.
    if (auto transpose = dyn_cast<TransposeOp>(op); transpose && !rule.isFlexible()) {
      Value x = transpose.getX(), result = transpose.getResult();
      if (rule.operands[0] == Form::Last) {
        firstForm[result] = inLast(g, x);
        return;
      }
      if (rule.result == Form::Last) {
        lastForm[result] = inFirst(g, x);
        firstForm[result] = result;
      }
    }
    if (!assignment.isLast(op) || (isa<TransposeOp>(op) && !rule.isFlexible()))
      return readFirst(g, op);
    if (auto reshape = dyn_cast<ReshapeOp>(op); reshape && rule.result == Form::First)
      return flatten(g, reshape);
    Value result = isa<ConvOp>(op) ? convolution(g, cast<ConvOp>(op)) : generic(g, op);
    (rule.result == Form::First ? firstForm : lastForm)[op->getResult(0)] = result;
  }

  /// Keeps the op, with operands in the form of the graph, also those of ops in its regions.
  void readFirst(GraphBuilder &g, Operation *op) {
    op->walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands())
        operand.set(inFirst(g, operand.get()));
    });
  }

  Value inFirst(GraphBuilder &g, Value v) {
    if (auto it = firstForm.find(v); it != firstForm.end())
      return it->second;
    auto it = lastForm.find(v);
    if (it == lastForm.end())
      return v;
    return firstForm[v] = permute(g, it->second, inverse(model.toLast(v)));
  }
  Value inLast(GraphBuilder &g, Value v) {
    if (auto it = lastForm.find(v); it != lastForm.end())
      return it->second;
    Value first = firstForm[v] = inFirst(g, v);
    return lastForm[v] = permute(g, first, model.toLast(v));
  }

  static Value rebuild(GraphBuilder &g, Operation *op, ArrayRef<Value> operands, std::vector<Attr> attrs) {
    Operation *result = createOp(g.b, g.loc, *opInfo(op), operands, std::move(attrs));
    assert(result && "an op is valid in both forms");
    return result->getResult(0);
  }

  /// Builds the op with channels last. Attributes that hold dimensions, or one entry per dimension, are permuted; which
  /// they are follows from their names.
  Value generic(GraphBuilder &g, Operation *op) {
    const LayoutRule &rule = model.rule(op);
    SmallVector<Value> operands;
    for (auto [operand, form] : llvm::zip(op->getOperands(), rule.operands))
      operands.push_back(form == Form::Any ? inFirst(g, operand) : inLast(g, operand));
    Value result = op->getResult(0);
    std::vector<int64_t> toResult = model.toLast(result);
    std::vector<int64_t> perm = operands.empty() || isa<BroadcastToOp>(op) ? toResult : model.toLast(op->getOperand(0));
    if (isa<BroadcastToOp>(op) && rule.operands[0] == Form::Any)
      operands[0] = permute(g, operands[0], withRank(shapeOf(operands[0]), perm.size()), perm);

    std::vector<int64_t> position = inverse(perm);
    std::vector<Attr> attrs = attrsOf(op);
    const OpInfo &info = *opInfo(op);
    for (size_t i = 0; i < attrs.size(); ++i) {
      StringRef name = info.attrs[i].name;
      if (name == "axis") {
        auto &axis = std::get<int64_t>(attrs[i]);
        axis = position[axis];
      } else if (name == "axes") {
        auto &axes = std::get<std::vector<int64_t>>(attrs[i]);
        for (int64_t &axis : axes)
          axis = position[axis];
        llvm::sort(axes);
      } else if (name == "shape") {
        attrs[i] = permuted(std::get<Shape>(attrs[i]), toResult);
      } else if (name == "starts" || name == "stops") {
        attrs[i] = permuted(std::get<Shape>(attrs[i]), perm);
      } else if (name == "low" || name == "high" || name == "interior" || name == "steps") {
        auto &entries = std::get<std::vector<int64_t>>(attrs[i]);
        if (!entries.empty())
          entries = permuted(entries, perm);
      } else if (name == "perm") {
        auto &dims = std::get<std::vector<int64_t>>(attrs[i]);
        std::vector<int64_t> moved;
        for (int64_t d : toResult)
          moved.push_back(position[dims[d]]);
        dims = std::move(moved);
      } else if (name == "layout") {
        attrs[i] = std::string("nhwc");
      }
    }
    return rebuild(g, op, operands, std::move(attrs));
  }

  Value convolution(GraphBuilder &g, ConvOp op) {
    std::vector<Attr> attrs = attrsOf(op);
    attrs.back() = std::string("nhwc");
    std::vector<int64_t> perm; // [O, C, kernel…] to [kernel…, C, O]
    for (int64_t d = 2; d < int64_t(shapeOf(op.getWeight()).size()); ++d)
      perm.push_back(d);
    perm.push_back(1);
    perm.push_back(0);
    Value weight = permute(g, inFirst(g, op.getWeight()), perm);
    Value bias = op.getBias() ? inFirst(g, op.getBias()) : Value();
    return rebuild(g, op, {inLast(g, op.getX()), weight, bias}, std::move(attrs));
  }

  /// Flattens an image that is channels-last. The elements have another order then, so the rows of the weights that the
  /// result is multiplied by (its only users, see feedsConstantWeights) are permuted in the same way.
  void flatten(GraphBuilder &g, ReshapeOp op) {
    Shape shape = shapeOf(op.getX());
    std::vector<int64_t> perm = model.toLast(op.getX()), rows;
    for (int64_t d : ArrayRef(perm).drop_front())
      rows.push_back(d - 1);
    rows.push_back(int64_t(rows.size()));
    Value x = g.reshape(inLast(g, op.getX()), shapeOf(op.getResult()));
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
      auto matmul = cast<MatmulOp>(use.getOwner());
      OpBuilder b(matmul);
      GraphBuilder beside(b, matmul.getLoc());
      Value weight = matmul.getRhs();
      Shape split(shape.begin() + 1, shape.end());
      split.push_back(shapeOf(weight).back());
      Value ordered = permute(beside, beside.reshape(weight, split), rows);
      matmul->setOperands({x, beside.reshape(ordered, shapeOf(weight))});
    }
  }

  const LayoutModel &model;
  const Assignment &assignment;
  llvm::DenseMap<Value, Value> firstForm, lastForm; // forms of values other than the original one
};

struct LayoutAssignmentPass : impl::LayoutAssignmentPassBase<LayoutAssignmentPass> {
  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) {
      Operation *parent = block->getParentOp();
      if (!isa<KernelOp, ModuleOp>(parent))
        blocks.push_back(block);
    });
    for (Block *block : blocks) {
      LayoutModel model(*block);
      if (model.hasWindows())
        LayoutRewriter(model, Assignment(*block, model)).run(*block);
    }
  }
};

} // namespace

} // namespace burin::passes
