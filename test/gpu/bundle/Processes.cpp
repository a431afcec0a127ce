#include "test/gpu/bundle/Processes.h"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace burin::test::bundle {

namespace {

using Clock = std::chrono::steady_clock;
using File = std::unique_ptr<FILE, int (*)(FILE *)>;

struct Running {
  size_t job;
  File output;
  Clock::time_point deadline;
  bool isLate = false;
};

std::string contentOf(FILE *file) {
  std::string text;
  if (std::fseek(file, 0, SEEK_SET) == 0)
    for (int c; (c = std::fgetc(file)) != EOF;)
      text += char(c);
  return text;
}

[[noreturn]] void runChild(const std::function<std::string()> &job, FILE *output) {
  const std::string text = job();
  const bool isWritten = std::fwrite(text.data(), 1, text.size(), output) == text.size() && std::fflush(output) == 0;
  std::_Exit(isWritten ? 0 : 1);
}

std::string problemOf(int status, bool isLate, std::chrono::seconds limit) {
  if (isLate)
    return "took longer than " + std::to_string(limit.count()) + " s";
  if (WIFSIGNALED(status))
    return "ended by signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) ? "ended with exit code " + std::to_string(WEXITSTATUS(status)) : "";
}

} // namespace

std::vector<Ended> inProcesses(std::span<const std::function<std::string()>> jobs, size_t atOnce,
                               std::chrono::seconds limit) {
  std::vector<Ended> ended(jobs.size());
  std::map<pid_t, Running> running;
  size_t next = 0;
  while (next < jobs.size() || !running.empty()) {
    if (next < jobs.size() && running.size() < atOnce) {
      File output(std::tmpfile(), std::fclose);
      std::fflush(nullptr); // else a child would write what is buffered once more
      const pid_t child = output ? fork() : -1;
      if (child == 0)
        runChild(jobs[next], output.get());
      if (child < 0)
        ended[next].problem = "there is no process or file for it";
      else
        running.emplace(child, Running{next, std::move(output), Clock::now() + limit});
      ++next;
      continue;
    }
    int status = 0;
    const pid_t child = waitpid(-1, &status, WNOHANG);
    if (auto found = running.find(child); found != running.end()) {
      auto &[job, output, deadline, isLate] = found->second;
      ended[job] = {contentOf(output.get()), problemOf(status, isLate, limit)};
      running.erase(found);
      continue;
    }
    for (auto &[process, state] : running)
      if (!state.isLate && Clock::now() > state.deadline) {
        state.isLate = true;
        kill(process, SIGKILL);
      }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return ended;
}

} // namespace burin::test::bundle
