// The base of benchmark worker processes, which run workloads on request: one command per line on stdin, one answer per
// line on stdout. peers/worker.py documents the commands.
#pragma once
#include "runtime/npy/Npy.h"
#include <map>
#include <string>
#include <vector>

namespace burin::bench {

struct Failure {
  std::string message;
};

class Contestant {
public:
  virtual ~Contestant() = default;
  /// Prepares a workload and releases the previous one.
  virtual void load(const std::string &name) = 0;
  virtual void runOnce() = 0;
  /// The outputs of the latest run.
  virtual std::vector<rt::NpyArray> outputs() = 0;
  virtual std::string settings() = 0;
};

/// Answers the commands on stdin until end of file; "output" writes FOLDER/WORKLOAD.NAME.I.npy. Returns an exit code.
int serve(Contestant &contestant, const std::string &folder, const std::string &name);

/// Reads FOLDER/NAME.PART.npy.
rt::NpyArray readArray(const std::string &folder, const std::string &name, const std::string &part);

/// The entry of a workload in FOLDER/list.json.
struct Description {
  std::string kind;
  std::map<std::string, int64_t> sizes;
  int64_t operator[](const std::string &size) const { return sizes.at(size); }
};
Description describe(const std::string &folder, const std::string &name);

} // namespace burin::bench
