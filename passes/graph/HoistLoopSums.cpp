// Moves sums that a loop only accumulates out of the loop.
//
// A gradient loop adds the product of each iteration to the gradient of a weight: s = s + matmul(a, b), where only the
// last s is read. After the loop that is one product, whose sum also runs over the iterations. It reads and writes the
// gradient once instead of once per iteration, and no iteration stores its s. Each term must be a matrix product or a
// sum over some dimensions; its operands become results of the loop unless they are already.
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"
#include "passes/analysis/GraphBuilder.h"
#include "passes/analysis/IterationSpace.h"
#include "passes/analysis/Loops.h"
#include "passes/analysis/OpFacts.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_HOISTLOOPSUMSPASS
#include "passes/Passes.h.inc"

namespace {

/// A state of a loop that is a sum of terms, each a MatmulOp or ReduceSumOp of the body.
struct Sum {
  unsigned state;
  SmallVector<Operation *> terms;
};

class Hoister {
public:
  explicit Hoister(ScanOp scan)
      : scan(scan), function(cast<func::FuncOp>(scan.body())), block(function.front()), builder(scan),
        parts(scan.partCount()) {}

  void run() {
    for (unsigned i = 0; i < scan.getStates(); ++i)
      if (auto sum = sumOf(i))
        sums.push_back(std::move(*sum));
    if (sums.empty())
      return;
    for (const Sum &sum : sums)
      for (Operation *term : sum.terms)
        for (Value operand : term->getOperands())
          give(isa<MatmulOp>(term) ? innermost(operand) : operand);
    rebuild();
  }

private:
  // ---- what can be hoisted
  std::optional<Sum> sumOf(unsigned state) {
    if (!isOnlyLastRead(scan.getResult(state)))
      return {};
    Value last = block.getTerminator()->getOperand(state), before = block.getArgument(state);
    Sum sum{state, {}};
    bool holdsState = false;
    if (!addTerms(last, before, sum, holdsState) || !holdsState || sum.terms.empty())
      return {};
    return sum;
  }

  bool isOnlyLastRead(Value states) {
    return llvm::all_of(states.getUsers(), [&](Operation *user) {
      auto slice = dyn_cast<SliceOp>(user);
      if (!slice)
        return false;
      Shape shape = shapeOf(states), wanted = shape;
      wanted[0] = 1;
      std::optional<Shape> starts = fromMlirShape(slice.getStarts());
      return starts && starts->front() == parts && shapeOf(slice.getResult()) == wanted;
    });
  }
  static std::optional<Shape> fromMlirShape(Attribute attribute) {
    std::optional<Attr> attr = fromMlir(attribute, AttrKind::Shape);
    return attr ? std::optional(std::get<Shape>(*attr)) : std::nullopt;
  }

  /// Looks through reshapes without other users.
  static Value ownValue(Value v) {
    while (v.hasOneUse() && isView(v.getDefiningOp()))
      v = v.getDefiningOp()->getOperand(0);
    return v;
  }

  bool addTerms(Value v, Value state, Sum &sum, bool &holdsState) {
    v = ownValue(v);
    if (!v.hasOneUse())
      return false;
    if (v == state) {
      holdsState = true;
      return true;
    }
    Operation *op = v.getDefiningOp();
    if (auto add = dyn_cast_or_null<AddOp>(op))
      return addTerms(add->getOperand(0), state, sum, holdsState) &&
             addTerms(add->getOperand(1), state, sum, holdsState);
    auto matmul = dyn_cast_or_null<MatmulOp>(op);
    if (!(matmul && shapeOf(matmul.getLhs()).size() == 2) && !isa_and_nonnull<ReduceSumOp>(op))
      return false;
    sum.terms.push_back(op);
    return true;
  }

  // ---- operands of the terms in all iterations
  /// The operand of a transpose, else `v`: the matrix is stacked as it is and transposed after the loop.
  static Value innermost(Value v) {
    auto transpose = v.getDefiningOp<TransposeOp>();
    return transpose && shapeOf(v).size() == 2 ? transpose.getX() : v;
  }

  bool isPart(Value v) {
    auto argument = dyn_cast<BlockArgument>(v);
    return argument && argument.getArgNumber() >= scan.getStates() && argument.getArgNumber() < scan.firstWhole();
  }

  /// Index of the loop's result, and so of the body's, that holds `v` of all iterations.
  std::optional<unsigned> resultThatIs(Value v) {
    Operation *terminator = block.getTerminator();
    for (unsigned i = unsigned(scan.getStates()); i < terminator->getNumOperands(); ++i)
      if (skipReshapes(terminator->getOperand(i)) == v)
        return i;
    return {};
  }

  /// Makes `v` a result of the body, unless a sliced operand or result of the loop holds it.
  void give(Value v) {
    v = skipReshapes(v);
    if (isPart(v) || resultThatIs(v))
      return;
    Operation *terminator = block.getTerminator();
    OpBuilder b(terminator);
    Shape shape = shapeOf(v);
    shape.insert(shape.begin(), 1);
    terminator->insertOperands(terminator->getNumOperands(), GraphBuilder(b, v.getLoc()).reshape(v, shape));
  }

  // ---- the new loop
  /// Whether an op of the body must stay although its results are unused.
  static bool mustStay(Operation &op) {
    return !op.hasTrait<OpTrait::IsTerminator>() && (!isMemoryEffectFree(&op) || !appliedFunctions(&op).empty());
  }

  void rebuild() {
    llvm::SmallDenseSet<unsigned> hoisted;
    for (const Sum &sum : sums)
      hoisted.insert(sum.state);
    SmallVector<Value> inputs;
    for (auto [i, input] : llvm::enumerate(scan.getInputs()))
      if (!hoisted.contains(unsigned(i)))
        inputs.push_back(input);
    Operation *terminator = block.getTerminator();
    auto states = int64_t(scan.getStates() - hoisted.size());
    SmallVector<Type> types;
    newIndex.assign(terminator->getNumOperands(), 0);
    for (unsigned i = 0; i < terminator->getNumOperands(); ++i) {
      if (hoisted.contains(i))
        continue;
      newIndex[i] = unsigned(types.size());
      TensorSpec spec = specOf(terminator->getOperand(i));
      spec.shape[0] = spec.shape[0] * (i < scan.getStates() ? parts + 1 : parts);
      types.push_back(tensorType(scan.getContext(), spec));
    }
    const bool isEmpty = types.empty() && llvm::none_of(block, mustStay);
    if (!isEmpty)
      made = ScanOp::create(builder, scan.getLoc(), types, scan.getCallee(), inputs, scan.getSliced(), scan.getParts(),
                            states, scan.getReverse());
    for (const Sum &sum : sums)
      replaceLast(sum);
    for (unsigned i = 0; i < scan.getNumResults(); ++i)
      if (!hoisted.contains(i))
        scan.getResult(i).replaceAllUsesWith(made.getResult(newIndex[i]));
    scan.erase();
    if (isEmpty) // all terms are of operands of the loop
      return function.erase();
    for (unsigned i = unsigned(newIndex.size()); i-- > 0;)
      if (hoisted.contains(i))
        terminator->eraseOperand(i);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
    for (unsigned i = block.getNumArguments(); i-- > 0;)
      if (hoisted.contains(i))
        block.eraseArgument(i);
    function.setFunctionType(builder.getFunctionType(block.getArgumentTypes(), terminator->getOperandTypes()));
  }

  /// The values of `v` in all iterations: [parts, shape of v].
  Value stacked(GraphBuilder &g, Value v) {
    Value inner = skipReshapes(v);
    Value all = isPart(inner) ? scan.getInputs()[cast<BlockArgument>(inner).getArgNumber()]
                              : Value(made.getResult(newIndex[*resultThatIs(inner)]));
    Shape shape = shapeOf(v);
    shape.insert(shape.begin(), parts);
    return g.reshape(all, shape);
  }

  /// The matrices of all iterations side by side, [rows, parts * depth], or stacked vertically if `below`.
  Value joined(GraphBuilder &g, Value matrix, bool below) {
    Value source = innermost(matrix);
    bool isTransposed = source != matrix;
    Shape shape = shapeOf(source);
    Value all = stacked(g, source);
    if (below != isTransposed) // dimension 0 of the source is summed
      all = g.reshape(all, {parts * shape[0], shape[1]});
    else
      all = g.reshape(g.transpose(all, {1, 0, 2}), {shape[0], parts * shape[1]});
    return isTransposed ? g.transpose(all, {1, 0}) : all;
  }

  Value total(Operation *term) {
    GraphBuilder g(builder, term->getLoc());
    if (auto matmul = dyn_cast<MatmulOp>(term))
      return g.op<MatmulOp>({joined(g, matmul.getLhs(), false), joined(g, matmul.getRhs(), true)});
    auto reduce = cast<ReduceSumOp>(term);
    std::vector<int64_t> axes{0};
    for (int64_t axis : reduce.getAxes())
      axes.push_back(axis + 1);
    return g.reduce<ReduceSumOp>(stacked(g, reduce.getX()), axes);
  }

  void replaceLast(const Sum &sum) {
    Value initial = scan.getInputs()[sum.state], result = scan.getResult(sum.state);
    GraphBuilder g(builder, scan.getLoc());
    Value all = uniformValue(initial) == 0.0 ? Value() : initial;
    for (Operation *term : sum.terms) {
      Value more = g.reshape(total(term), shapeOf(initial));
      all = all ? g.add(all, more) : more;
    }
    for (Operation *user : llvm::make_early_inc_range(result.getUsers())) {
      user->getResult(0).replaceAllUsesWith(all);
      user->erase();
    }
  }

  ScanOp scan;
  func::FuncOp function;
  Block &block;
  OpBuilder builder;
  Dim parts;
  SmallVector<Sum> sums;
  ScanOp made;
  SmallVector<unsigned> newIndex; // per result of the old body: index in the new loop
};

struct HoistLoopSumsPass : impl::HoistLoopSumsPassBase<HoistLoopSumsPass> {
  void runOnOperation() override {
    for (ScanOp scan : scansWithOwnBody(getOperation()))
      Hoister(scan).run();
  }
};

} // namespace

} // namespace burin::passes
