// Gives each hostile model to `burin compile` in a separate process. It must fail with one clear error and the right
// exit code, within limits of time and memory. `onnx-hostile-tests "hostile: a loop without end"` tests one model.
#include "test/onnx/Hostile.h"
#include "test/onnx/Folder.h"
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>

using namespace burin::test;

namespace {

#ifdef __has_feature
#define HAS_FEATURE(name) __has_feature(name)
#else
#define HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || HAS_FEATURE(address_sanitizer) ||                 \
    HAS_FEATURE(thread_sanitizer)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

struct Outcome {
  int exitCode; // -1: ended by a signal
  std::string said;
  double seconds; // CPU time, as other processes may be running
  long megabytes;
};

void limit(int resource, rlim_t value) {
  rlimit limits{value, value};
  ::setrlimit(resource, &limits);
}

/// Runs burin in `folder`.
Outcome run(const std::string &folder) {
  std::string log = folder + "/log";
  pid_t child = ::fork();
  if (child == 0) {
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, 60);
    if (!kIsSanitized)
      limit(RLIMIT_AS, rlim_t(8) << 30);
    bool isReady =
        ::chdir(folder.c_str()) == 0 && std::freopen("log", "w", stderr) && std::freopen("/dev/null", "w", stdout);
    if (isReady)
      ::execl(BURIN, "burin", "compile", "model.onnx", "-o", "model.plate", nullptr);
    ::_exit(127);
  }
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  std::ostringstream said;
  said << std::ifstream(log).rdbuf();
  auto seconds = [](const timeval &t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, said.str(), seconds(usage.ru_utime) + seconds(usage.ru_stime),
          usage.ru_maxrss / 1024};
}

class HostileCase : public Catch::ITestInvoker {
public:
  explicit HostileCase(HostileModel model) : model(std::move(model)) {}
  void invoke() const override {
    Folder folder;
    std::ofstream(folder / "model.onnx", std::ios::binary) << model.file;
    if (model.prepare)
      model.prepare(folder.path);
    Outcome outcome = run(folder.path);
    INFO(outcome.said.substr(0, 2000));
    CHECK(outcome.exitCode == model.exitCode);
    CHECK(outcome.said.starts_with("burin: error: cannot "));
    CHECK(outcome.said.find(model.says) != std::string::npos);
    CHECK(outcome.said.size() < 4000);
    CHECK(std::count(outcome.said.begin(), outcome.said.end(), '\n') <= 6);
    CHECK(outcome.said.find("internal error") == std::string::npos);
    if (kIsSanitized)
      return;
    CHECK(outcome.seconds < 1);
    CHECK(outcome.megabytes < 200);
  }

private:
  HostileModel model;
};

struct Registered {
  Registered() {
    for (auto family : {hostileFiles, hostileGraphs, hostileTensors, hostileOps})
      for (HostileModel &model : family())
        Catch::AutoReg(new HostileCase(model), CATCH_INTERNAL_LINEINFO, "",
                       Catch::NameAndTags("hostile: " + model.name));
  }
} registered;

} // namespace
