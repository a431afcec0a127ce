// If, and what branches and loops share.
#include "burin/graph/control.h"
#include "frontend/onnx/import/tensor/control/Control.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/Trace.h"
#include <algorithm>
#include <functional>

namespace burin::onnx {

std::optional<bool> knownCondition(const Value &condition) {
  if (condition.contents && condition.contents->elements.size() == 1 && condition.contents->elements[0].isStatic())
    return condition.contents->elements[0] != Dim(0);
  std::optional<Tensor> constant = constantOf(condition);
  return constant ? std::optional(constant->item<bool>()) : std::nullopt;
}

std::vector<Tensor> tensorsOf(const std::vector<Value> &values) {
  std::vector<Tensor> tensors;
  for (const Value &value : values) {
    if (value.sequence || !value.defined())
      throw Error(detail::inScope({}), "", "a branch or loop of the graph gives tensors, not sequences or nothing");
    tensors.push_back(tensorOf(value));
  }
  return tensors;
}

Value whole(int64_t number, DType dtype) { return Contents{dtype, {}, {number}}; }

namespace {

using Branch = std::function<std::vector<Tensor>()>;

/// The condition of an If: a tensor, and, if it follows from sizes, 1 or 0 as a size.
struct Condition {
  Tensor tensor;
  std::optional<Dim> size;
};

/// Thrown for branches whose results differ in rank; `shapes` lists both.
struct DifferentRanks {
  std::string shapes;
};

/// The size of a result of an If in whose branches it is `yes` and `no`.
Dim chosenSize(const Condition &condition, const Dim &yes, const Dim &no) {
  if (yes == no)
    return yes;
  if (condition.size)
    return no + *condition.size * (yes - no);
  return sizeFrom(where(condition.tensor, sizeTensor(yes), sizeTensor(no)));
}

/// The shape of a result of an If in whose branches it has these shapes; nullopt if they differ in rank.
std::optional<Shape> chosenShape(const Condition &condition, const Shape &yes, const Shape &no) {
  if (yes.size() != no.size())
    return std::nullopt;
  Shape shape;
  for (size_t i = 0; i < yes.size(); ++i)
    shape.push_back(chosenSize(condition, yes[i], no[i]));
  return shape;
}

/// x in the shape of the result of an If: its sizes are equal to x's own in the runs that take x's branch.
Tensor withShape(const Tensor &x, const Shape &shape) {
  return x.shape() == shape ? x : Trace::active()->reshapeUnproved(x, shape, detail::inScope({}));
}

/// The branches as functions of the graph, of which one runs. If their results differ in sizes, the results have the
/// sizes of the branch that runs.
std::vector<Tensor> branchOf(const Condition &condition, const Branch &yes, const Branch &no) {
  std::vector<Tensor> ofYes, ofNo;
  auto noted = [](const Branch &branch, std::vector<Tensor> &results) { return [&] { return results = branch(); }; };
  const Location place = detail::inScope({});
  try {
    return detail::cond(condition.tensor, noted(yes, ofYes), noted(no, ofNo), place);
  } catch (const Error &) {
    if (ofYes.size() != ofNo.size() || ofYes.empty())
      throw;
    std::vector<Shape> shapes;
    bool isNew = false;
    for (size_t i = 0; i < ofYes.size(); ++i) {
      const Shape left = ofYes[i].shape(), right = ofNo[i].shape();
      std::optional<Shape> shape = chosenShape(condition, left, right);
      if (!shape)
        throw DifferentRanks{str(left) + " and " + str(right)};
      isNew |= left != right;
      shapes.push_back(*std::move(shape));
    }
    if (!isNew)
      throw;
    auto shaped = [&](const Branch &branch) {
      return [&] {
        std::vector<Tensor> results = branch();
        for (size_t i = 0; i < results.size(); ++i)
          results[i] = withShape(results[i], shapes[i]);
        return results;
      };
    };
    return detail::cond(condition.tensor, shaped(yes), shaped(no), place);
  }
}

/// Computes both branches and selects, for branches that cannot be functions of the graph, for example because a size
/// in them depends on data.
Values selectedBranch(Node &n, const Values &yes, const Values &no) {
  Values results;
  const Tensor condition = reshape(n[0], {});
  for (size_t i = 0; i < yes.size() && i < no.size(); ++i) {
    bool areTensors = !yes[i].sequence && !no[i].sequence && yes[i].defined() && no[i].defined();
    if (!areTensors || tensorOf(yes[i]).dtype() != tensorOf(no[i]).dtype())
      n.integer(0); // throws for branches that select() does not support, with advice about the condition
    const Tensor left = tensorOf(yes[i]), right = tensorOf(no[i]);
    if (left.shape() == right.shape()) {
      results.push_back(where(condition, left, right));
      continue;
    }
    auto one = [](const Tensor &x) { return [&] { return std::vector{x}; }; };
    results.push_back(branchOf({condition, {}}, one(left), one(right)).front());
  }
  return results;
}

using Run = std::function<Values()>;

Branch asBranch(const Run &run) {
  return [run] { return tensorsOf(run()); };
}

/// The results of an If whose condition is data.
Values chosenByData(Node &n, const Condition &condition, const Run &yes, const Run &no) {
  try {
    return branchOf(condition, asBranch(yes), asBranch(no));
  } catch (const Error &) {
    return selectedBranch(n, yes(), no());
  }
}

/// The same where the results may differ in rank: then each branch continues with all that is computed from them, up to
/// the outputs of the graph.
Values continuedByData(Node &n, const Condition &condition, const Run &yes, const Run &no) {
  std::string shapes;
  try {
    return chosenByData(n, condition, yes, no);
  } catch (const DifferentRanks &problem) {
    shapes = problem.shapes;
  }
  if (std::optional<Continuation> continuation = n.continuation()) {
    auto continued = [&](const Run &branch) { return [&] { return n.run(*continuation, branch()); }; };
    try {
      return n.finish(*continuation, chosenByData(n, condition, continued(yes), continued(no)));
    } catch (const DifferentRanks &problem) {
      shapes = problem.shapes;
    }
  }
  n.unsupportedData("its branches give " + shapes + ", of different numbers of dimensions: the condition", 0);
}

/// The results of an If whose condition is a comparison of sizes. If the branches differ in rank, one is selected, and
/// every run checks the condition.
Values chosenBySizes(Node &n, const Condition &condition, const Run &yes, const Run &no) {
  std::string shapes;
  try {
    return branchOf(condition, asBranch(yes), asBranch(no));
  } catch (const DifferentRanks &problem) {
    shapes = problem.shapes;
  } catch (const Error &) {
    shapes = "different results"; // one branch may be possible
  }
  bool isTrue = n.decide(shapes);
  requireEqual(*condition.size, int64_t(isTrue));
  return isTrue ? yes() : no();
}

/// If the condition is not known, the branches become functions of the graph, of which one runs.
Values ifElse(Node &n) {
  auto branch = [&](std::string_view name) -> Run {
    return [&n, &graph = n.attributeGraph(name)] {
      std::vector<Value> results = n.run(graph, std::vector<Value>());
      return Values(results.begin(), results.end());
    };
  };
  const Run yes = branch("then_branch"), no = branch("else_branch");
  if (std::optional<bool> condition = knownCondition(n.value(0)))
    return *condition ? yes() : no();
  std::optional<Contents> sizes = contentsOf(n.value(0));
  const bool isOfSizes = sizes && sizes->elements.size() == 1;
  const Condition condition{reshape(n[0], {}), isOfSizes ? std::optional(sizes->elements[0]) : std::nullopt};
  return (isOfSizes ? chosenBySizes : continuedByData)(n, condition, yes, no);
}

constexpr OpEntry table[] = {{"If", ifElse}};

} // namespace

std::span<const OpEntry> controlOps() { return table; }

} // namespace burin::onnx
