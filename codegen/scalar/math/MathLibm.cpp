// Calls to libm, the only functions that kernels may import.
#include "codegen/scalar/math/MathParts.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace burin::codegen {

/// The names a kernel may import; f32 forms end in "f".
static constexpr StringLiteral names[] = {"exp",  "log",  "sin",  "cos",   "tan",   "asin",  "acos",  "atan",
                                          "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "pow",   "atan2",
                                          "fmod", "cbrt", "erf",  "expm1", "log1p", "log2",  "log10", "exp2"};

bool isLibmFunction(StringRef symbol) {
  return llvm::is_contained(names, symbol) || (symbol.consume_back("f") && llvm::is_contained(names, symbol));
}

static void declare(Operation *module, LLVM::CallOp call) {
  OpBuilder builder = OpBuilder::atBlockBegin(&module->getRegion(0).front());
  auto signature = LLVM::LLVMFunctionType::get(call.getResult().getType(), llvm::to_vector(call.getOperandTypes()));
  auto function = LLVM::LLVMFuncOp::create(builder, module->getLoc(), *call.getCallee(), signature);
  // "nobuiltin": the optimiser must not replace a call by code that rounds differently, such as pow(x, 2) by x * x, or
  // fold it with the libm of the compiling machine. The other attributes declare that errno is not used, so that unused
  // and repeated calls are removed.
  function.setPassthroughAttr(builder.getStrArrayAttr({"nobuiltin", "nounwind", "willreturn"}));
  auto none = LLVM::ModRefInfo::NoModRef;
  function.setMemoryEffectsAttr(
      LLVM::MemoryEffectsAttr::get(builder.getContext(), {none, none, none, none, none, none}));
}

void declareLibm(Operation *module) {
  module->walk([&](LLVM::CallOp call) {
    if (call.getCallee() && isLibmFunction(*call.getCallee()) &&
        !SymbolTable::lookupSymbolIn(module, *call.getCallee()))
      declare(module, call);
  });
}

Scalar callLibm(StringRef name, ArrayRef<Scalar> args) {
  Scalar first = args.front();
  OpBuilder &b = first.getBuilder();
  mlir::Location loc = first.getLoc();
  assert((first.dtype() == DType::f32 || first.dtype() == DType::f64) && "16-bit floats are widened first");
  std::string symbol = name.str() + (first.dtype() == DType::f32 ? "f" : "");
  Type type = laneType(b.getContext(), first.dtype());
  auto call = [&](ValueRange operands) -> Value {
    return LLVM::CallOp::create(b, loc, type, symbol, operands).getResult();
  };

  auto vector = dyn_cast<VectorType>(first.value().getType());
  SmallVector<Value> operands;
  if (!vector) {
    for (Scalar arg : args)
      operands.push_back(arg.value());
    return first.with(call(operands));
  }
  SmallVector<ResultRange> lanes;
  for (Scalar arg : args)
    lanes.push_back(vector::ToElementsOp::create(b, loc, arg.value()).getElements());
  SmallVector<Value> results;
  for (int64_t i = 0; i < vector.getNumElements(); ++i) {
    operands.clear();
    for (ResultRange lane : lanes)
      operands.push_back(lane[i]);
    results.push_back(call(operands));
  }
  return first.with(vector::FromElementsOp::create(b, loc, vector, results));
}

Scalar exceptWhere(Scalar isSlow, Scalar fast, StringRef libmName, ArrayRef<Scalar> args) {
  mlir::Location loc = fast.getLoc();
  Value any = isSlow.value();
  if (isa<VectorType>(any.getType()))
    any = vector::ReductionOp::create(fast.getBuilder(), loc, vector::CombiningKind::OR, any);
  auto branch = scf::IfOp::create(
      fast.getBuilder(), loc, any,
      [&](OpBuilder &slow, mlir::Location) {
        SmallVector<Scalar> here;
        for (Scalar arg : args)
          here.emplace_back(slow, loc, arg.value(), arg.dtype());
        scf::YieldOp::create(slow, loc, select(isSlow, callLibm(libmName, here), fast).value());
      },
      [&](OpBuilder &otherwise, mlir::Location) { scf::YieldOp::create(otherwise, loc, fast.value()); });
  return fast.with(branch.getResult(0));
}

} // namespace burin::codegen
