// Minimum cut of a flow network.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace burin::passes {

/// Dinic's algorithm. Nodes 0 and 1 are the source and the sink.
class MinCut {
public:
  static constexpr int kSource = 0, kSink = 1;
  static constexpr double kForbidden = 1e30; // capacity of an edge that must not be cut

  int addNode() {
    edgesOf.emplace_back();
    return int(edgesOf.size()) - 1;
  }
  /// Adds an edge that costs `capacity` if `from` is on the source's side and `to` on the sink's.
  void addEdge(int from, int to, double capacity) {
    edgesOf[from].push_back(int(edges.size()));
    edges.push_back({to, capacity});
    edgesOf[to].push_back(int(edges.size()));
    edges.push_back({from, 0});
  }

  /// For each node whether it is on the source's side. Among minimum cuts, returns the one with the largest source
  /// side; nodes without a path from the source are on the sink's side.
  std::vector<bool> solve() {
    while (findLevels()) {
      next.assign(edgesOf.size(), 0);
      while (push() > 0) {
      }
    }
    std::vector<bool> tied = reachable(kSource, [](const Edge &, const Edge &) { return true; });
    std::vector<bool> reachesSink =
        reachable(kSink, [](const Edge &, const Edge &reverse) { return reverse.left > 0; });
    for (size_t i = 0; i < tied.size(); ++i)
      tied[i] = tied[i] && !reachesSink[i];
    return tied;
  }

private:
  struct Edge {
    int to;
    double left;
  };

  /// Nodes that are reachable from `start` over edges for which `open` holds, without passing source or sink.
  template <class Open> std::vector<bool> reachable(int start, Open open) {
    std::vector<bool> seen(edgesOf.size());
    seen[kSource] = seen[kSink] = true;
    std::vector<int> queue{start};
    for (size_t i = 0; i < queue.size(); ++i)
      for (int e : edgesOf[queue[i]])
        if (!seen[edges[e].to] && open(edges[e], edges[e ^ 1])) {
          seen[edges[e].to] = true;
          queue.push_back(edges[e].to);
        }
    seen[start == kSource ? kSink : kSource] = false;
    return seen;
  }

  // Breadth-first distances from the source over edges with residual capacity.
  bool findLevels() {
    level.assign(edgesOf.size(), -1);
    level[kSource] = 0;
    std::vector<int> queue{kSource};
    for (size_t i = 0; i < queue.size(); ++i)
      for (int e : edgesOf[queue[i]])
        if (edges[e].left > 0 && level[edges[e].to] < 0) {
          level[edges[e].to] = level[queue[i]] + 1;
          queue.push_back(edges[e].to);
        }
    return level[kSink] >= 0;
  }

  // Augments one path from source to sink, depth first; iterative, since networks may be deep.
  double push() {
    std::vector<int> path;
    int at = kSource;
    while (at != kSink) {
      bool advanced = false;
      for (; next[at] < edgesOf[at].size(); ++next[at]) {
        int e = edgesOf[at][next[at]];
        if (edges[e].left > 0 && level[edges[e].to] == level[at] + 1) {
          path.push_back(e);
          at = edges[e].to;
          advanced = true;
          break;
        }
      }
      if (advanced)
        continue;
      if (path.empty())
        return 0;
      at = edges[path.back() ^ 1].to;
      path.pop_back();
      ++next[at];
    }
    double amount = std::numeric_limits<double>::infinity();
    for (int e : path)
      amount = std::min(amount, edges[e].left);
    for (int e : path) {
      edges[e].left -= amount;
      edges[e ^ 1].left += amount;
    }
    return amount;
  }

  std::vector<Edge> edges; // each edge is followed by its reverse
  std::vector<std::vector<int>> edgesOf = std::vector<std::vector<int>>(2);
  std::vector<int> level;
  std::vector<size_t> next;
};

} // namespace burin::passes
