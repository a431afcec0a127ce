// Bugs in PTX are found: in kernels of every family each barrier, shuffle, store, and each condition of a branch or an
// instruction is taken away in turn. Found means: another result, an access of bytes that the right kernel leaves
// alone, or a race, a wait or an endless loop that the interpreter reports. What is not found leaves these results
// right: the choice between vectors and single elements, or between divisions of 32 and 64 bits, where both are right,
// parts of the largest element of a softmax, which any large one can take the place of, columns of a panel that no
// result needs, the second barrier of a product with a single slice.
#include "test/Features.h"
#include "test/gpu/driver/FakeCuda.h"
#include "test/gpu/kernels/KernelCases.h"
#include "test/gpu/ptx/PtxProgram.h"
#include <catch2/catch.hpp>

using namespace burin;
using namespace burin::test;

namespace {

/// A changed line, and what the change is.
struct Mutant {
  size_t line;
  std::string text, what;
};

/// "shfl.sync.down.b32 to, from, 16, 31, -1;" with 0 instead of 16.
std::string withDistance0(const std::string &code) {
  size_t last = code.rfind(',', code.rfind(',') - 1), before = code.rfind(',', last - 1);
  return code.substr(0, before) + ", 0" + code.substr(last);
}

/// Of the last kernel: those before it pack and transpose, as maps do.
std::vector<Mutant> mutantsOf(const std::vector<std::string> &lines) {
  std::vector<Mutant> all;
  size_t first = lines.size() - 1;
  while (first > 0 && lines[first].find(".entry") == std::string::npos)
    --first;
  for (size_t i = first; i < lines.size(); ++i) {
    const std::string &line = lines[i];
    size_t at = line.find_first_not_of(" \t");
    if (at == line.npos)
      continue;
    std::string code = line.substr(at);
    if (code.starts_with("bar.sync") || code.starts_with("bar.warp.sync"))
      all.push_back({i, "", "without " + code});
    else if (code.starts_with("st.shared") || code.starts_with("st.global"))
      all.push_back({i, "", "without " + code});
    else if (code.starts_with("cp.async") || code.starts_with("mbarrier.") || code.starts_with("wgmma.") ||
             code.starts_with("fence."))
      all.push_back({i, "", "without " + code});
    else if (code.starts_with("cvt.rna.tf32.f32")) // not rounded
      all.push_back({i, "mov.b32" + code.substr(code.find_first_of(" \t")), "without " + code});
    else if (code.starts_with("shfl.sync.down") || code.starts_with("shfl.sync.up") ||
             code.starts_with("shfl.sync.bfly")) // its own value instead of another's
      all.push_back({i, withDistance0(code), "without " + code});
    if (code.starts_with("cp.async.wait_group")) // one group less
      all.push_back(
          {i, "cp.async.wait_group " + std::to_string(1 + std::stoi(code.substr(19))) + ";", "weaker " + code});
    if (code.starts_with("mbarrier.arrive.expect_tx")) // fewer, and more bytes
      for (const char *bytes : {"16;", "131072;"})
        all.push_back({i, code.substr(0, code.rfind(',') + 1) + bytes, std::string("with ") + bytes});
    for (int groups : {0, 1})
      if (code.starts_with("wgmma.wait_group.sync.aligned \t" + std::to_string(groups)) ||
          code.starts_with("wgmma.wait_group.sync.aligned " + std::to_string(groups)))
        all.push_back({i, "wgmma.wait_group.sync.aligned " + std::to_string(groups + 1) + ";", "weaker " + code});
    if (!code.starts_with("@"))
      continue;
    std::string rest = code.substr(code.find_first_of(" \t"));
    all.push_back({i, "", "never " + code});
    all.push_back({i, rest, "always " + code});
  }
  return all;
}

std::string joined(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

/// Changes of one kind, and those of them that were found.
struct Count {
  size_t planted = 0, found = 0;
  bool isFound(size_t percent) const { return found * 100 >= planted * percent; }
  std::string text() const { return std::to_string(found) + " of " + std::to_string(planted); }
};

/// Whether no thread has come there, or the condition that was taken away had the value that it now has in all threads.
bool changesNothing(const Mutant &mutant, const std::vector<std::array<uint64_t, 2>> &executed) {
  const auto [skipped, done] = executed.at(mutant.line + 1);
  return mutant.what.starts_with("always") ? skipped == 0 : done == 0;
}

/// Whether the changed kernels behave differently.
bool isFound(const KernelSubject &subject, std::vector<std::string> lines, const Mutant &mutant,
             const KernelSubject::Outcome &expected) {
  lines[mutant.line] = mutant.text;
  fake::replacePtx(joined(lines));
  fake::setTraces(fake::Traces::Check, 0);
  KernelSubject::Outcome outcome = subject.run();
  fake::replacePtx("");
  (void)fake::problems();
  return outcome.error != expected.error || outcome.results != expected.results;
}

} // namespace

TEST_CASE("Planted bugs in PTX are found") {
  fake::failCall(0);
  fake::setMultiprocessors(1); // the block of a product by warpgroups computes both tiles
  Count branches, others;
  size_t constant = 0, number = 0;
  std::string survivors;
  for (const KernelCase &c : kernelCases()) {
    if (c.trait == KernelTrait::WideKeys)
      continue;
    KernelSubject subject(c);
    ptx::limitInstructions(uint64_t(1) << 40);
    fake::setTraces(fake::Traces::Learn, 0);
    KernelSubject::Outcome expected = subject.run();
    if (expected.error.find("out of range") != std::string::npos)
      continue;
    INFO(c.name);
    REQUIRE(expected.error == "");
    const uint64_t most = 20 * ptx::instructions() + 100'000;
    const auto executed = ptx::executed();
    std::vector<std::string> lines = linesOf(subject.ptx());
    for (const Mutant &mutant : mutantsOf(lines)) {
      if (changesNothing(mutant, executed)) {
        ++constant;
        continue;
      }
      if (!isSampled(number++, 32))
        continue;
      ptx::limitInstructions(most);
      Count &count = lines[mutant.line].find('@') == std::string::npos ? others : branches;
      ++count.planted;
      if (isFound(subject, lines, mutant, expected))
        ++count.found;
      else
        survivors += std::string(c.name) + " " + std::to_string(c.inputs[0][0]) + ", line " +
                     std::to_string(mutant.line + 1) + ": " + mutant.what + "\n";
    }
  }
  ptx::limitInstructions(~uint64_t(0));
  fake::setTraces(fake::Traces::Ignore, 0);
  fake::setMultiprocessors(132);
  INFO(branches.text() << " changed branches found, " << others.text() << " others, " << constant
                       << " change nothing; not found:\n"
                       << survivors);
  CHECK(others.planted > (isLong() ? 300 : 37));
  CHECK(others.isFound(97));
  // The rest of the branches are around work that the sizes of a case do not need, or around a faster way.
  CHECK(branches.isFound(isLong() ? 90 : 80)); // some 70 branches without --long
}
