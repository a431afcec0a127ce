// FLOP of the modules of a graph.
#include "burin/nn/summary.h"
#include "frontend/trace/GraphData.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <map>

namespace burin {

using namespace ir;

namespace {

using Work = std::map<std::string, Dim>; // by the path of a module

Dim productOf(const Shape &shape, size_t from = 0) {
  return elements(Shape(shape.begin() + ptrdiff_t(from), shape.end()));
}

/// Multiplications of an op that sums products; 0 for others.
Dim productsOf(mlir::Operation *op) {
  auto ofResult = [&] { return elements(shapeOf(op->getResult(0))); };
  return llvm::TypeSwitch<mlir::Operation *, Dim>(op)
      .Case([&](MatmulOp product) { return ofResult() * shapeOf(product.getLhs()).back(); })
      .Case([&](DotGeneralOp product) {
        Dim products = ofResult();
        for (int64_t axis : product.getLhsContract())
          products = products * shapeOf(product.getLhs())[size_t(axis)];
        return products;
      })
      .Case([&](ConvOp convolution) { return ofResult() * productOf(shapeOf(convolution.getWeight()), 1); })
      .Case([&](ConvTransposeOp convolution) {
        return elements(shapeOf(convolution.getX())) * productOf(shapeOf(convolution.getWeight()), 1);
      })
      .Case([&](ScaledDotProductAttentionOp attention) {
        const Shape query = shapeOf(attention.getQuery()), value = shapeOf(attention.getValue());
        return productOf(Shape(query.begin(), query.end() - 1)) * value[value.size() - 2] *
               (query.back() + value.back());
      })
      .Default([](mlir::Operation *) { return Dim(0); });
}

std::string moduleOf(mlir::Operation *op) {
  auto module = op->getLoc()->findInstanceOf<mlir::NameLoc>();
  return module ? module.getName().str() : std::string();
}

void add(Work &to, const Work &part, const Dim &times = 1) {
  for (const auto &[path, flops] : part) {
    auto [at, isNew] = to.try_emplace(path, 0);
    at->second = at->second + flops * times;
  }
}

Work workOf(mlir::Operation *function);

Work largerOf(const Work &a, const Work &b) {
  Work result = a;
  for (const auto &[path, flops] : b) {
    auto [at, isNew] = result.try_emplace(path, flops);
    at->second = max(at->second, flops);
  }
  return result;
}

Work workIn(mlir::Operation *op) {
  if (auto loop = llvm::dyn_cast<ScanOp>(op)) {
    Work all;
    add(all, workOf(loop.body()), loop.partCount());
    return all;
  }
  if (auto loop = llvm::dyn_cast<WhileOp>(op))
    return workOf(loop.bodyFunction());
  if (auto branch = llvm::dyn_cast<IfOp>(op))
    return largerOf(workOf(branch.branch(true)), workOf(branch.branch(false)));
  const Dim products = productsOf(op);
  return products == Dim(0) ? Work{} : Work{{moduleOf(op), products * Dim(2)}};
}

Work workOf(mlir::Operation *function) {
  Work all;
  if (function)
    for (mlir::Operation &op : llvm::cast<mlir::func::FuncOp>(function).getBody().getOps())
      add(all, workIn(&op));
  return all;
}

/// 1234567 as "1.23 MFLOP".
std::string flopText(const Dim &flops) {
  if (!flops.isStatic())
    return flops.str() + " FLOP";
  double amount = double(flops.value());
  const char *units[] = {"", "k", "M", "G", "T", "P"};
  size_t unit = 0;
  for (; amount >= 1000 && unit + 1 < std::size(units); ++unit)
    amount /= 1000;
  char text[48];
  std::snprintf(text, sizeof text, unit ? "%.3g %sFLOP" : "%.0f %sFLOP", amount, units[unit]);
  return text;
}

struct Line {
  std::string tree, parameters, flops;
};

void addLines(const std::string &name, const nn::Module &module, size_t depth, const Work &work,
              std::vector<Line> &lines) {
  const std::string path = module.path(), own = module.str(), first = own.substr(0, own.find('\n'));
  // Parentheses close behind the children.
  const bool isOpen = !module.named_children().empty();
  const std::string label = first.ends_with('(') ? first.substr(0, first.size() - 1) : first + (isOpen ? ")" : "");
  Dim flops = 0;
  for (const auto &[place, part] : work)
    if (depth == 0 || place == path || place.starts_with(path + "."))
      flops = flops + part;
  lines.push_back({std::string(2 * depth, ' ') + (name.empty() ? "" : name + ": ") + label,
                   std::to_string(module.count_parameters()), flopText(flops)});
  for (const auto &[inner, child] : module.named_children())
    addLines(inner, child, depth + 1, work, lines);
}

} // namespace

std::string burin::detail::summary(const nn::Module &module, const Graph &graph) {
  Work work;
  {
    Graph::Data &data = *graph.shared();
    std::lock_guard lock(data.mutex);
    for (mlir::func::FuncOp function : data.module->getOps<mlir::func::FuncOp>())
      if (function.isPublic())
        work = workOf(function);
  }
  std::vector<Line> lines{{"module", "parameters", "work"}};
  addLines("", module, 0, work, lines);
  size_t tree = 0, parameters = 0;
  for (const Line &line : lines) {
    tree = std::max(tree, line.tree.size());
    parameters = std::max(parameters, line.parameters.size());
  }
  std::string text;
  for (const Line &line : lines)
    text += line.tree + std::string(tree - line.tree.size() + 2 + parameters - line.parameters.size(), ' ') +
            line.parameters + "  " + line.flops + "\n";
  return text;
}

} // namespace burin
