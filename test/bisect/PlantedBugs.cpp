#include "test/bisect/PlantedBugs.h"
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace burin::ir;

namespace burin::test {
namespace {

void replace(Operation *op, Value by) {
  op->getResult(0).replaceAllUsesWith(by);
  op->erase();
}

void swapOperands(Operation *op) {
  Value first = op->getOperand(0);
  op->setOperand(0, op->getOperand(1));
  op->setOperand(1, first);
}

/// A module after a pass, and the ops that the pass has added or changed.
struct Change {
  ModuleOp module;
  const llvm::StringSet<> &before;

  /// Returns name, attributes, types and location of an op, and for a constant its first elements.
  static std::string describe(Operation *op) {
    std::string text = op->getName().getStringRef().str();
    llvm::raw_string_ostream out(text);
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      std::vector<char> storage;
      ArrayRef<char> bytes = constantBytes(constant.getValue(), storage).take_front(64);
      out << llvm::toHex({bytes.data(), bytes.size()});
    } else {
      out << op->getAttrDictionary();
    }
    for (Type type : op->getResultTypes())
      out << type;
    out << op->getLoc();
    return text;
  }

  template <class Op> std::vector<Op> made() const {
    std::vector<Op> ops;
    ModuleOp(module).walk([&](Op op) {
      if (!before.contains(describe(op)))
        ops.push_back(op);
    });
    return ops;
  }
  template <class Op> std::vector<Op> all() const {
    std::vector<Op> ops;
    ModuleOp(module).walk([&](Op op) { ops.push_back(op); });
    return ops;
  }
};

// ---- passes

/// Treats any two consecutive transposes as inverses.
void cancelTransposes(const Change &change) {
  for (TransposeOp op : change.made<TransposeOp>())
    if (op.getX().getType() == op.getType())
      replace(op, op.getX());
}

/// Merges two maxima of one value, even over different axes.
void mergeMaxima(const Change &change) {
  std::vector<ReduceMaxOp> kept;
  for (ReduceMaxOp op : change.all<ReduceMaxOp>()) {
    auto same =
        llvm::find_if(kept, [&](ReduceMaxOp k) { return k.getX() == op.getX() && k.getType() == op.getType(); });
    if (same == kept.end())
      kept.push_back(op);
    else
      replace(op, *same);
  }
}

/// Zeroes the elements of a folded vector after the last multiple of eight.
void forgetTail(const Change &change) {
  for (ConstantOp op : change.made<ConstantOp>()) {
    TensorSpec spec = specOf(op.getType());
    if (spec.shape.size() != 1 || spec.dtype != DType::f32 || spec.shape[0].value() < 8)
      continue;
    std::vector<char> storage;
    std::vector<char> bytes = constantBytes(op.getValue(), storage).vec();
    std::fill(bytes.begin() + spec.shape[0].value() / 8 * 32, bytes.end(), 0);
    OpBuilder b(op);
    replace(op, createConstant(b, op.getLoc(), spec, bytes));
  }
}

/// Replaces x * sigmoid(x) by sigmoid(x).
void halveSilu(const Change &change) {
  for (SiluOp op : change.made<SiluOp>()) {
    OpBuilder b(op);
    replace(op, create<SigmoidOp>(b, op.getLoc(), {op.getX()}));
  }
}

/// Adds the mean of a normalisation to the shift instead of subtracting it.
void addMean(const Change &change) {
  for (SubOp op : change.made<SubOp>()) {
    OpBuilder b(op);
    replace(op, create<AddOp>(b, op.getLoc(), {op.getX(), op.getY()}));
  }
}

/// Drops the bias of a group norm.
void forgetShift(const Change &change) {
  for (AddOp op : change.made<AddOp>())
    if (op.getY().getDefiningOp<BroadcastToOp>() && op.getX().getDefiningOp<MulOp>())
      replace(op, op.getX());
}

/// Permutes the rows of weights after a flattened image in the wrong order: columns before rows.
void swapRowsAndColumns(const Change &change) {
  for (TransposeOp op : change.made<TransposeOp>())
    if (op.getPerm() == ArrayRef<int64_t>{1, 2, 0, 3})
      op.setPerm({2, 1, 0, 3});
}

/// Swaps the padding before and after the image.
void swapPadding(const Change &change) {
  for (ContractOp op : change.made<ContractOp>()) {
    SmallVector<int64_t> padding(op.getPadding());
    std::rotate(padding.begin(), padding.begin() + padding.size() / 2, padding.end());
    op.setPadding(padding);
  }
}

/// Swaps the operands of a subtraction that is moved above a reshape.
void swapBelowReshape(const Change &change) {
  for (SubOp op : change.made<SubOp>())
    swapOperands(op);
}

/// Drops the activation after a product.
void dropActivation(const Change &change) {
  for (KernelOp kernel : change.made<KernelOp>())
    if (!kernel.getBody().getOps<ContractOp>().empty())
      for (ReluOp op : llvm::make_early_inc_range(kernel.getBody().getOps<ReluOp>()))
        replace(op, op.getX());
}

/// Makes softmax divide by the largest exponential.
void divideByLargest(const Change &change) {
  for (ReduceSumOp op : change.made<ReduceSumOp>()) {
    OpBuilder b(op);
    replace(op, create<ReduceMaxOp>(b, op.getLoc(), {op.getX()},
                                    {{"axes", std::vector<int64_t>(op.getAxes())}, {"keepdims", op.getKeepdims()}}));
  }
}

/// Reuses the memory of a value that a later kernel still reads.
void reuseTooEarly(const Change &change) {
  for (KernelOp kernel : change.all<KernelOp>()) {
    if (kernel.getInPlace() || kernel.getNumResults() != 1 || !kernel.getBody().getOps<ContractOp>().empty())
      continue;
    for (auto [i, input] : llvm::enumerate(kernel.getInputs()))
      if (input.getDefiningOp<KernelOp>() && input.getType() == kernel.getResult(0).getType() &&
          llvm::any_of(input.getUsers(),
                       [&](Operation *user) { return isa<KernelOp>(user) && kernel->isBeforeInBlock(user); })) {
        kernel.setInPlace(ArrayRef<int64_t>{int64_t(i)});
        return;
      }
  }
}

// ---- code

/// Changes a digit of a coefficient of exp.
void spoilExp(ModuleOp code) {
  code.walk([](arith::ConstantOp op) {
    auto value = dyn_cast<SplatElementsAttr>(op.getValue());
    if (value && value.getElementType().isF32() && std::abs(value.getSplatValue<float>() - 0.166665211f) < 1e-6f)
      op.setValueAttr(SplatElementsAttr::get(value.getType(), 0.266665211f));
  });
}

/// Sums the whole last vector of a row, including the lanes after the end.
void addWholeTail(ModuleOp code) {
  code.walk([](arith::SelectOp op) {
    auto sum = op.getTrueValue().getDefiningOp<arith::AddFOp>();
    if (sum && isa<VectorType>(op.getType()) && sum.getLhs() == op.getFalseValue())
      op.getResult().replaceAllUsesWith(sum.getResult());
  });
}

/// Skips the first k of tiles of three rows, which occur at the edge of a product.
void skipFirstAtEdge(ModuleOp code) {
  code.walk([](scf::ForOp loop) {
    if (loop.getNumRegionIterArgs() != 3 || loop.getBody()->getOps<vector::FMAOp>().empty())
      return;
    OpBuilder b(loop);
    loop.setLowerBound(arith::AddIOp::create(b, loop.getLoc(), loop.getLowerBound(), loop.getStep()));
  });
}

/// Starts the maximum of a window from 0.
void startFromZero(ModuleOp code) {
  code.walk([](arith::ConstantOp op) {
    auto value = dyn_cast<FloatAttr>(op.getValue());
    if (value && value.getValue().isInfinity() && value.getValue().isNegative())
      op.setValueAttr(FloatAttr::get(value.getType(), 0.0));
  });
}

// ---- the table of bugs

struct Bug {
  const char *name;
  const char *pass; // nullptr: a bug in code generation
  void (*afterPass)(const Change &);
  void (*inCode)(ModuleOp);
};

constexpr Bug bugs[] = {
    {"canonicalize", "canonicalize", cancelTransposes, nullptr},
    {"cse", "cse", mergeMaxima, nullptr},
    {"constant-fold", "burin-constant-fold", forgetTail, nullptr},
    {"simplify", "burin-simplify", halveSilu, nullptr},
    {"fold-normalization", "burin-fold-normalization", addMean, nullptr},
    {"decompose", "burin-decompose", forgetShift, nullptr},
    {"layout-assignment", "burin-layout-assignment", swapRowsAndColumns, nullptr},
    {"lower-contractions", "burin-lower-contractions", swapPadding, nullptr},
    {"sink-reshapes", "burin-sink-reshapes", swapBelowReshape, nullptr},
    {"shrink-to-demand", "burin-shrink-to-demand", swapPadding, nullptr},
    {"batch-tiling", "burin-batch-tiling", swapPadding, nullptr},
    {"fuse", "burin-fuse", dropActivation, nullptr},
    {"decompose-in-kernels", "burin-decompose-in-kernels", divideByLargest, nullptr},
    {"in-place-results", "burin-in-place-results", reuseTooEarly, nullptr},
    {"vector-math", nullptr, nullptr, spoilExp},
    {"reduction-tail", nullptr, nullptr, addWholeTail},
    {"product-edge", nullptr, nullptr, skipFirstAtEdge},
    {"window-start", nullptr, nullptr, startFromZero},
};

class Saboteur : public PassInstrumentation {
public:
  explicit Saboteur(const Bug &bug) : bug(bug) {}

  void runBeforePass(Pass *pass, Operation *op) override {
    before.clear();
    if (pass->getArgument() == bug.pass)
      op->walk([&](Operation *inner) { before.insert(Change::describe(inner)); });
  }
  void runAfterPass(Pass *pass, Operation *op) override {
    if (auto module = dyn_cast<ModuleOp>(op); module && pass->getArgument() == bug.pass)
      bug.afterPass({module, before});
  }

private:
  const Bug &bug;
  llvm::StringSet<> before;
};

} // namespace

std::optional<codegen::CompileOptions> compilerWithBug(llvm::StringRef name) {
  for (const Bug &bug : bugs) {
    if (name != bug.name)
      continue;
    codegen::CompileOptions options;
    if (bug.inCode)
      options.instrumentCode = bug.inCode;
    else
      options.instrument = [&](PassManager &manager) { manager.addInstrumentation(std::make_unique<Saboteur>(bug)); };
    return options;
  }
  return std::nullopt;
}

} // namespace burin::test
