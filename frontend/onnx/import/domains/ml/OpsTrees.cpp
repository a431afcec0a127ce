// Ensembles of decision trees: TreeEnsemble, and its two predecessors, whose attributes name nodes by tree and number.
#include "frontend/onnx/import/domains/ml/Forest.h"
#include "frontend/onnx/import/domains/ml/Scores.h"
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace burin::onnx {

namespace {

using Ints = std::vector<int64_t>;

void requireCount(Node &n, const std::string &attribute, size_t given, size_t expected) {
  if (given != expected)
    n.fail("its attribute " + quoted(attribute) + " has " + std::to_string(given) + " elements instead of " +
           std::to_string(expected));
}
Ints integersOf(Node &n, const std::string &attribute, size_t count) {
  Ints numbers = n.attribute(attribute, Ints());
  requireCount(n, attribute, numbers.size(), count);
  return numbers;
}

/// The trees of a TreeEnsembleRegressor or TreeEnsembleClassifier, whose votes are attributes of this prefix. The
/// first node of a tree is its root.
Forest oldForest(Node &n, const std::string &prefix) {
  Forest forest;
  std::vector<std::string> modes = n.attributeStrings("nodes_modes");
  const size_t count = modes.size();
  Ints trees = integersOf(n, "nodes_treeids", count), ids = integersOf(n, "nodes_nodeids", count),
       features = integersOf(n, "nodes_featureids", count), whenTrue = integersOf(n, "nodes_truenodeids", count),
       whenFalse = integersOf(n, "nodes_falsenodeids", count),
       tracks = n.attribute("nodes_missing_value_tracks_true", Ints(count));
  std::vector<double> values = realsOf(n, "nodes_values");
  requireCount(n, "nodes_values", values.size(), count);
  requireCount(n, "nodes_missing_value_tracks_true", tracks.size(), count);
  std::map<std::pair<int64_t, int64_t>, int64_t> places;
  std::set<int64_t> known;
  for (size_t i = 0; i < count; ++i) {
    if (!places.try_emplace({trees[i], ids[i]}, int64_t(i)).second)
      n.fail("node " + std::to_string(ids[i]) + " of tree " + std::to_string(trees[i]) + " is there twice");
    if (known.insert(trees[i]).second)
      forest.roots.push_back(int64_t(i));
  }
  auto placeOf = [&](int64_t tree, int64_t id) {
    auto at = places.find({tree, id});
    if (at == places.end())
      n.fail("tree " + std::to_string(tree) + " has no node " + std::to_string(id));
    return size_t(at->second);
  };
  for (size_t i = 0; i < count; ++i) {
    TreeNode node{.mode = modes[i], .feature = features[i], .value = values[i], .nanIsTrue = tracks[i] != 0};
    if (node.mode != "LEAF") {
      node.whenTrue = int64_t(placeOf(trees[i], whenTrue[i]));
      node.whenFalse = int64_t(placeOf(trees[i], whenFalse[i]));
    }
    forest.nodes.push_back(std::move(node));
  }
  std::vector<double> weights = realsOf(n, prefix + "_weights");
  Ints voteTrees = integersOf(n, prefix + "_treeids", weights.size()),
       voteNodes = integersOf(n, prefix + "_nodeids", weights.size()),
       voteTargets = integersOf(n, prefix + "_ids", weights.size());
  for (size_t i = 0; i < weights.size(); ++i)
    forest.nodes[placeOf(voteTrees[i], voteNodes[i])].votes.emplace_back(voteTargets[i], weights[i]);
  return forest;
}

Tensor withBase(Node &n, const Tensor &scores) {
  std::vector<double> base = realsOf(n, "base_values");
  if (base.empty())
    return scores;
  if (scores.shape()[1] != Dim(int64_t(base.size())))
    n.unsupported(std::to_string(base.size()) + " base_values for " + scores.shape()[1].str() + " scores");
  return scores + from_vector(base).to(scores.dtype());
}

Values treeEnsembleRegressor(Node &n) {
  Forest forest = oldForest(n, "target");
  forest.targets = n.attribute("n_targets", int64_t(1));
  const std::string name = n.attribute("aggregate_function", "SUM");
  static const std::map<std::string, Aggregate> kinds{
      {"AVERAGE", Aggregate::Average}, {"MAX", Aggregate::Max}, {"MIN", Aggregate::Min}, {"SUM", Aggregate::Sum}};
  auto kind = kinds.find(name);
  if (kind == kinds.end() || forest.targets < 1)
    n.fail("unknown aggregate_function " + quoted(name) + ", or no targets");
  ForestScores result = run(n, std::move(forest), featuresOf(n), kind->second);
  return transformed(n, withBase(n, result.scores)).to(DType::f32);
}

/// Two classes of which the first one alone has votes: these are the score of the second one. If they are
/// probabilities, which are never negative, the classes meet at 0.5, else at 0.
Values oneOfTwoClasses(Node &n, Forest forest, const ClassLabels &labels, bool arePositive) {
  forest.targets = 1;
  Tensor score = withBase(n, run(n, std::move(forest), featuresOf(n), Aggregate::Sum).scores);
  Tensor isSecond = squeeze(score > (arePositive ? 0.5 : 0.0), {1}).to(DType::i64);
  return Values({labels.of(n, isSecond), bothClasses(n, score, arePositive).to(DType::f32)});
}

/// The class is the one with the highest score among those that have votes.
Values treeEnsembleClassifier(Node &n) {
  ClassLabels labels(n, "classlabels_int64s", "classlabels_strings");
  Forest forest = oldForest(n, "class");
  forest.targets = labels.count();
  std::set<int64_t> classes;
  bool arePositive = true;
  for (const TreeNode &node : forest.nodes)
    for (const auto &[target, weight] : node.votes) {
      classes.insert(target);
      arePositive = arePositive && weight >= 0;
    }
  if (labels.count() == 2 && classes == std::set<int64_t>{0})
    return oneOfTwoClasses(n, std::move(forest), labels, arePositive);
  if (labels.count() == 2 && classes.size() == 1)
    n.unsupported("votes for the second of two classes alone");
  ForestScores result = run(n, std::move(forest), featuresOf(n), Aggregate::Sum);
  Tensor scores = withBase(n, result.scores), compared = scores;
  if (result.hasVotes.defined() && realsOf(n, "base_values").empty())
    compared = where(result.hasVotes, scores, full({}, -std::numeric_limits<double>::infinity(), scores.dtype()));
  return Values({labels.of(n, argmax(compared, 1)), transformed(n, scores).to(DType::f32)});
}

/// The sets of the nodes that test for membership, in their order: NaN ends a set.
std::vector<std::vector<double>> membersOf(Node &n) {
  std::vector<std::vector<double>> sets(1);
  if (n.hasAttribute("membership_values"))
    for (double value : n.attributeTensor("membership_values").to_vector<double>()) {
      if (std::isnan(value))
        sets.emplace_back();
      else
        sets.back().push_back(value);
    }
  return sets;
}

/// Leaves follow the inner nodes.
Forest newForest(Node &n) {
  static const char *const modes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",   "BRANCH_GT",
                                      "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER"};
  Forest forest;
  forest.roots = n.attribute("tree_roots", Ints());
  forest.targets = n.attribute("n_targets", int64_t(1));
  Ints kinds = n.attributeTensor("nodes_modes").to_vector<int64_t>();
  const size_t count = kinds.size();
  std::vector<double> splits = n.attributeTensor("nodes_splits").to_vector<double>(),
                      weights = n.attributeTensor("leaf_weights").to_vector<double>();
  Ints features = integersOf(n, "nodes_featureids", count), whenTrue = integersOf(n, "nodes_truenodeids", count),
       whenFalse = integersOf(n, "nodes_falsenodeids", count), trueLeafs = integersOf(n, "nodes_trueleafs", count),
       falseLeafs = integersOf(n, "nodes_falseleafs", count), targets = integersOf(n, "leaf_targetids", weights.size()),
       tracks = n.attribute("nodes_missing_value_tracks_true", Ints(count));
  requireCount(n, "nodes_splits", splits.size(), count);
  requireCount(n, "nodes_missing_value_tracks_true", tracks.size(), count);
  std::vector<std::vector<double>> members = membersOf(n);
  size_t sets = 0;
  for (size_t i = 0; i < count; ++i) {
    if (kinds[i] < 0 || kinds[i] > 6)
      n.fail("unknown node mode " + std::to_string(kinds[i]));
    TreeNode node{.mode = modes[kinds[i]], .feature = features[i], .value = splits[i], .nanIsTrue = tracks[i] != 0};
    node.whenTrue = whenTrue[i] + (trueLeafs[i] ? int64_t(count) : 0);
    node.whenFalse = whenFalse[i] + (falseLeafs[i] ? int64_t(count) : 0);
    if (node.mode == "BRANCH_MEMBER")
      node.members = sets < members.size() ? members[sets++] : std::vector<double>();
    forest.nodes.push_back(std::move(node));
  }
  for (size_t i = 0; i < weights.size(); ++i)
    forest.nodes.push_back({.mode = "LEAF", .votes = {{targets[i], weights[i]}}});
  return forest;
}

Values treeEnsemble(Node &n) {
  const int64_t aggregate = n.attribute("aggregate_function", int64_t(1)),
                transform = n.attribute("post_transform", int64_t(0));
  Forest forest = newForest(n);
  if (aggregate < 0 || aggregate > 3 || forest.targets < 1)
    n.fail("unknown aggregate_function " + std::to_string(aggregate) + ", or no targets");
  static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  if (transform < 0 || transform > 4)
    n.fail("unknown post_transform " + std::to_string(transform));
  ForestScores result = run(n, std::move(forest), featuresOf(n), Aggregate(aggregate));
  return transformed(n, transforms[transform], result.scores).to(n.dtype());
}

constexpr std::string_view kDomain = "ai.onnx.ml";
constexpr OpEntry table[] = {
    {"TreeEnsemble", treeEnsemble, {1}, kDomain},
    {"TreeEnsembleClassifier", treeEnsembleClassifier, {1}, kDomain},
    {"TreeEnsembleRegressor", treeEnsembleRegressor, {1}, kDomain},
};

} // namespace

std::span<const OpEntry> treeOps() { return table; }

} // namespace burin::onnx
