// burin-run: runs an artifact with the standalone runtime, through its C interface.
#include "runtime/Npy.h"
#include "tools/burin-run/Report.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace burin::run {
namespace {

double nowUs() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Runner {
public:
  explicit Runner(const Options &options) : o(options), rt(*burin_runtime_get(BURIN_RUNTIME_VERSION)) {}
  ~Runner() {
    rt.session_release(session);
    rt.artifact_release(artifact);
  }

  int run() {
    bool good = load() && checkNames() && readInputs() && chooseSizes() && fillInputs() && execute() && writeOutputs();
    if (!good)
      return exitCode;
    if (o.json)
      printJson(report);
    else
      printText(report, o);
    return compareOutputs();
  }

private:
  const Options &o;
  const burin_runtime_api &rt;
  burin_artifact *artifact = nullptr;
  burin_session *session = nullptr;
  Report report;
  struct Input {
    rt::NpyArray array;
    bool given = false; // by a file
  };
  std::vector<Input> inputs;
  std::vector<int64_t> symbolValues;
  int exitCode = kOk;

  bool fail(int code, const std::string &message) {
    std::fprintf(stderr, "burin-run: %s\n", message.c_str());
    exitCode = code;
    return false;
  }

  bool ok(burin_status *status) {
    if (!status)
      return true;
    constexpr int codes[] = {kOk, kUsage, kBadModel, kUnsupported, kBadModel, kInternal, kInternal, kInternal};
    uint32_t code = rt.status_code(status);
    fail(code < std::size(codes) ? codes[code] : kInternal, rt.status_message(status));
    rt.status_release(status);
    return false;
  }

  bool load() {
    double start = nowUs();
    burin_load_options options{sizeof options, o.trustWeights ? uint64_t(BURIN_LOAD_TRUST_WEIGHTS) : 0, {}};
    burin_session_options sessionOptions{};
    sessionOptions.struct_size = sizeof sessionOptions;
    sessionOptions.threads = o.threads;
    if (!ok(rt.artifact_load_file(o.model.c_str(), &options, &artifact)) ||
        !ok(rt.session_create(artifact, &sessionOptions, &session)))
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

  static int64_t find(const std::vector<NamedTensor> &tensors, const std::string &name) {
    for (size_t i = 0; i < tensors.size(); ++i)
      if (tensors[i].name == name)
        return int64_t(i);
    return -1;
  }

  bool checkNames(const Options::Named &named, const std::vector<NamedTensor> &tensors, const char *what) {
    for (const auto &[name, value] : named)
      if (find(tensors, name) < 0) {
        std::string message = std::string("the artifact has no ") + what + " " + name + "; it has";
        for (const NamedTensor &t : tensors)
          message += " " + t.name;
        return fail(kUsage, message);
      }
    return true;
  }

  bool checkNames() {
    return checkNames(o.inputs, report.inputs, "input") && checkNames(o.outputs, report.outputs, "output") &&
           checkNames(o.expected, report.outputs, "output");
  }

  bool readInputs() {
    for (const auto &[name, value] : o.inputs) {
      if (value[0] != '@')
        continue;
      size_t i = size_t(find(report.inputs, name));
      std::string error;
      std::optional<rt::NpyArray> array = rt::loadNpy(value.substr(1), error);
      if (!array)
        return fail(kUsage, error);
      const burin_tensor_info &info = *rt.artifact_input(artifact, uint32_t(i));
      if (array->dtype != DType(info.dtype) || array->shape.size() != info.rank)
        return fail(kUsage, value.substr(1) + " holds " + typeText(array->dtype, array->shape) + ", input " + name +
                                " must be " + info.text);
      inputs[i] = {std::move(*array), true};
      report.inputs[i].source = value.substr(1);
    }
    return true;
  }

  /// Symbolic sizes: from the inputs given, else from --dim, else 1.
  bool chooseSizes() {
    std::string known;
    for (uint32_t i = 0; i < rt.artifact_symbol_count(artifact); ++i) {
      const burin_symbol_info &symbol = *rt.artifact_symbol(artifact, i);
      known += " ";
      known += symbol.name;
      int64_t value = std::max<int64_t>(symbol.min, 1);
      const Input &source = inputs[symbol.input];
      if (source.given)
        value = source.array.shape[symbol.axis];
      for (const auto &[name, size] : o.dims)
        if (name == symbol.name) {
          if (source.given && size != value)
            return fail(kUsage, "--dim " + name + "=" + std::to_string(size) + ", but input " +
                                    report.inputs[symbol.input].name + " has " + std::to_string(value));
          value = size;
        }
      symbolValues.push_back(value);
    }
    for (const auto &[name, size] : o.dims)
      if ((known + " ").find(" " + name + " ") == known.npos)
        return fail(kUsage, "the artifact has no symbolic size " + name +
                                (known.empty() ? "; all its sizes are fixed" : "; it has" + known));
    return true;
  }

  bool fillInputs() {
    for (uint32_t i = 0; i < report.inputs.size(); ++i) {
      NamedTensor &input = report.inputs[i];
      if (!inputs[i].given && !makeInput(i))
        return false;
      rt::NpyArray &array = inputs[i].array;
      input.tensor = {array.data.data(), array.shape.data(), uint32_t(array.shape.size()), uint8_t(array.dtype), {}};
    }
    return true;
  }

  bool makeInput(uint32_t i) {
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
      inputs[i].array = random(dtype, std::move(shape), o.seed * 0x9e3779b97f4a7c15 + i);
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

  static void addStep(void *ctx, const burin_step_profile *step) {
    auto &steps = *static_cast<std::vector<StepTimes> *>(ctx);
    for (StepTimes &s : steps)
      if (s.step.step == step->step) {
        s.totalNs += step->end_ns - step->start_ns;
        ++s.runs;
        return;
      }
    steps.push_back({*step, step->end_ns - step->start_ns, 1});
  }

  bool runOnce(std::span<const burin_tensor> given, std::vector<burin_tensor> &outputs) {
    for (burin_tensor &output : outputs)
      output = {};
    return ok(rt.session_run(session, given.data(), uint32_t(given.size()), outputs.data(), uint32_t(outputs.size())));
  }

  bool execute() {
    std::vector<burin_tensor> given, outputs(report.outputs.size());
    for (const NamedTensor &input : report.inputs)
      given.push_back(input.tensor);
    if (o.repeat > 1 && !runOnce(given, outputs)) // warm-up
      return false;
    if (o.profile && !ok(rt.session_set_profile(session, addStep, &report.steps)))
      return false;
    for (int64_t i = 0; i < o.repeat; ++i) {
      double start = nowUs();
      if (!runOnce(given, outputs))
        return false;
      if (o.repeat > 1)
        report.runUs.push_back(nowUs() - start);
    }
    for (size_t i = 0; i < outputs.size(); ++i)
      report.outputs[i].tensor = outputs[i];
    report.arenaBytes = rt.session_arena_bytes(session);
    return true;
  }

  bool writeOutputs() {
    for (const auto &[name, value] : o.outputs) {
      Values v = report.outputs[size_t(find(report.outputs, name))].values();
      std::string error;
      size_t bytes = size_t(v.count()) * byteWidth(v.dtype);
      if (!rt::writeWholeFile(value.substr(1), rt::writeNpy(v.dtype, v.shape, {v.data, bytes}), error))
        return fail(kUsage, error);
    }
    return true;
  }

  int compareOutputs() {
    for (const auto &[name, value] : o.expected) {
      Values got = report.outputs[size_t(find(report.outputs, name))].values();
      std::string error;
      std::optional<rt::NpyArray> array = rt::loadNpy(value.substr(1), error);
      if (!array)
        return fail(kUsage, error), exitCode;
      if (!std::equal(got.shape.begin(), got.shape.end(), array->shape.begin(), array->shape.end()))
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
};

} // namespace
} // namespace burin::run

int main(int argc, char **argv) {
  burin::run::Parsed parsed = burin::run::parseOptions(argc, argv);
  return parsed.options ? burin::run::Runner(*parsed.options).run() : parsed.exitCode;
}
