// Bugs in PTX are found: in kernels of every family each barrier, shuffle, store, and each condition of a branch or an
// instruction is taken away in turn. Found means that in one kind of run results differ, bytes are accessed that the
// right kernel leaves alone, or the interpreter reports a race, a wait or an endless loop.
//
// What is not found leaves these results right. Most of it takes a slower way, and executes more instructions: single
// elements instead of vectors, divisions of 64 bits instead of 32, the loop over what is left instead of the one over
// several elements at once, reads of elements that are then masked. The rest are shuffles from lanes that hold no
// element, products with weights that are all 0, and barriers after the last slice (docs/gpu.md).
#include "test/Features.h"
#include "test/gpu/driver/FakeCuda.h"
#include "test/gpu/kernels/KernelCases.h"
#include "test/gpu/ptx/PtxProgram.h"
#include <catch2/catch.hpp>
#include <optional>

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

/// A run of the right kernels.
struct Behaviour {
  RunKind kind;
  KernelSubject::Outcome outcome;
  std::vector<std::array<uint64_t, 2>> executed;
  uint64_t instructions;
};

/// The runs of the right kernels of a case, each made when it is first asked for. Which bytes it accesses is noted by
/// its number.
class Behaviours {
public:
  Behaviours(const KernelCase &c, const KernelSubject &subject) : subject(subject), kinds(runKinds(c)) {
    kinds.push_back({.largest = 3e4}); // so far apart that a softmax overflows unless it subtracts the largest number
    known.resize(kinds.size());
  }
  size_t count() const { return kinds.size(); }
  const Behaviour &operator[](size_t i) {
    if (!known[i]) {
      ptx::limitInstructions(uint64_t(1) << 40);
      fake::setTraces(fake::Traces::Learn, i);
      KernelSubject::Outcome outcome = subject.run(kinds[i]);
      known[i] = {kinds[i], std::move(outcome), ptx::executed(), ptx::instructions()};
    }
    return *known[i];
  }

private:
  const KernelSubject &subject;
  std::vector<RunKind> kinds;
  std::vector<std::optional<Behaviour>> known;
};

/// Whether no thread has come there, or the condition that was taken away had the value that it now has in all threads.
bool changesNothing(const Mutant &mutant, const Behaviour &behaviour) {
  const auto [skipped, done] = behaviour.executed.at(mutant.line + 1);
  return mutant.what.starts_with("always") ? skipped == 0 : done == 0;
}

enum class Verdict { ChangesNothing, Found, Slower, Survives };

/// Of the run of changed kernels that has just ended.
Verdict verdictOf(const KernelSubject::Outcome &outcome, const Behaviour &right) {
  if (outcome.error != right.outcome.error || outcome.results != right.outcome.results)
    return Verdict::Found;
  return ptx::instructions() > right.instructions ? Verdict::Slower : Verdict::Survives;
}

/// The first kind of run in which a bug is found decides, or else the last that executes what is changed.
Verdict judge(const KernelSubject &subject, std::vector<std::string> lines, const Mutant &mutant,
              Behaviours &behaviours) {
  lines[mutant.line] = mutant.text;
  const std::string changed = joined(lines);
  Verdict verdict = Verdict::ChangesNothing;
  for (size_t i = 0; i < behaviours.count() && verdict != Verdict::Found; ++i) {
    const Behaviour &right = behaviours[i];
    if (changesNothing(mutant, right))
      continue;
    fake::replacePtx(changed);
    ptx::limitInstructions(8 * right.instructions + 100'000);
    fake::setTraces(fake::Traces::Check, i);
    verdict = verdictOf(subject.run(right.kind), right);
    fake::replacePtx("");
    (void)fake::problems();
  }
  return verdict;
}

/// What became of all changes.
struct Totals {
  size_t planted = 0, found = 0, slower = 0;
  std::string survivors; // a line for each

  void add(Verdict verdict, const std::string &where) {
    planted += verdict != Verdict::ChangesNothing;
    found += verdict == Verdict::Found;
    slower += verdict == Verdict::Slower;
    if (verdict == Verdict::Slower || verdict == Verdict::Survives)
      survivors += where + (verdict == Verdict::Slower ? " (slower)\n" : "\n");
  }
};

} // namespace

TEST_CASE("Planted bugs in PTX are found") {
  fake::failCall(0);
  Totals totals;
  size_t number = 0;
  for (const KernelCase &c : kernelCases()) {
    if (c.trait == KernelTrait::WideKeys)
      continue;
    const KernelSubject subject(c);
    Behaviours behaviours(c, subject);
    const std::string &error = behaviours[0].outcome.error;
    if (error.find("out of range") != std::string::npos)
      continue;
    INFO(c.name);
    REQUIRE(error == "");
    const std::vector<std::string> lines = linesOf(subject.ptx());
    for (const Mutant &mutant : mutantsOf(lines))
      if (isSampled(number++, 64))
        totals.add(judge(subject, lines, mutant, behaviours), std::string(c.name) + " " +
                                                                  std::to_string(c.inputs[0][0]) + ", line " +
                                                                  std::to_string(mutant.line + 1) + ": " + mutant.what);
  }
  ptx::limitInstructions(~uint64_t(0));
  fake::setTraces(fake::Traces::Ignore, 0);
  WARN(totals.found << " of " << totals.planted << " bugs found; " << totals.slower
                    << " of the others only make kernels slower:\n"
                    << totals.survivors);
  CHECK(totals.planted > (isLong() ? 7000 : 110));
  CHECK(totals.found * 100 >= totals.planted * (isLong() ? 95 : 92)); // a sample may have more of the others
}
