// The memory of the device that the CUDA driver for tests has: the host's.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace burin::test::fake {

/// Which bytes interpreted kernels access: Learn notes that, by the numbers of the launch and of the allocation from
/// there on; to Check, accesses of others are errors.
enum class Traces { Ignore, Learn, Check };

class Memory {
public:
  /// Contents are garbage. 0: there is not so much.
  uint64_t allocate(size_t bytes);
  bool isAllocation(uint64_t address) const { return live.count(address); }
  void free(uint64_t address);
  size_t count() const { return live.size(); }
  size_t bytes() const;

  /// Whether the bytes lie within one allocation.
  bool inside(uint64_t address, size_t bytes) const { return find(address, bytes) != nullptr; }
  /// Also as known from before, if that matters.
  bool mayTouch(uint64_t address, size_t bytes);
  /// `run`: a number for what is learned.
  void setTraces(Traces mode, size_t run);
  void beginLaunch() { ++launch; }
  /// What is allocated from now on begins so many bytes after a multiple of 256: 0 at first.
  void setShift(size_t bytes) { shift = bytes; }

private:
  struct Allocation {
    uint64_t address;
    size_t bytes, order;
    void *block; // that it is in
  };
  std::map<uint64_t, Allocation> live; // by address
  mutable const Allocation *recent = nullptr;
  Traces traces = Traces::Ignore;
  size_t made = 0, launch = 0, run = 0, shift = 0;
  std::map<std::array<size_t, 3>, std::vector<bool>> touched; // by run, launch and order of the allocation: its bytes

  /// The allocation that has the bytes, or null.
  const Allocation *find(uint64_t address, size_t bytes) const;
};

} // namespace burin::test::fake
