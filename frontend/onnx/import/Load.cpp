// Reading of files: models, and single tensors.
#include "burin/onnx.h"
#include "frontend/onnx/import/Importer.h"
#include "frontend/tensor/context/LocationScope.h"
#include <stdexcept>

namespace burin::onnx {

using detail::Mapping;

static std::shared_ptr<const Mapping> open(const std::string &path, const Location &where) {
  std::string problem;
  std::shared_ptr<const Mapping> file = Mapping::open(path, problem);
  if (!file)
    throw Error(where, "load", "cannot read \"" + path + "\": " + problem);
  return file;
}

/// Converts parser errors to Error.
template <class F> static auto parse(const std::string &path, const Location &where, F &&read) {
  try {
    return read();
  } catch (const Error &) {
    throw;
  } catch (const std::exception &error) {
    throw Error(where, "load", "\"" + path + "\": " + error.what());
  }
}

bool isModelFile(const std::string &path) {
  std::string problem;
  std::shared_ptr<const Mapping> file = Mapping::open(path, problem);
  return path.ends_with(".onnx") || (file && looksLikeModel(file->bytes()));
}

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash + 1);
}

static std::optional<Graph> import(const std::string &path, const OnnxOptions &options, const Location &where,
                                   std::vector<std::string> *problems) {
  std::shared_ptr<const Mapping> file = open(path, where);
  return parse(path, where, [&] {
    ModelProto model = readModel(file->bytes());
    TensorReader reader(file, folderOf(path));
    return importGraph({model, reader, path.substr(path.rfind('/') + 1), options, problems}, where);
  });
}

Graph importModel(const std::string &path, const OnnxOptions &options, const Location &where) {
  return *import(path, options, where, nullptr);
}

std::vector<std::string> problemsOf(const std::string &path, const OnnxOptions &options, const Location &where) {
  std::vector<std::string> problems;
  import(path, options, where, &problems);
  return problems;
}

Tensor readTensorFile(const std::string &path, const Location &where) {
  std::shared_ptr<const Mapping> file = open(path, where);
  return parse(path, where, [&] { return TensorReader(file, "").read(readTensor(file->bytes()), where); });
}

} // namespace burin::onnx

namespace burin {
Graph load_onnx(const std::string &path, const OnnxOptions &options, Location where) {
  return onnx::importModel(path, options, detail::inScope(where));
}
Graph load_onnx(const std::string &path, const StateDict &fixed, Location where) {
  return load_onnx(path, OnnxOptions{.fixed = fixed, .sizes = {}, .warn = {}}, where);
}
} // namespace burin
