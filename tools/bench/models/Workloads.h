// The benchmark workloads by name.
#pragma once
#include "tools/bench/models/Models.h"
#include <functional>

namespace burin::bench {

struct Workload {
  std::string name;
  /// Selects the peer's implementation, together with the sizes.
  std::string kind;
  std::vector<std::pair<std::string, int64_t>> sizes;
  /// "model", "kernel", or "overhead".
  std::string group;
  /// The same workload with rounder sizes (each 1 to 3 larger or smaller). Reports compare the efficiency of the two.
  std::string neighbourOf;
  std::function<Model()> build;
};

const std::vector<Workload> &workloads();
/// Returns nullptr for an unknown name.
const Workload *findWorkload(std::string_view name);

/// Single kernels (Kernels.cpp).
void addKernels(std::vector<Workload> &);

/// Writes NAME.burin, NAME.plate, NAME.safetensors, NAME.INPUT.npy per input, and the names of the inputs in
/// NAME.inputs. For a kernel, also writes the weights as NAME.WEIGHT.npy.
void writeWorkload(const Workload &workload, const std::string &folder);

} // namespace burin::bench
