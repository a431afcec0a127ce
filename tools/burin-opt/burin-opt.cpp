// Runs passes on a module of the burin dialect, for compiler developers. The options are those of mlir-opt; .burin
// files are accepted as input too.
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

/// Returns the MLIR bytecode inside a .burin file, copied to an address with the alignment that MLIR requires.
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
  auto file = llvm::MemoryBuffer::getFile(inputName); // fails for "-" (standard input), which cannot be a .burin file
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
