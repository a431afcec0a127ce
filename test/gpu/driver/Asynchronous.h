// What threads of a block start and wait for later: barriers in shared memory, copies that arrive there, and products
// of warpgroups. For the emulator and the interpreter.
#pragma once
#include "test/gpu/emulator/Fragments.h"
#include "test/gpu/emulator/Shadow.h"
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace burin::test::simt {

/// What comes before what among the threads of a block, where they do not all meet: each thread counts what it does,
/// and knows up to which count it sees the others.
class Order {
public:
  using Counts = std::vector<uint32_t>; // by thread
  struct Known {
    Counts seen;  // by a thread
    Counts shown; // of that, what products that it starts see in shared memory
  };

  void start(int threads);
  /// What the thread does now has this number.
  uint32_t count(int thread) const { return known[size_t(thread)].seen[size_t(thread)]; }
  bool sees(int thread, int other, uint32_t count) const { return known[size_t(thread)].seen[size_t(other)] >= count; }
  bool shows(int thread, int other, uint32_t count) const {
    return known[size_t(thread)].shown[size_t(other)] >= count;
  }
  /// All that the thread has done and seen so far, for others.
  Known release(int thread);
  void acquire(int thread, const Known &);
  void show(int thread) { known[size_t(thread)].shown = known[size_t(thread)].seen; }
  /// All threads wait for each other, or `count` of them.
  void meet() { meet(0, known.size()); }
  void meet(size_t first, size_t count);
  static void join(Known &to, const Known &from);

private:
  std::vector<Known> known;
};

class Asynchronous {
public:
  struct Host {
    std::byte *shared;                                                          // from a multiple of 256 KB on
    Shadow *shadow;                                                             // of it
    std::function<void(int thread, int site, const std::string &)> report;      // what is wrong
    std::function<void(int thread, int site, uint32_t offset, int bytes)> read; // a product reads shared memory
  };
  /// A block begins. Blocks whose kernel uses none of this do without.
  void start(int threads, Host);
  void stop() { isOn = false; }
  bool isUsed() const { return isOn; }
  Order order;

  // ---- barriers, by their addresses
  void init(int thread, uintptr_t barrier, uint32_t arrivals, int site);
  void arrive(int thread, uintptr_t barrier, int site);
  /// Arrives; the phase also lasts until bulk copies have brought so many further bytes.
  void arriveExpecting(int thread, uintptr_t barrier, uint32_t bytes, int site);
  /// Whether the phase of this parity has ended; then the thread sees what those who have arrived have done.
  bool hasEnded(int thread, uintptr_t barrier, uint32_t parity);
  /// Before it waits: whether there is such a barrier.
  void expect(int thread, uintptr_t barrier, int site) { (void)find(thread, barrier, site); }
  /// Arrives when copies have: `land` brings them. That is as late as it may be: deliver() is called when no thread can
  /// go on, and brings those of one barrier.
  void arriveLater(int thread, uintptr_t barrier, std::function<void()> land, int site);
  bool deliver();
  /// A bulk copy of so many bytes, which the barrier counts when `land` has brought them: also as late as it may be.
  void copyBulk(int thread, uintptr_t barrier, uint32_t bytes, std::function<void()> land, int site);
  /// Set while bulk copies land.
  bool isLandingBulk = false;
  /// Whether a copy of 16 bytes that the thread has started has not arrived.
  bool isOnItsWay(int thread) const;
  /// Set while copies land: the count of the thread when it has started them.
  uint32_t landingCount = 0;
  /// Whether what a thread does comes behind an earlier access. A copy that lands does if its start did.
  bool isOrdered(int thread, const Stamp &before) const {
    const int other = int(before.thread) - 1;
    return landingKnown ? landingKnown->seen[size_t(other)] >= before.count : order.sees(thread, other, before.count);
  }
  /// Whether ordinary memory accesses touch a barrier.
  bool touches(uintptr_t address, size_t bytes) const;

  // ---- products. A warpgroup begins one together; its sums are tokens until the thread has waited.
  struct Product {
    fragments::Element type;
    fragments::Descriptor left, right; // the left one is not used if that side is in registers
    int sums;                          // of each thread
    bool isLeftInRegisters = false;
    bool hasColumns = false;               // rows of the right side in memory are columns, not steps: always of bytes
    std::array<uint32_t, 4> fragment = {}; // this thread's part of the left side
    friend bool operator==(const Product &x, const Product &y) {
      return x.type == y.type && x.left.bits == y.left.bits && x.right.bits == y.right.bits && x.sums == y.sums &&
             x.isLeftInRegisters == y.isLeftInRegisters && x.hasColumns == y.hasColumns;
    }
    int elementBytes() const { return fragments::bytesOf(type); }
    int steps() const { return 32 / elementBytes(); }
    /// Elements of 16 bytes.
    int piece() const { return 16 / elementBytes(); }
    /// Where an element of either side is.
    uint32_t ofLeft(int row, int step) const { return left.ofRow(row, step, elementBytes()); }
    uint32_t ofRight(int step, int column) const {
      return hasColumns ? right.ofRow(column, step, elementBytes()) : right.ofStep(step, column);
    }
  };
  void fence(int thread) { members[size_t(thread)].isFenced = true; }
  /// `sums` of each thread are replaced by tokens.
  void multiply(int first, const std::array<Product, fragments::kGroupLanes> &,
                const std::array<float *, fragments::kGroupLanes> &sums, int site);
  void commit(int thread);
  void wait(int thread, size_t groups);
  /// Tokens of products that the thread has waited for become their sums.
  void resolve(int thread, float *sums, int count);

  // ---- registers: warpgroups leave some of theirs to others
  void setRegisters(int thread, uint32_t count, int site);
  /// A block ends: reports if its warpgroups together have taken more registers than there are, as they would wait in
  /// vain, and if bulk copies have not arrived.
  void finish();

private:
  struct Barrier {
    uint32_t arrivals, missing, parity = 0;
    int64_t bytes = 0; // that bulk copies have yet to bring
    int thread;        // that has made it …
    uint32_t count;    // … and when
    Order::Known arriving, arrived;
  };
  struct Arrival {
    int thread;
    uintptr_t barrier;
    uint32_t count;
    Order::Known known;
    std::function<void()> land;
    uint32_t bulkBytes = 0; // 0: a thread arrives
    int site = -1;
  };
  struct Started {
    Product product;
    int site;
    std::vector<std::vector<float>> sums; // by member of the warpgroup
    std::vector<std::array<uint32_t, 4>> fragments;
    std::array<bool, 4> isDone = {}; // by warp
  };
  struct Member {
    bool isFenced = false;
    std::vector<size_t> groups; // how many products had been started at the end of each
  };

  Barrier *find(int thread, uintptr_t barrier, int site);
  void arrived(int thread, Barrier &, const Order::Known &, int site);
  void brought(const Arrival &);
  void endPhase(int thread, Barrier &, int site);
  void check(int thread, const Product &, int site);
  void compute(int first, int warp, size_t number);
  /// The elements of a side that a warp multiplies, as [row, step] or [step, column].
  std::vector<double> leftOf(int first, int warp, const Started &);
  std::vector<double> rightOf(int reader, const Started &);
  double load(int reader, const Started &, uint32_t offset, bool isRight, bool isFirstOfPiece);
  float valueOf(int group, int member, float sum) const;

  bool isOn = false;
  const Order::Known *landingKnown = nullptr; // while copies land: what their thread saw when it has started them
  Host host;
  std::map<uintptr_t, Barrier> barriers;
  std::deque<Arrival> arrivals;
  std::vector<Member> members;
  std::vector<std::deque<Started>> products; // by warpgroup
  std::vector<uint32_t> registers;           // by thread
  int registersSite = -1;
};

} // namespace burin::test::simt
