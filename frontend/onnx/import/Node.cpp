#include "frontend/onnx/import/Node.h"
#include "frontend/onnx/import/Importer.h"
#include "frontend/onnx/import/Tensors.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/Trace.h"
#include <bit>
#include <cmath>
#include <map>

namespace burin::onnx {

Value Value::sequenceOf(std::vector<Value> values) {
  Value value;
  value.sequence = std::make_shared<const std::vector<Value>>(std::move(values));
  return value;
}

// ---- tensors and known contents

const Tensor &tensorOf(const Value &value) {
  if (value.tensor.defined() || !value.contents)
    return value.tensor;
  const Contents &contents = *value.contents;
  Shape shape(contents.shape.begin(), contents.shape.end());
  auto join = [&](const std::vector<Dim> &elements) {
    if (std::all_of(elements.begin(), elements.end(), [](const Dim &d) { return d.isStatic(); })) {
      std::vector<int64_t> numbers;
      for (const Dim &element : elements)
        numbers.push_back(element.value());
      return from_vector(numbers, shape).to(contents.dtype);
    }
    std::vector<Tensor> parts;
    for (const Dim &element : elements)
      parts.push_back(reshape(sizeTensor(element), {1}));
    return reshape(parts.size() == 1 ? parts[0] : concat(parts), shape).to(contents.dtype);
  };
  bool isWhole = std::all_of(contents.divisors.begin(), contents.divisors.end(), [](const Dim &d) { return d == 1; });
  value.tensor = isWhole ? join(contents.elements) : join(contents.elements) / join(contents.divisors);
  return value.tensor;
}

bool Contents::isStatic() const {
  auto areStatic = [](const std::vector<Dim> &list) {
    return std::all_of(list.begin(), list.end(), [](const Dim &d) { return d.isStatic(); });
  };
  return areStatic(elements) && areStatic(divisors);
}

std::optional<Contents> contentsOf(const Value &value) {
  constexpr int64_t kMaxElements = 4096;
  if (value.contents)
    return *value.contents;
  if (!value.tensor.defined() || value.tensor.isTraced() || isFloat(value.tensor.dtype()))
    return std::nullopt;
  Contents contents{value.tensor.dtype(), {}, {}, {}};
  for (const Dim &size : value.tensor.shape())
    contents.shape.push_back(size.value());
  if (elements(value.tensor.shape()).value() > kMaxElements)
    return std::nullopt;
  for (int64_t number : value.tensor.to_vector<int64_t>())
    contents.elements.push_back(number);
  return contents;
}

std::optional<Tensor> constantOf(const Value &value) {
  const Tensor &tensor = tensorOf(value);
  Trace *trace = Trace::active();
  return trace && tensor.isTraced() ? trace->constantValue(tensor, detail::inScope({})) : tensor;
}

// ---- inputs

Node::Node(Importer &importer, const NodeProto &proto, Scope &scope) : importer(importer), proto(proto), scope(scope) {
  for (std::string_view name : proto.inputs) {
    const Value *value = name.empty() ? nullptr : scope.find(name);
    if (!name.empty() && !value)
      fail("its input " + quoted(name) + " is computed by no node before it");
    if (value && value->isBroken)
      throw Broken();
    inputs.push_back(value ? *value : Value());
  }
}

int64_t Node::opset() const {
  auto version = scope.opsets.find(proto.domain);
  return version == scope.opsets.end() ? 1 : version->second;
}

const Value &Node::value(size_t input) const {
  if (!has(input))
    fail("it needs the input " + std::to_string(input));
  return inputs[input];
}

Tensor Node::operator[](size_t input) const {
  const Value &found = value(input);
  if (found.sequence)
    fail("its input " + std::to_string(input) + " is a sequence, not a tensor");
  if (found.narrow == DataType::String)
    unsupported("strings");
  return tensorOf(found);
}

std::optional<Tensor> Node::optional(size_t input) const {
  return has(input) ? std::optional((*this)[input]) : std::nullopt;
}

std::vector<Tensor> Node::tensors() const {
  std::vector<Tensor> list;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (has(i))
      list.push_back((*this)[i]);
  return list;
}

const std::vector<Value> &Node::sequence(size_t input) const {
  if (!value(input).sequence)
    fail("its input " + std::to_string(input) + " is a tensor, not a sequence");
  return *value(input).sequence;
}

DType Node::dtype(size_t input) const {
  const Value &found = value(input);
  return found.contents ? found.contents->dtype : (*this)[input].dtype();
}

Shape Node::shape(size_t input) const {
  const Value &found = value(input);
  if (found.contents)
    return {found.contents->shape.begin(), found.contents->shape.end()};
  return (*this)[input].shape();
}

void Node::requireRank(size_t input, int64_t least) const {
  if (has(input) && !value(input).sequence && rank(input) < least)
    fail("its input " + quoted(proto.inputs[input]) + " has the shape " + str(shape(input)) + ", but must have " +
         std::to_string(least) + " dimensions or more");
}

// ---- known elements

std::optional<Contents> Node::contents(size_t input) const {
  std::optional<Contents> known = has(input) ? contentsOf(inputs[input]) : std::nullopt;
  if (known && std::any_of(known->divisors.begin(), known->divisors.end(), [](const Dim &d) { return d != Dim(1); }))
    return std::nullopt;
  return known;
}

static std::string listed(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + quoted(name);
  return text;
}

Tensor Node::constant(size_t input) const {
  Tensor tensor = (*this)[input];
  if (std::optional<Tensor> known = constantOf(value(input)))
    return *known;
  unsupportedData("its input " + quoted(proto.inputs[input]), input);
}

void Node::unsupportedData(const std::string &what, size_t input) const {
  std::vector<std::string> names = Trace::active()->inputsBehind((*this)[input]);
  std::string message = what + " must be known when the model is compiled, but depends on the data";
  if (!names.empty())
    message += " of " + listed(names) + "\n  give a value once and for all with --fix " + names[0] + "=@FILE";
  unsupported(message);
}

Shape Node::knownSizes(size_t input) const {
  if (std::optional<Contents> known = contents(input))
    return known->elements;
  std::vector<int64_t> numbers = integers(input);
  return {numbers.begin(), numbers.end()};
}

bool Node::isComputed(const Dim &size) const {
  std::optional<Dim::Symbol> symbol = size.symbol();
  return symbol && !importer.isOfInputs(*symbol);
}

/// The elements of an integer vector. Of a Concat, those of each of its inputs, so that sizes beside numbers that
/// depend on data keep their symbols.
std::vector<Node::Element> Node::elementsOf(std::string_view name, const Value &value) const {
  std::vector<Element> list;
  if (std::optional<Contents> known = contentsOf(value); known && known->divisors.empty()) {
    for (const Dim &element : known->elements)
      list.push_back({element, {}});
    return list;
  }
  if (std::optional<Tensor> known = constantOf(value)) {
    for (int64_t number : known->to_vector<int64_t>())
      list.push_back({Dim(number), {}});
    return list;
  }
  const Scope::Maker maker = scope.makerOf(name);
  const std::string_view by = maker.node && maker.node->domain.empty() ? maker.node->op : "";
  if (by == "Concat" || by == "Cast" || by == "Identity") {
    for (std::string_view input : maker.node->inputs) {
      const Value *part = scope.find(input);
      if (!part || !part->defined() || part->sequence || isFloat(tensorOf(*part).dtype()))
        break;
      std::vector<Element> some = elementsOf(input, *part);
      list.insert(list.end(), some.begin(), some.end());
    }
    if (Dim(list.size()) == burin::elements(tensorOf(value).shape()))
      return list;
    list.clear();
  }
  const Tensor all = reshape(tensorOf(value), {burin::elements(tensorOf(value).shape())});
  for (int64_t i = 0; i < all.shape()[0].value(); ++i)
    list.push_back({{}, reshape(part(all, 0, i, i + 1), {}).to(DType::i64)});
  return list;
}

std::vector<Node::Element> Node::elements(size_t input) const {
  constexpr int64_t kMostComputed = 64;
  const Value &given = value(input);
  std::vector<Element> list;
  if (std::optional<Contents> known = contents(input)) {
    for (const Dim &element : known->elements)
      list.push_back({element, {}});
    return list;
  }
  const Dim count = burin::elements(shape(input));
  if (isFloat(dtype(input)) || !count.isStatic() || count.value() > kMostComputed || constantOf(given)) {
    for (int64_t number : constant(input).to_vector<int64_t>())
      list.push_back({Dim(number), {}});
    return list;
  }
  return elementsOf(proto.inputs[input], given);
}

Shape Node::sizes(size_t input) const {
  Shape sizes;
  for (const Element &element : elements(input))
    sizes.push_back(element.size ? *element.size : sizeFrom(element.value));
  return sizes;
}

std::vector<int64_t> Node::integers(size_t input) const {
  std::optional<Contents> known = contents(input);
  if (!known)
    return constant(input).to_vector<int64_t>();
  std::vector<int64_t> numbers;
  for (const Dim &size : known->elements) {
    if (!size.isStatic())
      unsupported("its input " + quoted(proto.inputs[input]) + " must be known when the model is compiled: an element",
                  size);
    numbers.push_back(size.value());
  }
  return numbers;
}

std::vector<double> Node::reals(size_t input) const {
  if (const auto &known = value(input).contents) {
    if (!known->isStatic())
      integers(input); // throws for the symbolic element
    std::vector<double> numbers;
    for (size_t i = 0; i < known->elements.size(); ++i)
      numbers.push_back(double(known->elements[i].value()) /
                        (known->divisors.empty() ? 1.0 : double(known->divisors[i].value())));
    return numbers;
  }
  return constant(input).to_vector<double>();
}

int64_t Node::integer(size_t input) const {
  std::vector<int64_t> numbers = integers(input);
  if (numbers.size() != 1)
    fail("its input " + quoted(proto.inputs[input]) + " must be one number");
  return numbers[0];
}
double Node::real(size_t input) const {
  std::vector<double> numbers = reals(input);
  if (numbers.size() != 1)
    fail("its input " + quoted(proto.inputs[input]) + " must be one number");
  return numbers[0];
}

// ---- attributes

const AttributeProto *Node::find(std::string_view name) const {
  for (const AttributeProto &attribute : proto.attributes) {
    if (attribute.name != name)
      continue;
    if (attribute.reference.empty())
      return &attribute;
    if (!scope.attributes)
      fail("the attribute " + quoted(name) + " refers to one of a function, but is in none");
    auto given = scope.attributes->find(attribute.reference);
    return given == scope.attributes->end() ? nullptr : given->second;
  }
  return nullptr;
}

const AttributeProto *Node::find(std::string_view name, AttributeProto::Type type) const {
  const AttributeProto *found = find(name);
  if (found && found->type != type)
    fail("the attribute " + quoted(name) + " is of the wrong type");
  return found;
}

using AttributeType = AttributeProto::Type;

int64_t Node::attribute(std::string_view name, int64_t fallback) const {
  const AttributeProto *found = find(name, AttributeType::Int);
  return found ? found->i : fallback;
}
double Node::attribute(std::string_view name, double fallback) const {
  const AttributeProto *found = find(name, AttributeType::Float);
  return found ? double(found->f) : fallback;
}
std::string Node::attribute(std::string_view name, const char *fallback) const {
  const AttributeProto *found = find(name, AttributeType::String);
  return found ? std::string(found->s) : fallback;
}
std::vector<int64_t> Node::attribute(std::string_view name, std::vector<int64_t> fallback) const {
  const AttributeProto *found = find(name, AttributeType::Ints);
  return found ? found->ints : fallback;
}
std::vector<double> Node::attributeReals(std::string_view name) const {
  const AttributeProto *found = find(name, AttributeType::Floats);
  return found ? std::vector<double>(found->floats.begin(), found->floats.end()) : std::vector<double>();
}
std::vector<std::string> Node::attributeStrings(std::string_view name) const {
  const AttributeProto *found = find(name, AttributeType::Strings);
  return found ? std::vector<std::string>(found->strings.begin(), found->strings.end()) : std::vector<std::string>();
}
Tensor Node::attributeTensor(std::string_view name) const {
  const AttributeProto *found = find(name, AttributeType::Tensor);
  if (!found || !found->tensor)
    fail("it needs the attribute " + quoted(name));
  return importer.read(*found->tensor, detail::inScope({}));
}
const NarrowType *Node::narrowOfTensor(std::string_view name) const {
  const AttributeProto *found = find(name, AttributeType::Tensor);
  return found && found->tensor ? narrowType(found->tensor->dataType) : nullptr;
}
DType Node::attributeType(std::string_view name, DType fallback) const {
  const AttributeProto *found = find(name, AttributeType::Int);
  return found ? requireType(DataType(found->i), "its attribute " + quoted(name), detail::inScope({})) : fallback;
}
const GraphProto &Node::attributeGraph(std::string_view name) const {
  const AttributeProto *found = find(name, AttributeType::Graph);
  if (!found || !found->graph)
    fail("it needs the attribute " + quoted(name));
  return *found->graph;
}

Generator Node::generator() const {
  if (!hasAttribute("seed"))
    return default_generator();
  bool isWhole = op() == "Dropout"; // of the others a float
  uint64_t seed = isWhole ? uint64_t(attribute("seed", int64_t(0)))
                          : std::bit_cast<uint32_t>(find("seed", AttributeType::Float)->f);
  return importer.keep(Generator(seed));
}

std::optional<std::vector<int64_t>> Node::list(size_t input, std::string_view name) const {
  if (has(input))
    return integers(input);
  if (hasAttribute(name))
    return attribute(name, std::vector<int64_t>());
  return std::nullopt;
}

int64_t Node::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank)
    fail("the axis " + std::to_string(axis) + " is out of range for " + std::to_string(rank) + " dimensions");
  return axis < 0 ? axis + rank : axis;
}

Value Node::recompute(std::string_view name, const GivenValues &given) const {
  return importer.recompute(name, given, proto, scope);
}
std::vector<Value> Node::run(const GraphProto &graph, const std::vector<Value> &arguments) const {
  return importer.runSubgraph(graph, arguments, scope);
}

std::optional<Continuation> Node::continuation() const { return importer.continuationOf(proto, scope); }
Values Node::run(const Continuation &continuation, const Values &results) const {
  return importer.runContinuation(continuation, proto, results, scope);
}
Values Node::finish(const Continuation &continuation, Values outputs) const {
  return importer.finish(continuation, proto, std::move(outputs), scope);
}

bool Node::decide(const std::string &branches) const { return importer.decide(proto, branches); }

void Node::warn(const std::string &what) const { importer.warn(proto, what); }

void Node::fail(const std::string &what) const { throw Error(importer.locationOf(proto), printable(proto.op), what); }
void Node::unsupported(const std::string &what) const {
  throw Unsupported(importer.locationOf(proto), printable(proto.op), what);
}

void Node::unsupported(const std::string &what, const Dim &size) const {
  std::string fixes;
  for (const Dim::Symbol &symbol : size.symbols())
    if (importer.isOfInputs(symbol))
      fixes += " --dim " + symbol.name + "=SIZE";
  unsupported(what + " of the symbolic size " + size.str() +
              (fixes.empty() ? "" : "\n  fix it for the artifact with" + fixes));
}

Dim sizeFrom(const Tensor &count) { return Trace::active()->sizeFrom(count, detail::inScope({})); }

std::optional<Dim> jointSize(const Dim &left, const Dim &right) {
  return Trace::active()->jointSize(left, right, detail::inScope({}));
}
Tensor repeatTo(const Tensor &x, int64_t axis, const Dim &size) {
  return Trace::active()->repeatTo(x, axis, size, detail::inScope({}));
}

void requireEqual(const Dim &left, const Dim &right) { Trace::active()->require(left, right, detail::inScope({})); }

Tensor part(const Tensor &x, int64_t axis, const Dim &from, const Dim &to, int64_t step) {
  if (axis >= x.rank())
    throw Error(detail::inScope({}), "slice",
                str(x.spec()) + " must have " + std::to_string(axis + 1) + " dimensions or more");
  Shape starts(size_t(x.rank()), Dim(0)), stops = x.shape();
  std::vector<int64_t> steps(size_t(x.rank()), 1);
  starts[size_t(axis)] = from;
  stops[size_t(axis)] = to;
  steps[size_t(axis)] = step;
  return slice(x, starts, stops, steps);
}

// ---- integers of 4, 16, 32 and 64 bits that burin represents by wider ones

const NarrowType *Node::narrow(size_t input) const { return has(input) ? narrowType(inputs[input].narrow) : nullptr; }
const NarrowType *Node::narrow(std::string_view name) const {
  const AttributeProto *found = find(name, AttributeType::Int);
  return found ? narrowType(DataType(found->i)) : nullptr;
}

// ---- the table

const OpEntry *findOp(std::string_view domain, std::string_view name) {
  static const auto table = [] {
    std::map<std::pair<std::string_view, std::string_view>, OpEntry> table;
    for (auto family : {attentionOps(),
                        contribAttentionOps(),
                        contribQuantizedOps(),
                        controlOps(),
                        einsumOps(),
                        elementwiseOps(),
                        featureOps(),
                        fusedOps(),
                        indexOps(),
                        linearOps(),
                        loopOps(),
                        neuralOps(),
                        quantizedOps(),
                        randomOps(),
                        recurrentOps(),
                        reductionOps(),
                        samplingOps(),
                        selectionOps(),
                        sequenceOps(),
                        shapeOps(),
                        signalOps(),
                        skipNormOps(),
                        trainingOps(),
                        treeOps(),
                        vectorMachineOps()})
      for (const OpEntry &entry : family)
        table[{entry.domain, entry.name}] = entry;
    return table;
  }();
  auto at = table.find({domain, name});
  return at == table.end() ? nullptr : &at->second;
}

} // namespace burin::onnx
