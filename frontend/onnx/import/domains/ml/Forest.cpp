#include "frontend/onnx/import/domains/ml/Forest.h"
#include "burin/graph/control.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace burin::onnx {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

bool isLeaf(const TreeNode &node) { return node.mode == "LEAF"; }

/// Adds tests of equality for all members but one, each of which is the false branch of the one before.
void expandMembers(Node &n, Forest &forest) {
  for (size_t i = 0; i < forest.nodes.size(); ++i) { // new nodes are no sets
    if (forest.nodes[i].mode != "BRANCH_MEMBER")
      continue;
    TreeNode test = forest.nodes[i];
    std::vector<double> members = std::move(test.members);
    if (members.empty())
      n.fail("a node tests the membership of an empty set");
    test.mode = "BRANCH_EQ";
    test.members.clear();
    for (size_t m = 1; m < members.size(); ++m) {
      test.value = members[m];
      forest.nodes.push_back(test);
      test.whenFalse = int64_t(forest.nodes.size()) - 1;
    }
    test.value = members[0];
    forest.nodes[i] = test;
  }
}

/// The largest number of the type that is less; NaN, which nothing equals or is less than, if there is none.
double below(double value, DType dtype) {
  if (value == -kInfinity)
    return kNaN;
  return dtype == DType::f64 ? std::nextafter(value, -kInfinity)
                             : double(std::nextafter(float(value), -std::numeric_limits<float>::infinity()));
}

/// Makes the test x <= value or x == value, for which a NaN is false.
void canonicalize(Node &n, TreeNode &node, DType dtype) {
  const std::string &mode = node.mode;
  const bool isStrict = mode == "BRANCH_LT" || mode == "BRANCH_GTE";
  const bool isNegated = mode == "BRANCH_GT" || mode == "BRANCH_GTE" || mode == "BRANCH_NEQ";
  if (!isStrict && !isNegated && mode != "BRANCH_LEQ" && mode != "BRANCH_EQ")
    n.fail("unknown node mode " + quoted(mode));
  if (isStrict)
    node.value = below(node.value, dtype);
  if (isNegated) {
    std::swap(node.whenTrue, node.whenFalse);
    node.nanIsTrue = mode != "BRANCH_NEQ" && !node.nanIsTrue; // x != y is true for NaN
  }
  node.mode = mode == "BRANCH_EQ" || mode == "BRANCH_NEQ" ? "BRANCH_EQ" : "BRANCH_LEQ";
}

/// The nodes of all trees, children before parents.
std::vector<int64_t> childrenFirst(Node &n, const Forest &forest) {
  enum State : char { New, Open, Done };
  std::vector<State> states(forest.nodes.size(), New);
  std::vector<int64_t> order, path;
  auto enter = [&](int64_t i) {
    if (i < 0 || i >= int64_t(states.size()))
      n.fail("node " + std::to_string(i) + " does not exist");
    if (states[size_t(i)] == Open)
      n.fail("its nodes form a cycle");
    if (states[size_t(i)] == New) {
      states[size_t(i)] = Open;
      path.push_back(i);
    }
  };
  for (int64_t root : forest.roots) {
    enter(root);
    while (!path.empty()) {
      const int64_t i = path.back();
      const TreeNode &node = forest.nodes[size_t(i)];
      if (!isLeaf(node)) {
        enter(node.whenTrue);
        if (path.back() == i)
          enter(node.whenFalse);
      }
      if (path.back() != i)
        continue;
      states[size_t(i)] = Done;
      order.push_back(i);
      path.pop_back();
    }
  }
  return order;
}

/// The most tests from a root to a leaf.
int64_t depthOf(const Forest &forest, const std::vector<int64_t> &order) {
  std::vector<int64_t> depths(forest.nodes.size());
  int64_t most = 0;
  for (int64_t i : order) {
    const TreeNode &node = forest.nodes[size_t(i)];
    if (!isLeaf(node))
      depths[size_t(i)] = 1 + std::max(depths[size_t(node.whenTrue)], depths[size_t(node.whenFalse)]);
    most = std::max(most, depths[size_t(i)]);
  }
  return most;
}

/// A table of one number per node.
template <class F> Tensor table(const Forest &forest, DType dtype, F &&of) {
  std::vector<double> numbers;
  for (const TreeNode &node : forest.nodes)
    numbers.push_back(double(of(node)));
  return from_vector(numbers).to(dtype);
}
template <class F> bool any(const Forest &forest, F &&of) {
  return std::any_of(forest.nodes.begin(), forest.nodes.end(), of);
}

/// The leaf that each row reaches in each tree: i32 [n, trees].
Tensor leaves(const Forest &forest, int64_t depth, const Tensor &x) {
  auto isEquality = [](const TreeNode &node) { return node.mode == "BRANCH_EQ"; };
  auto takesNaN = [](const TreeNode &node) { return !isLeaf(node) && node.nanIsTrue; };
  Tensor features = table(forest, DType::i32, [](const TreeNode &node) { return node.feature; });
  Tensor values = table(forest, x.dtype(), [](const TreeNode &node) { return node.value; });
  Tensor whenTrue = table(forest, DType::i32, [](const TreeNode &node) { return node.whenTrue; });
  Tensor whenFalse = table(forest, DType::i32, [](const TreeNode &node) { return node.whenFalse; });
  Tensor equalities = any(forest, isEquality) ? table(forest, DType::boolean, isEquality) : Tensor();
  Tensor nans = any(forest, takesNaN) ? table(forest, DType::boolean, takesNaN) : Tensor();
  Shape shape{x.shape()[0], int64_t(forest.roots.size())};
  Tensor start = broadcast_to(from_vector(forest.roots).to(DType::i32), shape);
  return fori_loop(
      0, Dim(depth),
      [&](const Tensor &, const Tensor &at) {
        Tensor value = take(values, at, 0), feature = gather(x, take(features, at, 0), 1);
        Tensor isTrue = feature <= value;
        if (equalities.defined())
          isTrue = where(take(equalities, at, 0), feature == value, isTrue);
        if (nans.defined())
          isTrue = logical_or(isTrue, logical_and(is_nan(feature), take(nans, at, 0)));
        return where(isTrue, take(whenTrue, at, 0), take(whenFalse, at, 0));
      },
      start);
}

/// The target of the votes of each tree, if all its leaves have one vote for the same one.
std::optional<std::vector<int64_t>> targetsOfTrees(const Forest &forest, const std::vector<int64_t> &order) {
  constexpr int64_t kMixed = -1;
  std::vector<int64_t> ofNodes(forest.nodes.size(), kMixed), ofTrees;
  for (int64_t i : order) {
    const TreeNode &node = forest.nodes[size_t(i)];
    if (isLeaf(node))
      ofNodes[size_t(i)] = node.votes.size() == 1 ? node.votes[0].first : kMixed;
    else if (ofNodes[size_t(node.whenTrue)] == ofNodes[size_t(node.whenFalse)])
      ofNodes[size_t(i)] = ofNodes[size_t(node.whenTrue)];
  }
  for (int64_t root : forest.roots)
    ofTrees.push_back(ofNodes[size_t(root)]);
  if (std::find(ofTrees.begin(), ofTrees.end(), kMixed) != ofTrees.end())
    return std::nullopt;
  return ofTrees;
}

Tensor reduced(const Tensor &votes, Aggregate aggregate) {
  if (aggregate == Aggregate::Min)
    return reduce_min(votes, {1});
  return aggregate == Aggregate::Max ? reduce_max(votes, {1}) : reduce_sum(votes, {1});
}

/// Every tree votes for one target: a product adds the votes of each target.
ForestScores scoresByTree(const Forest &forest, const std::vector<int64_t> &targets, const Tensor &at, DType dtype,
                          Aggregate aggregate) {
  Tensor weights = table(forest, dtype, [](const TreeNode &node) {
    return isLeaf(node) && !node.votes.empty() ? node.votes[0].second : 0;
  });
  Tensor votes = take(weights, at, 0);
  if (forest.targets == 1)
    return {unsqueeze(reduced(votes, aggregate), {1}), Tensor()};
  std::vector<double> places(targets.size() * size_t(forest.targets)), hasVotes(size_t(forest.targets));
  for (size_t tree = 0; tree < targets.size(); ++tree) {
    places[tree * size_t(forest.targets) + size_t(targets[tree])] = 1;
    hasVotes[size_t(targets[tree])] = 1;
  }
  Tensor scores = matmul(votes, from_vector(places, Shape{int64_t(targets.size()), forest.targets}).to(dtype));
  const bool all = std::count(hasVotes.begin(), hasVotes.end(), 1) == forest.targets;
  return {scores, all ? Tensor() : broadcast_to(from_vector(hasVotes).to(DType::boolean), scores.shape())};
}

/// Any votes: a table of the votes of each node for each target.
ForestScores scoresByTarget(const Forest &forest, const Tensor &at, DType dtype, Aggregate aggregate) {
  const Shape shape{int64_t(forest.nodes.size()), forest.targets};
  const double none = aggregate == Aggregate::Min ? kInfinity : aggregate == Aggregate::Max ? -kInfinity : 0;
  std::vector<double> weights(forest.nodes.size() * size_t(forest.targets), none), exist(weights.size());
  for (size_t i = 0; i < forest.nodes.size(); ++i)
    for (const auto &[target, weight] : forest.nodes[i].votes) {
      const size_t place = i * size_t(forest.targets) + size_t(target);
      weights[place] = exist[place] ? weights[place] + weight : weight;
      exist[place] = 1;
    }
  Tensor hasVotes = reduce_any(take(from_vector(exist, shape).to(DType::boolean), at, 0), {1});
  Tensor scores = reduced(take(from_vector(weights, shape).to(dtype), at, 0), aggregate);
  return {where(hasVotes, scores, zeros({}, dtype)), hasVotes};
}

} // namespace

ForestScores run(Node &n, Forest forest, const Tensor &features, Aggregate aggregate) {
  expandMembers(n, forest);
  size_t votes = 0;
  const Dim columns = features.shape()[1];
  for (size_t i = 0; i < forest.nodes.size(); ++i) {
    TreeNode &node = forest.nodes[i];
    votes += node.votes.size();
    for (const auto &[target, weight] : node.votes)
      if (target < 0 || target >= forest.targets)
        n.fail("a leaf votes for " + std::to_string(target) + " of " + std::to_string(forest.targets) + " targets");
    if (isLeaf(node))
      node.feature = 0, node.whenTrue = node.whenFalse = int64_t(i); // stays
    else if (node.feature < 0 || (columns.isStatic() && node.feature >= columns.value()))
      n.fail("a node tests feature " + std::to_string(node.feature) + " of " + columns.str());
    else
      canonicalize(n, node, features.dtype());
  }
  if (forest.roots.empty() || forest.nodes.empty())
    n.fail("it has no trees");
  constexpr size_t kAlwaysFits = size_t(1) << 22, kMostPerVote = 64; // elements of tables for each node and target
  if (size_t(forest.targets) > std::max(kAlwaysFits, votes * kMostPerVote) / forest.nodes.size())
    n.unsupported(std::to_string(forest.targets) + " targets for " + std::to_string(votes) + " votes");
  const std::vector<int64_t> order = childrenFirst(n, forest);
  Tensor at = leaves(forest, depthOf(forest, order), features);
  std::optional<std::vector<int64_t>> targets = targetsOfTrees(forest, order);
  const bool isSum = aggregate == Aggregate::Sum || aggregate == Aggregate::Average;
  ForestScores result = targets && (isSum || forest.targets == 1)
                            ? scoresByTree(forest, *targets, at, features.dtype(), aggregate)
                            : scoresByTarget(forest, at, features.dtype(), aggregate);
  if (aggregate == Aggregate::Average)
    result.scores = result.scores / double(forest.roots.size());
  return result;
}

} // namespace burin::onnx
