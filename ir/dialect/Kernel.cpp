// Textual form of kernels: burin.kernel "name"(%a = %x, %b = %y) : (types) -> types { … }
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace burin::ir;

void KernelOp::print(OpAsmPrinter &p) {
  if (auto name = getNameAttr())
    p << ' ' << name;
  p << '(';
  llvm::interleaveComma(llvm::zip_equal(getBody().getArguments(), getInputs()), p, [&](auto pair) {
    auto [argument, input] = pair;
    p << argument << " = " << input;
  });
  p << ") : ";
  p.printFunctionalType(*this);
  p.printOptionalAttrDictWithKeyword((*this)->getAttrs(), {getNameAttrName()});
  p << ' ';
  p.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  if (parser.parseOptionalAttribute(name).has_value())
    result.getOrAddProperties<Properties>().name = name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<OpAsmParser::UnresolvedOperand> inputs;
  SMLoc at = parser.getCurrentLocation();
  auto parseBinding = [&]() -> ParseResult {
    return failure(parser.parseArgument(arguments.emplace_back()) || parser.parseEqual() ||
                   parser.parseOperand(inputs.emplace_back()));
  };
  FunctionType type;
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Paren, parseBinding) || parser.parseColonType(type))
    return failure();
  if (type.getNumInputs() != inputs.size())
    return parser.emitError(at) << "has " << inputs.size() << " inputs but the types of " << type.getNumInputs();
  for (auto [argument, argumentType] : llvm::zip_equal(arguments, type.getInputs()))
    argument.type = argumentType;
  result.addTypes(type.getResults());
  return failure(parser.resolveOperands(inputs, type.getInputs(), at, result.operands) ||
                 parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
                 parser.parseRegion(*result.addRegion(), arguments));
}

/// One entry per result: -1, or the input that the result overwrites; no two results may overwrite one input.
static LogicalResult verifyInPlace(KernelOp op) {
  auto inPlace = op.getInPlace();
  if (!inPlace)
    return success();
  if (inPlace->size() != op.getNumResults())
    return op.emitOpError("needs one entry of in_place for each of ") << op.getNumResults() << " results";
  int64_t inputs = op.getInputs().size();
  llvm::SmallDenseSet<int64_t> taken;
  for (int64_t i : *inPlace)
    if (i < -1 || i >= inputs || (i >= 0 && !taken.insert(i).second))
      return op.emitOpError("in_place ") << op.getInPlaceAttr() << " must name each of " << inputs
                                         << " inputs at most once";
  return success();
}

LogicalResult KernelOp::verify() {
  Block &body = getBody().front();
  if (TypeRange(body.getArgumentTypes()) != TypeRange(getInputs().getTypes()))
    return emitOpError("passes ") << getInputs().getTypes() << " to a body that takes " << body.getArgumentTypes();
  auto yield = cast<YieldOp>(body.getTerminator());
  if (TypeRange(yield.getValues().getTypes()) != TypeRange(getResultTypes()))
    return emitOpError("yields ") << yield.getValues().getTypes() << " but its results are " << getResultTypes();
  return verifyInPlace(*this);
}
