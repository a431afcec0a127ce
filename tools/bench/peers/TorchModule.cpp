#include "tools/bench/peers/TorchModule.h"
#include <ATen/Parallel.h>
#include <cstring>
#include <stdexcept>
#include <torch/csrc/api/include/torch/version.h>
#include <torch/script.h>

namespace burin::bench {
namespace {

at::Tensor tensorOf(const TorchArray &array) {
  at::Tensor tensor = at::empty(array.shape, array.isInteger ? at::kLong : at::kFloat);
  if (tensor.nbytes() != array.data.size())
    throw std::runtime_error("an input of another type than f32 and i64");
  std::memcpy(tensor.data_ptr(), array.data.data(), array.data.size());
  return tensor;
}

TorchArray arrayOf(const at::Tensor &result) {
  at::Tensor plain = result.to(at::kFloat).contiguous();
  TorchArray array{false, plain.sizes().vec(), std::vector<std::byte>(plain.nbytes())};
  std::memcpy(array.data.data(), plain.data_ptr(), plain.nbytes());
  return array;
}

} // namespace

struct TorchModule::State {
  c10::InferenceMode inference;
  torch::jit::Module module;
  std::vector<torch::jit::IValue> inputs;
  torch::jit::IValue result;
};

TorchModule::TorchModule(const std::string &path, const std::vector<TorchArray> &inputs) : state(new State) {
  torch::jit::Module traced = torch::jit::load(path);
  traced.eval();
  state->module = torch::jit::optimize_for_inference(traced); // includes freezing
  for (const TorchArray &input : inputs)
    state->inputs.emplace_back(tensorOf(input));
  for (int i = 0; i < 3; ++i) // the profiling executor optimises during the first calls
    run();
}

TorchModule::~TorchModule() = default;

void TorchModule::run() { state->result = state->module.forward(state->inputs); }

std::vector<TorchArray> TorchModule::outputs() const {
  if (state->result.isTensor())
    return {arrayOf(state->result.toTensor())};
  std::vector<TorchArray> arrays;
  for (const torch::jit::IValue &part : state->result.toTupleRef().elements())
    arrays.push_back(arrayOf(part.toTensor()));
  return arrays;
}

void setTorchThreads(int threads) {
  at::set_num_threads(threads);
  at::set_num_interop_threads(1);
}

std::string torchVersion() { return TORCH_VERSION; }

} // namespace burin::bench
