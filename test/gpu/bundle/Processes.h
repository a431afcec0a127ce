// Runs jobs in processes of their own.
#pragma once
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace burin::test::bundle {

struct Ended {
  std::string text;    // what the job returned
  std::string problem; // "" if it returned
};

/// Forks for each job, up to `atOnce` at a time. After an illegal access a process can use the GPU no more, and a
/// kernel that hangs ends with its process only: neither must end the other jobs. A job that takes longer than `limit`
/// is killed. The calling process must not have used the GPU.
std::vector<Ended> inProcesses(std::span<const std::function<std::string()>> jobs, size_t atOnce,
                               std::chrono::seconds limit);

} // namespace burin::test::bundle
