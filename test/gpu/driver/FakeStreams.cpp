#include "test/gpu/driver/FakeStreams.h"
#include <algorithm>
#include <utility>

namespace burin::test::fake {

struct Streams::Capture {
  Stream *origin = nullptr;
  Graph *graph = nullptr;
  std::unique_ptr<Graph> own = nullptr; // null: a body
};

uint64_t Streams::random(uint64_t below) { // Lehmer's generator
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (state >> 33) % below;
}

Streams::Stream *Streams::createStream(int device) {
  Stream *made = streams.emplace_back(new Stream);
  made->device = device;
  return made;
}

bool Streams::destroy(Stream *s) {
  if (!isLive(s))
    return false;
  synchronize(s);
  std::erase(streams, s);
  delete s;
  return true;
}

Streams::Event *Streams::createEvent() { return *events.insert(new Event).first; }

bool Streams::destroy(Event *e) {
  if (!events.erase(e))
    return false;
  delete e;
  return true;
}

bool Streams::isCapturing(Stream *s) const { return isLive(s) && s->capture; }

int Streams::enqueue(Stream *s, Work work) {
  if (!isLive(s))
    return kInvalidHandle;
  if (s->capture) {
    std::vector<Graph::Node> &nodes = s->capture->graph->nodes;
    nodes.push_back({std::move(work), s->after, indexOf(s)});
    s->after = {nodes.size() - 1};
    return 0;
  }
  s->items.push_back({std::move(work)});
  return 0;
}

int Streams::record(Event *e, Stream *s) {
  if (!events.count(e) || !isLive(s))
    return kInvalidHandle;
  e->capture = s->capture;
  e->after = s->after;
  if (s->capture)
    return 0;
  e->recorded = ++tickets;
  s->items.push_back({nullptr, e->recorded, false});
  return 0;
}

int Streams::wait(Stream *s, Event *e) {
  if (!events.count(e) || !isLive(s))
    return kInvalidHandle;
  if (e->capture) {
    if (s->capture && s->capture != e->capture)
      return kIllegalState;
    s->capture = e->capture;
    s->after.insert(e->after.begin(), e->after.end());
    return 0;
  }
  if (s->capture)
    return kIllegalState;
  if (e->recorded)
    s->items.push_back({nullptr, e->recorded, true});
  return 0;
}

bool Streams::canGoOn(const Stream &s) const {
  return !s.items.empty() && !(s.items.front().waits && reached.count(s.items.front().ticket) == 0);
}

int Streams::doOne(Stream &s) {
  Stream::Item item = std::move(s.items.front());
  s.items.pop_front();
  if (!item.work && !item.waits)
    reached.insert(item.ticket);
  const int result = item.work ? item.work() : 0;
  if (result == kIllegalAddress || result == kLaunchFailed)
    faults[size_t(s.device)] = result;
  return result;
}

int Streams::synchronize(Stream *target) {
  if (!isLive(target))
    return kInvalidHandle;
  if (target->capture)
    return kCaptureUnsupported;
  int result = doUntil([&] { return target->items.empty(); });
  return faults[size_t(target->device)] ? faults[size_t(target->device)] : result;
}

int Streams::synchronize(Event *e) {
  if (!events.count(e))
    return kInvalidHandle;
  return e->capture ? kCaptureUnsupported : doUntil([&] { return isReached(e); });
}

bool Streams::isReached(Event *e) const { return events.count(e) && (!e->recorded || reached.count(e->recorded)); }

size_t Streams::pendingWork(int device) const {
  size_t count = 0;
  for (const Stream *s : streams)
    count += s->device == device ? s->items.size() : 0;
  return count;
}

size_t Streams::choose(const std::vector<size_t> &ofStreams) {
  if (!ranks)
    return random(ofStreams.size());
  auto rankOf = [&](size_t stream) {
    uint64_t mixed = (ranks * 0x9E3779B97F4A7C15u) ^ (stream + 1) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ mixed >> 29) * 0x94D049BB133111EBu;
    return mixed ^ mixed >> 32;
  };
  return size_t(std::ranges::max_element(ofStreams, {}, rankOf) - ofStreams.begin());
}

int Streams::doUntil(const std::function<bool()> &isReached) {
  int result = 0;
  while (!isReached()) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < streams.size(); ++i)
      if (canGoOn(*streams[i]))
        ready.push_back(i);
    if (ready.empty())
      return kIllegalState; // events that nobody reaches
    if (int now = doOne(*streams[ready[choose(ready)]]); now && !result)
      result = now;
  }
  return result;
}

int Streams::beginCapture(Stream *s) {
  if (!isLive(s))
    return kInvalidHandle;
  if (s->capture)
    return kIllegalState;
  s->capture = std::make_shared<Capture>();
  s->capture->origin = s;
  s->capture->own = std::make_unique<Graph>();
  s->capture->graph = s->capture->own.get();
  s->after.clear();
  return 0;
}

int Streams::beginCaptureTo(Stream *s, Graph *body) {
  if (!isLive(s))
    return kInvalidHandle;
  if (s->capture)
    return kIllegalState;
  if (!body->isBody || !body->nodes.empty())
    return kInvalidValue;
  s->capture = std::make_shared<Capture>();
  s->capture->origin = s;
  s->capture->graph = body;
  s->after.clear();
  return 0;
}

Graph *Streams::captured(Stream *s, std::vector<void *> &after) const {
  after.clear();
  if (!isCapturing(s))
    return nullptr;
  for (size_t node : s->after)
    after.push_back(reinterpret_cast<void *>(node + 1));
  return s->capture->graph;
}

int Streams::setDependencies(Stream *s, const std::set<size_t> &after) {
  if (!isCapturing(s))
    return kIllegalState;
  s->after = after;
  return 0;
}

int Streams::endCapture(Stream *s, std::unique_ptr<Graph> &out) {
  if (!isCapturing(s) || s->capture->origin != s)
    return kIllegalState;
  std::shared_ptr<Capture> capture = s->capture;
  // Everything must come before what the stream has come to.
  std::set<size_t> joined;
  std::vector<size_t> open(s->after.begin(), s->after.end());
  while (!open.empty()) {
    size_t node = open.back();
    open.pop_back();
    if (joined.insert(node).second)
      for (size_t before : capture->graph->nodes[node].after)
        open.push_back(before);
  }
  for (Stream *other : streams)
    if (other->capture == capture)
      other->capture = nullptr, other->after.clear();
  for (Event *event : events)
    if (event->capture == capture)
      event->capture = nullptr, event->after.clear();
  if (joined.size() != capture->graph->nodes.size())
    return kCaptureUnjoined;
  out = std::move(capture->own);
  return 0;
}

static void addConditions(const Graph &graph, std::set<uint64_t> &all) {
  all.insert(graph.conditions.begin(), graph.conditions.end());
  for (const Graph::Node &node : graph.nodes)
    if (node.body)
      addConditions(*node.body, all);
}

int Streams::run(const Graph &graph) {
  std::set<uint64_t> own;
  addConditions(graph, own);
  for (uint64_t condition : own)
    conditions[condition] = random(2);
  const int result = runNodes(graph);
  for (uint64_t condition : own)
    conditions.erase(condition);
  return result;
}

bool Streams::setCondition(uint64_t condition, bool value) {
  auto found = conditions.find(condition);
  if (found != conditions.end())
    found->second = value;
  return found != conditions.end();
}

int Streams::runNode(const Graph::Node &node) {
  if (!node.body)
    return node.work();
  constexpr int kMostTurns = 100'000;
  for (int turn = 0; conditions[node.condition]; ++turn) {
    if (int result = turn < kMostTurns ? runNodes(*node.body) : kLaunchFailed)
      return result;
    if (!node.repeats)
      break;
  }
  return 0;
}

int Streams::runNodes(const Graph &graph) {
  std::vector<bool> done(graph.nodes.size());
  for (size_t count = 0; count < graph.nodes.size(); ++count) {
    std::vector<size_t> ready, ofStreams;
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      if (!done[i] && std::ranges::all_of(graph.nodes[i].after, [&](size_t before) { return done[before]; })) {
        ready.push_back(i);
        ofStreams.push_back(graph.nodes[i].stream);
      }
    size_t next = ready[choose(ofStreams)];
    done[next] = true;
    if (int result = runNode(graph.nodes[next]))
      return result;
  }
  return 0;
}

} // namespace burin::test::fake
