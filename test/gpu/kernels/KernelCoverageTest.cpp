// Every instruction of kernels of every family runs: with operands that are aligned and that are not, with special
// numbers where code depends on them, and, where a size is open, with sizes that end within and at the end of blocks
// and slices. Not counted are jumps, and divisions of indices that are below the divisor, or fit in 32 bits, at all
// sizes that a test can have.
//
// Whether the cases have every schedule of the emitters shows their coverage: compiled with -fprofile-instr-generate
// -fcoverage-mapping, 98 % of the lines of codegen/gpu, without its mathematical functions and the calls of cuBLASLt,
// run in this test. The op table's tests run more of them.
#include "passes/kernels/families/KernelFamily.h"
#include "test/gpu/driver/FakeCuda.h"
#include "test/gpu/kernels/KernelCases.h"
#include "test/gpu/ptx/PtxProgram.h"
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

using namespace burin;
using namespace burin::test;

namespace {

using Lines = std::vector<std::string>;
using Counts = std::vector<uint64_t>; // by line: how often it ran, its condition being true or not

/// A function of PTX. Functions of several programs that differ only in the numbers of names are one.
struct Function {
  std::string cases; // that have it
  Lines lines;
  Counts counts;
};
using Functions = std::map<std::string, Function>;

/// "$L__BB_3" for "$L__BB0_3".
std::string withoutNumbers(const std::string &line) {
  std::string text;
  for (char c : line) {
    const bool isNumber = c >= '0' && c <= '9';
    if (!isNumber || !(text.ends_with("kernel") || text.ends_with("BB") || text.ends_with("shared")))
      text += c;
  }
  return text;
}

void addFunctions(const char *name, const Lines &lines, const Counts &counts, Functions &all) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find(".entry") == std::string::npos)
      continue;
    const size_t first = i;
    std::string key;
    for (; lines[i] != "}"; ++i)
      key += withoutNumbers(lines[i]) + "\n";
    Function &function = all[key];
    function.cases += std::string(function.cases.empty() ? "" : ", ") + name;
    function.lines.assign(lines.begin() + long(first), lines.begin() + long(i));
    function.counts.resize(i - first);
    for (size_t k = first; k < i; ++k)
      function.counts[k - first] += counts.at(k + 1);
  }
}

std::string codeOf(const std::string &line) {
  size_t at = line.find_first_not_of(" \t");
  return at == line.npos ? "" : line.substr(at);
}

bool isInstruction(const std::string &code) {
  return code.ends_with(';') && !code.starts_with('.') && !code.starts_with("//");
}

/// By line: whether it counts.
std::vector<bool> countedLines(const Lines &lines) {
  std::vector<bool> counted(lines.size());
  for (size_t first = 0, i = 0; i < lines.size(); ++i) { // `first` of the block that goes straight to i
    const std::string code = codeOf(lines[i]);
    counted[i] = isInstruction(code) && !code.starts_with("bra");
    if (code.starts_with("div.u") || code.starts_with("rem.u"))
      std::fill(counted.begin() + long(first), counted.begin() + long(i) + 1, false);
    const bool isDivided = i > first && !counted[i - 1] && isInstruction(codeOf(lines[i - 1]));
    counted[i] = counted[i] && !isDivided;
    if (code.starts_with("$L") || code.find("bra") != code.npos)
      first = i + 1;
  }
  return counted;
}

/// Whether results differ by rounding errors of f32 alone.
bool isClose(const std::vector<std::byte> &a, const std::vector<std::byte> &b) {
  if (a.size() != b.size())
    return false;
  for (size_t i = 0; i < a.size(); i += sizeof(float)) {
    float x, y;
    std::memcpy(&x, &a[i], sizeof x);
    std::memcpy(&y, &b[i], sizeof y);
    if (!(std::abs(x - y) < 1e-5f))
      return false;
  }
  return true;
}

/// Results do not depend on where operands are, nor on the device.
Counts runAll(const KernelCase &c, const KernelSubject &subject) {
  std::map<std::pair<Mood, int64_t>, KernelSubject::Outcome> outcomes;
  ptx::limitInstructions(uint64_t(1) << 40);
  for (const RunKind &kind : runKinds(c)) {
    INFO("size " << kind.firstSize);
    const KernelSubject::Outcome outcome = subject.run(kind);
    const KernelSubject::Outcome &first = outcomes.try_emplace({kind.mood, kind.firstSize}, outcome).first->second;
    CHECK(outcome.error == first.error);
    CHECK((outcome.results == first.results ||
           (c.trait == KernelTrait::Reordered && isClose(outcome.results, first.results))));
  }
  Counts counts;
  for (auto [skipped, done] : ptx::executed())
    counts.push_back(skipped + done);
  return counts;
}

} // namespace

TEST_CASE("Every instruction of kernels of GPUs is executed") {
  fake::failCall(0);
  Functions functions;
  std::set<std::string> families;
  for (const KernelCase &c : kernelCases()) {
    INFO(c.name);
    const KernelSubject subject(c);
    for (const std::string &kernel : linesOf(subject.schedule())) { // "kernel0 gpu-map tanh: …"
      const size_t from = kernel.find(' ') + 1;
      families.insert(kernel.substr(from, kernel.find(' ', from) - from));
    }
    addFunctions(c.name, linesOf(subject.ptx()), runAll(c, subject), functions);
  }
  ptx::limitInstructions(~uint64_t(0));
  for (const passes::KernelFamily &family : passes::kernelFamilies()) {
    INFO(family.name);
    CHECK(families.contains(family.name) == family.onHopper);
  }
  size_t all = 0;
  for (const auto &[key, function] : functions) {
    const std::vector<bool> counted = countedLines(function.lines);
    std::string never;
    for (size_t i = 0; i < counted.size(); ++i) {
      all += counted[i];
      if (counted[i] && function.counts[i] == 0)
        never += "line " + std::to_string(i) + function.lines[i] + "\n";
    }
    INFO(function.cases);
    CHECK(never == "");
  }
  CHECK(all > 30'000);
}
