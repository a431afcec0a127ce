// oneDNN as a contestant for single kernels. Weights and images are in the layouts that oneDNN chooses; they are
// converted before timing starts. burin-bench-onednn FOLDER
#include "tools/bench/programs/Contestant.h"
#include <cstring>
#include <dnnl.hpp>

namespace burin::bench {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
using Dims = memory::dims;
constexpr auto kInference = dnnl::prop_kind::forward_inference;

memory::desc desc(const Dims &dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }

class OneDnn : public Contestant {
public:
  explicit OneDnn(std::string folder) : folder(std::move(folder)) {}

  void load(const std::string &name) override {
    workload = name;
    arguments.clear();
    s = describe(folder, name);
    if (s.kind == "gemm" || s.kind == "gemm-inputs")
      loadGemm();
    else if (s.kind == "conv")
      loadConv();
    else
      loadRows();
    runOnce();
  }

  void runOnce() override {
    primitive.execute(stream, arguments);
    stream.wait();
  }

  std::vector<rt::NpyArray> outputs() override {
    memory &dst = arguments.at(DNNL_ARG_DST);
    memory plain = convert(dst, resultDesc);
    rt::NpyArray array{DType::f32, resultShape, {}};
    array.data.resize(resultDesc.get_size());
    std::memcpy(array.data.data(), plain.get_data_handle(), array.data.size());
    return {std::move(array)};
  }

  std::string settings() override {
    const dnnl_version_t *v = dnnl_version();
    return "oneDNN " + std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch) +
           ", OpenMP; weights and images in its own layouts, converted beforehand";
  }

private:
  std::string folder, workload;
  Description s;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
  memory::desc resultDesc;
  std::vector<int64_t> resultShape;

  memory convert(memory &from, const memory::desc &to) {
    memory result(to, engine);
    dnnl::reorder(from, result).execute(stream, from, result);
    stream.wait();
    return result;
  }
  /// Reads an array of the workload, whose layout is `have`, and reorders it to `want`.
  memory array(const std::string &part, const memory::desc &have, const memory::desc &want) {
    rt::NpyArray values = readArray(folder, workload, part);
    if (values.data.size() != have.get_size())
      throw Failure{workload + "." + part + ".npy has another size"};
    memory plain(have, engine, values.data.data());
    return convert(plain, want);
  }
  void finish(const memory::desc &dst, memory::desc result, std::vector<int64_t> shape) {
    arguments[DNNL_ARG_DST] = memory(dst, engine);
    resultDesc = std::move(result);
    resultShape = std::move(shape);
  }

  void loadGemm() {
    memory::desc x = desc({s["m"], s["k"]}, Tag::ab), w = desc({s["k"], s["n"]}, Tag::ab),
                 anyW = desc({s["k"], s["n"]}, Tag::any), y = desc({s["m"], s["n"]}, Tag::ab);
    dnnl::matmul::primitive_desc pd({x, s.kind == "gemm" ? anyW : w, y}, engine);
    arguments[DNNL_ARG_SRC] = array("x", x, x);
    arguments[DNNL_ARG_WEIGHTS] = array("weight", w, pd.weights_desc());
    finish(y, y, {s["m"], s["n"]});
    primitive = dnnl::matmul(pd);
  }

  void loadConv() {
    int64_t groups = s["groups"], in = s["in"], out = s["out"], size = s["size"], kernel = s["kernel"],
            padding = kernel / 2, result = (size + 2 * padding - kernel) / s["stride"] + 1;
    Dims x{1, in, size, size}, y{1, out, result, result}, w{out, in / groups, kernel, kernel};
    if (groups > 1)
      w = {groups, out / groups, in / groups, kernel, kernel};
    Tag plain = groups > 1 ? Tag::abcde : Tag::abcd;
    dnnl::convolution_forward::desc d(kInference, dnnl::algorithm::convolution_direct, desc(x, Tag::any),
                                      desc(w, Tag::any), desc({out}, Tag::a), desc(y, Tag::any),
                                      {s["stride"], s["stride"]}, {padding, padding}, {padding, padding});
    dnnl::convolution_forward::primitive_desc pd(d, engine);
    arguments[DNNL_ARG_SRC] = array("x", desc(x, Tag::nhwc), pd.src_desc());
    arguments[DNNL_ARG_WEIGHTS] = array("weight", desc(w, plain), pd.weights_desc());
    arguments[DNNL_ARG_BIAS] = array("bias", desc({out}, Tag::a), desc({out}, Tag::a));
    finish(pd.dst_desc(), desc(y, Tag::nhwc), {1, result, result, out});
    primitive = dnnl::convolution_forward(pd);
  }

  void loadRows() {
    int64_t rows = s["rows"], columns = s["columns"];
    memory::desc x = desc({rows, columns}, Tag::ab), vector = desc({columns}, Tag::a);
    arguments[DNNL_ARG_SRC] = array("x", x, x);
    finish(x, x, {rows, columns});
    if (s.kind == "softmax") {
      primitive = dnnl::softmax_forward({{kInference, x, 1}, engine});
    } else if (s.kind == "layer_norm") {
      auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
      arguments[DNNL_ARG_SCALE] = array("weight", vector, vector);
      arguments[DNNL_ARG_SHIFT] = array("bias", vector, vector);
      primitive = dnnl::layer_normalization_forward({{kInference, x, 1e-5f, flags}, engine});
    } else if (s.kind == "gelu") {
      primitive = dnnl::eltwise_forward({{kInference, dnnl::algorithm::eltwise_gelu_erf, x, 0, 0}, engine});
    } else if (s.kind == "bias_gelu") {
      dnnl::post_ops gelu;
      gelu.append_eltwise(1, dnnl::algorithm::eltwise_gelu_erf, 0, 0);
      dnnl::primitive_attr attributes;
      attributes.set_post_ops(gelu);
      memory::desc row = desc({1, columns}, Tag::ab);
      arguments[DNNL_ARG_SRC_0] = arguments.at(DNNL_ARG_SRC);
      arguments[DNNL_ARG_SRC_1] = array("bias", row, row);
      primitive = dnnl::binary({{dnnl::algorithm::binary_add, x, row, x}, attributes, engine});
    } else {
      throw Failure{"unsupported: " + s.kind};
    }
  }
};

} // namespace
} // namespace burin::bench

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  burin::bench::OneDnn contestant(argv[1]);
  return burin::bench::serve(contestant, argv[1], "onednn");
}
