// Textual form of contractions. Defaults are omitted, so a matrix product is
//   %y = burin.contract %x, %panels : (tensor<4x8xf32>, tensor<1x8x32xf32>) -> tensor<4x5xf32>
// and the full form is
//   %y = burin.contract %x, %panels tail %t terms %u batch 1 columns ["n"] kernel [3, 3] strides [2, 2]
//          padding [1, 1, 1, 1] dilations [2, 2] wide finite : …
// Omitted are lists of ones, and the columns if they are the last size of the result.
#include "ir/dialect/Contract.h"

using namespace mlir;
using namespace burin;
using namespace burin::ir;

namespace {

bool areOnes(ArrayRef<int64_t> list) {
  return llvm::all_of(list, [](int64_t i) { return i == 1; });
}

/// The last size of a tensor as the attribute `columns`; null for other types.
Attribute lastSizeOf(Type type) {
  std::string ignored;
  auto spec = trySpecOf(type, ignored);
  return spec && !spec->shape.empty() ? toMlir(type.getContext(), Attr(Shape{spec->shape.back()})) : Attribute();
}

ParseResult parseInts(OpAsmParser &parser, SmallVectorImpl<int64_t> &list) {
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square,
                                        [&] { return parser.parseInteger(list.emplace_back()); });
}

} // namespace

void burin::ir::printContraction(OpAsmPrinter &p, ContractOp op, Value lhs, Value rhs, Value tail, Value terms,
                                 IntegerAttr batch, ArrayAttr columns, DenseI64ArrayAttr kernel,
                                 DenseI64ArrayAttr strides, DenseI64ArrayAttr padding, DenseI64ArrayAttr dilations,
                                 BoolAttr wide, BoolAttr finite, Type, Type, Type, Type, Type result) {
  p << lhs << ", " << rhs;
  if (tail)
    p << " tail " << tail;
  if (terms)
    p << " terms " << terms;
  if (batch.getInt())
    p << " batch " << batch.getInt();
  if (columns != lastSizeOf(result))
    p << " columns " << columns;
  auto print = [&](StringRef name, ArrayRef<int64_t> list) {
    p << ' ' << name << " [";
    llvm::interleaveComma(list, p);
    p << ']';
  };
  for (auto [name, list] : {std::pair("kernel", kernel), {"strides", strides}, {"dilations", dilations}})
    if (!areOnes(list))
      print(name, list);
  if (padding && !padding.empty())
    print("padding", padding);
  if (wide && wide.getValue())
    p << " wide";
  if (finite && finite.getValue())
    p << " finite";
  p << " : ";
  p.printFunctionalType(op);
}

ParseResult burin::ir::parseContraction(OpAsmParser &parser, Unresolved &lhs, Unresolved &rhs,
                                        std::optional<Unresolved> &tail, std::optional<Unresolved> &terms,
                                        IntegerAttr &batch, ArrayAttr &columns, DenseI64ArrayAttr &kernel,
                                        DenseI64ArrayAttr &strides, DenseI64ArrayAttr &padding,
                                        DenseI64ArrayAttr &dilations, BoolAttr &wide, BoolAttr &finite, Type &lhsType,
                                        Type &rhsType, Type &tailType, Type &termsType, Type &result) {
  Builder &b = parser.getBuilder();
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseOperand(lhs) || parser.parseComma() || parser.parseOperand(rhs))
    return failure();
  for (auto [name, operand] : {std::pair("tail", &tail), {"terms", &terms}})
    if (succeeded(parser.parseOptionalKeyword(name)) && parser.parseOperand(operand->emplace()))
      return failure();
  int64_t leading = 0;
  if (succeeded(parser.parseOptionalKeyword("batch")) && parser.parseInteger(leading))
    return failure();
  batch = b.getI64IntegerAttr(leading);
  if (succeeded(parser.parseOptionalKeyword("columns")) && parser.parseAttribute(columns))
    return failure();
  for (auto [name, list] :
       {std::pair("kernel", &kernel), {"strides", &strides}, {"dilations", &dilations}, {"padding", &padding}}) {
    SmallVector<int64_t> numbers;
    if (succeeded(parser.parseOptionalKeyword(name)) && parseInts(parser, numbers))
      return failure();
    if (!numbers.empty())
      *list = b.getDenseI64ArrayAttr(numbers);
  }
  for (auto [name, flag] : {std::pair("wide", &wide), {"finite", &finite}})
    if (succeeded(parser.parseOptionalKeyword(name)))
      *flag = b.getBoolAttr(true);

  FunctionType type;
  if (parser.parseColonType(type))
    return failure();
  size_t count = 2 + tail.has_value() + terms.has_value();
  if (type.getNumInputs() != count || type.getNumResults() != 1)
    return parser.emitError(at) << "has " << count << " operands and a result, but its type is " << type;
  lhsType = type.getInput(0);
  rhsType = type.getInput(1);
  if (tail)
    tailType = type.getInput(2);
  if (terms)
    termsType = type.getInput(unsigned(count - 1));
  result = type.getResult(0);
  Attribute last = lastSizeOf(result);
  auto tensor = dyn_cast<RankedTensorType>(lhsType);
  if (!tensor || tensor.getRank() < leading + 1 || (!columns && !last))
    return parser.emitError(at) << "needs tensors of one and more dimensions besides the batch, not " << type;
  if (!columns)
    columns = cast<ArrayAttr>(last);
  SmallVector<int64_t> ones(size_t(tensor.getRank() - leading - 1), 1);
  for (DenseI64ArrayAttr *list : {&kernel, &strides, &dilations})
    if (!*list)
      *list = b.getDenseI64ArrayAttr(ones);
  return success();
}
