#include "frontend/autodiff/tape/Tape.h"
#include "burin/ops.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/AutocastScope.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace burin {

static thread_local bool gradEnabled = true;
static thread_local uint64_t gradScopes = 0;              // NoGrad and EnableGrad of this thread
static thread_local std::optional<uint64_t> openedScopes; // at the start of a traced function, see CallerGradMode

NoGrad::NoGrad() : before(std::exchange(gradEnabled, false)) { ++gradScopes; }
NoGrad::~NoGrad() {
  gradEnabled = before;
  --gradScopes;
}
EnableGrad::EnableGrad() : before(std::exchange(gradEnabled, true)) { ++gradScopes; }
EnableGrad::~EnableGrad() {
  gradEnabled = before;
  --gradScopes;
}

detail::CallerGradMode::CallerGradMode() : before(std::exchange(openedScopes, gradScopes)) {}
detail::CallerGradMode::~CallerGradMode() { openedScopes = before; }

bool is_grad_enabled() {
  if (detail::isTracing() && openedScopes == gradScopes) {
    const Error error(detail::placeOfTrace(), "is_grad_enabled",
                      "whether gradients are recorded is not known while tracing: it depends on the caller of the "
                      "compiled function, which records the same ops for all.\n  Pass a bool to the function that "
                      "makes the graph, or set the mode in it by NoGrad or EnableGrad");
    detail::noteRefused(error);
    throw error;
  }
  return gradEnabled;
}

namespace detail {

bool isGradEnabled() { return gradEnabled; }

static std::atomic<uint64_t> nodeCount{0};

TapeNode::TapeNode(const char *op, const Location &place) : sequence(++nodeCount), op(op), place(place) {}

/// Frees a long chain of nodes in a loop; destroying each within the destructor of the next would overflow the stack.
TapeNode::~TapeNode() {
  static thread_local std::vector<TapeEdge> *pending = nullptr;
  if (pending) {
    std::move(edges.begin(), edges.end(), std::back_inserter(*pending));
    return;
  }
  std::vector<TapeEdge> all = std::move(edges);
  pending = &all;
  while (!all.empty()) {
    TapeEdge edge = std::move(all.back());
    all.pop_back();
    edge = {};
  }
  pending = nullptr;
}

std::vector<Tensor> TapeLeaf::propagate(std::vector<Tensor> gradients, bool) {
  std::lock_guard lock(mutex);
  const Tensor &g = gradients.front();
  sum = sum.defined() ? sum + g : g;
  return {};
}
Tensor TapeLeaf::gradient() const {
  std::lock_guard lock(mutex);
  if (parts.empty())
    return sum;
  NoGrad off;
  Tensor rows = wholeOf(parts, results[0]);
  return sum.defined() ? sum + rows : rows;
}
void TapeLeaf::setGradient(Tensor gradient) {
  std::lock_guard lock(mutex);
  sum = std::move(gradient);
  parts.clear();
}
void TapeLeaf::addRows(RowGradient part) {
  std::lock_guard lock(mutex);
  parts.push_back(std::move(part));
}
std::optional<RowGradient> TapeLeaf::rowGradient() const {
  std::lock_guard lock(mutex);
  if (sum.defined() || parts.empty())
    return std::nullopt;
  return joined(parts);
}

TapeEdge edgeOf(const Tensor &tensor) {
  const auto &state = Access::state(tensor);
  return state ? TapeEdge{state->node, state->result} : TapeEdge{};
}

bool isRecorded(std::span<const Tensor *const> operands) {
  return gradEnabled && std::ranges::any_of(operands, [](const Tensor *operand) {
           return operand && operand->defined() && Access::state(*operand)->node;
         });
}

Tensor withEdge(const Tensor &tensor, TapeEdge edge) {
  TensorState state = *Access::state(tensor);
  state.node = std::move(edge.node);
  state.result = edge.result;
  return Access::make(std::move(state));
}
Tensor withoutEdge(const Tensor &tensor) { return edgeOf(tensor).node ? withEdge(tensor, {}) : tensor; }

Tensor afterHooks(const TapeNode &node, uint32_t result, Tensor gradient, const Location &where) {
  for (const auto &[of, hook] : node.hooks) {
    if (of != result || !gradient.defined())
      continue;
    Tensor changed = hook(gradient);
    if (!changed.defined())
      continue;
    if (changed.spec(where) != gradient.spec(where))
      throw Error(where, "hook",
                  "a hook has turned a gradient of " + str(gradient.spec(where)) + " into " + str(changed.spec(where)) +
                      "; it must keep shape and element type");
    gradient = std::move(changed);
  }
  return gradient;
}

namespace {

/// One traversal of the tape.
class Walk {
  struct Later {
    bool operator()(const std::shared_ptr<TapeNode> &a, const std::shared_ptr<TapeNode> &b) const {
      return a->sequence < b->sequence;
    }
  };
  std::priority_queue<std::shared_ptr<TapeNode>, std::vector<std::shared_ptr<TapeNode>>, Later> queue;
  std::unordered_map<TapeNode *, std::vector<Tensor>> gradients; // of nodes in the queue, by result
  std::optional<std::unordered_set<const TapeNode *>> wanted;    // nodes that lead to targets; nullopt: all
  const BackwardOptions &options;
  const Location &where;
  const bool hooksOfTargets;

public:
  Walk(const BackwardOptions &options, const Location &where, bool hooksOfTargets)
      : options(options), where(where), hooksOfTargets(hooksOfTargets) {}

  std::vector<Tensor> run(std::span<const TapeEdge> roots, std::vector<Tensor> seeds,
                          std::optional<std::span<const TapeEdge>> targets) {
    if (targets)
      findWanted(roots, *targets);
    for (size_t i = 0; i < roots.size(); ++i)
      add(roots[i], std::move(seeds[i]));
    std::vector<Tensor> found(targets ? targets->size() : 0);
    while (!queue.empty()) {
      std::shared_ptr<TapeNode> node = queue.top();
      queue.pop();
      std::vector<Tensor> given = std::move(gradients.extract(node.get()).mapped());
      auto isTarget = [&](const TapeEdge &target) { return target.node == node; };
      if (hooksOfTargets || !targets || std::ranges::none_of(*targets, isTarget))
        callHooks(*node, given);
      bool goesOn = !targets;
      for (size_t i = 0; i < found.size(); ++i)
        if ((*targets)[i].node == node)
          found[i] = given[(*targets)[i].result];
      for (const TapeEdge &edge : node->edges)
        goesOn |= edge.node && isWanted(*edge.node);
      if (goesOn)
        visit(*node, std::move(given));
    }
    return found;
  }

private:
  bool isWanted(const TapeNode &node) const { return !wanted || wanted->contains(&node); }

  /// Marks the nodes that lead to a target, in one pass over everything that the roots depend on, operands first.
  void findWanted(std::span<const TapeEdge> roots, std::span<const TapeEdge> targets) {
    std::unordered_set<TapeNode *> seen;
    std::vector<TapeNode *> all;
    auto reach = [&](TapeNode *node) {
      if (node && seen.insert(node).second)
        all.push_back(node);
    };
    for (const TapeEdge &root : roots)
      reach(root.node.get());
    for (size_t i = 0; i < all.size(); ++i)
      for (const TapeEdge &edge : all[i]->edges)
        reach(edge.node.get());
    std::ranges::sort(all, {}, &TapeNode::sequence);
    wanted.emplace();
    for (const TapeEdge &target : targets)
      wanted->insert(target.node.get());
    for (TapeNode *node : all)
      if (std::ranges::any_of(node->edges, [&](const TapeEdge &edge) { return edge.node && isWanted(*edge.node); }))
        wanted->insert(node);
  }

  void add(const TapeEdge &edge, Tensor gradient) {
    if (!edge.node || !gradient.defined() || !isWanted(*edge.node))
      return;
    auto [at, isNew] = gradients.try_emplace(edge.node.get(), edge.node->results.size());
    if (isNew)
      queue.push(edge.node);
    Tensor &sum = at->second[edge.result];
    sum = sum.defined() ? sum + gradient : std::move(gradient);
  }

  void callHooks(TapeNode &node, std::vector<Tensor> &given) {
    for (uint32_t result = 0; result < given.size(); ++result)
      given[result] = afterHooks(node, result, std::move(given[result]), where);
  }

  void visit(TapeNode &node, std::vector<Tensor> given) {
    if (node.released)
      throw Error(where, "backward",
                  std::string("what ") + node.op + " at " + node.place.str() +
                      " had saved was freed by the first backward pass;\n"
                      "  pass {.retain_graph = true} to the first one to go through it twice");
    LocationScope scope(node.place);
    const bool mayLeaveRows = !wanted && !options.create_graph && !is_anomaly_detected();
    std::vector<Tensor> passed;
    if (!mayLeaveRows || !node.leaveRows(given))
      passed = node.propagate(std::move(given), options.create_graph);
    if (is_anomaly_detected())
      for (const Tensor &gradient : passed)
        checkFinite(gradient, node.op, node.place, "the gradient of an operand");
    for (size_t i = 0; i < passed.size(); ++i)
      add(node.edges[i], std::move(passed[i]));
    if (!options.retain_graph && !options.create_graph && dynamic_cast<TapeLeaf *>(&node) == nullptr) {
      node.release();
      node.released = true;
    }
  }
};

} // namespace

std::vector<Tensor> runBackward(std::span<const TapeEdge> roots, std::vector<Tensor> seeds,
                                std::optional<std::span<const TapeEdge>> targets, const BackwardOptions &options,
                                const Location &where, bool hooksOfTargets) {
  struct Mode {
    bool before;
    explicit Mode(bool on) : before(std::exchange(gradEnabled, on)) {}
    ~Mode() { gradEnabled = before; }
  } mode(options.create_graph);
  AutocastTypeScope noAutocast(std::nullopt);
  return Walk(options, where, hooksOfTargets).run(roots, std::move(seeds), targets);
}

} // namespace detail
} // namespace burin
