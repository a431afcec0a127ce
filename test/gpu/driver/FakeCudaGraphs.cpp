// The functions of the CUDA driver for tests that record graphs and launch them.
#include "test/gpu/driver/FakeState.h"

using namespace burin::test::fake;

thread_local int burin::test::fake::captureMode = 0;

int burin::test::fake::enqueueWork(void *stream, std::function<int()> work) {
  std::lock_guard lock(driver.mutex);
  constexpr int kRelaxed = 2;
  if (driver.streams.isCapturing(driver.find(stream)) && captureMode != kRelaxed) {
    driver.wrong += "a library may load kernels in a capture that refuses it\n";
    return kCaptureUnsupported;
  }
  return driver.enqueue(stream, std::move(work));
}

bool burin::test::fake::isOnDevice(const void *data, size_t bytes) {
  std::lock_guard lock(driver.mutex);
  return !entered.empty() && driver.inside(entered.back(), reinterpret_cast<uint64_t>(data), bytes);
}

namespace {

/// CUgraphNodeParams of a conditional node.
struct NodeParameters {
  int type, reserved0[3];
  uint64_t condition;
  int kind;
  unsigned bodies;
  Graph **graphs;
  void *context;
  uint64_t reserved1[26];
};
static_assert(sizeof(NodeParameters) == 256);

/// All graphs: that of a capture is in no set.
bool isUsed(const Graph &graph, uint64_t condition) {
  return std::ranges::any_of(graph.nodes, [&](const Graph::Node &node) {
    return node.condition == condition || (node.body && isUsed(*node.body, condition));
  });
}

/// A graph with conditional nodes has one executable, each of its conditions has a node, and no body is empty.
bool canBeInstantiated(const Graph &graph) {
  const bool hasBodies = std::ranges::any_of(graph.nodes, [](const Graph::Node &node) { return node.body != nullptr; });
  return !(hasBodies && graph.isUsed) && !(graph.isBody && graph.nodes.empty()) &&
         std::ranges::all_of(graph.conditions, [&](uint64_t condition) { return isUsed(graph, condition); }) &&
         std::ranges::all_of(graph.nodes,
                             [](const Graph::Node &node) { return !node.body || canBeInstantiated(*node.body); });
}

} // namespace

extern "C" {
int cuStreamIsCapturing(void *stream, int *status) {
  PLANTED;
  *status = driver.streams.isCapturing(driver.find(stream));
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int *mode) {
  PLANTED;
  std::swap(*mode, captureMode);
  return 0;
}
int cuStreamBeginCapture_v2(void *stream, int) {
  PLANTED;
  return driver.streams.beginCapture(driver.find(stream));
}
int cuStreamEndCapture(void *stream, void **out) {
  BEGIN;
  std::unique_ptr<Graph> graph;
  std::vector<void *> after;
  Graph *captured = driver.streams.captured(driver.find(stream), after);
  int result = driver.streams.endCapture(driver.find(stream), graph);
  *out = nullptr;
  if (failure || result)
    return failure ? failure : result;
  *out = graph ? *driver.graphs.insert(graph.release()).first : captured; // a body belongs to its node
  return 0;
}
int cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long) {
  IN_CONTEXT;
  auto *source = static_cast<Graph *>(graph);
  if (!driver.graphs.count(source))
    return kInvalidHandle;
  if (!canBeInstantiated(*source))
    return kInvalidValue;
  source->isUsed = true;
  *out = *driver.executables.insert(new Graph(*source)).first;
  return 0;
}
int cuGraphLaunch(void *graph, void *stream) {
  IN_CONTEXT;
  auto *executable = static_cast<Graph *>(graph);
  if (!driver.executables.count(executable))
    return kInvalidHandle;
  ++driver.replayCount;
  return driver.enqueue(stream, [executable] {
    return driver.executables.count(executable) ? driver.streams.run(*executable)
                                                : kIllegalState; // destroyed before it has run
  });
}
int cuGraphDestroy(void *graph) {
  BEGIN;
  if (!driver.graphs.erase(static_cast<Graph *>(graph)))
    return kInvalidHandle;
  delete static_cast<Graph *>(graph);
  return failure;
}
int cuGraphExecDestroy(void *graph) {
  BEGIN;
  if (!driver.executables.erase(static_cast<Graph *>(graph)))
    return kInvalidHandle;
  delete static_cast<Graph *>(graph);
  return failure;
}
int cuStreamGetCaptureInfo_v3(void *stream, int *status, uint64_t *id, void **graph, void *const **after,
                              const void **edges, size_t *count) {
  PLANTED;
  static std::vector<void *> nodes; // valid until the next call
  Graph *captured = driver.streams.captured(driver.find(stream), nodes);
  *status = captured != nullptr;
  *id = captured != nullptr;
  *graph = captured;
  *after = nodes.data();
  *count = nodes.size();
  return edges ? kInvalidValue : 0;
}
int cuStreamUpdateCaptureDependencies_v2(void *stream, void **nodes, const void *edges, size_t count, unsigned flags) {
  PLANTED;
  std::vector<void *> before;
  Graph *captured = driver.streams.captured(driver.find(stream), before);
  std::set<size_t> after;
  for (size_t i = 0; i < count; ++i)
    after.insert(reinterpret_cast<size_t>(nodes[i]) - 1);
  constexpr unsigned kReplace = 1;
  if (!captured || edges || flags != kReplace || (!after.empty() && *after.rbegin() >= captured->nodes.size()))
    return kInvalidValue;
  return driver.streams.setDependencies(driver.find(stream), after);
}
int cuStreamBeginCaptureToGraph(void *stream, void *graph, void *const *after, const void *edges, size_t count, int) {
  PLANTED;
  return after || edges || count ? kInvalidValue
                                 : driver.streams.beginCaptureTo(driver.find(stream), static_cast<Graph *>(graph));
}
int cuGraphConditionalHandleCreate(uint64_t *out, void *graph, void *context, unsigned, unsigned flags) {
  IN_CONTEXT;
  if (driver.version < 12030)
    return kNotSupported;
  if (!graph || driver.deviceOf(context) != entered.back() || flags)
    return kInvalidValue;
  *out = ++driver.conditionCount;
  static_cast<Graph *>(graph)->conditions.insert(*out);
  return 0;
}
int cuGraphAddNode_v2(void **out, void *to, void *const *after, const void *edges, size_t count, void *parameters) {
  IN_CONTEXT;
  auto &p = *static_cast<NodeParameters *>(parameters);
  auto *graph = static_cast<Graph *>(to);
  constexpr int kConditional = 13;
  if (driver.version < 12030)
    return kNotSupported;
  if (!graph || p.type != kConditional || p.kind < 0 || p.kind > 1 || p.bodies != 1 || edges || p.condition == 0 ||
      p.condition > driver.conditionCount || driver.deviceOf(p.context) != entered.back() ||
      isUsed(*graph, p.condition))
    return kInvalidValue;
  Graph::Node node;
  for (size_t i = 0; i < count; ++i)
    node.after.insert(reinterpret_cast<size_t>(after[i]) - 1);
  if (!node.after.empty() && *node.after.rbegin() >= graph->nodes.size())
    return kInvalidValue;
  node.body = std::make_shared<Graph>();
  node.body->isBody = true;
  node.condition = p.condition;
  node.repeats = p.kind == 1;
  graph->nodes.push_back(std::move(node));
  graph->given.push_back(graph->nodes.back().body.get());
  *out = reinterpret_cast<void *>(graph->nodes.size());
  p.graphs = &graph->given.back();
  return 0;
}
}
