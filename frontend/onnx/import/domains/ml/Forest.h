// Decision trees as tables, which a loop walks for all rows and trees at once.
#pragma once
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

/// A test of a feature, or a leaf with votes for targets.
struct TreeNode {
  std::string mode; // as the attribute nodes_modes: BRANCH_LEQ, …; BRANCH_MEMBER or LEAF
  int64_t feature = 0;
  double value = 0;
  std::vector<double> members = {}; // of BRANCH_MEMBER
  int64_t whenTrue = 0, whenFalse = 0;
  bool nanIsTrue = false;                             // a missing value takes the branch `whenTrue`
  std::vector<std::pair<int64_t, double>> votes = {}; // targets and weights
};

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;
  int64_t targets = 1;
};

enum class Aggregate { Average, Sum, Min, Max };

struct ForestScores {
  Tensor scores;   // [n, targets]; 0 without votes
  Tensor hasVotes; // bool [n, targets]; undefined if every target always has votes
};

/// Runs the forest on features [n, count], f32 or f64. Fails for forests that are not well formed.
ForestScores run(Node &n, Forest forest, const Tensor &features, Aggregate aggregate);

} // namespace burin::onnx
