// burin machine: what this machine can do.
#include "runtime/npy/Npy.h"
#include "tools/burin/Commands.h"
#include "tools/machine/Machine.h"

namespace burin::cli {
namespace {

struct Arguments {
  bool isJson = false, isQuick = false;
  std::string text, json, svg; // files
};

int showMachine(const Arguments &a) {
  machine::Machine m = machine::measure(a.isQuick ? machine::Care::Quick : machine::Care::Thorough);
  const std::pair<std::string, std::string> files[] = {
      {a.text, machine::text(m)}, {a.json, machine::json(m)}, {a.svg, machine::svg(m)}};
  std::fputs(files[a.isJson].second.c_str(), stdout);
  for (const auto &[path, content] : files) {
    std::string error;
    if (!path.empty() && !rt::writeWholeFile(path, std::as_bytes(std::span(content)), error))
      return fail(kUsage, error);
  }
  return kOk;
}

} // namespace

void addMachine(CLI::App &app, int &exitCode) {
  auto a = std::make_shared<Arguments>();
  CLI::App *command = app.add_subcommand("machine", "Measure cores, caches, bandwidth and arithmetic of this machine");
  command->add_flag("--json", a->isJson, "Print JSON");
  command->add_flag("--quick", a->isQuick, "Less than a second: fewer tries, less memory");
  command->add_option("--text-file", a->text, "Write the text there too");
  command->add_option("--json-file", a->json, "Write the JSON there too");
  command->add_option("--svg", a->svg, "Draw bandwidth and latency over the size of memory, into this file");
  command->callback([a, &exitCode] { exitCode = showMachine(*a); });
}

} // namespace burin::cli
