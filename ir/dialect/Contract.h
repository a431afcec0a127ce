// Printer and parser of contractions, called by the generated ones.
#pragma once
#include "ir/dialect/Burin.h"

namespace burin::ir {

/// Whether the right operand holds pairs of bf16, see Bf16PairsOp.
inline bool isOfPairs(ContractOp op) {
  return dtypeOf(op.getLhs()) == DType::bf16 && dtypeOf(op.getRhs()) == DType::i32;
}

using Unresolved = mlir::OpAsmParser::UnresolvedOperand;

void printContraction(mlir::OpAsmPrinter &, ContractOp, mlir::Value lhs, mlir::Value rhs, mlir::Value tail,
                      mlir::Value terms, mlir::IntegerAttr batch, mlir::ArrayAttr columns,
                      mlir::DenseI64ArrayAttr kernel, mlir::DenseI64ArrayAttr strides, mlir::DenseI64ArrayAttr padding,
                      mlir::DenseI64ArrayAttr dilations, mlir::BoolAttr wide, mlir::BoolAttr finite, mlir::Type lhsType,
                      mlir::Type rhsType, mlir::Type tailType, mlir::Type termsType, mlir::Type result);

mlir::ParseResult parseContraction(mlir::OpAsmParser &, Unresolved &lhs, Unresolved &rhs,
                                   std::optional<Unresolved> &tail, std::optional<Unresolved> &terms,
                                   mlir::IntegerAttr &batch, mlir::ArrayAttr &columns, mlir::DenseI64ArrayAttr &kernel,
                                   mlir::DenseI64ArrayAttr &strides, mlir::DenseI64ArrayAttr &padding,
                                   mlir::DenseI64ArrayAttr &dilations, mlir::BoolAttr &wide, mlir::BoolAttr &finite,
                                   mlir::Type &lhsType, mlir::Type &rhsType, mlir::Type &tailType,
                                   mlir::Type &termsType, mlir::Type &result);

} // namespace burin::ir
