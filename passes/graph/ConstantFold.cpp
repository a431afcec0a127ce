// Constant folding.
//
// Folds whole constant subgraphs. Only values that the rest of the graph uses become constants, so that a chain of
// weight transposes leaves one copy. A folded constant is named after the weights that it is computed from.
#include "ir/fold/Fold.h"
#include "ir/reference/ReferenceTensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "passes/Passes.h"
#include "passes/analysis/OpFacts.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
#define GEN_PASS_DEF_CONSTANTFOLDPASS
#include "passes/Passes.h.inc"

namespace {

bool isStatic(Value v) {
  return llvm::all_of(shapeOf(v), [](const Dim &d) { return d.isStatic(); });
}

std::vector<int64_t> sizesOf(Value v) {
  std::vector<int64_t> sizes;
  for (const Dim &d : shapeOf(v))
    sizes.push_back(d.value());
  return sizes;
}

/// Bytes of a tensor with a static shape; UINT64_MAX on overflow.
uint64_t bytesOf(Value v) {
  uint64_t width = byteWidth(dtypeOf(v));
  auto count = elementCount(sizesOf(v), int64_t(INT64_MAX / width));
  return count ? uint64_t(*count) * width : UINT64_MAX;
}

class ConstantFolder {
public:
  ConstantFolder(Operation *root, const ConstantFoldPassOptions &options) : root(root), options(options) {}

  void run() {
    findKnown();
    findStored();
    findNeeded();
    compute();
    for (auto *ops : {&known, &leaves})
      for (Operation *op : llvm::reverse(*ops))
        if (isOpTriviallyDead(op))
          op->erase();
  }

private:
  struct Facts {
    uint64_t leafBytes = 0; // bytes of the constants that it is computed from
    bool cheap = true;      // it, and all values that it is computed from, are cheap
  };
  struct Interim {
    ElementsAttr value; // null for constants, and until it is computed
    size_t uses = 0;    // computations still to come that read it
  };

  // Collects the values that depend on constants alone and may be folded, in program order.
  void findKnown() {
    root->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<KernelOp>(op))
        return WalkResult::skip();
      if (auto constant = dyn_cast<ConstantOp>(op)) {
        leaves.push_back(op);
        facts[constant] = {bytesOf(constant), true};
      } else if (std::optional<Facts> f = knownFactsOf(op)) {
        known.push_back(op);
        for (Value result : op->getResults())
          facts[result] = *f;
      }
      return WalkResult::advance();
    });
  }

  std::optional<Facts> knownFactsOf(Operation *op) {
    if (!opInfo(op) || op->getNumRegions() || !isMemoryEffectFree(op) || factsOf(op).folding == Folding::Never ||
        !llvm::all_of(op->getResults(), isStatic))
      return std::nullopt;
    Facts result{0, factsOf(op).folding == Folding::Cheap};
    for (Value operand : op->getOperands()) {
      auto it = facts.find(operand);
      if (it == facts.end())
        return std::nullopt;
      result.leafBytes = llvm::SaturatingAdd(result.leafBytes, it->second.leafBytes);
      result.cheap &= it->second.cheap;
    }
    uint64_t most = llvm::SaturatingMultiply<uint64_t>(result.leafBytes, 2); // room for the padding of packed panels
    for (Value v : op->getResults())
      if (bytesOf(v) > std::max<uint64_t>(options.maxBytes, most))
        return std::nullopt;
    return result;
  }

  bool worthStoring(Value v) {
    if (factsOf(v.getDefiningOp()).fusion == FusionKind::Free) // kernels repeat these at no cost
      return false;
    const Facts &f = facts.find(v)->second;
    uint64_t bytes = bytesOf(v);
    return bytes <= f.leafBytes || !f.cheap || bytes <= options.maxCheapBytes;
  }

  // Backwards: a known value with a user that is not known is stored as a constant, or else its op stays in the graph
  // and counts as such a user itself.
  void findStored() {
    llvm::DenseSet<Operation *> stays;
    for (Operation *op : llvm::reverse(known)) {
      for (Value result : op->getResults()) {
        bool used = llvm::any_of(result.getUsers(), [&](Operation *user) {
          return stays.contains(user) || !user->getNumResults() || !facts.contains(user->getResult(0));
        });
        if (!used)
          continue;
        if (worthStoring(result))
          stored.insert(result);
        else
          stays.insert(op);
      }
    }
  }

  // Collects the ops to compute for the stored values, and counts how often each value is read meanwhile.
  void findNeeded() {
    for (Operation *op : llvm::reverse(known)) {
      if (llvm::none_of(op->getResults(), [&](Value v) { return stored.contains(v) || interim.contains(v); }))
        continue;
      needed.push_back(op);
      for (Value operand : op->getOperands())
        ++interim[operand].uses;
    }
    std::reverse(needed.begin(), needed.end());
  }

  /// Names of the weights that an op is computed from, each once and at most the first four.
  SmallVector<StringRef> sourcesOf(Operation *op) {
    constexpr size_t kShown = 4;
    llvm::SmallSetVector<StringRef, kShown> names;
    for (Value operand : op->getOperands()) {
      if (auto constant = operand.getDefiningOp<ConstantOp>(); constant && !constant.getName().value_or("").empty())
        names.insert(*constant.getName());
      else if (auto it = sources.find(operand.getDefiningOp()); it != sources.end())
        names.insert(it->second.begin(), it->second.end());
    }
    SmallVector<StringRef> list = names.takeVector();
    if (list.size() > kShown) {
      list.truncate(kShown);
      list.push_back("...");
    }
    return list;
  }

  /// "fc.weight (packed)", "conv.weight+norm.weight"; null if no source has a name.
  StringAttr nameOf(Operation *op) {
    const SmallVector<StringRef> &names = sources[op];
    if (names.empty())
      return {};
    return StringAttr::get(op->getContext(), llvm::join(names, "+") + (isa<PackOp>(op) ? " (packed)" : ""));
  }

  void compute() {
    std::vector<std::pair<Value, Value>> constants; // value, replacement
    for (Operation *op : needed) {
      sources[op] = sourcesOf(op);
      SmallVector<Attribute> operands;
      for (Value operand : op->getOperands())
        operands.push_back(valueOf(operand));
      // Ops that cannot be folded stay, and so do the known ops that read them.
      if (auto results = foldOp(op, operands); succeeded(results))
        for (auto [result, value] : llvm::zip(op->getResults(), *results)) {
          if (stored.contains(result)) {
            OpBuilder b(op);
            constants.push_back({result, ConstantOp::create(b, op->getLoc(), value.getType(), value, nameOf(op))});
          }
          if (auto it = interim.find(result); it != interim.end())
            it->second.value = value;
          else if (!stored.contains(result))
            release(value);
        }
      for (Value operand : op->getOperands())
        if (Interim &i = interim.find(operand)->second; --i.uses == 0 && !stored.contains(operand))
          release(i.value);
    }
    for (auto [value, constant] : constants)
      value.replaceAllUsesWith(constant);
  }

  Attribute valueOf(Value v) {
    if (auto constant = v.getDefiningOp<ConstantOp>())
      return constant.getValue();
    return interim.find(v)->second.value;
  }

  /// Frees the memory of an intermediate value: the context would keep it until the end.
  static void release(ElementsAttr value) {
    if (auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(value))
      resource.getRawHandle().getResource()->setBlob({});
  }

  Operation *root;
  const ConstantFoldPassOptions &options;
  llvm::DenseMap<Value, Facts> facts;
  std::vector<Operation *> leaves, known, needed;
  llvm::DenseSet<Value> stored;
  llvm::DenseMap<Value, Interim> interim;
  // Names of the weights behind each computed op; attributes own the strings.
  llvm::DenseMap<Operation *, SmallVector<StringRef>> sources;
};

struct ConstantFoldPass : impl::ConstantFoldPassBase<ConstantFoldPass> {
  using ConstantFoldPassBase::ConstantFoldPassBase;

  void runOnOperation() override {
    do
      ConstantFolder(getOperation(), {maxBytes, maxCheapBytes}).run();
    while (sinkIntoLoops());
  }

private:
  /// Moves constants that a loop gets as whole inputs into its body, so that the body is compiled for them. Returns
  /// true if there were any.
  bool sinkIntoLoops() {
    bool any = false;
    // Number of loops with this body; several would have to agree on constant inputs.
    llvm::DenseMap<Operation *, int> loops;
    getOperation().walk([&](ScanOp scan) { ++loops[scan.body()]; });
    getOperation().walk([&](ScanOp scan) {
      auto body = cast_or_null<func::FuncOp>(scan.body());
      if (!body || body.isExternal() || loops[body] > 1)
        return;
      Block &block = body.getBody().front();
      OpBuilder b = OpBuilder::atBlockBegin(&block);
      for (unsigned i = scan.getInputs().size(); i-- > scan.firstWhole();) {
        Operation *constant = scan.getInputs()[i].getDefiningOp();
        bool isMade = constant && constant->getNumOperands() == 0 && factsOf(constant).fusion == FusionKind::Free;
        if (!isMade && !isa_and_nonnull<ConstantOp>(constant))
          continue;
        block.getArgument(i).replaceAllUsesWith(b.clone(*constant)->getResult(0));
        block.eraseArgument(i);
        scan.getInputsMutable().erase(i);
        any = true;
      }
      body.setFunctionType(b.getFunctionType(block.getArgumentTypes(), body.getResultTypes()));
    });
    return any;
  }
};

} // namespace

} // namespace burin::passes
