#include "tools/common/Runner.h"
#include "runtime/npy/Npy.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace burin::run {

double nowUs() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static int64_t find(const std::vector<NamedTensor> &tensors, const std::string &name) {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == name)
      return int64_t(i);
  return -1;
}

static void addStep(void *ctx, const burin_step_profile *step) {
  auto &steps = *static_cast<std::vector<StepTimes> *>(ctx);
  size_t i = 0;
  while (i < steps.size() && steps[i].step.step != step->step)
    ++i;
  if (i == steps.size()) {
    steps.push_back({*step, {}});
    steps[i].step.flops *= step->iterations;
    steps[i].step.bytes *= step->iterations;
  }
  if (step->iteration == 0)
    steps[i].us.push_back(0);
  steps[i].us.back() += double(step->end_ns - step->start_ns) / 1e3;
}

Runner::Runner(const Options &options) : o(options), rt(*burin_runtime_get(BURIN_RUNTIME_VERSION)) {}

Runner::~Runner() {
  rt.session_release(session);
  rt.artifact_release(artifact);
}

bool Runner::fail(int code, const std::string &message) {
  std::fprintf(stderr, "%s: %s\n", o.program.c_str(), message.c_str());
  exitCode = code;
  return false;
}

bool Runner::ok(burin_status *status) {
  if (!status)
    return true;
  constexpr int codes[] = {kOk, kUsage, kBadModel, kUnsupported, kBadModel, kInternal, kInternal, kInternal, kUsage};
  uint32_t code = rt.status_code(status);
  fail(code < std::size(codes) ? codes[code] : kInternal, rt.status_message(status));
  rt.status_release(status);
  return false;
}

bool Runner::load(std::span<const std::byte> bytes) {
  double start = nowUs();
  burin_load_options options{sizeof options, o.trustWeights ? uint64_t(BURIN_LOAD_TRUST_WEIGHTS) : 0, {}};
  if (!ok(bytes.empty() ? rt.artifact_load_file(o.model.c_str(), &options, &artifact)
                        : rt.artifact_load_memory(bytes.data(), bytes.size(), &options, &artifact)))
    return false;
  if (!chooseFunction())
    return false;
  report.loadMs = (nowUs() - start) / 1e3;
  report.model = o.model;
  report.target = rt.artifact_target(artifact);
  for (uint32_t i = 0; i < rt.artifact_input_count(artifact); ++i)
    report.inputs.push_back({rt.artifact_input(artifact, i)->name, {}, "random"});
  for (uint32_t i = 0; i < rt.artifact_output_count(artifact); ++i)
    report.outputs.push_back({rt.artifact_output(artifact, i)->name, {}, ""});
  inputs.resize(report.inputs.size());
  return true;
}

bool Runner::chooseFunction() {
  if (o.function.empty())
    return true;
  burin_artifact *function = nullptr;
  if (!ok(rt.artifact_function(artifact, o.function.c_str(), &function)))
    return false;
  rt.artifact_release(artifact);
  artifact = function;
  return true;
}

bool Runner::prepareInputs() {
  if (!checkNames(o.inputs, report.inputs, "input") || !checkNames(o.data, report.inputs, "input") ||
      !checkNames(o.outputs, report.outputs, "output") || !checkNames(o.expected, report.outputs, "output") ||
      !readInputs() || !readData() || !chooseSizes())
    return false;
  for (uint32_t i = 0; i < report.inputs.size(); ++i) {
    NamedTensor &input = report.inputs[i];
    if (!inputs[i].given && !makeInput(i))
      return false;
    rt::NpyArray &array = inputs[i].array;
    input.tensor = {array.data.data(), array.shape.data(), uint32_t(array.shape.size()), uint8_t(array.dtype), {}};
    given.push_back(input.tensor);
  }
  return true;
}

bool Runner::openSession(int threads) {
  rt.session_release(session);
  session = nullptr;
  burin_session_options options{};
  options.struct_size = sizeof options;
  options.threads = threads;
  options.device = o.device.c_str();
  return ok(rt.session_create(artifact, &options, &session));
}

bool Runner::bind(double &us) {
  const double start = nowUs();
  const bool isBound = ok(rt.session_bind(session, given.data(), uint32_t(given.size())));
  us = nowUs() - start;
  return isBound;
}

bool Runner::startProfile() { return ok(rt.session_set_profile(session, addStep, &report.steps)); }

bool Runner::runOnce() {
  produced.assign(report.outputs.size(), {});
  if (!ok(rt.session_run(session, given.data(), uint32_t(given.size()), produced.data(), uint32_t(produced.size()))))
    return false;
  for (size_t i = 0; i < produced.size(); ++i)
    report.outputs[i].tensor = produced[i];
  report.arenaBytes = rt.session_arena_bytes(session);
  return true;
}

/// Runs --repeat times. More than one run are timed, after a warm-up run.
bool Runner::runAgain() {
  bool isTimed = o.repeat > 1;
  if (isTimed && (!runOnce() || !startStates())) // warm-up
    return false;
  if (o.profile && !startProfile())
    return false;
  for (int64_t i = 0; i < o.repeat; ++i) {
    double start = nowUs();
    if (!runOnce())
      return false;
    ++finished;
    if (isTimed)
      report.runUs.push_back(nowUs() - start);
  }
  return true;
}

int Runner::runAll(std::span<const std::byte> bytes) {
  if (!load(bytes) || !prepareInputs() || !openSession(o.threads) || !startStates())
    return exitCode;
  if (!(data.empty() ? runAgain() : runOverData())) {
    keepStates();
    return exitCode;
  }
  if (!saveStates() || !writeOutputs())
    return exitCode;
  if (o.json)
    printJson(report);
  else
    printText(report, o);
  std::fflush(stdout); // a reader of the pipe need not wait until the memory of a large model is freed
  return compareOutputs();
}

bool Runner::checkNames(const Options::Named &named, const std::vector<NamedTensor> &tensors, const char *what) {
  for (const auto &[name, value] : named)
    if (find(tensors, name) < 0) {
      std::string message = std::string("the artifact has no ") + what + " " + name + "; it has";
      for (const NamedTensor &t : tensors)
        message += " " + t.name;
      return fail(kUsage, message);
    }
  return true;
}

/// Reads an input's file. With `isData`, the file holds the values of several runs along an additional first dimension.
std::optional<rt::NpyArray> Runner::arrayFor(uint32_t input, const std::string &path, bool isData) {
  std::string error;
  std::optional<rt::NpyArray> array = o.readArray(path, error);
  if (!array) {
    fail(kUsage, error);
    return std::nullopt;
  }
  const burin_tensor_info &info = *rt.artifact_input(artifact, input);
  bool isOther = array->dtype != DType(info.dtype);
  if (!isOther && array->shape.size() == info.rank + isData)
    return array;
  fail(kUsage, path + " holds " + typeText(array->dtype, array->shape) + ", input " + info.name + " must be " +
                   info.text + (isData ? " behind an axis of runs" : "") +
                   (isOther ? "\n  convert it before it is saved: x.astype(…) in NumPy" : ""));
  return std::nullopt;
}

bool Runner::readInputs() {
  for (const auto &[name, value] : o.inputs) {
    if (value[0] != '@')
      continue;
    size_t i = size_t(find(report.inputs, name));
    std::optional<rt::NpyArray> array = arrayFor(uint32_t(i), value.substr(1), /*isData=*/false);
    if (!array)
      return false;
    inputs[i] = {std::move(*array), true};
    report.inputs[i].source = value.substr(1);
  }
  return true;
}

/// Chooses the symbolic sizes: from the shapes of given inputs, else from --dim, else 1. Prints the defaults if some
/// inputs are given and some are not.
bool Runner::chooseSizes() {
  std::string known, left;
  for (uint32_t i = 0; i < rt.artifact_symbol_count(artifact); ++i) {
    const burin_symbol_info &symbol = *rt.artifact_symbol(artifact, i);
    int64_t value = std::max<int64_t>(symbol.min, 1);
    if (symbol.input == BURIN_COMPUTED) { // computed during the run
      symbolValues.push_back(value);
      continue;
    }
    known += " ";
    known += symbol.name;
    const Input &source = inputs[symbol.input];
    bool isGiven = source.given;
    if (isGiven)
      value = (source.array.shape[symbol.axis] - symbol.offset) / symbol.scale;
    for (const auto &[name, size] : o.dims)
      if (name == symbol.name) {
        if (source.given && size != value)
          return fail(kUsage, "--dim " + name + "=" + std::to_string(size) + ", but input " +
                                  report.inputs[symbol.input].name + " has " + std::to_string(value));
        value = size;
        isGiven = true;
      }
    if (!isGiven)
      left += std::string(left.empty() ? "" : " ") + symbol.name + "=" + std::to_string(value);
    symbolValues.push_back(value);
  }
  for (const auto &[name, size] : o.dims)
    if ((known + " ").find(" " + name + " ") == known.npos)
      return fail(kUsage, "the artifact has no symbolic size " + name +
                              (known.empty() ? "; all its sizes are fixed" : "; it has" + known));
  if (!o.dims.empty() && !left.empty())
    std::fprintf(stderr, "%s: note: sizes that are not given: %s; others by --dim NAME=SIZE\n", o.program.c_str(),
                 left.c_str());
  return true;
}

bool Runner::makeInput(uint32_t i) {
  const burin_tensor_info &info = *rt.artifact_input(artifact, i);
  std::vector<int64_t> shape(info.rank);
  if (!ok(rt.artifact_input_shape(artifact, i, symbolValues.data(), uint32_t(symbolValues.size()), shape.data())))
    return false;
  DType dtype = DType(info.dtype);
  double bytes = double(byteWidth(dtype));
  for (int64_t dim : shape)
    bytes *= double(dim);
  const std::string &inputName = report.inputs[i].name;
  if (bytes > 0x1p36)
    return fail(kUsage, "input " + inputName + " would be " + typeText(dtype, shape) + ", more than 64 GiB");
  auto option = std::find_if(o.inputs.begin(), o.inputs.end(), [&](const auto &o) { return o.first == inputName; });
  if (option == o.inputs.end()) {
    inputs[i].array = randomInput(dtype, std::move(shape), o.seed, i);
    return true;
  }
  const std::string &value = option->second;
  char *end = nullptr;
  double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end)
    return fail(kUsage, "--input " + inputName + " needs @FILE.npy or a number, got " + value);
  report.inputs[i].source = "filled";
  inputs[i].array = filled(dtype, std::move(shape), number);
  return true;
}

bool Runner::writeOutputs() {
  for (const auto &[name, value] : o.outputs) {
    Values v = report.outputs[size_t(find(report.outputs, name))].values();
    std::string error;
    size_t bytes = size_t(v.count()) * byteWidth(v.dtype);
    if (!rt::writeWholeFile(value.substr(1), rt::writeNpy(v.dtype, v.shape, {v.data, bytes}), error))
      return fail(kUsage, error);
  }
  return true;
}

int Runner::compareOutputs() {
  for (const auto &[name, value] : o.expected) {
    Values got = report.outputs[size_t(find(report.outputs, name))].values();
    std::string error;
    std::optional<rt::NpyArray> array = o.readArray(value.substr(1), error);
    if (!array)
      return fail(kUsage, error), exitCode;
    if (got.dtype != array->dtype ||
        !std::equal(got.shape.begin(), got.shape.end(), array->shape.begin(), array->shape.end()))
      return fail(kMismatch, name + " is " + typeText(got.dtype, got.shape) + ", expected " +
                                 typeText(array->dtype, array->shape)),
             exitCode;
    Difference d = compare(got, {array->dtype, array->shape, array->data.data()}, o.rtol, o.atol);
    std::fprintf(stderr, "%s: largest difference %.3g\n", name.c_str(), d.worstAbsolute);
    if (d.index >= 0)
      fail(kMismatch, name + " differs: element " + std::to_string(d.index) + " is " + std::to_string(d.got) +
                          ", expected " + std::to_string(d.expected));
  }
  return exitCode;
}
} // namespace burin::run
