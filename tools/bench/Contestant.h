// A process that runs workloads when told to: one line in, one line out. peers/worker.py documents the lines.
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
  /// Prepares a workload, in place of the one before.
  virtual void load(const std::string &name) = 0;
  virtual void runOnce() = 0;
  /// Of the latest run.
  virtual std::vector<rt::NpyArray> outputs() = 0;
  virtual std::string settings() = 0;
};

/// Answers the lines of stdin until it ends; outputs are written as FOLDER/WORKLOAD.NAME.I.npy. An exit code.
int serve(Contestant &contestant, const std::string &folder, const std::string &name);

/// FOLDER/NAME.PART.npy
rt::NpyArray readArray(const std::string &folder, const std::string &name, const std::string &part);

/// What FOLDER/list.json says of a workload.
struct Description {
  std::string kind;
  std::map<std::string, int64_t> sizes;
  int64_t operator[](const std::string &size) const { return sizes.at(size); }
};
Description describe(const std::string &folder, const std::string &name);

} // namespace burin::bench
