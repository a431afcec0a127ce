// burin machine: describes and measures this machine.
#include "codegen/target/Machine.h"
#include "runtime/gpu/Device.h"
#include "runtime/npy/Npy.h"
#include "runtime/support/Format.h"
#include "tools/burin/Commands.h"
#include "tools/machine/Machine.h"
#include "llvm/TargetParser/Host.h"

namespace burin::cli {
namespace {

struct Arguments {
  bool isJson = false, isQuick = false;
  std::string text, json, svg, profile; // files
};

/// Writes the target facts that code generation tunes for: those of the processor family, with the cache sizes that the
/// system reports.
int writeProfile(const std::string &path) {
  codegen::Machine facts = codegen::machineOf(llvm::sys::getHostCPUName());
  if (auto [bytes, ways] = machine::firstLevel(); ways > 0) {
    facts.l1Ways = ways;
    facts.l1WayBytes = bytes / ways;
  }
  std::string text = "# " + llvm::sys::getHostCPUName().str() + ", for the environment variable BURIN_MACHINE\n" +
                     codegen::profileText(facts),
              error;
  return rt::writeWholeFile(path, std::as_bytes(std::span(text)), error) ? kOk : fail(kUsage, error);
}

/// Lists the GPUs that the CUDA driver reports, one per line; empty without any.
std::string gpus() {
  std::vector<rt::gpu::DeviceInfo> devices;
  if (!rt::gpu::Device::list(devices).ok())
    return "";
  std::string text = "\nGPUs\n";
  for (size_t i = 0; i < devices.size(); ++i)
    text +=
        rt::text("  cuda:", i, "  ", devices[i].name, ", compute capability ", devices[i].major, ".", devices[i].minor,
                 ", ", devices[i].multiprocessors, " multiprocessors, ", devices[i].memoryBytes >> 20, " MiB\n");
  return text;
}

int showMachine(const Arguments &a) {
  if (!a.profile.empty())
    return writeProfile(a.profile);
  machine::Machine m = machine::measure(a.isQuick ? machine::Care::Quick : machine::Care::Thorough);
  const std::pair<std::string, std::string> files[] = {
      {a.text, machine::text(m) + gpus()}, {a.json, machine::json(m)}, {a.svg, machine::svg(m)}};
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
  command->add_flag("--quick", a->isQuick, "Take less than a second: fewer repetitions, smaller memory");
  command->add_option("--text-file", a->text, "Also write the text to this file");
  command->add_option("--json-file", a->json, "Also write JSON to this file");
  command->add_option("--svg", a->svg, "Plot bandwidth and latency over the working set into this file");
  command->add_option("--profile", a->profile,
                      "Measure nothing; write the tuning parameters of this processor to this file, for BURIN_MACHINE");
  command->callback([a, &exitCode] { exitCode = showMachine(*a); });
}

} // namespace burin::cli
