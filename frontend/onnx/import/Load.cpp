// Reading of files: models, and single tensors.
#include "burin/onnx.h"
#include "frontend/onnx/import/Importer.h"
#include "frontend/tensor/context/LocationScope.h"
#include <algorithm>
#include <deque>
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

static std::string str(const std::vector<DimProto> &dims) {
  std::string text = "[";
  for (const DimProto &dim : dims)
    text += (text.size() > 1 ? ", " : "") + (dim.value >= 0      ? std::to_string(dim.value)
                                             : dim.param.empty() ? "?"
                                                                 : printable(dim.param));
  return text + "]";
}

/// Declares inputs with the shapes of the options. `texts` owns the names of their sizes.
static void declareShapes(ModelProto &model, const OnnxOptions &options, std::deque<std::string> &texts,
                          const Location &where) {
  for (const auto &[name, shape] : options.shapes) {
    std::vector<ValueInfo> &inputs = model.graph.inputs;
    auto input = std::ranges::find(inputs, name, &ValueInfo::name);
    if (input == inputs.end())
      throw Error(where, "", "there is no input " + quoted(name) + " to give a shape to");
    std::vector<DimProto> dims;
    for (const Dim &size : shape) {
      if (size.isStatic() && size.value() < 1)
        throw Error(where, "", "the shape " + burin::str(shape) + " of " + quoted(name) + " has a size below 1");
      dims.push_back(size.isStatic() ? DimProto{size.value(), {}} : DimProto{-1, texts.emplace_back(size.str())});
    }
    auto fits = [](const DimProto &declared, const DimProto &given) {
      return declared.value <= 0 || declared.value == given.value;
    };
    if (input->hasShape && !std::ranges::equal(input->shape, dims, fits))
      throw Error(where, "",
                  "the model declares the input " + quoted(name) + " as " + str(input->shape) +
                      ", which does not fit the given shape " + burin::str(shape));
    input->hasShape = true;
    input->shape = std::move(dims);
  }
}

static std::optional<Graph> import(const std::string &path, const OnnxOptions &options, const Location &where,
                                   std::vector<std::string> *problems) {
  std::shared_ptr<const Mapping> file = open(path, where);
  return parse(path, where, [&] {
    ModelProto model = readModel(file->bytes());
    std::deque<std::string> texts;
    declareShapes(model, options, texts, where);
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
