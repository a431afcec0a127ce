#include "tools/burin/verify/OnnxRuntime.h"
#include "tools/burin/Commands.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include <cstdlib>

namespace burin::cli {
namespace {

/// Arguments: the model, a folder, and the input names. Reads the inputs from 0.npy, 1.npy, … of the folder and writes
/// the outputs to out0.npy, out1.npy, …
constexpr const char *kScript = R"(
import sys
model, folder, names = sys.argv[1], sys.argv[2], sys.argv[3:]
try:
    import numpy, onnxruntime
except ImportError as error:
    print(error, file=sys.stderr)
    sys.exit(40)
options = onnxruntime.SessionOptions()
options.log_severity_level = 3
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
known = {i.name for i in session.get_inputs()} | {i.name for i in session.get_overridable_initializers()}
feeds = {name: numpy.load(f"{folder}/{i}.npy") for i, name in enumerate(names) if name in known}
for i, output in enumerate(session.run(None, feeds)):
    numpy.save(f"{folder}/out{i}.npy", numpy.asarray(output))
)";
constexpr int kMissing = 40;

std::string lastLines(const std::string &path, size_t lines) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return "";
  llvm::StringRef text = (*file)->getBuffer().rtrim();
  size_t at = text.size();
  while (lines-- && at != llvm::StringRef::npos)
    at = text.rfind('\n', at);
  return text.substr(at == llvm::StringRef::npos ? 0 : at + 1).str();
}

std::string pythonProgram() {
  const char *given = std::getenv("BURIN_PYTHON");
  auto found = llvm::sys::findProgramByName(given && *given ? given : "python3");
  return found ? *found : "";
}

} // namespace

int runOnnxRuntime(const std::string &model, const std::vector<std::pair<std::string, rt::NpyArray>> &inputs,
                   std::vector<rt::NpyArray> &outputs) {
  std::string python = pythonProgram(), error;
  const std::string wayOut =
      "\n  install it (pip install onnxruntime), and name the Python that has it in BURIN_PYTHON";
  if (python.empty())
    return fail(kUnsupported, "--against onnxruntime needs Python, and there is none" + wayOut);
  llvm::SmallString<128> folder;
  if (llvm::sys::fs::createUniqueDirectory("burin-verify", folder))
    return fail(kInternal, "cannot create a temporary folder; set TMPDIR to a folder that can be written");
  auto remove = llvm::make_scope_exit([&] { llvm::sys::fs::remove_directories(folder); });
  auto path = [&](const std::string &name) { return folder.str().str() + "/" + name; };
  std::vector<std::string> arguments{python, "-c", kScript, model, folder.str().str()};
  for (size_t i = 0; i < inputs.size(); ++i) {
    arguments.push_back(inputs[i].first);
    if (!rt::saveNpy(path(std::to_string(i) + ".npy"), inputs[i].second, error))
      return fail(kInternal, error);
  }
  std::string log = path("log");
  std::vector<llvm::StringRef> views(arguments.begin(), arguments.end());
  int code = llvm::sys::ExecuteAndWait(python, views, std::nullopt,
                                       {llvm::StringRef(""), llvm::StringRef(log), llvm::StringRef(log)}, 0, 0, &error);
  if (code < 0)
    return fail(kUnsupported, "--against onnxruntime cannot run '" + python + "': " + error + wayOut);
  if (code == kMissing)
    return fail(kUnsupported, "'" + python + "' has no ONNX Runtime: " + lastLines(log, 1) + wayOut);
  if (code != 0)
    return fail(kUnsupported, "ONNX Runtime does not run '" + model + "'\n  " + lastLines(log, 3) +
                                  "\n  leave --against out to compare with burin's own reference");
  for (size_t i = 0; llvm::sys::fs::exists(path("out" + std::to_string(i) + ".npy")); ++i) {
    auto array = rt::loadNpy(path("out" + std::to_string(i) + ".npy"), error);
    if (!array)
      return fail(kUnsupported, "an output of ONNX Runtime cannot be read: " + error);
    outputs.push_back(std::move(*array));
  }
  return kOk;
}

} // namespace burin::cli
