#include "frontend/onnx/export/Emitter.h"
#include "ir/reference/Reference.h"
#include "ir/sizes/DimExpression.h"
#include <algorithm>
#include <cctype>

namespace burin::onnx {

// ---- nodes and names

std::string GraphEmitter::nameFor(const std::string &stem) {
  std::string name = stem;
  for (size_t &count = counts[stem]; !names.insert(name).second;)
    name = stem + "_" + std::to_string(++count);
  return name;
}

void GraphEmitter::bind(mlir::Value value, Ref ref) {
  TensorSpec spec = ir::specOf(value);
  for (size_t i = 0; i < spec.shape.size(); ++i)
    if (!spec.shape[i].isStatic())
      dims.try_emplace(spec.shape[i].str(), ref.name, i);
  values[value] = std::move(ref);
}

Refs GraphEmitter::nodes(const std::string &op, const Refs &inputs, size_t count, const OutAttributes &attributes) {
  std::string stem = op;
  std::transform(stem.begin(), stem.end(), stem.begin(), [](unsigned char c) { return std::tolower(c); });
  OutNode node{op, {}, {}, attributes, doc};
  for (const Ref &input : inputs)
    node.inputs.push_back(input.name);
  while (!node.inputs.empty() && node.inputs.back().empty())
    node.inputs.pop_back();
  Refs refs;
  for (size_t i = 0; i < count; ++i) {
    refs.push_back({nameFor(stem), inputs.empty() ? DType::f32 : inputs[0].dtype});
    node.outputs.push_back(refs.back().name);
    results.insert(refs.back().name);
  }
  model.nodes.push_back(std::move(node));
  return refs;
}

Ref GraphEmitter::node(const std::string &op, const Refs &inputs, const OutAttributes &attributes,
                       std::optional<DType> dtype) {
  Ref result = nodes(op, inputs, 1, attributes).front();
  result.dtype = dtype.value_or(result.dtype);
  return result;
}

std::shared_ptr<OutModel> GraphEmitter::subgraph(const std::string &name, llvm::function_ref<void()> emit) {
  auto outerValues = values;
  auto outerKnown = known;
  auto outerDims = dims;
  auto inner = std::make_shared<OutModel>();
  inner->name = name;
  std::swap(model, *inner);
  std::swap(model.initializers, inner->initializers);
  emit();
  std::swap(model.initializers, inner->initializers);
  std::swap(model, *inner);
  values = std::move(outerValues);
  known = std::move(outerKnown);
  dims = std::move(outerDims);
  return inner;
}

Ref *GraphEmitter::find(const std::string &key) {
  auto at = known.find(key);
  return at == known.end() ? nullptr : &at->second;
}

Ref GraphEmitter::cast(const Ref &x, DType dtype) {
  if (x.dtype == dtype || x.name.empty())
    return x;
  std::string key = "cast " + std::string(name(dtype)) + " " + x.name;
  if (Ref *ref = find(key))
    return *ref;
  OutAttributes attributes{{"to", int64_t(dataTypeOf(dtype))}};
  if (isFloat8(dtype))
    attributes.emplace_back("saturate", int64_t(0));
  return known[key] = node("Cast", {x}, attributes, dtype);
}

// ---- constants

Ref GraphEmitter::constant(const TensorSpec &spec, std::span<const char> bytes, const std::string &name) {
  Ref ref{name.empty() ? nameFor("constant") : name, spec.dtype};
  model.initializers.push_back({ref.name, spec, bytes});
  return ref;
}

Ref GraphEmitter::stored(const ir::RefTensor &tensor) {
  storage.push_back(tensor.toBytes());
  return constant({tensor.dtype, Shape(tensor.shape.begin(), tensor.shape.end())}, storage.back());
}

Ref GraphEmitter::number(double value, DType dtype, const std::vector<int64_t> &shape) {
  std::string key = "number " + std::string(name(dtype)) + " " + std::to_string(value) +
                    std::to_string(std::bit_cast<uint64_t>(value)) + str(Shape(shape.begin(), shape.end()));
  if (Ref *ref = find(key))
    return *ref;
  ir::RefTensor tensor = ir::RefTensor::zeros(dtype, shape);
  if (isFloat(dtype))
    std::fill(tensor.reals().begin(), tensor.reals().end(), value);
  else
    std::fill(tensor.ints().begin(), tensor.ints().end(), ir::saturateTo(dtype, value));
  return known[key] = stored(tensor);
}

Ref GraphEmitter::table(const std::vector<int64_t> &values, DType dtype) {
  return stored({dtype, {int64_t(values.size())}, values});
}

Ref GraphEmitter::list(const std::vector<int64_t> &values) {
  std::string key = "list";
  for (int64_t value : values)
    key += " " + std::to_string(value);
  if (Ref *ref = find(key))
    return *ref;
  return known[key] = table(values, DType::i64);
}

// ---- sizes

Ref GraphEmitter::size(const Dim &size) {
  if (size.isStatic())
    return list({size.value()});
  std::string key = "size " + size.str();
  if (Ref *ref = find(key))
    return *ref;
  auto at = dims.find(size.str());
  if (at == dims.end())
    return known[key] = computed(size);
  const auto &[value, axis] = at->second;
  return known[key] = node("Shape", {{value}}, {{"start", int64_t(axis)}, {"end", int64_t(axis) + 1}}, DType::i64);
}

/// The size as the sum of its terms, if no tensor has it.
Ref GraphEmitter::computed(const Dim &wanted) {
  Ref sum;
  for (const auto &[atoms, coefficient] : Dim::Expression::of(wanted)) {
    Ref product = atoms.empty() || coefficient != 1 ? list({coefficient}) : Ref();
    for (const Dim::Expression::AtomPtr &atom : atoms) {
      Dim factor = Dim::Expression::make(atom);
      Ref value = factor == wanted ? computed(*atom) : size(factor);
      product = product.name.empty() ? value : node("Mul", {product, value});
    }
    sum = sum.name.empty() ? product : node("Add", {sum, product});
  }
  return sum;
}

Ref GraphEmitter::computed(const Dim::Expression::Atom &atom) {
  using Op = Dim::Postfix::Op;
  if (atom.op == Op::Symbol)
    throw NoOnnxForm{"the size " + atom.symbol.name + " is the size of no input"};
  Ref a = size(atom.a), b = size(atom.b);
  auto floored = [&](const Ref &x) {
    bool isNatural = lowerBound(atom.a).value_or(-1) >= 0 && lowerBound(atom.b).value_or(-1) >= 0;
    return node("Div", {atom.op == Op::FloorDiv && isNatural ? x : node("Sub", {x, node("Mod", {x, b})}), b});
  };
  switch (atom.op) {
  case Op::FloorDiv:
    return floored(a);
  case Op::CeilDiv:
    return node("Neg", {floored(node("Neg", {a}))});
  case Op::Mod:
    return node("Mod", {a, b});
  case Op::Min:
    return node("Min", {a, b});
  case Op::Max:
    return node("Max", {a, b});
  default:
    throw NoOnnxForm{"the size " + atom.text};
  }
}

Ref GraphEmitter::sizes(const Shape &shape) {
  if (std::all_of(shape.begin(), shape.end(), [](const Dim &size) { return size.isStatic(); })) {
    std::vector<int64_t> numbers;
    for (const Dim &size : shape)
      numbers.push_back(size.value());
    return list(numbers);
  }
  std::string key = "sizes " + str(shape);
  if (Ref *ref = find(key))
    return *ref;
  Refs parts;
  for (const Dim &part : shape)
    parts.push_back(size(part));
  return known[key] = parts.size() == 1 ? parts[0] : node("Concat", parts, {{"axis", int64_t(0)}});
}

/// Uses 0 for unchanged sizes and -1 for one inferred size, if that is sufficient.
Ref GraphEmitter::reshape(const Ref &x, const Shape &from, const Shape &to) {
  std::vector<int64_t> plain;
  bool hasZero = std::find(to.begin(), to.end(), Dim(0)) != to.end();
  int open = 0, copied = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    bool isCopy = !to[i].isStatic() && i < from.size() && from[i] == to[i];
    plain.push_back(to[i].isStatic() ? to[i].value() : isCopy ? 0 : -1);
    copied += isCopy;
    open += plain.back() == -1;
  }
  // -1 cannot be inferred beside an empty dimension, and any symbolic one may be empty.
  if (!hasZero && (open == 0 || (open == 1 && copied == 0)))
    return node("Reshape", {x, list(plain)});
  return node("Reshape", {x, sizes(to)}, {{"allowzero", int64_t(1)}});
}

// ---- values

Ref GraphEmitter::full(const Ref &scalar, const Shape &shape) {
  if (isFloat8(scalar.dtype)) // which Expand does not take
    return cast(full(cast(scalar, DType::f16), shape), scalar.dtype);
  return shape.empty() ? scalar : node("Expand", {scalar, sizes(shape)});
}

/// A splat constant: a number and its shape.
Ref GraphEmitter::splat(mlir::Value value) {
  TensorSpec spec = ir::specOf(value);
  return full(number(*ir::uniformValue(value), spec.dtype), spec.shape);
}

static bool isWorthSplatting(ir::ConstantOp constant) {
  auto dense = mlir::dyn_cast<mlir::DenseElementsAttr>(constant.getValue());
  return dense && dense.isSplat() && dense.getNumElements() > 64 && !constant.getName() &&
         !dense.getElementType().isInteger(64);
}

Ref GraphEmitter::valueOf(mlir::Value value) {
  if (auto at = values.find(value); at != values.end())
    return at->second;
  mlir::Operation *op = value.getDefiningOp();
  std::string around = std::exchange(doc, ir::fileLine(value.getLoc()));
  Ref ref;
  if (auto constant = mlir::dyn_cast<ir::ConstantOp>(op); constant && !isWorthSplatting(constant)) {
    storage.emplace_back();
    llvm::ArrayRef<char> bytes = ir::constantBytes(constant.getValue(), storage.back());
    ref = this->constant(ir::specOf(value), bytes, parameters.lookup(value));
  } else if (auto broadcast = mlir::dyn_cast<ir::BroadcastToOp>(op)) {
    ref = full(valueOf(broadcast.getX()), ir::shapeOf(value));
  } else {
    ref = splat(value);
  }
  bind(value, ref);
  doc = std::move(around);
  return ref;
}

/// The broadcast shape of two shapes; nullopt if it is not known.
static std::optional<Shape> join(Shape a, Shape b) {
  if (a.size() < b.size())
    std::swap(a, b);
  b.insert(b.begin(), a.size() - b.size(), Dim(1));
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] == Dim(1))
      a[i] = b[i];
    else if (a[i] != b[i] && b[i] != Dim(1))
      return std::nullopt;
  return a;
}

Refs GraphEmitter::broadcasting(llvm::ArrayRef<mlir::Value> operands, const Shape &result) {
  llvm::SmallVector<mlir::Value> sources;
  std::optional<Shape> joint = Shape();
  for (mlir::Value source : operands) {
    while (auto broadcast = source.getDefiningOp<ir::BroadcastToOp>())
      source = broadcast.getX();
    sources.push_back(source);
  }
  auto isScalar = [](mlir::Value v) { return v.getDefiningOp<ir::FullOp>(); };
  for (mlir::Value source : sources)
    if (joint && !isScalar(source))
      joint = join(*joint, ir::shapeOf(source));
  bool fits = joint && *joint == result;
  Refs refs;
  for (size_t i = 0; i < operands.size(); ++i)
    if (!fits && i == 0)
      refs.push_back(valueOf(operands[0]));
    else if (isScalar(sources[i]))
      refs.push_back(number(*ir::uniformValue(sources[i]), ir::dtypeOf(sources[i])));
    else
      refs.push_back(valueOf(sources[i]));
  return refs;
}

// ---- one op

Ref OpEmitter::raw(size_t operand) const {
  Ref ref = graph.valueOf(operands[operand]);
  return isFloat8(ref.dtype) ? graph.cast(ref, DType::f16) : ref;
}

Ref OpEmitter::in(size_t operand) const {
  if (!has(operand))
    return {};
  Ref ref = graph.valueOf(operands[operand]);
  return graph.cast(ref, computedIn(ref.dtype));
}

Refs OpEmitter::broadcasting() const {
  Refs refs = graph.broadcasting(operands, result().shape);
  for (Ref &ref : refs)
    ref = graph.cast(ref, computedIn(ref.dtype));
  return refs;
}

static OutAttribute attributeOf(const ir::Attr &attr) {
  if (auto *flag = std::get_if<bool>(&attr))
    return int64_t(*flag);
  if (auto *number = std::get_if<int64_t>(&attr))
    return *number;
  if (auto *real = std::get_if<double>(&attr))
    return *real;
  if (auto *text = std::get_if<std::string>(&attr))
    return *text;
  return std::get<std::vector<int64_t>>(attr);
}

Ref OpEmitter::same(const Refs &inputs) const {
  OutAttributes attributes;
  for (size_t i = 0; i < attrs.size(); ++i)
    attributes.emplace_back(info.attrs[i].name, attributeOf(attrs[i]));
  DType dtype = info.boolResult ? DType::boolean : inputs[0].dtype;
  return graph.node(std::string(onnxName(info.name)), inputs, attributes, dtype);
}

std::string_view onnxName(std::string_view op) {
  static const std::map<std::string_view, std::string_view> names{
#include "frontend/onnx/export/onnx_names.inc"
  };
  auto at = names.find(op);
  return at == names.end() ? "" : at->second;
}

DType inSingle(DType dtype) { return dtype == DType::bf16 || isFloat8(dtype) ? DType::f32 : dtype; }
DType inSingleThroughout(DType dtype) { return isFloat(dtype) && byteWidth(dtype) <= 2 ? DType::f32 : dtype; }
DType asIs(DType dtype) { return isFloat8(dtype) ? DType::f16 : dtype; }

} // namespace burin::onnx
