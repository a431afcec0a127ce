// burin env: the environment variables that burin reads.
#include "tools/burin/Commands.h"
#include "tools/burin/Table.h"
#include <cstdlib>

namespace burin::cli {
namespace {

struct Variable {
  const char *name, *readBy, *meaning;
};

/// The complete list: a test compares it with the sources, and docs/environment.md with it.
constexpr Variable kVariables[] = {
    {"BURIN_NUM_THREADS", "library, runtime, commands",
     "Threads that share the work of a kernel, 1 to 1024; default: the cores that the process may use. "
     "burin::set_num_threads and --threads take precedence"},
    {"BURIN_TARGET", "library, commands",
     "What `native` stands for, as `x86-64-v3` to compile for less than this machine has; default: this machine. "
     "`burin compile --help` lists the targets"},
    {"BURIN_MATMUL_PRECISION", "library, commands",
     "Precision of f32 products and convolutions of eager calls, jitted functions, and graphs that are compiled for a "
     "GPU without the name of a target: `highest` (f32, the default), `high` (bf16x3) or `medium` (tf32)"},
    {"BURIN_MACHINE", "library, commands",
     "A profile of a processor that `burin machine --profile FILE` has written: what code for `native` is tuned by; "
     "default: a table by processor family"},
    {"BURIN_DISABLE_PASSES", "library, commands",
     "Passes that the compiler leaves out, by name, separated by commas, as `--disable-pass` does for one command: "
     "to find the one that changes results"},
    {"BURIN_CACHE_DIR", "library",
     "Folder of compiled eager and jitted code; empty: nothing is kept on disk. "
     "Default: `$XDG_CACHE_HOME/burin`, else `$HOME/.cache/burin`"},
    {"BURIN_JIT_CHECK", "library",
     "Whether jitted functions are traced again to find what a trace cannot see: `0` never, `always` on each call, "
     "anything else on the second call and then at random; default: what JitOptions::check says"},
    {"BURIN_LOG", "library, runtime, commands",
     "Topics to report on stderr, separated by commas: `recompile` (why a jitted function is "
     "traced again), `memory` (what JitOptions::memory_limit has computed again), `provider` (why a library does not "
     "compute a product of an artifact that asks for it)"},
    {"BURIN_CUBLASLT", "library, runtime, commands",
     "Path of the library that computes products of artifacts that are compiled with `--provider cublaslt`; `0`: none "
     "does. Default: `libcublasLt.so.13`, else `libcublasLt.so.12`"},
    {"BURIN_CUDA_CHECK", "library, runtime, commands",
     "If set and not `0`, each launch of a kernel on a GPU is waited for, and an error names the kernel and its line"},
    {"BURIN_IMAGES", "library",
     "Path of the plug-in that reads PNG and JPEG files, `libburin_images.so`; default: in the folder `burin` beside "
     "libburin"},
    {"NVTX_INJECTION64_PATH", "library, runtime, commands",
     "Library of a profiler, which receives a range per run and launch on a GPU; Nsight Systems sets it"},
    {"BURIN_PYTHON", "commands", "The Python that has onnxruntime, for `--against onnxruntime`; default: `python3`"},
    {"XDG_CACHE_HOME", "library", "See BURIN_CACHE_DIR"},
    {"HOME", "library", "See BURIN_CACHE_DIR"},
    {"TMPDIR", "commands", "Folder for the graph that is left behind by a crash of the compiler; default: `/tmp`"},
    {"NO_COLOR", "commands", "If set and not empty, no colours on a terminal (https://no-color.org)"},
};

/// Prints docs/environment.md.
void printMarkdown() {
  std::puts("| variable | read by | meaning |\n|---|---|---|");
  for (const Variable &v : kVariables)
    std::printf("| `%s` | %s | %s |\n", v.name, v.readBy, v.meaning);
}

void printValues() {
  Table table({"variable", "value"});
  for (const Variable &v : kVariables) {
    const char *value = std::getenv(v.name);
    table.row({v.name, value ? value : "(not set)"});
  }
  table.printRows();
  for (const Variable &v : kVariables)
    std::printf("\n%s (%s)\n  %s\n", v.name, v.readBy, v.meaning);
}

} // namespace

void addEnv(CLI::App &app, int &exitCode) {
  auto isMarkdown = std::make_shared<bool>(false);
  CLI::App *command = app.add_subcommand("env", "Print the environment variables that burin reads, and their values");
  command->add_flag("--markdown", *isMarkdown, "Print them as a table for documentation, without values");
  command->callback([isMarkdown, &exitCode] {
    *isMarkdown ? printMarkdown() : printValues();
    exitCode = kOk;
  });
}

} // namespace burin::cli
