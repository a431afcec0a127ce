#include "tools/burin/verify/Probe.h"
#include "ir/reference/Reference.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "tools/burin/verify/GraphCut.h"
#include <chrono>
#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlir;

namespace burin::cli {

const char *const kReference = "reference", *const kCodeGeneration = "code generation";

namespace {

/// The child's report, in memory shared with the parent.
struct Message {
  bool isFinished;
  Failure::Kind kind;
  double margin;
  char stage[64], what[512];

  void setStage(llvm::StringRef text) { set(stage, sizeof stage, text); }
  void fail(Failure::Kind newKind, llvm::StringRef text) {
    kind = newKind;
    set(what, sizeof what, text.split('\n').first);
  }

private:
  static void set(char *to, size_t size, llvm::StringRef text) {
    size_t n = std::min(size - 1, text.size());
    std::memcpy(to, text.data(), n);
    to[n] = 0;
  }
};

/// Saves a copy of the graph after each pass.
class Watcher : public PassInstrumentation {
public:
  struct Snapshot {
    std::string pass;
    OwningOpRef<ModuleOp> module;
  };
  Watcher(Message &message, std::vector<Snapshot> &snapshots) : message(message), snapshots(snapshots) {}

  void runBeforePass(Pass *pass, Operation *) override { message.setStage(pass->getArgument()); }
  void runAfterPass(Pass *pass, Operation *op) override {
    message.setStage(kCodeGeneration);
    if (auto module = dyn_cast<ModuleOp>(op))
      snapshots.push_back({pass->getArgument().str(), module.clone()});
  }

private:
  Message &message;
  std::vector<Snapshot> &snapshots;
};

/// The work of the child process.
class Examination {
public:
  Examination(const Probe &probe, ModuleOp module, Message &message)
      : probe(probe), module(module), message(message),
        diagnostics(module.getContext(), [this](Diagnostic &d) { problems += d.str() + "\n"; }) {}

  void run() {
    message.setStage(kReference);
    Sizes sizes = probe.sizes;
    inputs = randomInputs(module, probe.seed, sizes, probe.inputs);
    for (const rt::NpyArray &input : inputs)
      references.push_back(toReference(valuesOf(input)));
    auto results = ir::interpret(module, references);
    if (failed(results))
      return message.fail(Failure::Refused, problems);
    expected = std::move(*results);
    codegen::CompileOptions options = probe.compile;
    options.instrument = [&](PassManager &manager) {
      manager.enableVerifier(true);
      manager.addInstrumentation(std::make_unique<Watcher>(message, snapshots));
      if (probe.compile.instrument)
        probe.compile.instrument(manager);
    };
    auto got = execute(options);
    if (!got)
      return message.fail(Failure::Refused, problems);
    std::string difference = whatDiffers(*got, probe.margin);
    if (difference.empty())
      return;
    message.fail(Failure::Differs, difference);
    for (double margin : {10., 100.})
      if (!whatDiffers(*got, margin).empty())
        message.margin = margin;
    message.setStage(culprit());
  }

private:
  std::optional<std::vector<rt::NpyArray>> execute(const codegen::CompileOptions &options) {
    OwningOpRef<ModuleOp> consumed = module.clone();
    return compileAndRun(*consumed, options, inputs, probe.threads);
  }

  std::string whatDiffers(const std::vector<rt::NpyArray> &got, double margin) const {
    for (size_t i = 0; i < got.size(); ++i) {
      Tolerance t = probe.tolerance.of(got[i].dtype);
      run::Difference d = compare(valuesOf(got[i]), expected[i], {t.rtol * margin, t.atol * margin});
      if (d.index >= 0)
        return "element " + std::to_string(d.index) + " of output " + std::to_string(i) + " is " + exact(d.got) +
               ", the reference says " + exact(d.expected);
    }
    return "";
  }

  /// Returns the first pass after which interpreting the graph gives different results, by binary search. If no
  /// snapshot differs, the failure is in buffer reuse or code generation.
  std::string culprit() {
    size_t right = 0, wrong = snapshots.size() + 1; // numbers of passes that have run
    while (wrong - right > 1) {
      size_t middle = right + (wrong - right) / 2;
      if (middle <= snapshots.size() && meansTheSame(*snapshots[middle - 1].module))
        right = middle;
      else
        wrong = middle;
    }
    if (wrong <= snapshots.size())
      return snapshots[wrong - 1].pass;
    // The interpreter ignores where values are stored, so a snapshot cannot show an error of this pass.
    constexpr const char *kReuse = "burin-in-place-results";
    codegen::CompileOptions options = probe.compile;
    options.pipeline.disabled.push_back(kReuse);
    auto got = execute(options);
    return got && whatDiffers(*got, 1).empty() ? kReuse : kCodeGeneration;
  }

  bool meansTheSame(ModuleOp graph) {
    auto results = ir::interpret(graph, references);
    if (failed(results) || results->size() != expected.size())
      return false;
    std::vector<rt::NpyArray> arrays;
    for (size_t i = 0; i < expected.size(); ++i) {
      std::vector<char> bytes = (*results)[i].toBytes();
      auto *data = reinterpret_cast<const std::byte *>(bytes.data());
      arrays.push_back({(*results)[i].dtype, (*results)[i].shape, {data, data + bytes.size()}});
      if (!sameType(valuesOf(arrays.back()), expected[i]))
        return false;
    }
    return whatDiffers(arrays, probe.margin).empty();
  }

  const Probe &probe;
  ModuleOp module;
  Message &message;
  std::string problems;
  ScopedDiagnosticHandler diagnostics;
  std::vector<rt::NpyArray> inputs;
  std::vector<ir::RefTensor> references, expected;
  std::vector<Watcher::Snapshot> snapshots;
};

/// Returns the first line that a crashed process wrote to its log.
std::string lastWords(int log, int status) {
  char text[512];
  ssize_t n = ::pread(log, text, sizeof text, 0);
  std::string line = llvm::StringRef(text, size_t(std::max<ssize_t>(n, 0))).split('\n').first.str();
  if (WIFSIGNALED(status))
    line = std::string("signal ") + ::strsignal(WTERMSIG(status)) + (line.empty() ? "" : ": " + line);
  return line;
}

/// Waits for a child; returns false if it had to be killed after `seconds`.
bool waitFor(pid_t child, int seconds, int &status) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  useconds_t pause = 200;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return false;
    }
    ::usleep(pause);
    pause = std::min<useconds_t>(pause * 2, 20000);
  }
  return true;
}

} // namespace

Failure Probe::run(ModuleOp module) const {
  void *page = ::mmap(nullptr, sizeof(Message), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int log = ::memfd_create("burin-probe", MFD_CLOEXEC);
  if (page == MAP_FAILED || log < 0)
    llvm::report_fatal_error("no memory for another process");
  auto *message = new (page) Message{};
  message->margin = 1;
  std::fflush(nullptr);
  pid_t child = ::fork();
  if (child == 0) {
    ::dup2(log, STDERR_FILENO);
    rlimit noCore{};
    ::setrlimit(RLIMIT_CORE, &noCore);
    for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
      ::signal(signal, SIG_DFL);
    Examination(*this, module, *message).run();
    message->isFinished = true;
    ::_exit(0);
  }
  int status = 0;
  Failure failure;
  if (child < 0 || !waitFor(child, seconds, status))
    message->fail(Failure::Hangs, "it takes more than " + std::to_string(seconds) + " s");
  else if (!message->isFinished)
    message->fail(Failure::Crashes, lastWords(log, status));
  failure = {message->kind, message->kind ? message->stage : "", message->what, message->margin};
  ::close(log);
  ::munmap(page, sizeof(Message));
  return failure;
}

} // namespace burin::cli
