#include "ir/infer/Infer.h"
#include <unordered_map>

namespace burin::ir {

std::span<const OpInfo> opTable() {
  static const auto *table = new std::vector<OpInfo>{
  // tasks may still read it when the process exits
#include "ir/OpTable.inc"
  };
  return *table;
}

const OpInfo *findOp(std::string_view name) {
  static const auto *byName = [] {
    auto *map = new std::unordered_map<std::string_view, const OpInfo *>;
    for (const OpInfo &info : opTable())
      map->emplace(info.name, &info);
    return map;
  }();
  auto at = byName->find(name);
  return at == byName->end() ? nullptr : at->second;
}

} // namespace burin::ir
