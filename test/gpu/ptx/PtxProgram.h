// PTX as text, run on this processor: what the driver for tests does with code that nobody has made for the emulator of
// Simt.h. Instruction by instruction, one thread after the other up to where it waits for others. It knows the
// instructions that our kernels have, and refuses others.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace burin::test::ptx {

struct Thread;
struct Instruction;
using Run = void (*)(Thread &, const Instruction &);
/// For all threads of a warp, once they have come there.
using RunTogether = void (*)(Thread *warp, const Instruction &);

/// A register, a number, or something that depends on the thread.
struct Operand {
  enum class Kind : uint8_t { Number, Register, ThreadIndex, BlockIndex, ThreadCount, BlockCount, Local, MapAddress };
  Kind kind = Kind::Number;
  uint32_t index = 0;  // of the register
  uint64_t number = 0; // also what is added to an address
};

struct Instruction {
  Run run = nullptr;
  RunTogether together = nullptr;
  Operand guard; // a register: runs only if it is true, or false with `unless`
  bool isGuarded = false, unless = false;
  std::vector<Operand> to;
  Operand from[4];
  std::vector<Operand> further; // of those with more
  uint32_t target = 0;          // of a branch; of others: their kind
  uint8_t bytes = 0, lanes = 1;
  uint32_t line = 0; // of the text
  // of a call
  uint32_t callee = 0;
  std::vector<uint32_t> arguments; // slots
};

/// A variable in shared memory: bytes [begin, begin + size) of what sharedMemory() returns.
struct Shared {
  size_t begin, size;
};

struct Function {
  std::string name;
  bool isKernel = false;
  int threads = 0; // per block
  std::vector<Instruction> code;
  uint32_t registers = 0, slots = 0; // slots: parameters, results, what is passed to others, 8 bytes each
  std::vector<uint32_t> parameters;  // their slots
  std::vector<bool> isMap;           // of each parameter: a tensor map, whose slot has its address
  uint32_t result = UINT32_MAX;      // its slot
  size_t localBytes = 0;
  std::vector<Shared> shared; // what it uses
  bool usesPhases = false;    // it has barriers in shared memory, or products of warpgroups
  bool waitsFirst = false;    // for the kernels before it: hasBegun was false then
  bool hasBegun = false;      // it has accessed memory or branched, in the order of its text
};

struct Program {
  std::vector<Function> functions;

  const Function *kernel(const std::string &name) const;
};

/// Throws std::runtime_error with the line that it does not know.
Program parse(const std::string &text);

/// Runs all blocks of a kernel. `arguments`: 8 bytes per parameter, the address of a tensor map. `sharedBytes` are at
/// sharedPool(). `mayTouch` says whether bytes of global memory belong to one allocation. Throws std::runtime_error
/// that says which thread did what wrong: accesses outside of memory, races, threads that wait for each other in vain.
void launch(const Program &program, const Function &kernel, const std::vector<uint64_t> &arguments, int64_t blocks,
            size_t sharedBytes, const std::function<bool(uint64_t address, size_t bytes)> &mayTouch);

/// What kernels that set a condition of a graph call; it returns whether there is such a condition.
void onSetCondition(bool (*set)(uint64_t condition, uint32_t value));

/// How many instructions a launch may take in all; more are an error, too. For kernels that may not end.
void limitInstructions(uint64_t most);
/// Instructions of all launches since then.
uint64_t instructions();
/// By line: how often the instruction was skipped by its condition, and how often it was done, since
/// limitInstructions().
std::vector<std::array<uint64_t, 2>> executed();

// ---- between the parser and what runs it

std::byte *sharedMemory();
/// What a launch gives a block, from a multiple of 256 KB on: descriptors of matrices have the lower 18 bits.
std::byte *sharedPool();
inline constexpr size_t kPoolBytes = 227 << 10;   // what a block of an H100 can have
inline constexpr size_t kSharedBytes = 4 << 20;   // of all kernels of a program
inline constexpr size_t kMostOfKernel = 48 << 10; // what one can have by name

/// What runs an instruction, by its name without operands ("add.s32"), filling in what the name says besides. Null:
/// unknown.
Run find(const std::string &name, Instruction &i);

} // namespace burin::test::ptx
