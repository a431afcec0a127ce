// Streams, events and graphs of the CUDA driver for tests. Work is done when someone waits for it, as late as the real
// driver may do it; whatever no event orders is done in random order, so that a missing wait shows.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace burin::test::fake {

using Work = std::function<int()>; // a CUresult

// CUresult
inline constexpr int kInvalidValue = 1, kOutOfMemory = 2, kInvalidDevice = 101, kInvalidImage = 200,
                     kInvalidContext = 201, kInvalidHandle = 400, kIllegalState = 401, kNotFound = 500, kNotReady = 600,
                     kIllegalAddress = 700, kLaunchFailed = 719, kNotSupported = 801, kCaptureUnsupported = 900,
                     kCaptureUnjoined = 904;

/// Work and what must be done before each piece of it, by number.
struct Graph {
  struct Node {
    Work work;
    std::set<size_t> after;
    size_t stream = 0;                     // that it was enqueued for
    std::shared_ptr<Graph> body = nullptr; // of a conditional node, which has no work
    uint64_t condition = 0;
    bool repeats = false; // as long as the condition holds
  };
  std::vector<Node> nodes;
  std::set<uint64_t> conditions; // that were created for this graph
  bool isBody = false, isUsed = false;
  std::deque<Graph *> given; // what cuGraphAddNode returns, by conditional node
};

class Streams {
public:
  struct Stream;
  struct Event;

  Stream *createStream(int device = 0);
  /// Does its work first. Whether there is such a stream.
  bool destroy(Stream *);
  Event *createEvent();
  bool destroy(Event *);

  /// For later, or into the graph that the stream records.
  int enqueue(Stream *, Work work);
  int record(Event *, Stream *);
  int wait(Stream *, Event *);
  /// Does all work of a stream, and some of others.
  int synchronize(Stream *);
  /// Does what comes before the last record of the event, and some of other work.
  int synchronize(Event *);
  bool isReached(Event *) const;
  size_t pendingWork(int device) const;
  /// What a kernel has done to a device: from then on nothing that waits for the device succeeds. 0: nothing.
  int fault(int device) const { return faults[size_t(device)]; }
  void clearFault(int device) { faults[size_t(device)] = 0; }

  int beginCapture(Stream *);
  /// `out` is null if not everything recorded is joined to the stream, and for a body.
  int endCapture(Stream *, std::unique_ptr<Graph> &out);
  bool isCapturing(Stream *s) const;
  /// The graph that the stream records, and the nodes that its next work comes after, as numbers from 1 on.
  Graph *captured(Stream *s, std::vector<void *> &after) const;
  int setDependencies(Stream *s, const std::set<size_t> &after);
  /// Into a graph that belongs to a conditional node.
  int beginCaptureTo(Stream *, Graph *);

  /// Does the nodes of a graph in a random order of those that are possible. The values of its conditions are not known
  /// at first.
  int run(const Graph &);
  /// By a kernel of the graph that runs. False if that has no such condition.
  bool setCondition(uint64_t condition, bool value);

  size_t liveStreams() const { return streams.size(); }
  size_t liveEvents() const { return events.size(); }
  /// The order from here on.
  void seed(uint64_t value) { state = value * 2 + 1; }
  /// Streams get ranks, by the seed: from here on work waits while that of a stream of a higher rank can go on. 0: no
  /// ranks, any order.
  void rank(uint64_t seed) { ranks = seed; }
  uint64_t random(uint64_t below);

private:
  struct Capture;
  std::vector<Stream *> streams; // in the order that they were made: their addresses would make another order each time
  std::set<Event *> events;
  std::set<uint64_t> reached; // records
  uint64_t tickets = 0, state = 1, ranks = 0;
  std::array<int, 2> faults = {};
  std::map<uint64_t, bool> conditions; // of the graphs that run

  int runNode(const Graph::Node &);
  int runNodes(const Graph &);
  bool isLive(const Stream *s) const { return std::ranges::find(streams, s) != streams.end(); }
  size_t indexOf(const Stream *s) const { return size_t(std::ranges::find(streams, s) - streams.begin()); }
  /// Which of some pieces of work comes next, by their streams.
  size_t choose(const std::vector<size_t> &ofStreams);
  bool canGoOn(const Stream &) const;
  int doOne(Stream &);
  int doUntil(const std::function<bool()> &isReached);
};

struct Streams::Event {
  uint64_t recorded = 0; // the number of the last record; 0: none
  std::shared_ptr<Capture> capture;
  std::set<size_t> after; // in the capture
};

struct Streams::Stream {
  struct Item {
    Work work;           // null: a record of an event, or a wait for one
    uint64_t ticket = 0; // the number of the record
    bool waits = false;
  };
  int device = 0;
  std::deque<Item> items;
  std::shared_ptr<Capture> capture;
  std::set<size_t> after; // in the capture: what the next work comes after
};

} // namespace burin::test::fake
