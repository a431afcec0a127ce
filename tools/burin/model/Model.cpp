#include "tools/burin/model/Model.h"
#include "frontend/onnx/export/Export.h"
#include "frontend/onnx/import/Import.h"
#include "frontend/trace/GraphData.h"
#include "ir/dialect/GraphFile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "tools/burin/Commands.h"
#include "tools/burin/model/Arrays.h"
#include "tools/burin/model/FileKind.h"
#include "tools/burin/model/Reproducer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace burin::cli {

/// Prints the graph with every large constant replaced by a splat: reproducers must not disclose the user's weights.
static std::string textWithoutWeights(ModuleOp module) {
  constexpr int64_t kSmall = 64;
  OwningOpRef<ModuleOp> copy = module.clone();
  copy->walk([](ir::ConstantOp constant) {
    auto type = cast<RankedTensorType>(constant.getType());
    if (type.getNumElements() <= kSmall)
      return;
    Type element = type.getElementType();
    Attribute value = isa<FloatType>(element) ? Attribute(FloatAttr::get(element, 0.5)) : IntegerAttr::get(element, 1);
    constant.setValueAttr(DenseElementsAttr::get(type, value));
  });
  std::string text;
  llvm::raw_string_ostream out(text);
  copy->print(out, OpPrintingFlags().enableDebugInfo());
  return text;
}

Model::Model() : context(std::make_unique<MLIRContext>()) {
  ir::loadDialects(*context);
  keepProblems(*context);
}

void Model::keepProblems(MLIRContext &from) {
  from.printOpOnDiagnostic(false);
  from.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return success();
    std::string place = ir::fileLine(diagnostic.getLocation());
    problems.push_back((place.empty() ? "" : place + ": ") + diagnostic.str());
    for (Diagnostic &note : diagnostic.getNotes())
      problems.push_back("  " + note.str());
    return success();
  });
}

int Model::failWithProblems(int code, const std::string &headline, const std::string &advice) {
  constexpr size_t kLines = 4; // with headline and advice six
  std::vector<std::string> lines;
  for (const std::string &problem : problems)
    for (llvm::StringRef line : llvm::split(problem, '\n'))
      if (!line.trim().empty())
        lines.push_back(line.rtrim().str());
  std::string message = headline;
  for (size_t i = 0; i < std::min(lines.size(), kLines); ++i)
    message += i + 1 == kLines && lines.size() > kLines ? "\n  … and more" : "\n  " + lines[i];
  problems.clear();
  return fail(code, message + "\n  " + advice);
}

void ImportArguments::addTo(CLI::App &command) {
  command.add_option("--fix", fixed, kFixHelp);
  command.add_option("--dim", dims, "NAME=SIZE: a symbolic size of an ONNX model's inputs that becomes a number");
  command.add_option("--range", ranges,
                     "NAME=LEAST..MOST: the sizes that a symbolic one may take, checked in each run");
  command.add_option(
      "--shape", shapes,
      "INPUT=SIZE,SIZE,…: the shape of an ONNX model's input, which may declare none; sizes are numbers, "
      "or names for symbolic ones");
}

/// "n=1..512"
static int parseRange(const std::string &argument, std::vector<OnnxOptions::Size> &out) {
  llvm::StringRef text = argument;
  auto [name, range] = text.split('=');
  auto [least, most] = range.split("..");
  OnnxOptions::Size size{name.str(), 0, 0};
  if (name.empty() || least.getAsInteger(10, size.least) || most.getAsInteger(10, size.most) || size.least < 0 ||
      size.most < size.least)
    return fail(kUsage, "--range needs NAME=LEAST..MOST, as in --range batch=1..64; got '" + argument + "'");
  out.push_back(std::move(size));
  return kOk;
}

/// "image=batch,3,224,224"; nothing behind "=" is the shape of a scalar.
static int parseShape(const std::string &argument, std::vector<OnnxOptions::InputShape> &out) {
  auto [name, sizes] = llvm::StringRef(argument).rsplit('=');
  OnnxOptions::InputShape given{name.str(), {}};
  bool isValid = !name.empty() && llvm::StringRef(argument).contains('=');
  for (llvm::StringRef text :
       sizes.empty() ? llvm::SmallVector<llvm::StringRef>() : llvm::to_vector(llvm::split(sizes, ','))) {
    std::optional<Dim> size = Dim::parse(std::string_view(text.trim()));
    isValid = isValid && size;
    given.shape.push_back(size.value_or(Dim(1)));
  }
  if (!isValid)
    return fail(kUsage, "--shape needs INPUT=SIZE,SIZE,…, as in --shape image=batch,3,224,224; got '" + argument + "'");
  out.push_back(std::move(given));
  return kOk;
}

static int optionsOf(const ImportArguments &arguments, OnnxOptions &options) {
  if (int code = readFixedInputs(arguments.fixed, options.fixed))
    return code;
  Dims dims;
  if (int code = parseDims(arguments.dims, dims))
    return code;
  for (auto &[name, size] : dims)
    options.sizes.push_back({name, size, size});
  for (const std::string &range : arguments.ranges)
    if (int code = parseRange(range, options.sizes))
      return code;
  for (const std::string &shape : arguments.shapes)
    if (int code = parseShape(shape, options.shapes))
      return code;
  if (arguments.warns)
    options.warn = [](const std::string &warning) { llvm::errs() << "burin: warning: " << warning << '\n'; };
  return kOk;
}

int Model::readOnnx(const ImportArguments &arguments) {
  try {
    OnnxOptions options;
    if (int code = optionsOf(arguments, options))
      return code;
    imported = onnx::importModel(path, options, {}).shared();
  } catch (const onnx::Unsupported &error) {
    return fail(kUnsupported, "cannot import '" + path + "'\n  " + error.what());
  } catch (const Error &error) {
    return fail(kBadModel, "cannot import '" + path + "'\n  " + error.what());
  }
  graph = std::move(imported->module);
  keepProblems(imported->context);
  return kOk;
}

int Model::read(const std::string &file, const ImportArguments &arguments) {
  path = file;
  if (int code = checkIsGraph(path))
    return code;
  if (kindOf(path) == FileKind::Onnx)
    return readOnnx(arguments);
  if (!arguments.fixed.empty())
    return fail(kUsage, "--fix is for ONNX models; in C++, call the traced function with a constant");
  if (!arguments.dims.empty() || !arguments.ranges.empty() || !arguments.shapes.empty())
    return fail(kUsage, "--dim, --range and --shape are for ONNX models; in C++, trace the function with other sizes");
  ir::GraphFileProblem problem;
  graph = ir::readGraph(path, *context, problem);
  if (!problem.what.empty())
    return fail(kBadModel, "cannot read '" + path + "': " + problem.what + "\n  " + problem.advice);
  if (!graph)
    return failWithProblems(kBadModel, "'" + path + "' is not a graph that burin can read",
                            "save it again with Graph::save, or correct the .mlir text");
  if (!ir::mainFunction(*graph))
    return fail(kBadModel, "'" + path + "' has no public function\n  a graph is a module with a function named @main");
  return kOk;
}

int Model::attempt(const char *what, llvm::function_ref<bool()> step) {
  Reproducer reproducer(textWithoutWeights(*graph));
  if (step())
    return kOk;
  if (problems.empty())
    return fail(kInternal, "internal error while trying to " + std::string(what) + " '" + path +
                               "': it failed without a reason\n  please report it with " + reproducer.write());
  return failWithProblems(kUnsupported, "cannot " + std::string(what) + " '" + path + "'",
                          "change what is named above, or ask for support of it");
}

int Model::compile(const codegen::CompileOptions &options, std::vector<std::byte> &out) {
  if (int code = checkTargets(options.targets))
    return code;
  return attempt("compile", [&] {
    auto artifact = codegen::compile(*graph, options);
    if (succeeded(artifact))
      out = std::move(*artifact);
    return succeeded(artifact);
  });
}

int Model::check(const std::string &file, const ImportArguments &arguments, const codegen::CompileOptions &options) {
  if (kindOf(file) == FileKind::Onnx) {
    std::vector<std::string> found;
    try {
      OnnxOptions import;
      if (int code = optionsOf(arguments, import))
        return code;
      found = onnx::problemsOf(file, import, {});
    } catch (const Error &error) {
      found.push_back(error.what());
    }
    for (const std::string &problem : found)
      llvm::outs() << problem << '\n';
    if (!found.empty())
      return kUnsupported;
  }
  std::vector<std::byte> artifact;
  if (int code = read(file, arguments))
    return code;
  if (int code = compile(options, artifact))
    return code;
  llvm::outs() << file << ": nothing is wrong\n";
  return kOk;
}

int Model::saveOnnx(const std::string &path, const std::string &wayOut, const std::string &function) {
  auto chosen = function.empty() ? ir::mainFunction(*graph) : graph->lookupSymbol<mlir::func::FuncOp>(function);
  try {
    onnx::exportModel(chosen, path, {});
    return kOk;
  } catch (const onnx::Unsupported &problem) {
    return fail(kUnsupported, std::string(problem.what()));
  } catch (const Error &problem) {
    return fail(kUsage, std::string(problem.what()) + "\n  " + wayOut);
  }
}

int checkTargets(const std::vector<std::string> &names) {
  for (const std::string &name : names)
    if (!codegen::findTarget(name))
      return fail(name == "native" ? kUnsupported : kUsage, codegen::targetProblem(name));
  return kOk;
}

} // namespace burin::cli
