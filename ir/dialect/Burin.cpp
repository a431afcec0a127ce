// The bridge between MLIR and the plain op table.
#include "ir/dialect/Burin.h"
#include "ir/infer/Infer.h"

using namespace mlir;

namespace burin::ir {

// ---- types

Type elementType(MLIRContext *context, DType dtype) {
  switch (dtype) {
  case DType::f32:
    return Float32Type::get(context);
  case DType::f64:
    return Float64Type::get(context);
  case DType::f16:
    return Float16Type::get(context);
  case DType::bf16:
    return BFloat16Type::get(context);
  case DType::i8:
    return IntegerType::get(context, 8);
  case DType::u8:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case DType::i16:
    return IntegerType::get(context, 16);
  case DType::i32:
    return IntegerType::get(context, 32);
  case DType::i64:
    return IntegerType::get(context, 64);
  case DType::boolean:
    return IntegerType::get(context, 1);
  case DType::f8e4m3fn:
    return Float8E4M3FNType::get(context);
  case DType::f8e5m2:
    return Float8E5M2Type::get(context);
  }
  llvm_unreachable("a new element type");
}

std::optional<DType> dtypeOf(Type element) {
  if (auto integer = dyn_cast<IntegerType>(element)) {
    if (integer.isUnsigned())
      return integer.getWidth() == 8 ? std::optional(DType::u8) : std::nullopt;
    if (integer.isSigned())
      return std::nullopt;
    switch (integer.getWidth()) {
    case 1:
      return DType::boolean;
    case 8:
      return DType::i8;
    case 16:
      return DType::i16;
    case 32:
      return DType::i32;
    case 64:
      return DType::i64;
    default:
      return std::nullopt;
    }
  }
  if (element.isF32())
    return DType::f32;
  if (element.isF64())
    return DType::f64;
  if (element.isF16())
    return DType::f16;
  if (element.isBF16())
    return DType::bf16;
  if (isa<Float8E4M3FNType>(element))
    return DType::f8e4m3fn;
  return isa<Float8E5M2Type>(element) ? std::optional(DType::f8e5m2) : std::nullopt;
}

RankedTensorType tensorType(MLIRContext *context, const TensorSpec &spec) {
  SmallVector<int64_t> sizes;
  SmallVector<Attribute> expressions;
  for (const Dim &d : spec.shape) {
    sizes.push_back(d.isStatic() ? d.value() : ShapedType::kDynamic);
    if (!d.isStatic())
      expressions.push_back(StringAttr::get(context, d.str()));
  }
  Attribute encoding = expressions.empty() ? Attribute() : ArrayAttr::get(context, expressions);
  return RankedTensorType::get(sizes, elementType(context, spec.dtype), encoding);
}

/// The next symbolic size of an encoding; an error text if it is not one in normal form.
static std::optional<Dim> parseSize(Attribute attr, std::string &error) {
  auto string = dyn_cast<StringAttr>(attr);
  auto dim = string ? Dim::parse(string.getValue()) : std::nullopt;
  if (dim && dim->str() == string.getValue() && !dim->isStatic())
    return dim;
  llvm::raw_string_ostream os(error);
  os << "the size " << attr << " in the encoding is not an expression over symbols";
  if (dim)
    os << " in normal form; write "
       << (dim->isStatic() ? "the number " + dim->str() + " into the shape" : '"' + dim->str() + '"');
  return std::nullopt;
}

std::optional<TensorSpec> trySpecOf(Type type, std::string &error) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto dtype = tensor ? dtypeOf(tensor.getElementType()) : std::nullopt;
  if (!dtype) {
    error = "is not a tensor of a supported element type";
    return std::nullopt;
  }
  auto encoding = dyn_cast_or_null<ArrayAttr>(tensor.getEncoding());
  size_t given = encoding ? encoding.size() : 0, needed = tensor.getNumDynamicDims();
  if (given != needed || (tensor.getEncoding() && !encoding) || (encoding && encoding.empty())) {
    error = text("has ", needed, " unknown sizes `?` but ", given,
                 " expressions for them; name each, as in tensor<?x4xf32, [\"batch\"]>");
    return std::nullopt;
  }
  TensorSpec spec{*dtype, {}};
  spec.shape.reserve(tensor.getRank());
  size_t next = 0;
  for (int64_t size : tensor.getShape()) {
    if (!ShapedType::isDynamic(size)) {
      spec.shape.push_back(size);
      continue;
    }
    auto dim = parseSize(encoding[next++], error);
    if (!dim)
      return std::nullopt;
    spec.shape.push_back(std::move(*dim));
  }
  return spec;
}

TensorSpec specOf(Type type) {
  std::string error;
  auto spec = trySpecOf(type, error);
  if (!spec)
    llvm::report_fatal_error(llvm::Twine("burin: a type that the verifier refuses: ") + error);
  return std::move(*spec);
}

Shape shapeOf(Value v) { return specOf(v).shape; }
DType dtypeOf(Value v) { return *dtypeOf(cast<RankedTensorType>(v.getType()).getElementType()); }

LogicalResult verifyTensorTypes(Operation *root) {
  WalkResult result = root->walk([](Operation *op) {
    auto check = [&](Type type, const char *what) {
      std::string error;
      if (!isa<RankedTensorType>(type) || trySpecOf(type, error))
        return true;
      op->emitError(what) << ' ' << type << ' ' << error;
      return false;
    };
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Type type : block.getArgumentTypes())
          if (!check(type, "argument type"))
            return WalkResult::interrupt();
    for (Type type : op->getResultTypes())
      if (!check(type, "result type"))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

// ---- attributes

Attribute toMlir(MLIRContext *context, const Attr &attr) {
  Builder b(context);
  switch (static_cast<AttrKind>(attr.index())) {
  case AttrKind::Bool:
    return b.getBoolAttr(std::get<bool>(attr));
  case AttrKind::Int:
    return b.getI64IntegerAttr(std::get<int64_t>(attr));
  case AttrKind::Float:
    return b.getF64FloatAttr(std::get<double>(attr));
  case AttrKind::String:
    return b.getStringAttr(std::get<std::string>(attr));
  case AttrKind::Ints:
    return b.getDenseI64ArrayAttr(std::get<std::vector<int64_t>>(attr));
  case AttrKind::DType:
    return TypeAttr::get(elementType(context, std::get<DType>(attr)));
  case AttrKind::Shape:
    break;
  }
  SmallVector<Attribute> sizes;
  for (const Dim &d : std::get<Shape>(attr))
    sizes.push_back(d.isStatic() ? Attribute(b.getI64IntegerAttr(d.value())) : b.getStringAttr(d.str()));
  return b.getArrayAttr(sizes);
}

static std::optional<Attr> shapeFromMlir(Attribute attr) {
  auto array = dyn_cast<ArrayAttr>(attr);
  if (!array)
    return std::nullopt;
  Shape shape;
  for (Attribute size : array) {
    if (auto number = dyn_cast<IntegerAttr>(size); number && number.getType().isInteger(64)) {
      shape.push_back(number.getInt());
      continue;
    }
    std::string error;
    auto dim = parseSize(size, error);
    if (!dim)
      return std::nullopt;
    shape.push_back(std::move(*dim));
  }
  return Attr(std::move(shape));
}

std::optional<Attr> fromMlir(Attribute attr, AttrKind kind) {
  if (!attr)
    return std::nullopt;
  switch (kind) {
  case AttrKind::Bool:
    if (auto v = dyn_cast<BoolAttr>(attr))
      return Attr(v.getValue());
    return std::nullopt;
  case AttrKind::Int:
    if (auto v = dyn_cast<IntegerAttr>(attr); v && v.getType().isInteger(64))
      return Attr(v.getInt());
    return std::nullopt;
  case AttrKind::Float:
    if (auto v = dyn_cast<FloatAttr>(attr); v && v.getType().isF64())
      return Attr(v.getValueAsDouble());
    return std::nullopt;
  case AttrKind::String:
    if (auto v = dyn_cast<StringAttr>(attr))
      return Attr(v.getValue().str());
    return std::nullopt;
  case AttrKind::Ints:
    if (auto v = dyn_cast<DenseI64ArrayAttr>(attr))
      return Attr(std::vector<int64_t>(v.asArrayRef().begin(), v.asArrayRef().end()));
    return std::nullopt;
  case AttrKind::DType:
    if (auto v = dyn_cast<TypeAttr>(attr))
      if (auto dtype = dtypeOf(v.getValue()))
        return Attr(*dtype);
    return std::nullopt;
  case AttrKind::Shape:
    return shapeFromMlir(attr);
  }
  return std::nullopt;
}

static FailureOr<std::vector<Attr>> tryAttrsOf(Operation *op, const OpInfo &info) {
  std::vector<Attr> attrs;
  attrs.reserve(info.attrs.size());
  for (const AttrInfo &a : info.attrs) {
    Attribute attr = op->getAttr(a.name);
    if (!attr && a.optional) {
      attrs.push_back(a.fallback);
      continue;
    }
    auto value = fromMlir(attr, a.kind);
    if (!value) {
      InFlightDiagnostic error = op->emitOpError("attribute '") << a.name << "'";
      return attr ? error << " has the unusable value " << attr : error << " is missing";
    }
    attrs.push_back(std::move(*value));
  }
  return attrs;
}

std::vector<Attr> attrsOf(Operation *op) {
  auto attrs = tryAttrsOf(op, *opInfo(op));
  if (failed(attrs))
    llvm::report_fatal_error("burin: an attribute that the verifier refuses");
  return std::move(*attrs);
}

// ---- ops

const OpInfo *opInfo(Operation *op) {
  return isa_and_present<BurinDialect>(op->getDialect()) ? findOp(op->getName().stripDialect()) : nullptr;
}

std::optional<Dim> newSizeOf(Operation *op) {
  const OpInfo *info = opInfo(op);
  const AttrInfo *attr = info ? info->newSize() : nullptr;
  if (!attr)
    return std::nullopt;
  return std::get<Shape>(*fromMlir(op->getAttr(attr->name), AttrKind::Shape))[0];
}

SmallVector<Value> operandsOf(Operation *op) {
  const OpInfo &info = *opInfo(op);
  bool isVariadic = info.operands.size() == 1 && info.operands[0].arity == Arity::Variadic;
  if (isVariadic || op->getNumOperands() == info.operands.size())
    return SmallVector<Value>(op->getOperands());
  SmallVector<Value> operands(info.operands.size());
  auto segments = dyn_cast_or_null<DenseI32ArrayAttr>(
      op->getAttr(OpTrait::AttrSizedOperandSegments<void>::getOperandSegmentSizeAttr()));
  size_t next = 0, absent = info.operands.size() - op->getNumOperands();
  for (size_t i = 0; i < operands.size(); ++i) {
    // Without segments there is at most one optional operand, which must be the absent one.
    bool isPresent = segments ? segments[i] != 0 : info.operands[i].arity != Arity::Optional || absent == 0;
    if (isPresent && next < op->getNumOperands())
      operands[i] = op->getOperand(next++);
  }
  return operands;
}

LogicalResult verifyInferredTypes(Operation *op) {
  const OpInfo &info = *opInfo(op);
  auto attrs = tryAttrsOf(op, info);
  if (failed(attrs))
    return failure();
  InferCall call{info, {}, std::move(*attrs), /*strict=*/true, {}, {}};
  for (auto [i, operand] : llvm::enumerate(operandsOf(op))) {
    std::string error;
    call.operands.push_back(operand ? trySpecOf(operand.getType(), error) : std::nullopt);
    if (!error.empty())
      return op->emitOpError("operand #") << i << " of type " << operand.getType() << ' ' << error;
  }
  if (!infer(call))
    return op->emitOpError(call.error);
  if (call.results.size() != op->getNumResults())
    return op->emitOpError("must have ") << call.results.size() << " results, not " << op->getNumResults();
  for (auto [spec, type] : llvm::zip_equal(call.results, op->getResultTypes()))
    if (RankedTensorType inferred = tensorType(op->getContext(), spec); inferred != type)
      return op->emitOpError("must have the result type ") << inferred << ", not " << type;
  return success();
}

Operation *createOp(OpBuilder &b, mlir::Location loc, const OpInfo &info, ArrayRef<Value> operands,
                    std::vector<Attr> attrs) {
  OperationState state(loc, ("burin." + llvm::StringRef(info.name)).str());
  InferCall call{info, {}, std::move(attrs), /*strict=*/true, {}, {}};
  SmallVector<int32_t> segments;
  for (Value operand : operands) {
    call.operands.push_back(operand ? std::optional(specOf(operand)) : std::nullopt);
    segments.push_back(operand ? 1 : 0);
    if (operand)
      state.operands.push_back(operand);
  }
  if (!infer(call)) {
    emitError(loc) << info.name << ": " << call.error;
    return nullptr;
  }
  for (auto [attrInfo, attr] : llvm::zip_equal(info.attrs, call.attrs))
    state.addAttribute(attrInfo.name, toMlir(b.getContext(), attr));
  size_t optional = llvm::count_if(info.operands, [](const OperandInfo &o) { return o.arity == Arity::Optional; });
  if (optional > 1) {
    segments.resize(info.operands.size());
    state.addAttribute(OpTrait::AttrSizedOperandSegments<void>::getOperandSegmentSizeAttr(),
                       b.getDenseI32ArrayAttr(segments));
  }
  for (const TensorSpec &result : call.results)
    state.addTypes(tensorType(b.getContext(), result));
  return b.create(state);
}

Value create(OpBuilder &b, mlir::Location loc, StringRef name, ArrayRef<Value> operands,
             std::vector<std::pair<StringRef, Attr>> attrs) {
  const OpInfo *info = findOp(name);
  if (!info)
    llvm::report_fatal_error("burin: there is no op " + name);
  std::vector<Attr> all;
  for (const AttrInfo &a : info->attrs) {
    auto at = llvm::find_if(attrs, [&](const auto &given) { return given.first == a.name; });
    if (at == attrs.end() && !a.optional)
      llvm::report_fatal_error("burin: " + name + " needs the attribute " + a.name);
    all.push_back(at == attrs.end() ? a.fallback : std::move(at->second));
  }
  Operation *op = createOp(b, loc, *info, operands, std::move(all));
  if (!op)
    llvm::report_fatal_error("burin: the compiler built an invalid " + name + ", see the error above");
  return op->getResult(0);
}

// ---- locations

std::string fileLine(mlir::Location loc) {
  std::string found, module;
  loc->walk([&](mlir::Location inner) {
    if (auto named = dyn_cast<NameLoc>(inner))
      module = named.getName().str();
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    found = file.getFilename().str();
    if (file.getLine() != 0)
      found += ":" + std::to_string(file.getLine());
    if (!module.empty())
      found += " (module " + module + ")";
    return WalkResult::interrupt();
  });
  return found;
}

} // namespace burin::ir
