#include "tools/burin/model/FileKind.h"
#include "frontend/onnx/import/Import.h"
#include "tools/burin/Commands.h"
#include <charconv>
#include <cstring>
#include <fstream>

namespace burin::cli {

FileKind kindOf(const std::string &path) {
  char start[8] = {};
  if (std::ifstream(path, std::ios::binary).read(start, sizeof start) && std::memcmp(start, "BURINPLT", 8) == 0)
    return FileKind::Artifact;
  if (path.ends_with(".plate"))
    return FileKind::Artifact;
  return onnx::isModelFile(path) ? FileKind::Onnx : FileKind::Graph;
}

int checkIsGraph(const std::string &path) {
  if (kindOf(path) == FileKind::Artifact)
    return fail(kBadModel, "'" + path +
                               "' is a compiled artifact, and this needs the graph it was made from\n  give "
                               "model.onnx, model.burin or model.mlir");
  for (const char *ending : {".npy", ".npz", ".safetensors", ".pt", ".pth"})
    if (path.ends_with(ending))
      return fail(kBadModel, "'" + path + "' holds tensors, not a graph\n  give model.onnx, model.burin or model.mlir");
  return kOk;
}

int parseDims(const std::vector<std::string> &arguments, Dims &out) {
  for (const std::string &argument : arguments) {
    size_t equals = argument.find('=');
    const char *end = argument.data() + argument.size();
    int64_t size = -1;
    if (equals != 0 && equals != argument.npos) {
      auto [stop, failure] = std::from_chars(argument.data() + equals + 1, end, size);
      if (stop != end || failure != std::errc())
        size = -1;
    }
    if (size < 0)
      return fail(kUsage,
                  "--dim needs NAME=SIZE with a size of at least 0, as in --dim batch=7; got '" + argument + "'");
    out.emplace_back(argument.substr(0, equals), size);
  }
  return kOk;
}

} // namespace burin::cli
