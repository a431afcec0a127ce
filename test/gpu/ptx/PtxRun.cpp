#include "test/gpu/ptx/PtxRun.h"
#include <algorithm>
#include <stdexcept>

namespace burin::test::ptx {
namespace {

constexpr size_t kWarp = 32, kMostLines = 10'000; // that are counted
constexpr size_t kGroup = fragments::kGroupLanes;
alignas(1 << 18) std::byte shared[kSharedBytes + kPoolBytes]; // the pool comes last
uint64_t mostInstructions = ~uint64_t(0), instructionCount = 0;
std::vector<std::array<uint64_t, 2>> executedLines;
bool (*conditionSetter)(uint64_t, uint32_t) = nullptr;

[[noreturn]] void fail(const Thread &t, const Instruction &i, const std::string &what) {
  throw std::runtime_error(t.launch->kernel.name + ", block " + std::to_string(t.launch->block) + ", thread " +
                           std::to_string(t.index) + ", PTX line " + std::to_string(i.line) + ": " + what);
}

Frame enter(const Function &f) {
  Frame frame;
  frame.function = &f;
  frame.registers.assign(f.registers, 0xCDCDCDCDCDCDCDCD);
  frame.slots.assign(f.slots, 0);
  frame.local.assign((f.localBytes + 7) / 8 + 8, 0xCDCDCDCDCDCDCDCD);
  return frame;
}

/// Up to where the thread waits for others, or ends.
void advance(Thread &t) {
  t.waiting = Waiting::No;
  while (t.waiting == Waiting::No) {
    Frame &frame = t.frame();
    if (frame.next >= frame.function->code.size())
      throw std::runtime_error(frame.function->name + " does not return");
    const Instruction &i = frame.function->code[frame.next++];
    if (++instructionCount > mostInstructions)
      fail(t, i, "the kernel takes too long");
    const bool runs = !i.isGuarded || t.get<uint8_t>(i.guard) != uint8_t(i.unless);
    if (i.line < executedLines.size())
      ++executedLines[i.line][runs];
    if (runs)
      i.run(t, i);
  }
}

/// Lets go on threads of the first one's place, `count` of them that wait for each other, in each part of the block.
bool releaseParts(Launch &l, size_t count, Waiting what) {
  bool any = false;
  for (size_t at = 0; at + count <= l.threads.size(); at += count) {
    Thread *part = &l.threads[at];
    auto isThere = [&](const Thread &t) { return t.waiting == what && t.frame().next == part[0].frame().next; };
    if (!std::all_of(part, part + count, isThere))
      continue;
    part[0].together->together(part, *part[0].together);
    for (size_t i = 0; i < count; ++i)
      part[i].waiting = Waiting::No;
    any = true;
  }
  return any;
}

bool releasePhases(Launch &l) {
  bool any = false;
  for (Thread &t : l.threads)
    if (t.waiting == Waiting::ForPhase && l.asynchronous.hasEnded(int(t.index), t.phaseBarrier, t.phaseParity)) {
      t.waiting = Waiting::No;
      any = true;
    }
  return any;
}

/// Lets go on those who wait for something that has come about. False if there is nobody.
bool release(Launch &l) {
  auto isAt = [](const Thread &t, Waiting what, const Thread &like) {
    return t.waiting == what && t.frame().next == like.frame().next;
  };
  const Thread &first = l.threads[0];
  if (std::ranges::all_of(l.threads, [&](const Thread &t) { return isAt(t, Waiting::AtBarrier, first); })) {
    ++l.interval;
    if (l.asynchronous.isUsed())
      l.asynchronous.order.meet();
    for (Thread &t : l.threads)
      t.waiting = Waiting::No;
    return true;
  }
  bool any = releaseParts(l, kWarp, Waiting::ForWarp);
  if (!l.asynchronous.isUsed())
    return any;
  any |= releaseParts(l, kGroup, Waiting::ForGroup);
  any |= releasePhases(l);
  return any || (l.asynchronous.deliver() && (releasePhases(l), true));
}

void startPhases(Launch &l) {
  auto instruction = [](int line) {
    Instruction i;
    i.line = uint32_t(line);
    return i;
  };
  l.asynchronous.start(int(l.threads.size()), {sharedPool(), &l.shared,
                                               [&l, instruction](int thread, int line, const std::string &what) {
                                                 fail(l.threads[size_t(thread)], instruction(line), what);
                                               },
                                               [&l, instruction](int thread, int line, uint32_t offset, int bytes) {
                                                 const auto address = reinterpret_cast<uint64_t>(sharedPool()) + offset;
                                                 (void)l.threads[size_t(thread)].memory(instruction(line), address,
                                                                                        size_t(bytes), false);
                                               }});
}

void runBlock(Launch &l, const std::vector<uint64_t> &arguments) {
  l.begun.begin(++l.interval);
  l.shared.clear();
  for (const Shared &variable : l.kernel.shared)
    std::memset(shared + variable.begin, 0xFF, variable.size);
  std::memset(sharedPool(), 0xFF, l.poolBytes);
  if (l.kernel.usesPhases)
    startPhases(l);
  for (Thread &t : l.threads) {
    t.stack.assign(1, enter(l.kernel));
    t.waiting = Waiting::No;
    t.groups.clear(), t.copies.clear();
    for (size_t i = 0; i < arguments.size(); ++i)
      t.frame().slots[l.kernel.parameters[i]] = arguments[i];
  }
  for (;;) {
    for (Thread &t : l.threads)
      if (t.waiting == Waiting::No)
        advance(t);
    if (std::ranges::all_of(l.threads, [](const Thread &t) { return t.waiting == Waiting::Ended; })) {
      if (l.asynchronous.isUsed())
        l.asynchronous.finish();
      return;
    }
    if (!release(l))
      throw std::runtime_error(l.kernel.name + ", block " + std::to_string(l.block) +
                               ": threads wait for others in vain");
  }
}

} // namespace

std::byte *sharedMemory() { return shared; }
std::byte *sharedPool() { return shared + kSharedBytes; }

void limitInstructions(uint64_t most) {
  mostInstructions = most;
  instructionCount = 0;
  executedLines.assign(most == ~uint64_t(0) ? 0 : kMostLines, {});
}
uint64_t instructions() { return instructionCount; }
std::vector<std::array<uint64_t, 2>> executed() { return executedLines; }

uint64_t Thread::special(const Operand &o) {
  switch (o.kind) {
  case Operand::Kind::ThreadIndex:
    return index;
  case Operand::Kind::BlockIndex:
    return uint64_t(launch->block);
  case Operand::Kind::ThreadCount:
    return uint64_t(launch->kernel.threads);
  case Operand::Kind::BlockCount:
    return uint64_t(launch->blocks);
  case Operand::Kind::MapAddress:
    return frame().slots[o.index];
  case Operand::Kind::Local:
    return (reinterpret_cast<uint64_t>(frame().local.data()) + 31) / 32 * 32;
  default:
    return 0;
  }
}

std::byte *Thread::memory(const Instruction &i, uint64_t address, size_t bytes, bool writes, bool atomic) {
  auto *at = reinterpret_cast<std::byte *>(address); // NOLINT(performance-no-int-to-ptr): an address of the kernel
  auto *own = reinterpret_cast<std::byte *>(frame().local.data());
  if (at >= own && at + bytes <= own + frame().local.size() * 8)
    return at;
  const bool isShared = at >= shared && at < std::end(shared);
  if (address % bytes)
    fail(*this, i, "the address is not a multiple of " + std::to_string(bytes));
  auto isIn = [&](const Shared &v) { return at >= shared + v.begin && at + bytes <= shared + v.begin + v.size; };
  const bool isInPool = isIn({kSharedBytes, launch->poolBytes});
  if (isShared ? !isInPool && std::ranges::none_of(launch->kernel.shared, isIn) : !launch->mayTouch(address, bytes))
    fail(*this, i, "access to " + std::to_string(bytes) + " bytes outside of all memory");
  const simt::Asynchronous &units = launch->asynchronous;
  simt::Stamp now{.interval = launch->interval, .site = int32_t(i.line), .thread = uint16_t(index + 1)};
  if (units.isUsed())
    now.count = units.landingCount ? units.landingCount : units.order.count(int(index)),
    now.isBulk = units.isLandingBulk;
  auto isOrdered = [&](const simt::Stamp &before) { return units.isUsed() && units.isOrdered(int(index), before); };
  if (isShared && units.isUsed() && units.touches(address, bytes))
    fail(*this, i, "access to a barrier in shared memory");
  simt::Shadow &shadow = isShared ? launch->shared : launch->global;
  if (isShared && !writes && !shadow.areWritten(address, bytes))
    fail(*this, i, "read of shared memory that the block has not written");
  if (const simt::Stamp *other = shadow.access(address, bytes, now, launch->begun.current(), writes, atomic, isOrdered))
    fail(*this, i,
         "race with thread " + std::to_string(other->thread - 1) + " of block " +
             std::to_string(launch->begun.of(*other)) + " at line " + std::to_string(other->site));
  return at;
}

void onSetCondition(bool (*set)(uint64_t, uint32_t)) { conditionSetter = set; }

void setCondition(Thread &t, const Instruction &i) {
  const std::vector<uint64_t> &slots = t.frame().slots;
  if (!conditionSetter || !conditionSetter(slots[i.arguments.at(0)], uint32_t(slots[i.arguments.at(1)])))
    fail(t, i, "no graph that runs has this condition");
}

void callFunction(Thread &t, const Instruction &i) {
  const Function &callee = t.launch->program.functions[i.callee];
  Frame frame = enter(callee);
  for (size_t n = 0; n < i.arguments.size(); ++n)
    frame.slots[callee.parameters[n]] = t.frame().slots[i.arguments[n]];
  frame.resultSlot = i.target;
  t.stack.push_back(std::move(frame));
}

void returnFromFunction(Thread &t, const Instruction &i) {
  if (t.stack.size() == 1) {
    const bool isGrouped = std::ranges::any_of(t.groups, [](const std::vector<Copy> &group) { return !group.empty(); });
    const simt::Asynchronous &units = t.launch->asynchronous;
    if (isGrouped || !t.copies.empty() || (units.isUsed() && units.isOnItsWay(int(t.index))))
      fail(t, i, "the thread ends before its copies have arrived");
    t.waiting = Waiting::Ended;
    return;
  }
  Frame ended = std::move(t.stack.back());
  t.stack.pop_back();
  if (ended.resultSlot != UINT32_MAX)
    t.frame().slots[ended.resultSlot] = ended.slots[ended.function->result];
}

void launch(const Program &program, const Function &kernel, const std::vector<uint64_t> &arguments, int64_t blocks,
            size_t sharedBytes, const std::function<bool(uint64_t, size_t)> &mayTouch) {
  Launch l{.program = program, .kernel = kernel, .mayTouch = mayTouch, .blocks = blocks, .poolBytes = sharedBytes};
  l.threads.resize(size_t(kernel.threads));
  for (size_t i = 0; i < l.threads.size(); ++i)
    l.threads[i].launch = &l, l.threads[i].index = uint32_t(i);
  for (; l.block < blocks; ++l.block)
    runBlock(l, arguments);
}

} // namespace burin::test::ptx
