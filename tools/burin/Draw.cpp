#include "tools/burin/Draw.h"
#include "ir/dialect/Burin.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/IterationSpace.h"
#include "tools/burin/Commands.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace burin::cli {
namespace {

/// The category of an op, which colours its box. A kernel with several ops takes the first category in this order.
enum class Look { Contraction, Window, Row, Pointwise, Movement };

constexpr const char *fills[] = {"#cfe2f7", "#e6d9f5", "#fde3c4", "#d9f0d3", "#f4f1de"};

Look lookOf(Operation *op) {
  if (isa<ir::MatmulOp, ir::DotGeneralOp, ir::ConvOp, ir::ConvTransposeOp, ir::ContractOp,
          ir::ScaledDotProductAttentionOp>(op))
    return Look::Contraction;
  if (isa<ir::MaxPoolOp, ir::AvgPoolOp, ir::AdaptiveAvgPoolOp>(op))
    return Look::Window;
  if (op->hasTrait<ir::Reduction>() || op->hasTrait<ir::Composite>())
    return Look::Row;
  return op->hasTrait<ir::Elementwise>() ? Look::Pointwise : Look::Movement;
}

/// Ops without work of their own, which are not drawn inside kernels.
bool isPlumbing(Operation *op) {
  return isa<ir::ReshapeOp, ir::SqueezeOp, ir::UnsqueezeOp, ir::BroadcastToOp, ir::FullOp, ir::IotaOp, ir::YieldOp,
             ir::ConstantOp>(op);
}

std::string escaped(llvm::StringRef text) {
  std::string out;
  for (char c : text)
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : std::string(1, c);
  return out;
}

std::string lineOf(Operation *op) {
  std::string place = ir::fileLine(op->getLoc());
  return place.substr(place.find_last_of('/') + 1);
}

class Picture {
public:
  std::string draw(func::FuncOp main) {
    out << "digraph burin {\n"
           "  graph [rankdir=TB, nodesep=0.3, ranksep=0.35];\n"
           "  node [fontname=\"Helvetica\", fontsize=12, shape=box, style=\"rounded,filled\", color=\"#666666\", "
           "margin=\"0.15,0.08\"];\n"
           "  edge [fontname=\"Helvetica\", fontsize=10, color=\"#666666\", fontcolor=\"#444444\", arrowsize=0.7];\n";
    hasKernels = !main.getOps<ir::KernelOp>().empty();
    for (BlockArgument argument : main.getArguments())
      ids[argument] = end(main.getArgAttr(argument.getArgNumber(), "burin.name"), "input", argument.getArgNumber());
    Block &body = main.front();
    for (Operation &op : body.without_terminator())
      if (!isa<ir::ConstantOp>(op) && !isView(&op))
        addOp(&op);
    for (auto [i, value] : llvm::enumerate(body.getTerminator()->getOperands()))
      edge(value, end(main.getResultAttr(i, "burin.name"), "output", i));
    out << "}\n";
    return std::move(text);
  }

private:
  std::string text;
  llvm::raw_string_ostream out{text};
  llvm::DenseMap<Value, unsigned> ids;
  unsigned next = 0;
  bool hasKernels = false;

  /// Reshapes between kernels are not drawn: edges pass through them.
  bool isView(Operation *op) {
    return hasKernels && op->getNumResults() == 1 && passes::skipReshapes(op->getResult(0)) != op->getResult(0);
  }

  unsigned end(Attribute name, const char *stem, unsigned i) {
    auto given = dyn_cast_or_null<StringAttr>(name);
    out << "  n" << next << " [label=\"" << escaped(given ? given.str() : stem + std::to_string(i))
        << "\", shape=ellipse, style=filled, fillcolor=\"#ffffff\", penwidth=1.5];\n";
    return next++;
  }

  // Formats "relu  lenet.cpp:22" with the source location in grey.
  static std::string lineText(llvm::StringRef name, const std::string &place) {
    std::string line = "<B>" + escaped(name) + "</B>";
    if (!place.empty())
      line += "  <FONT POINT-SIZE=\"9\" COLOR=\"#555555\">" + escaped(place) + "</FONT>";
    return line;
  }

  void addOp(Operation *op) {
    SmallVector<Operation *> shown;
    if (auto kernel = dyn_cast<ir::KernelOp>(op)) {
      for (Operation &inner : kernel.getBody().front())
        if (!isPlumbing(&inner))
          shown.push_back(&inner);
    } else {
      shown.push_back(op);
    }
    Look look = Look::Movement;
    std::string label;
    for (size_t i = 0; i < shown.size();) {
      look = std::min(look, lookOf(shown[i]));
      std::string name = shown[i]->getName().stripDialect().str(), place = lineOf(shown[i]);
      size_t same = 1;
      while (i + same < shown.size() && shown[i + same]->getName() == shown[i]->getName() &&
             lineOf(shown[i + same]) == place)
        ++same;
      i += same;
      label += (label.empty() ? "" : "<BR/>") + lineText(same > 1 ? name + " × " + std::to_string(same) : name, place);
    }
    if (label.empty())
      label = lineText(cast<ir::KernelOp>(op).getName().value_or("kernel"), lineOf(op));
    out << "  n" << next << " [label=<" << label << ">, fillcolor=\"" << fills[int(look)] << "\"];\n";
    unsigned self = next++;
    for (Value result : op->getResults())
      ids[result] = self;
    for (Value operand : op->getOperands())
      edge(operand, self);
  }

  void edge(Value value, unsigned to) {
    Value source = hasKernels ? passes::skipReshapes(value) : value;
    if (auto constant = source.getDefiningOp<ir::ConstantOp>()) {
      auto [it, isNew] = ids.try_emplace(source, next);
      if (isNew)
        weight(constant);
      out << "  n" << it->second << " -> n" << to << " [arrowsize=0.5];\n";
      return;
    }
    auto it = ids.find(source);
    if (it != ids.end()) // edge weight: graphviz draws the data path through the model as a straight line
      out << "  n" << it->second << " -> n" << to << " [weight=10, label=\" " << escaped(str(ir::specOf(value)))
          << "\"];\n";
  }

  void weight(ir::ConstantOp constant) {
    std::string name = constant.getName().value_or("").str();
    out << "  n" << next++ << " [label=\"" << escaped(name) << (name.empty() ? "" : "\\n")
        << escaped(str(ir::specOf(constant.getResult())))
        << "\", style=filled, fillcolor=\"#eeeeee\", color=\"#bbbbbb\", fontsize=9, height=0.2, "
           "margin=\"0.08,0.04\"];\n";
  }
};

} // namespace

std::string drawDot(ModuleOp module) { return Picture().draw(ir::mainFunction(module)); }

int renderSvg(const std::string &dot, std::string &svg) {
  auto program = llvm::sys::findProgramByName("dot");
  if (!program)
    return fail(kUnsupported, "--emit svg needs graphviz's program 'dot', and there is none on the PATH\n  install the "
                              "package graphviz, or write --emit dot and draw it elsewhere");
  llvm::SmallString<128> source, target;
  if (llvm::sys::fs::createTemporaryFile("burin", "dot", source) ||
      llvm::sys::fs::createTemporaryFile("burin", "svg", target))
    return fail(kInternal, "cannot create a temporary file; set TMPDIR to a folder that can be written");
  llvm::FileRemover removeSource(source), removeTarget(target);
  std::error_code failure;
  llvm::raw_fd_ostream(source, failure) << dot;
  std::string reason;
  int code =
      llvm::sys::ExecuteAndWait(*program, {*program, "-Tsvg", "-o", target, source}, std::nullopt, {}, 60, 0, &reason);
  auto drawn = llvm::MemoryBuffer::getFile(target);
  if (failure || code != 0 || !drawn)
    return fail(kInternal, "'" + *program + "' did not draw the graph" + (reason.empty() ? "" : ": " + reason) +
                               "\n  write --emit dot to see what it was given");
  svg = (*drawn)->getBuffer().str();
  return kOk;
}

} // namespace burin::cli
