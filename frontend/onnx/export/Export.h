// Export of graphs as ONNX models of standard operators.
#pragma once
#include "burin/error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>

namespace burin::onnx {

inline constexpr int64_t kExportOpset = 21, kExportIrVersion = 10;
/// Protobuf messages are limited to 2 GiB, and nodes need some space.
inline constexpr uint64_t kMaxInlineBytes = (uint64_t(2) << 30) - (uint64_t(64) << 20);

/// Writes a function with its weights to a file, atomically. If weights exceed `maxInline` bytes in total, they go to a
/// second file beside it, "<name>.data". Throws Unsupported with all ops that ONNX cannot express.
void exportModel(mlir::func::FuncOp function, const std::string &path, const Location &where,
                 uint64_t maxInline = kMaxInlineBytes);

} // namespace burin::onnx
