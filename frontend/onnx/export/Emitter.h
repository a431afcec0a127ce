// Interface for the translation of a burin op to ONNX: the op, and nodes to build. To give an op its ONNX form, name
// the operator in its definition (`onnx` in ir/ops/*.td) if operands and attributes are the same; otherwise write a
// function from OpEmitter to the results, and add it to the table of its family (Export*.cpp).
#pragma once
#include "frontend/onnx/export/ExportModel.h"
#include "ir/dialect/Burin.h"
#include "ir/reference/ReferenceTensor.h"
#include "ir/sizes/DimExpression.h"
#include <deque>
#include <map>
#include <set>

namespace burin::onnx {

/// A value of the ONNX graph; an absent optional input has no name.
struct Ref {
  std::string name;
  DType dtype = DType::f32;
};
using Refs = std::vector<Ref>;

/// Thrown for ops without an ONNX form; `reason` continues "burin.conv: ".
struct NoOnnxForm {
  std::string reason;
};

/// Builds the graph: nodes, shared constants, sizes.
class GraphEmitter {
public:
  OutModel model;
  std::string doc;                                     // of the following nodes
  llvm::DenseMap<mlir::Value, std::string> parameters; // names of constants

  /// Makes `stem` unique; returns it unchanged if it is free.
  std::string nameFor(const std::string &stem);
  void bind(mlir::Value value, Ref ref);
  /// Forgets what a value has been translated to.
  void unbind(mlir::Value value) { values.erase(value); }
  /// Whether a node computes the value of this name.
  bool isResult(const std::string &name) const { return results.count(name) != 0; }

  Refs nodes(const std::string &op, const Refs &inputs, size_t count, const OutAttributes &attributes = {});
  /// Adds a node with one result; its type is that of the first input by default.
  Ref node(const std::string &op, const Refs &inputs, const OutAttributes &attributes = {},
           std::optional<DType> dtype = std::nullopt);
  Ref cast(const Ref &x, DType dtype);

  /// The value of a tensor; creates those without their own op (constants, broadcasts) on demand.
  Ref valueOf(mlir::Value value);
  /// The operands of a node that broadcasts to `result`, each without its own broadcasts.
  Refs broadcasting(llvm::ArrayRef<mlir::Value> operands, const Shape &result);

  /// The bytes must outlive the graph; `name` must be unique.
  Ref constant(const TensorSpec &spec, std::span<const char> bytes, const std::string &name = "");
  Ref stored(const ir::RefTensor &tensor);
  Ref number(double value, DType dtype, const std::vector<int64_t> &shape = {});
  Ref table(const std::vector<int64_t> &values, DType dtype); // of rank 1
  Ref list(const std::vector<int64_t> &values);               // the same in i64, shared
  Ref size(const Dim &size);                                  // a list with one element
  Ref sizes(const Shape &shape);
  Ref full(const Ref &scalar, const Shape &shape);
  /// The graph that `emit` builds, nested in this one, whose values it can use. Constants belong to the outer graph.
  std::shared_ptr<OutModel> subgraph(const std::string &name, llvm::function_ref<void()> emit);
  /// Reshapes x, whose shape is `from`.
  Ref reshape(const Ref &x, const Shape &from, const Shape &to);

private:
  std::set<std::string> names, results;
  std::map<std::string, size_t> counts; // of names with the same stem
  llvm::DenseMap<mlir::Value, Ref> values;
  std::map<std::string, Ref> known;                           // shared lists, numbers, sizes and casts, by content
  std::map<std::string, std::pair<std::string, size_t>> dims; // the value and its dimension that has a symbolic size
  std::deque<std::vector<char>> storage;

  Ref *find(const std::string &key);
  Ref computed(const Dim &size);
  Ref computed(const Dim::Expression::Atom &atom);
  Ref splat(mlir::Value value);
};

/// The operator that the definition of a burin op names, "" without one.
std::string_view onnxName(std::string_view op);

/// One op to translate.
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

  /// The operand in the type that the op is computed in; absent if the operand is.
  Ref in(size_t operand) const;
  /// The operand without conversion, but 8-bit floats as f16.
  Ref raw(size_t operand) const;
  /// All operands of an elementwise op, without their broadcasts, in the type that the op is computed in.
  Refs broadcasting() const;
  DType workType(size_t operand = 0) const { return computedIn(spec(operand).dtype); }
  /// The node that the op's definition names, with attributes of the same names.
  Ref same(const Refs &inputs) const;

private:
  DType (*computedIn)(DType);
};

// ---- type that an op is computed in; results are converted back
/// bf16 and 8-bit floats as f32: not all operators accept them, and burin's ops compute in f32 anyway.
DType inSingle(DType);
/// For translations with several nodes: 16-bit and 8-bit floats as f32, so that they are rounded once, as in burin.
DType inSingleThroughout(DType);
/// 8-bit floats as f16, which has all their values: few operators accept them.
DType asIs(DType);

struct ExportRule {
  std::string_view op;
  Refs (*emit)(const OpEmitter &);
  DType (*computedIn)(DType) = inSingle;
};
std::span<const ExportRule> elementwiseExports();
std::span<const ExportRule> randomExports();
std::span<const ExportRule> reductionExports();
std::span<const ExportRule> shapeExports();
std::span<const ExportRule> selectionExports();
std::span<const ExportRule> neuralExports();

} // namespace burin::onnx
