// Graphs as files. A .burin file is a frame around MLIR bytecode; .mlir is the same as text.
//
//   header    64 bytes: "BURINGRF", u32 format version, u32 0, u64 size of the payload, u64 checksum, zeros
//   payload   MLIR bytecode, to the end of the file
//
// The checksum is the XXH3-64 of the header in which this field holds the XXH3-64 of the payload. MLIR's reader trusts
// its input and may crash on damaged bytes, which the checksum detects. It does not protect from forged files.
#pragma once
#include "ir/dialect/Burin.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace burin::ir {

/// Why a file is rejected, with advice. Both are empty if the context's diagnostics have the error.
struct GraphFileProblem {
  std::string what, advice;
};

/// The bytes of a .burin file.
mlir::FailureOr<std::string> writeGraph(mlir::ModuleOp module, llvm::StringRef producer);

/// Reads a .burin or .mlir file; null on failure. Large constants refer to the file, which is mapped.
mlir::OwningOpRef<mlir::ModuleOp> readGraph(const std::string &path, mlir::MLIRContext &context,
                                            GraphFileProblem &problem);

bool isFramed(llvm::StringRef file);
/// Returns the payload of a framed file.
std::optional<llvm::StringRef> unframe(llvm::StringRef file, GraphFileProblem &problem);

} // namespace burin::ir
