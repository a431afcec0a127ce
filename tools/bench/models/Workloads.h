// Everything that is measured, by name.
#pragma once
#include "tools/bench/models/Models.h"
#include <functional>

namespace burin::bench {

struct Workload {
  std::string name;
  /// What a peer needs to build the same: a kind, and its sizes.
  std::string kind;
  std::vector<std::pair<std::string, int64_t>> sizes;
  /// "model", "kernel", or "overhead".
  std::string group;
  /// The workload whose efficiency this one should come near: the same with sizes 1 to 3 off.
  std::string neighbourOf;
  std::function<Model()> build;
};

const std::vector<Workload> &workloads();
/// nullptr if there is none.
const Workload *findWorkload(std::string_view name);

/// Single kernels (Kernels.cpp).
void addKernels(std::vector<Workload> &);

/// Writes NAME.burin, NAME.plate, NAME.safetensors NAME.INPUT.npy per input, and their names in NAME.inputs; of a
/// kernel the weights as NAME.WEIGHT.npy too.
void writeWorkload(const Workload &workload, const std::string &folder);

} // namespace burin::bench
