// The threads of a PTX kernel while it runs.
#pragma once
#include "test/gpu/PtxProgram.h"
#include "test/gpu/Shadow.h"
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

enum class Waiting : uint8_t { No, AtBarrier, ForWarp, Ended };

struct Launch;
struct Thread {
  Launch *launch = nullptr;
  uint32_t index = 0;
  std::vector<Frame> stack;
  Waiting waiting = Waiting::No;
  uint64_t carry = 0;                     // of add.cc and sub.cc
  const Instruction *shuffling = nullptr; // what it waits in
  uint32_t shuffleValue = 0, shuffleBy = 0;

  Frame &frame() { return stack.back(); }
  const Frame &frame() const { return stack.back(); }
  uint64_t bits(const Operand &o);
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
  std::byte *memory(const Instruction &, bool writes, bool atomic = false);
};

struct Launch {
  const Program &program;
  const Function &kernel;
  const std::function<bool(uint64_t, size_t)> &mayTouch;
  int64_t block = 0;
  uint32_t interval = 0; // between barriers, through all blocks
  simt::Shadow shared = {}, global = {};
  std::vector<Thread> threads = {};
};

void callFunction(Thread &, const Instruction &);
void returnFromFunction(Thread &, const Instruction &);

} // namespace burin::test::ptx
