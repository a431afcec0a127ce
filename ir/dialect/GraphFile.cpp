#include "ir/dialect/GraphFile.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
namespace endian = llvm::support::endian;

namespace burin::ir {

static constexpr llvm::StringLiteral kMagic("BURINGRF");
static constexpr uint32_t kFormatVersion = 1;
static constexpr size_t kHeaderBytes = 64; // the alignment of the payload, which holds the weights
static constexpr size_t kVersionAt = 8, kSizeAt = 16, kChecksumAt = 24;

/// The checksum of a file whose other header fields are set.
static uint64_t checksum(llvm::StringRef header, llvm::StringRef payload) {
  std::string copy = header.str();
  endian::write64le(copy.data() + kChecksumAt, llvm::xxh3_64bits(payload));
  return llvm::xxh3_64bits(llvm::StringRef(copy));
}

FailureOr<std::string> writeGraph(ModuleOp module, llvm::StringRef producer) {
  std::string file = kMagic.str();
  file.resize(kHeaderBytes);
  llvm::raw_string_ostream out(file);
  if (failed(writeBytecodeToFile(module, out, BytecodeWriterConfig(producer))))
    return failure();
  llvm::StringRef header(file.data(), kHeaderBytes), payload = llvm::StringRef(file).drop_front(kHeaderBytes);
  endian::write32le(file.data() + kVersionAt, kFormatVersion);
  endian::write64le(file.data() + kSizeAt, payload.size());
  endian::write64le(file.data() + kChecksumAt, checksum(header, payload));
  return file;
}

bool isFramed(llvm::StringRef file) { return file.starts_with(kMagic); }

std::optional<llvm::StringRef> unframe(llvm::StringRef file, GraphFileProblem &problem) {
  const char *again = "copy the file again, or save the graph again with Graph::save";
  if (file.size() < kHeaderBytes) {
    problem = {"the file is truncated: it ends within its header", again};
    return std::nullopt;
  }
  if (uint32_t version = endian::read32le(file.data() + kVersionAt); version != kFormatVersion) {
    problem = {"its format version is " + std::to_string(version) + ", this burin reads " +
                   std::to_string(kFormatVersion),
               "update burin, or save the graph again with this version"};
    return std::nullopt;
  }
  llvm::StringRef header = file.take_front(kHeaderBytes), payload = file.drop_front(kHeaderBytes);
  if (uint64_t size = endian::read64le(file.data() + kSizeAt); size != payload.size()) {
    problem = {(payload.size() < size ? "the file is truncated: it has " : "the file is damaged: it has ") +
                   std::to_string(payload.size()) + " bytes after its header, which says " + std::to_string(size),
               again};
    return std::nullopt;
  }
  if (endian::read64le(file.data() + kChecksumAt) != checksum(header, payload)) {
    problem = {"the file is damaged: its checksum does not match", again};
    return std::nullopt;
  }
  return payload;
}

/// Whether brackets nest deeper than in any graph. MLIR's parser is recursive and would overflow its stack.
static bool nestsTooDeep(llvm::StringRef text) {
  constexpr size_t kMost = 256;
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      while (++i < text.size() && text[i] != '"')
        i += text[i] == '\\';
    } else if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, 2) == "->") {
      ++i;
    } else if (llvm::StringRef("([{<").contains(text[i])) {
      if (++depth > kMost)
        return true;
    } else if (llvm::StringRef(")]}>").contains(text[i]) && depth) {
      --depth;
    }
  }
  return false;
}

/// The input of MLIR's parser: the bytecode of a framed file, or text.
static std::optional<llvm::StringRef> sourceOf(llvm::StringRef file, GraphFileProblem &problem) {
  if (isFramed(file))
    return unframe(file, problem);
  if (isBytecode(llvm::MemoryBufferRef(file, "")))
    problem = {"it is bare MLIR bytecode, which nothing protects from damage",
               "save the graph with Graph::save, or give it as text: burin-opt prints it"};
  else if (file.empty())
    problem = {"the file is empty", "save the graph again with Graph::save"};
  else if (file.contains('\0'))
    problem = {"it is neither a .burin file nor MLIR text",
               "give a graph that Graph::save has written; if this is one, its first bytes are damaged"};
  else if (nestsTooDeep(file))
    problem = {"its brackets nest deeper than in any graph", "correct the .mlir text"};
  else
    return file;
  return std::nullopt;
}

/// Whether a splat is too large: the artifact stores it in full, unlike `full`.
static bool isHugeSplat(Operation *op) {
  constexpr double kMostBytes = 1 << 30;
  auto constant = dyn_cast<ConstantOp>(op);
  if (!constant || !isa<DenseElementsAttr>(constant.getValue()))
    return false;
  double bytes = byteWidth(dtypeOf(constant.getResult()));
  for (const Dim &d : shapeOf(constant.getResult()))
    bytes *= double(d.value());
  return bytes > kMostBytes;
}

/// Checks that a module holds only states, and functions from tensors to tensors with burin ops.
static LogicalResult verifyIsGraph(ModuleOp module) {
  for (Operation &op : *module.getBody()) {
    if (isa<StateOp>(op))
      continue;
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function)
      return op.emitError("a graph is a module of functions and states; '") << op.getName() << "' has no place there";
    if (!llvm::hasSingleElement(function.getBody()))
      return op.emitError("a graph's function has one block of ops, and @")
             << function.getName() << " has " << function.getBody().getBlocks().size();
    if (function.isPublic() && function.getNumResults() == 0)
      return op.emitError("@") << function.getName() << " returns nothing and sets no state";
    for (ArrayRef<Type> types : {function.getArgumentTypes(), function.getResultTypes()})
      for (Type type : types)
        if (!isa<RankedTensorType>(type))
          return op.emitError("@") << function.getName() << " takes or returns " << type
                                   << "; graphs compute on tensors of known rank";
    WalkResult result = function.getBody().walk([](Operation *inner) {
      if (isHugeSplat(inner)) {
        inner->emitError("a constant of more than 1 GB that repeats one number is to be written as burin.full");
        return WalkResult::interrupt();
      }
      if (isa<BurinDialect>(inner->getDialect()) || isa<func::ReturnOp>(inner))
        return WalkResult::advance();
      inner->emitError("a graph holds burin ops alone, not '") << inner->getName() << "'";
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

OwningOpRef<ModuleOp> readGraph(const std::string &path, MLIRContext &context, GraphFileProblem &problem) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/true,
                                          /*IsVolatile=*/false, llvm::Align(kHeaderBytes));
  if (!file) {
    problem = {file.getError().message(), "give the path of a graph: model.burin or model.mlir"};
    return nullptr;
  }
  std::optional<llvm::StringRef> source = sourceOf((*file)->getBuffer(), problem);
  if (!source)
    return nullptr;
  // Constants of the module own the source manager, and with it the file that they refer to.
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(*source, path, /*RequiresNullTerminator=*/false), {});
  sources->AddNewSourceBuffer(std::move(*file), {});
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module || failed(verifyTensorTypes(*module)) || failed(verifyIsGraph(*module)))
    return nullptr;
  return module;
}

} // namespace burin::ir
