// Computes at compile time what depends on constants alone.
//
// Whole constant subgraphs are computed and only the values that the rest of the graph uses become constants, so that a
// chain of weight transposes leaves one copy. Ops that only move elements work on the constants' bytes; all others go
// through the reference interpreter, with f32 rounded after each op as eager execution does.
#include "ir/Reference.h"
#include "ir/ReferenceMove.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "passes/Passes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::passes {
namespace {

/// Costs next to nothing where it is used. Packing moves elements too, but contractions want its result in memory.
bool isCheap(Operation *op) {
  const OpInfo *info = opInfo(op);
  if (isa<PackOp>(op))
    return false;
  if (op->hasTrait<ir::Elementwise>())
    return info->domain != Domain::Float;
  return isa<IotaOp, FullOp, TrilOp, TriuOp>(op) || findMoveKernel(info->name);
}

bool isStatic(Value v) {
  return llvm::all_of(shapeOf(v), [](const Dim &d) { return d.isStatic(); });
}

std::vector<int64_t> sizesOf(Value v) {
  std::vector<int64_t> sizes;
  for (const Dim &d : shapeOf(v))
    sizes.push_back(d.value());
  return sizes;
}

/// Bytes of a tensor of static shape; the largest number when it overflows.
uint64_t bytesOf(Value v) {
  uint64_t width = byteWidth(dtypeOf(v));
  auto count = elementCount(sizesOf(v), int64_t(INT64_MAX / width));
  return count ? uint64_t(*count) * width : UINT64_MAX;
}

class ConstantFolder {
public:
  ConstantFolder(Operation *root, const ConstantFoldOptions &options) : root(root), options(options) {}

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
    uint64_t leafBytes = 0; // of the constants it is computed from
    bool cheap = true;      // with all it is computed from
  };
  struct Bytes {
    std::vector<char> owned;
    ArrayRef<char> data;
    size_t uses = 0; // computations that have not happened yet
  };

  // Values that depend on constants alone and may be computed, in program order.
  void findKnown() {
    root->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<KernelOp>(op))
        return WalkResult::skip();
      if (auto constant = dyn_cast<ConstantOp>(op)) {
        leaves.push_back(op);
        facts[constant] = {bytesOf(constant), true};
      } else if (std::optional<Facts> f = factsOf(op)) {
        known.push_back(op);
        for (Value result : op->getResults())
          facts[result] = *f;
      }
      return WalkResult::advance();
    });
  }

  std::optional<Facts> factsOf(Operation *op) {
    if (!opInfo(op) || op->getNumRegions() || !isMemoryEffectFree(op) ||
        isa<RandomUniformOp, RandomNormalOp, BernoulliOp>(op) || !llvm::all_of(op->getResults(), isStatic))
      return std::nullopt;
    Facts result{0, isCheap(op)};
    for (Value operand : op->getOperands()) {
      auto it = facts.find(operand);
      if (it == facts.end())
        return std::nullopt;
      result.leafBytes = llvm::SaturatingAdd(result.leafBytes, it->second.leafBytes);
      result.cheap &= it->second.cheap;
    }
    for (Value v : op->getResults())
      if (bytesOf(v) > std::max(options.maxBytes, result.leafBytes))
        return std::nullopt;
    return result;
  }

  bool worthStoring(Value v) {
    if (isa<BroadcastToOp, FullOp, IotaOp>(v.getDefiningOp())) // kernels repeat these at no cost
      return false;
    const Facts &f = facts.find(v)->second;
    uint64_t bytes = bytesOf(v);
    return bytes <= f.leafBytes || !f.cheap || bytes <= options.maxCheapBytes;
  }

  // Backwards: known values that something unknown uses are stored, or else their op stays and is such a user itself.
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

  // What must be computed for the stored values, and how often each value is read on the way.
  void findNeeded() {
    for (Operation *op : llvm::reverse(known)) {
      if (llvm::none_of(op->getResults(), [&](Value v) { return stored.contains(v) || tensors.contains(v); }))
        continue;
      needed.push_back(op);
      for (Value operand : op->getOperands())
        ++tensors[operand].uses;
    }
    std::reverse(needed.begin(), needed.end());
  }

  void compute() {
    for (Operation *op : needed) {
      auto results = resultsOf(op);
      for (auto [i, result] : llvm::enumerate(op->getResults())) {
        if (!results)
          continue; // the op stays as it is, and so do those that would have read it
        std::vector<char> &bytes = (*results)[i];
        if (stored.contains(result)) {
          OpBuilder b(op);
          constants.push_back({result, createConstant(b, op->getLoc(), specOf(result), bytes)});
        }
        if (auto it = tensors.find(result); it != tensors.end()) {
          it->second.owned = std::move(bytes);
          it->second.data = it->second.owned;
        }
      }
      for (Value operand : op->getOperands())
        if (Bytes &t = tensors.find(operand)->second; --t.uses == 0)
          t.owned = {};
    }
    for (auto [value, constant] : constants)
      value.replaceAllUsesWith(constant);
  }

  /// nullopt if an operand could not be computed, or the op has no result for these operands.
  std::optional<std::vector<std::vector<char>>> resultsOf(Operation *op) {
    for (Value operand : op->getOperands()) {
      Bytes &t = tensors.find(operand)->second;
      if (auto constant = operand.getDefiningOp<ConstantOp>(); constant && !t.data.data())
        t.data = constantBytes(constant.getValue(), t.owned);
      if (t.data.size() != bytesOf(operand))
        return std::nullopt;
    }
    if (MoveKernel kernel = findMoveKernel(opInfo(op)->name))
      return moved(op, kernel);
    return interpreted(op);
  }

  std::optional<std::vector<std::vector<char>>> moved(Operation *op, MoveKernel kernel) {
    std::vector<Attr> attrs = attrsOf(op);
    size_t width = byteWidth(dtypeOf(op->getResult(0)));
    MoveCall call{*opInfo(op), attrs, {}, {}, width, nullptr, {}};
    for (Value operand : op->getOperands())
      call.operands.push_back({const_cast<char *>(tensors.find(operand)->second.data.data()), sizesOf(operand)});
    std::vector<std::vector<char>> results;
    for (Value result : op->getResults()) {
      results.emplace_back(bytesOf(result));
      call.results.push_back({results.back().data(), sizesOf(result)});
    }
    std::vector<char> fill(width);
    if (auto pad = dyn_cast<PadOp>(op))
      fill = fillOf(pad);
    call.fill = fill.data();
    if (!kernel(call))
      return std::nullopt;
    return results;
  }

  static std::vector<char> fillOf(PadOp pad) {
    double value = pad.getValue().convertToDouble();
    RefTensor element = RefTensor::zeros(dtypeOf(pad.getResult()), {});
    if (isFloat(element.dtype))
      element.reals()[0] = value;
    else
      element.ints()[0] = saturateTo(element.dtype, value);
    return element.toBytes();
  }

  std::optional<std::vector<std::vector<char>>> interpreted(Operation *op) {
    std::vector<RefTensor> operands;
    for (Value operand : op->getOperands()) {
      ArrayRef<char> data = tensors.find(operand)->second.data;
      operands.push_back(RefTensor::fromBytes(dtypeOf(operand), sizesOf(operand), {data.data(), data.size()}));
    }
    // What has no result here may still not be reached when the graph runs.
    ScopedDiagnosticHandler quiet(op->getContext(), [](Diagnostic &) { return success(); });
    auto evaluated = evaluate(op, operands, {.roundF32 = true});
    if (failed(evaluated))
      return std::nullopt;
    std::vector<std::vector<char>> results;
    for (const RefTensor &t : *evaluated)
      results.push_back(t.toBytes());
    return results;
  }

  Operation *root;
  const ConstantFoldOptions &options;
  llvm::DenseMap<Value, Facts> facts;
  std::vector<Operation *> leaves, known, needed;
  llvm::DenseSet<Value> stored;
  llvm::DenseMap<Value, Bytes> tensors;
  std::vector<std::pair<Value, Value>> constants; // value, what replaces it
};

struct ConstantFoldPass : PassWrapper<ConstantFoldPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ConstantFoldPass)
  ConstantFoldPass() = default;
  ConstantFoldPass(const ConstantFoldPass &other) : PassWrapper(other) {}
  explicit ConstantFoldPass(const ConstantFoldOptions &options) {
    maxBytes = options.maxBytes;
    maxCheapBytes = options.maxCheapBytes;
  }

  StringRef getArgument() const override { return "burin-constant-fold"; }
  StringRef getDescription() const override {
    return R"(Computes what depends on constants alone, except what is large and cheap to compute where it is used.
  %w = burin.constant …; %0 = burin.transpose %w; %y = burin.matmul %x, %0
  =>
  %0 = burin.constant …; %y = burin.matmul %x, %0)";
  }

  void runOnOperation() override { ConstantFolder(getOperation(), {maxBytes, maxCheapBytes}).run(); }

  Option<uint64_t> maxBytes{*this, "max-bytes", llvm::cl::desc("largest folded value, unless its operands are larger"),
                            llvm::cl::init(ConstantFoldOptions().maxBytes)};
  Option<uint64_t> maxCheapBytes{*this, "max-cheap-bytes", llvm::cl::desc("largest one that is cheap to recompute"),
                                 llvm::cl::init(ConstantFoldOptions().maxCheapBytes)};
};

} // namespace

std::unique_ptr<Pass> createConstantFoldPass(const ConstantFoldOptions &options) {
  return std::make_unique<ConstantFoldPass>(options);
}

} // namespace burin::passes
