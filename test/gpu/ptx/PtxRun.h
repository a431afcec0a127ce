// The threads of a PTX kernel while it runs.
#pragma once
#include "test/gpu/driver/Asynchronous.h"
#include "test/gpu/ptx/PtxProgram.h"
#include <cstring>

namespace burin::test::ptx {

/// A function that a thread is in.
struct Frame {
  const Function *function = nullptr;
  size_t next = 0; // instruction
  std::vector<uint64_t> registers, slots;
  std::vector<uint64_t> local;
  uint32_t resultSlot = UINT32_MAX; // of the caller's
};

enum class Waiting : uint8_t { No, AtBarrier, ForWarp, ForPhase, ForGroup, Ended };

/// A copy of 16 bytes on its way to shared memory; of zeros if `from` is 0.
struct Copy {
  const Instruction *instruction;
  uint64_t to, from;
};

struct Launch;
struct Thread {
  Launch *launch = nullptr;
  uint32_t index = 0;
  std::vector<Frame> stack;
  Waiting waiting = Waiting::No;
  uint64_t carry = 0;                    // of add.cc and sub.cc
  const Instruction *together = nullptr; // what it waits in for its warp or warpgroup
  uint32_t shuffleValue = 0, shuffleBy = 0;
  uint64_t phaseBarrier = 0;
  uint32_t phaseParity = 0;
  std::vector<std::vector<Copy>> groups = {}; // that the thread can wait for
  std::vector<Copy> copies = {};              // of no group yet

  Frame &frame() { return stack.back(); }
  const Frame &frame() const { return stack.back(); }
  uint64_t bits(const Operand &o) {
    return o.kind == Operand::Kind::Register ? frame().registers[o.index]
           : o.kind == Operand::Kind::Number ? o.number
                                             : special(o);
  }
  /// Of what is neither a register nor a number.
  uint64_t special(const Operand &o);
  template <class T> T get(const Operand &o) {
    uint64_t all = bits(o);
    T value;
    std::memcpy(&value, &all, sizeof value);
    return value;
  }
  template <class T> void put(const Operand &o, T value) {
    uint64_t all = 0;
    std::memcpy(&all, &value, sizeof value);
    frame().registers[o.index] = all;
  }
  /// Of global, shared or local memory; throws where that is not allowed.
  std::byte *memory(const Instruction &i, bool writes, bool atomic = false) {
    return memory(i, address(i.from[0]), size_t(i.bytes) * i.lanes, writes, atomic);
  }
  std::byte *memory(const Instruction &, uint64_t address, size_t bytes, bool writes, bool atomic = false);
  uint64_t address(const Operand &o) { return bits(o) + (o.kind == Operand::Kind::Number ? 0 : o.number); }
};

struct Launch {
  const Program &program;
  const Function &kernel;
  const std::function<bool(uint64_t, size_t)> &mayTouch;
  int64_t block = 0, blocks = 0;
  uint32_t interval = 0; // between barriers, through all blocks
  simt::Blocks begun = simt::Blocks();
  simt::Shadow shared = {}, global = {};
  std::vector<Thread> threads = {};
  simt::Asynchronous asynchronous = {};
  size_t poolBytes = 0;
};

/// The copies of a thread arrive.
void land(Thread &, const std::vector<Copy> &);

void callFunction(Thread &, const Instruction &);
void setCondition(Thread &, const Instruction &);
void returnFromFunction(Thread &, const Instruction &);

} // namespace burin::test::ptx
