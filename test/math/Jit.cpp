#include "test/math/Jit.h"
#include "codegen/scalar/math/MathParts.h"
#include "codegen/target/Target.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include <cstdio>
#include <cstdlib>

using namespace mlir;

namespace burin::test {

using codegen::Scalar;

[[noreturn]] static void fail(const std::string &what) {
  std::fprintf(stderr, "test JIT: %s\n", what.c_str());
  std::exit(1);
}

Jit::Jit(std::string cpu)
    : cpu(std::move(cpu)), context(std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED)) {
  static bool once = (llvm::InitializeNativeTarget(), llvm::InitializeNativeTargetAsmPrinter(), true);
  (void)once;
  context->loadDialect<arith::ArithDialect, func::FuncDialect, LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect,
                       vector::VectorDialect>();
  registerBuiltinDialectTranslation(*context);
  registerLLVMDialectTranslation(*context);
  module = ModuleOp::create(UnknownLoc::get(context.get()));
  const codegen::Target *target = codegen::findTarget(this->cpu.empty() ? "native" : this->cpu);
  if (target && target->avx512)
    codegen::declareAvx512(*module);
}
Jit::~Jit() = default;

/// Prefixed, so that names do not clash with libm.
static std::string symbolOf(const std::string &name) { return "kernel." + name; }

/// Returns the address of element `index`.
static Value address(OpBuilder &b, Location loc, Value base, Value index, DType type) {
  Value wide = arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
  auto bytes = b.getIntegerType(8 * byteWidth(type));
  return LLVM::GEPOp::create(b, loc, base.getType(), bytes, base, LLVM::GEPArg(wide));
}

static Type inMemory(OpBuilder &b, DType type, int lanes) {
  Type element = isBool(type) ? b.getI8Type() : codegen::laneType(b.getContext(), type);
  return lanes == 1 ? element : VectorType::get(lanes, element);
}

/// Emits for (i = from; i < to; i += lanes) out[i...] = body(in[i...]);
static void emitLoop(OpBuilder &outer, Location loc, Value from, Value to, int lanes, ArrayRef<Value> in, Value out,
                     ArrayRef<DType> types, const Body &body) {
  Value step = arith::ConstantIndexOp::create(outer, loc, lanes);
  auto loop = scf::ForOp::create(outer, loc, from, to, step);
  OpBuilder b = OpBuilder::atBlockBegin(loop.getBody());
  Value i = loop.getInductionVar();
  SmallVector<Scalar> operands;
  for (auto [array, type] : llvm::zip_equal(in, types)) {
    Value lane =
        LLVM::LoadOp::create(b, loc, inMemory(b, type, lanes), address(b, loc, array, i, type), byteWidth(type));
    Scalar x(b, loc, lane, isBool(type) ? DType::u8 : type);
    operands.push_back(isBool(type) ? x.nonZero() : x);
  }
  Scalar result = body(operands);
  DType type = result.dtype();
  if (isBool(type))
    result = result.to(DType::u8);
  LLVM::StoreOp::create(b, loc, result.value(), address(b, loc, out, i, type), byteWidth(type));
}

void Jit::add(const std::string &name, std::vector<DType> types, int lanes, const Body &body) {
  OpBuilder b(module->getBodyRegion());
  b.setInsertionPointToEnd(module->getBody());
  Location loc = b.getUnknownLoc();
  Type pointer = LLVM::LLVMPointerType::get(context.get());
  auto function =
      func::FuncOp::create(b, loc, symbolOf(name), b.getFunctionType({pointer, pointer, b.getI64Type()}, {}));
  b.setInsertionPointToStart(function.addEntryBlock());
  SmallVector<Value> in;
  for (size_t k = 0; k < types.size(); ++k) {
    Value slot = LLVM::GEPOp::create(b, loc, pointer, pointer, function.getArgument(0), LLVM::GEPArg(int32_t(k)));
    in.push_back(LLVM::LoadOp::create(b, loc, pointer, slot));
  }
  Value n = arith::IndexCastOp::create(b, loc, b.getIndexType(), function.getArgument(2));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0), width = arith::ConstantIndexOp::create(b, loc, lanes);
  Value whole = arith::MulIOp::create(b, loc, arith::DivUIOp::create(b, loc, n, width), width);
  emitLoop(b, loc, zero, whole, lanes, in, function.getArgument(1), types, body);
  if (lanes > 1)
    emitLoop(b, loc, whole, n, 1, in, function.getArgument(1), types, body);
  func::ReturnOp::create(b, loc);
}

void Jit::compile() {
  codegen::declareLibm(*module);
  if (failed(verify(*module)))
    fail("the module is not valid");
  PassManager passes(context.get());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createConvertVectorToLLVMPass());
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  if (failed(passes.run(*module)))
    fail("lowering failed");

  auto builder = llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
  if (!cpu.empty()) {
    builder.setCPU(cpu);
    builder.getFeatures() = llvm::SubtargetFeatures();
  }
  auto machine = llvm::cantFail(builder.createTargetMachine());
  auto transformer = makeOptimizingTransformer(2, 0, machine.get());
  ExecutionEngineOptions options;
  options.transformer = transformer;
  options.jitCodeGenOptLevel = llvm::CodeGenOptLevel::Default;
  options.enableObjectDump = std::getenv("BURIN_DUMP_OBJECT") != nullptr;
  auto made = ExecutionEngine::create(*module, options, std::move(machine));
  if (!made)
    fail(llvm::toString(made.takeError()));
  engine = std::move(*made);
  if (const char *path = std::getenv("BURIN_DUMP_OBJECT"))
    engine->dumpToObjectFile(path);
}

Kernel Jit::operator[](const std::string &name) const {
  auto found = engine->lookup(symbolOf(name));
  if (!found)
    fail(llvm::toString(found.takeError()));
  return reinterpret_cast<Kernel>(*found);
}

} // namespace burin::test
