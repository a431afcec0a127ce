// What the translation of a burin op to ONNX sees: the op, and nodes to build. To give an op its ONNX form, name the
// operator in its definition (`onnx` in ir/*.td) where operands and attributes are the same; for anything else write a
// function from OpEmitter to the results, and name it in the table of its family (Export*.cpp).
#pragma once
#include "frontend/onnx/export/ExportModel.h"
#include "ir/dialect/Burin.h"
#include "ir/reference/ReferenceTensor.h"
#include "ir/sizes/DimExpression.h"
#include <deque>
#include <map>
#include <set>

namespace burin::onnx {

/// A value of the ONNX graph; without a name it is an optional input left out.
struct Ref {
  std::string name;
  DType dtype = DType::f32;
};
using Refs = std::vector<Ref>;

/// Thrown by what has no ONNX form; the reason reads on after "burin.conv: ".
struct NoOnnxForm {
  std::string reason;
};

/// Builds the graph: nodes, constants that are needed once, sizes.
class GraphEmitter {
public:
  OutModel model;
  std::string doc;                                     // of the nodes that follow
  llvm::DenseMap<mlir::Value, std::string> parameters; // names of constants

  /// `stem` made unique; the name it is if that is free.
  std::string nameFor(const std::string &stem);
  void bind(mlir::Value value, Ref ref);
  /// Whether a node computes the value of this name.
  bool isResult(const std::string &name) const { return results.count(name) != 0; }

  Refs nodes(const std::string &op, const Refs &inputs, size_t count, const OutAttributes &attributes = {});
  /// A node with one result; its type is that of the first input unless it is given.
  Ref node(const std::string &op, const Refs &inputs, const OutAttributes &attributes = {},
           std::optional<DType> dtype = std::nullopt);
  Ref cast(const Ref &x, DType dtype);

  /// The value of a tensor; those without an op of their own (constants, broadcasting) come into being now.
  Ref valueOf(mlir::Value value);
  /// The operands of a node that broadcasts to `result`, each as small as it was before it was broadcast.
  Refs broadcasting(llvm::ArrayRef<mlir::Value> operands, const Shape &result);

  /// The bytes must outlive this; `name` must be unique.
  Ref constant(const TensorSpec &spec, std::span<const char> bytes, const std::string &name = "");
  Ref stored(const ir::RefTensor &tensor);
  Ref number(double value, DType dtype, const std::vector<int64_t> &shape = {});
  Ref table(const std::vector<int64_t> &values, DType dtype); // of rank 1
  Ref list(const std::vector<int64_t> &values);               // the same in i64, once
  Ref size(const Dim &size);                                  // a list of one
  Ref sizes(const Shape &shape);
  Ref full(const Ref &scalar, const Shape &shape);
  /// The graph that `emit` builds within this one: it sees what is here, and nothing here sees what is in it. Constants
  /// stay outside.
  std::shared_ptr<OutModel> subgraph(const std::string &name, llvm::function_ref<void()> emit);
  /// x under another shape of as many elements; `from` is its shape.
  Ref reshape(const Ref &x, const Shape &from, const Shape &to);

private:
  std::set<std::string> names, results;
  std::map<std::string, size_t> counts; // of names with one stem
  llvm::DenseMap<mlir::Value, Ref> values;
  std::map<std::string, Ref> known;                           // lists, numbers, sizes and casts, by what they are
  std::map<std::string, std::pair<std::string, size_t>> dims; // which value has a symbolic size, and where
  std::deque<std::vector<char>> storage;

  Ref *find(const std::string &key);
  Ref computed(const Dim &size);
  Ref computed(const Dim::Expression::Atom &atom);
  Ref splat(mlir::Value value);
};

/// The operator that the definition of a burin op names, "" if none.
std::string_view onnxName(std::string_view op);

/// One op.
class OpEmitter {
public:
  OpEmitter(GraphEmitter &graph, mlir::Operation *op, DType (*computedIn)(DType))
      : graph(graph), op(op), info(*ir::opInfo(op)), operands(ir::operandsOf(op)), attrs(ir::attrsOf(op)),
        computedIn(computedIn) {}

  GraphEmitter &graph;
  mlir::Operation *op;
  const ir::OpInfo &info;
  llvm::SmallVector<mlir::Value> operands;
  std::vector<ir::Attr> attrs;

  bool has(size_t operand) const { return operand < operands.size() && operands[operand]; }
  TensorSpec spec(size_t operand = 0) const { return ir::specOf(operands[operand]); }
  Shape shape(size_t operand = 0) const { return ir::shapeOf(operands[operand]); }
  TensorSpec result(size_t i = 0) const { return ir::specOf(op->getResult(i)); }
  template <class T> const T &attr(std::string_view name) const {
    for (size_t i = 0; i < info.attrs.size(); ++i)
      if (name == info.attrs[i].name)
        return std::get<T>(attrs[i]);
    std::abort(); // the table and the translation disagree
  }

  /// The operand in the type that the op is computed in; absent if it is.
  Ref in(size_t operand) const;
  /// The operand as it is.
  Ref raw(size_t operand) const { return graph.valueOf(operands[operand]); }
  /// All operands of an elementwise op, as small as before broadcasting, in the type that the op is computed in.
  Refs broadcasting() const;
  DType workType(size_t operand = 0) const { return computedIn(spec(operand).dtype); }
  /// The node that the op's definition names, with attributes of the same names.
  Ref same(const Refs &inputs) const;

private:
  DType (*computedIn)(DType);
};

// ---- which type an op is computed in; results are converted back
/// bf16 in f32: not all operators take it, and burin's ops compute in f32 anyway.
DType inSingle(DType);
/// For what takes more than one node: 16-bit floats are rounded once, as burin does.
DType inSingleThroughout(DType);
DType asIs(DType);

struct ExportRule {
  std::string_view op;
  Refs (*emit)(const OpEmitter &);
  DType (*computedIn)(DType) = inSingle;
};
std::span<const ExportRule> elementwiseExports();
std::span<const ExportRule> reductionExports();
std::span<const ExportRule> shapeExports();
std::span<const ExportRule> selectionExports();
std::span<const ExportRule> neuralExports();

} // namespace burin::onnx
