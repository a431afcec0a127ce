// Interface for the translation of an ONNX op: a node with its inputs and attributes. To add an op, write a function
// from Node to its outputs with calls of the public API, and add it to the table of its family (Ops*.cpp).
#pragma once
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "burin/tensor/random.h"
#include "frontend/onnx/import/Import.h"
#include "frontend/onnx/proto/Proto.h"
#include "frontend/tensor/functions/Creation.h"
#include <array>
#include <memory>
#include <optional>

namespace burin::onnx {

/// Elements that are known during import, possibly symbolic, for the computation of shapes.
struct Contents {
  DType dtype = DType::i64;
  std::vector<int64_t> shape; // static; any rank
  std::vector<Dim> elements;
  std::vector<Dim> divisors = {}; // of floats: divisors of the elements

  bool isStatic() const;
};

/// The value of a name in a graph: nothing, a tensor, or a sequence of values. Tensors of sizes also have their
/// contents, and become graph ops only on demand.
struct Value {
  Value() = default;
  Value(Tensor tensor) : tensor(std::move(tensor)) {}
  Value(Contents contents) : contents(std::make_shared<const Contents>(std::move(contents))) {}
  static Value sequenceOf(std::vector<Value> values);

  bool defined() const { return tensor.defined() || contents || sequence; }
  /// Unknown because of a problem with an earlier node. Only in a search for all problems.
  bool isBroken = false;

  /// The model's element type, if burin represents it by a wider one: see NarrowType.
  DataType narrow = DataType::Undefined;

  mutable Tensor tensor;
  std::shared_ptr<const Contents> contents;
  std::shared_ptr<const std::vector<Value>> sequence;
};

/// Thrown when a node uses a broken value.
struct Broken {};

/// The outputs of a node. Trailing outputs may be omitted.
struct Values : std::vector<Value> {
  using vector::vector;
  Values(Tensor one) : vector{Value(std::move(one))} {}
  Values(Value one) : vector{std::move(one)} {}
  Values(const std::vector<Tensor> &tensors) : vector(tensors.begin(), tensors.end()) {}
};

/// Values with their names.
using GivenValues = std::vector<std::pair<std::string_view, Value>>;

/// What follows an If in its graph: the later nodes that use its results, directly or not, and those outputs of the
/// graph that the If or these nodes compute.
struct Continuation {
  std::vector<NodeProto> nodes;
  std::vector<std::string_view> outputs;
};

class Scope;
class Importer;
struct NarrowType;

class Node {
public:
  Node(Importer &importer, const NodeProto &proto, Scope &scope);

  std::string_view op() const { return proto.op; }
  std::string_view domain() const { return proto.domain; }
  /// The version of the op set of the node's op.
  int64_t opset() const;

  // ---- inputs and outputs
  size_t inputCount() const { return inputs.size(); }
  size_t outputCount() const { return proto.outputs.size(); }
  bool has(size_t input) const { return input < inputs.size() && inputs[input].defined(); }
  bool wants(size_t output) const { return output < proto.outputs.size() && !proto.outputs[output].empty(); }
  /// An input that must be present.
  const Value &value(size_t input) const;
  Tensor operator[](size_t input) const;
  std::optional<Tensor> optional(size_t input) const;
  /// All present inputs.
  std::vector<Tensor> tensors() const;
  const std::vector<Value> &sequence(size_t input) const;
  void replace(size_t input, Value value) { inputs[input] = std::move(value); }
  DType dtype(size_t input = 0) const;
  /// The shape of an input.
  Shape shape(size_t input = 0) const;
  int64_t rank(size_t input = 0) const { return int64_t(shape(input).size()); }
  /// Fails if an input is present and has fewer dimensions.
  void requireRank(size_t input, int64_t least) const;

  // ---- inputs whose elements must be known during import; errors for others name the graph inputs that they depend on
  /// The contents of an integer or bool input, if known; of floats only if they are whole numbers.
  std::optional<Contents> contents(size_t input) const;
  /// Elements that do not follow from sizes become symbols that the run computes.
  Shape sizes(size_t input) const;
  /// An element of an integer input: a size, or, if that does not follow from sizes, a tensor of rank 0.
  struct Element {
    std::optional<Dim> size;
    Tensor value;

    /// As a tensor of rank 0.
    Tensor tensor() const { return size ? detail::sizeTensor(*size) : value; }
  };
  std::vector<Element> elements(size_t input) const;
  /// As sizes(), but every element must follow from sizes.
  Shape knownSizes(size_t input) const;
  /// Whether a size is a symbol that the run computes.
  bool isComputed(const Dim &size) const;
  std::vector<int64_t> integers(size_t input) const;
  std::vector<double> reals(size_t input) const;
  int64_t integer(size_t input) const;
  double real(size_t input) const;

  // ---- attributes
  bool hasAttribute(std::string_view name) const { return find(name) != nullptr; }
  int64_t attribute(std::string_view name, int64_t fallback) const;
  double attribute(std::string_view name, double fallback) const;
  std::string attribute(std::string_view name, const char *fallback) const;
  std::vector<int64_t> attribute(std::string_view name, std::vector<int64_t> fallback) const;
  std::vector<double> attributeReals(std::string_view name) const;
  std::vector<std::string> attributeStrings(std::string_view name) const;
  Tensor attributeTensor(std::string_view name) const;
  /// The narrow type of an input, or of an attribute that holds a type or a tensor; null if burin has the type itself.
  const NarrowType *narrow(size_t input) const;
  const NarrowType *narrow(std::string_view attribute) const;
  const NarrowType *narrowOfTensor(std::string_view attribute) const;
  /// The value of an attribute that holds a data type.
  DType attributeType(std::string_view name, DType fallback) const;
  const GraphProto &attributeGraph(std::string_view name) const;

  /// A list that is an input in newer op sets, and an attribute in older ones.
  std::optional<std::vector<int64_t>> list(size_t input, std::string_view attribute) const;

  /// The generator of a node's random numbers: with its attribute "seed", else the default one.
  Generator generator() const;

  /// `axis` as a number >= 0. Throws if it is out of range.
  int64_t axis(int64_t axis, int64_t rank) const;
  int64_t axis(int64_t axis) const { return this->axis(axis, rank()); }

  /// The value called `name` in this node's graph for given values of others.
  Value recompute(std::string_view name, const GivenValues &given) const;
  /// Runs a subgraph in the scope of this node.
  std::vector<Value> run(const GraphProto &graph, const std::vector<Value> &arguments) const;

  /// Runs the later nodes of the graph that do not use this node's results, and returns the others, which the import
  /// then skips. Nullopt where the graph's nodes are not run in order.
  std::optional<Continuation> continuation() const;
  /// The outputs of the continuation for these results of the node.
  Values run(const Continuation &continuation, const Values &results) const;
  /// Gives the graph the outputs of the continuation; returns the node's own results.
  Values finish(const Continuation &continuation, Values outputs) const;

  /// The branch of an If over sizes that the import takes: the first one, or the other if the model does not fit then.
  /// `branches` describes what they give, for a warning.
  bool decide(const std::string &branches) const;

  /// Reports a warning about the model, once.
  void warn(const std::string &what) const;
  [[noreturn]] void fail(const std::string &what) const;
  [[noreturn]] void unsupported(const std::string &what) const;
  /// `what` of a symbolic size is not supported: names the size and, if inputs determine it, how to fix it.
  [[noreturn]] void unsupported(const std::string &what, const Dim &size) const;
  /// `what` must be known, but depends on data: names the inputs of the graph that the input depends on, and how to fix
  /// them.
  [[noreturn]] void unsupportedData(const std::string &what, size_t input) const;

private:
  Importer &importer;
  const NodeProto &proto;
  Scope &scope;
  std::vector<Value> inputs;

  const AttributeProto *find(std::string_view name) const;
  const AttributeProto *find(std::string_view name, AttributeProto::Type type) const;
  Tensor constant(size_t input) const;
  std::vector<Element> elementsOf(std::string_view name, const Value &value) const;
};

/// The value as a tensor; sizes are turned into one.
const Tensor &tensorOf(const Value &value);
/// The contents of a value with few whole elements; they are read from a constant tensor.
std::optional<Contents> contentsOf(const Value &value);
/// The elements of a value that does not depend on data.
std::optional<Tensor> constantOf(const Value &value);
/// Elements from, from + step, … below `to` of one dimension.
Tensor part(const Tensor &x, int64_t axis, const Dim &from, const Dim &to, int64_t step = 1);
using detail::sizeTensor;

using Handler = Values (*)(Node &);
struct OpEntry {
  std::string_view name;
  Handler handler;
  std::array<int8_t, 8> ranks = {}; // least number of dimensions of each input, whose sizes the handler may read
  std::string_view domain = "";
};
/// Nullptr if the op is unknown.
const OpEntry *findOp(std::string_view domain, std::string_view name);

/// Integers of the type that represents `type`, as those that have the same last bits and are in its range.
Tensor wrapped(const Tensor &x, const NarrowType &type);
/// Marks the results of a node whose operands are of a narrow type, and keeps them in its range.
void keepNarrow(const Node &n, Values &results);

/// Makes every run check that two sizes are equal.
void requireEqual(const Dim &left, const Dim &right);

/// Makes a size of an integer of rank 0 that the run computes; a run in which it is negative fails.
Dim sizeFrom(const Tensor &count);

/// The size to which two sizes of inputs broadcast when one of them may be 1 in a run, and an operand repeated to it:
/// see Trace.
std::optional<Dim> jointSize(const Dim &left, const Dim &right);
Tensor repeatTo(const Tensor &x, int64_t axis, const Dim &size);

/// The results of an op on known elements, if they are known, too.
std::optional<Values> propagateContents(Node &node);

// ---- the families
std::span<const OpEntry> attentionOps();
std::span<const OpEntry> contribAttentionOps();
std::span<const OpEntry> contribQuantizedOps();
std::span<const OpEntry> controlOps();
std::span<const OpEntry> einsumOps();
std::span<const OpEntry> elementwiseOps();
std::span<const OpEntry> featureOps();
std::span<const OpEntry> fusedOps();
std::span<const OpEntry> indexOps();
std::span<const OpEntry> linearOps();
std::span<const OpEntry> loopOps();
std::span<const OpEntry> neuralOps();
std::span<const OpEntry> quantizedOps();
std::span<const OpEntry> recurrentOps();
std::span<const OpEntry> reductionOps();
std::span<const OpEntry> randomOps();
std::span<const OpEntry> samplingOps();
std::span<const OpEntry> selectionOps();
std::span<const OpEntry> sequenceOps();
std::span<const OpEntry> shapeOps();
std::span<const OpEntry> signalOps();
std::span<const OpEntry> skipNormOps();
std::span<const OpEntry> trainingOps();
std::span<const OpEntry> treeOps();
std::span<const OpEntry> vectorMachineOps();

} // namespace burin::onnx
