// burin-bench: lists the benchmark workloads, writes their files, and measures eager calls.
#include "tools/bench/models/Workloads.h"
#include "tools/bench/programs/Bench.h"
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

using namespace burin;
using namespace burin::bench;

static void list(bool json) {
  if (!json) {
    for (const Workload &w : workloads())
      std::printf("%s\n", w.name.c_str());
    return;
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Workload &w : workloads()) {
    nlohmann::ordered_json sizes = nlohmann::ordered_json::object();
    for (const auto &[name, size] : w.sizes)
      sizes[name] = size;
    all.push_back({{"name", w.name},
                   {"kind", w.kind},
                   {"group", w.group},
                   {"neighbour_of", w.neighbourOf},
                   {"sizes", std::move(sizes)}});
  }
  std::printf("%s\n", all.dump(2).c_str());
}

static int write(const std::string &folder, const std::vector<std::string> &names) {
  for (const std::string &name : names) {
    const Workload *workload = findWorkload(name);
    if (!workload) {
      std::fprintf(stderr, "burin-bench: there is no %s; burin-bench --list shows what there is\n", name.c_str());
      return 2;
    }
    writeWorkload(*workload, folder);
  }
  return 0;
}

int main(int argc, char **argv) {
  CLI::App app("Lists and writes what is measured; without options, measures eager calls.", "burin-bench");
  bool isList = false, isJson = false;
  std::string folder;
  std::vector<std::string> names;
  app.add_flag("--list", isList, "The names of all workloads");
  app.add_flag("--json", isJson, "With --list: kinds and sizes too");
  auto *writeOption = app.add_option("--write", folder,
                                     "Writes the workloads NAME… into this folder: graph, artifact, "
                                     "weights and inputs")
                          ->check(CLI::ExistingDirectory);
  app.add_option("name", names)->needs(writeOption);
  CLI11_PARSE(app, argc, argv);
  try {
    if (isList)
      list(isJson);
    else if (!folder.empty())
      return write(folder, names);
    else
      measureEager();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "burin-bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
