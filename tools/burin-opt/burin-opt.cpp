// Runs passes on a module of the burin dialect: the compiler developer's tool. It reads and writes what mlir-opt does,
// and reads .burin files too.
#include "ir/dialect/GraphFile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Pipelines.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace burin;

static int fail(const std::string &message) {
  llvm::errs() << "burin-opt: error: " << message << '\n';
  return EXIT_FAILURE;
}

/// What a framed file holds, at an address as MLIR wants it.
static std::unique_ptr<llvm::MemoryBuffer> payloadOf(const llvm::MemoryBuffer &file, ir::GraphFileProblem &problem) {
  std::optional<llvm::StringRef> payload = ir::unframe(file.getBuffer(), problem);
  if (!payload)
    return nullptr;
  auto copy =
      llvm::WritableMemoryBuffer::getNewUninitMemBuffer(payload->size(), file.getBufferIdentifier(), llvm::Align(64));
  llvm::copy(*payload, copy->getBufferStart());
  return copy;
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<ir::BurinDialect, mlir::func::FuncDialect>();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  passes::registerPasses();
  auto [inputName, outputName] = mlir::registerAndParseCLIOptions(argc, argv, "burin optimiser driver\n", registry);
  auto file = llvm::MemoryBuffer::getFile(inputName); // fails for "-", standard input: no .burin file comes that way
  if (!file || !ir::isFramed((*file)->getBuffer()))
    return mlir::asMainReturnCode(mlir::MlirOptMain(argc, argv, inputName, outputName, registry));

  ir::GraphFileProblem problem;
  std::unique_ptr<llvm::MemoryBuffer> input = payloadOf(**file, problem);
  if (!input)
    return fail("cannot read '" + inputName + "': " + problem.what + "\n  " + problem.advice);
  std::string outputProblem;
  std::unique_ptr<llvm::ToolOutputFile> output = mlir::openOutputFile(outputName, &outputProblem);
  if (!output)
    return fail(outputProblem);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (mlir::failed(mlir::MlirOptMain(output->os(), std::move(input), registry, config)))
    return EXIT_FAILURE;
  output->keep();
  return EXIT_SUCCESS;
}
