#include "frontend/execute/JitCheck.h"
#include "ir/dialect/Burin.h"

namespace burin::detail {

using namespace mlir;

namespace {

std::string placeOf(Operation *op) {
  std::string place = ir::fileLine(op->getLoc());
  return place.empty() ? "" : " (" + place + ")";
}
std::string nameOf(Operation *op) {
  if (isa<func::ReturnOp>(op))
    return "its end";
  return op->getName().stripDialect().str() + placeOf(op);
}

/// Attributes without an influence on the result.
bool isLabel(NamedAttribute attribute) { return attribute.getName() == "name"; }

std::string textOf(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}
std::string shortened(std::string text) { return text.size() > 60 ? text.substr(0, 57) + "..." : text; }

/// The elements of a small constant, otherwise its type.
std::string contentOf(ir::ConstantOp op) {
  std::string type = str(ir::specOf(op.getResult()));
  return isa<DenseElementsAttr>(op.getValue()) ? shortened(textOf(op.getValue())) : type + " with other elements";
}

/// Compares functions op by op, and matches the values of one with those of the other.
class Comparison {
public:
  explicit Comparison(const SameValues &same) : same(same) {}

  std::optional<std::string> run(Block &before, Block &now) {
    for (unsigned i = 0; i < std::min(before.getNumArguments(), now.getNumArguments()); ++i)
      match[before.getArgument(i)] = now.getArgument(at(same.arguments, i));
    auto sameType = [&](Value x) { return ir::specOf(x) == ir::specOf(match.lookup(x)); };
    if (before.getNumArguments() != now.getNumArguments() || !llvm::all_of(before.getArguments(), sameType))
      return "it used " + std::to_string(before.getNumArguments()) + " arguments, parameters and states, now " +
             std::to_string(now.getNumArguments()) + ", or of other types";
    auto x = before.begin(), y = now.begin();
    for (; x != before.end() && y != now.end(); ++x, ++y)
      if (auto difference = compare(&*x, &*y))
        return difference;
    return std::nullopt;
  }

private:
  const SameValues &same;
  llvm::DenseMap<Value, Value> match;

  static unsigned at(const std::vector<size_t> &order, unsigned i) { return i < order.size() ? unsigned(order[i]) : i; }

  std::optional<std::string> compare(Operation *before, Operation *now) {
    // Each graph has its own context, so names, types and attributes are compared by text.
    if (before->getName().getStringRef() != now->getName().getStringRef())
      return "it recorded " + nameOf(before) + " before, and now " + nameOf(now);
    auto constant = dyn_cast<ir::ConstantOp>(before);
    if (constant && !haveSameElements(constant, cast<ir::ConstantOp>(now)))
      return "the constant" + placeOf(constant) + " was " + contentOf(constant) + ", and is now " +
             contentOf(cast<ir::ConstantOp>(now));
    if (!constant)
      if (auto difference = compareAttributes(before, now))
        return difference;
    if (!haveSameTypes(before, now))
      return "the result of " + nameOf(before) + " was " + str(ir::specOf(before->getResult(0))) + ", and is now " +
             str(ir::specOf(now->getResult(0)));
    bool agree = before->getNumOperands() == now->getNumOperands();
    const bool isEnd = isa<func::ReturnOp>(before);
    for (unsigned i = 0; agree && i < before->getNumOperands(); ++i)
      agree = match.lookup(before->getOperand(i)) == now->getOperand(isEnd ? at(same.results, i) : i);
    if (!agree)
      return nameOf(before) + " is now computed from other values" + placeOf(now);
    for (auto [x, y] : llvm::zip(before->getResults(), now->getResults()))
      match[x] = y;
    return std::nullopt;
  }

  static bool haveSameTypes(Operation *before, Operation *now) {
    if (before->getNumResults() != now->getNumResults())
      return false;
    for (auto [x, y] : llvm::zip(before->getResults(), now->getResults()))
      if (ir::specOf(x) != ir::specOf(y))
        return false;
    return true;
  }

  static bool haveSameElements(ir::ConstantOp before, ir::ConstantOp now) {
    if (ir::specOf(before.getResult()) != ir::specOf(now.getResult()))
      return false;
    std::vector<char> x, y;
    ArrayRef<char> left = ir::constantBytes(before.getValue(), x), right = ir::constantBytes(now.getValue(), y);
    return left.size() == right.size() && (left.data() == right.data() || left == right);
  }

  std::optional<std::string> compareAttributes(Operation *before, Operation *now) {
    for (NamedAttribute attribute : before->getAttrDictionary()) {
      Attribute other = now->getAttr(attribute.getName().strref());
      if (isLabel(attribute) || (other && textOf(attribute.getValue()) == textOf(other)))
        continue;
      return "`" + attribute.getName().str() + "` of " + nameOf(before) + " was " +
             shortened(textOf(attribute.getValue())) + ", and is now " + (other ? shortened(textOf(other)) : "missing");
    }
    return std::nullopt;
  }
};

} // namespace

SameValues sameStates(std::span<const StateUse> before, std::span<const StateUse> now, size_t arguments,
                      size_t results) {
  const size_t count = std::min(before.size(), now.size());
  std::vector<size_t> partners(count, count); // by state of before
  SmallVector<bool> isTaken(count, false);
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < count; ++j)
      if (now[j].cell == before[i].cell) {
        partners[i] = j;
        isTaken[j] = true;
      }
  size_t next = 0;
  for (size_t &partner : partners) {
    if (partner < count)
      continue;
    while (isTaken[next])
      ++next;
    partner = next++;
  }
  SameValues same;
  for (size_t i = 0; i < arguments; ++i)
    same.arguments.push_back(i);
  for (size_t i = 0; i < results; ++i)
    same.results.push_back(i);
  for (size_t i = 0; i < count; ++i) {
    same.arguments.push_back(now[partners[i]].input);
    if (before[i].output && now[partners[i]].output)
      same.results.push_back(*now[partners[i]].output);
  }
  return same;
}

std::optional<std::string> firstDifference(const Graph &before, const Graph &now, const SameValues &same) {
  std::lock_guard lock(before.shared()->mutex), other(now.shared()->mutex);
  auto functions = [](const Graph &graph) {
    auto list = graph.shared()->module->getOps<func::FuncOp>();
    return SmallVector<func::FuncOp>(list.begin(), list.end());
  };
  SmallVector<func::FuncOp> left = functions(before), right = functions(now);
  const SameValues none; // functions of loops and branches
  for (auto [x, y] : llvm::zip(left, right))
    if (auto difference = Comparison(x == left.front() ? same : none).run(x.front(), y.front()))
      return difference;
  if (left.size() != right.size())
    return "it had " + std::to_string(left.size() - 1) + " loops and branches, and now " +
           std::to_string(right.size() - 1);
  return std::nullopt;
}

} // namespace burin::detail
