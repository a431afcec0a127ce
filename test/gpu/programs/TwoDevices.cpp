#include "test/gpu/programs/TwoDevices.h"
#include "frontend/trace/GraphData.h"
#include "runtime/format/Target.h"
#include "test/gpu/emulator/Simt.h"
#include "test/gpu/runs/RunOnGpu.h"
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace burin::test {
namespace {

void require(const rt::Status &status) {
  if (!status.ok())
    throw std::runtime_error(status.message());
}

rt::TensorView viewOf(const Tensor &x, std::vector<int64_t> &shape) {
  for (const Dim &size : x.spec().shape)
    shape.push_back(size.value());
  return {const_cast<std::byte *>(x.bytes().data()), shape.data(), uint32_t(shape.size()), x.dtype()};
}

Tensor tensorOf(const rt::TensorView &view) {
  return from_bytes(view.data, {view.dtype, Shape(view.shape, view.shape + view.rank)});
}

/// Where two lists of tensors differ first.
std::string compared(const std::vector<Tensor> &got, const std::vector<Tensor> &want, double atol, double rtol) {
  if (got.size() != want.size())
    return "other numbers of tensors";
  for (size_t i = 0; i < got.size(); ++i) {
    std::string which = "tensor " + std::to_string(i) + ": ";
    if (got[i].spec() != want[i].spec())
      return which + str(got[i].spec()) + " instead of " + str(want[i].spec());
    auto a = got[i].bytes(), b = want[i].bytes();
    if (a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0)
      continue;
    std::vector<double> x = got[i].to_vector<double>(), y = want[i].to_vector<double>();
    for (size_t j = 0; j < x.size(); ++j) {
      bool isSame = x[j] == y[j] || (std::isnan(x[j]) && std::isnan(y[j]));
      if (!isSame && !(std::abs(x[j] - y[j]) <= atol + rtol * std::abs(y[j])))
        return which + "element " + std::to_string(j) + " is " + std::to_string(x[j]) + " instead of " +
               std::to_string(y[j]);
    }
  }
  return "";
}

std::vector<Tensor> valuesOf(const TestSession &session) {
  std::vector<Tensor> values;
  for (auto &[name, value] : session.states())
    values.push_back(value);
  return values;
}

} // namespace

rt::Program::Ptr programForBoth(const Graph &graph, const std::string &gpuTarget) {
  Graph::Data &data = *graph.shared();
  mlir::OwningOpRef<mlir::ModuleOp> module = data.module->clone();
  codegen::CompileOptions options;
  options.targets = {std::string(rt::hostTarget()), gpuTarget};
  options.emulate = ptxForFakeDriver(gpuTarget);
  auto artifact = codegen::compile(*module, options);
  if (mlir::failed(artifact))
    throw std::runtime_error(data.takeDiagnostics());
  rt::Program::Ptr program;
  require(rt::Program::loadMemory(*artifact, nullptr, {}, program));
  return program;
}

TestSession::TestSession(const rt::Program::Ptr &program, const std::string &device) {
  require(rt::Session::create(program, {.threads = 1, .device = device}, session));
}

Outcome TestSession::run(const std::string &function, const std::vector<Tensor> &inputs) {
  const std::vector<rt::Plan> &plans = session->program().artifact().plans;
  uint32_t index = 0;
  while (index < plans.size() && plans[index].name != function)
    ++index;
  if (index == plans.size())
    throw std::runtime_error("no function " + function);
  std::vector<std::vector<int64_t>> shapes(inputs.size());
  std::vector<rt::TensorView> views, outputs(plans[index].callerOutputs());
  for (size_t i = 0; i < inputs.size(); ++i)
    views.push_back(viewOf(inputs[i], shapes[i]));
  Outcome outcome{session->run(views, outputs, index), {}};
  for (size_t i = 0; outcome.status.ok() && i < outputs.size(); ++i)
    outcome.results.push_back(tensorOf(outputs[i]));
  return outcome;
}

std::vector<std::pair<std::string, Tensor>> TestSession::states() const {
  std::vector<std::pair<std::string, Tensor>> all;
  const std::vector<rt::State> &states = session->program().artifact().states;
  for (uint32_t i = 0; i < states.size(); ++i) {
    rt::TensorView value;
    require(session->readState(i, value));
    all.emplace_back(states[i].name, tensorOf(value));
  }
  return all;
}

std::string TwoDevices::differences(const std::string &function, const std::vector<Tensor> &inputs, double atol,
                                    double rtol) {
  onCpu = cpu.run(function, inputs);
  onGpu = gpu.run(function, inputs);
  if (onGpu.status.code() != onCpu.status.code() || onGpu.status.message() != onCpu.status.message())
    return "\"" + onGpu.status.message() + "\" instead of \"" + onCpu.status.message() + "\"";
  return resultDifferences(atol, rtol);
}

std::string TwoDevices::resultDifferences(double atol, double rtol) const {
  return compared(onGpu.results, onCpu.results, atol, rtol);
}

std::string TwoDevices::differentStates(double atol, double rtol) const {
  return compared(valuesOf(gpu), valuesOf(cpu), atol, rtol);
}

std::string emulatorErrors() {
  std::string text;
  for (const std::string &error : simt::takeErrors())
    text += error + "\n";
  return text;
}

} // namespace burin::test
