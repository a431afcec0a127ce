// Bugs in PTX are found: in kernels of every family each barrier, shuffle, store, and each condition of a branch or an
// instruction is taken away in turn. Found means: another result, an access of bytes that the right kernel leaves
// alone, or a race, a wait or an endless loop that the interpreter reports. What is not found leaves these results
// right: the choice between vectors and single elements, or between divisions of 32 and 64 bits, where both are right,
// parts of the largest element of a softmax, which any large one can take the place of, columns of a panel that no
// result needs, the second barrier of a product with a single slice.
#include "runtime/execute/session/Session.h"
#include "test/Features.h"
#include "test/gpu/driver/FakeCuda.h"
#include "test/gpu/ptx/PtxProgram.h"
#include "test/ops/Graph.h"
#include "test/ops/Values.h"
#include <catch2/catch.hpp>
#include <cstring>
#include <sstream>

using namespace burin;
using namespace burin::test;

namespace {

constexpr const char *kTarget = "cuda-sm_80+ptx", *kHopper = "cuda-sm_90a+ptx", *kTf32 = "cuda-sm_80+ptx+tf32",
                     *kBf16x3 = "cuda-sm_80+ptx+bf16x3";

using Ints = std::vector<int64_t>;

struct Case {
  const char *name;
  std::function<Graph::Value(Graph &, const Graph::Values &inputs)> build;
  std::vector<Ints> inputs; // sizes that end between blocks, vectors and slices
  DType dtype = f32;
  const char *target = kTarget;
  bool isOpen = false; // only a run knows the first size, which counts as large
};

Graph::Value apply(Graph &g, const char *op, const Graph::Values &v, const Attrs &attrs = {}) {
  return g.apply(op, v, attrs)[0];
}
Graph::Value applyTanh(Graph &g, const Graph::Values &x) { return apply(g, "tanh", x); }
Graph::Value softmaxOf(Graph &g, const Graph::Values &x) { return apply(g, "softmax", x, {{"axis", int64_t(1)}}); }
Graph::Value rowSum(Graph &g, const Graph::Values &x) { return apply(g, "reduce_sum", x, {{"axes", Ints{1}}}); }
Graph::Value columnMax(Graph &g, const Graph::Values &x) { return apply(g, "reduce_max", x, {{"axes", Ints{0}}}); }
Graph::Value meanRemoved(Graph &g, const Graph::Values &x) {
  Graph::Value mean = apply(g, "reduce_mean", x, {{"axes", Ints{0}}, {"keepdims", true}});
  return apply(g, "sub", {x[0], apply(g, "broadcast_to", {mean}, {{"shape", g.spec(x[0]).shape}})});
}
Graph::Value product(Graph &g, const Graph::Values &x) { return apply(g, "relu", {apply(g, "matmul", x)}); }
Graph::Value wideProduct(Graph &g, const Graph::Values &x) { return apply(g, "matmul", x); }
Graph::Value convolution(Graph &g, const Graph::Values &x) {
  return apply(g, "conv", x, {{"padding", Ints{1}}, {"strides", Ints{2}}});
}

Graph::Value lastChannels(Graph &g, const Graph::Values &x) {
  return apply(g, "conv", x, {{"padding", Ints{1}}, {"strides", Ints{2}}, {"layout", std::string("nhwc")}});
}
Graph::Value attention(Graph &g, const Graph::Values &x) {
  return apply(g, "scaled_dot_product_attention", {x[0], x[1], x[2], Graph::none}, {{"is_causal", true}});
}
Graph::Value attendAll(Graph &g, const Graph::Values &x) {
  return apply(g, "scaled_dot_product_attention", {x[0], x[1], x[2], Graph::none});
}
Graph::Value differentiated(Graph &g, const Graph::Values &x) {
  return apply(g, "attention_gradient", {x[0], x[1], x[2], x[3], Graph::none}, {{"scale", .25}});
}
Graph::Value runningSum(Graph &g, const Graph::Values &x) { return apply(g, "cumsum", x, {{"axis", int64_t(1)}}); }
Graph::Value sorted(Graph &g, const Graph::Values &x) { return apply(g, "argsort", x, {{"axis", int64_t(1)}}); }
Graph::Value firstSorted(Graph &g, const Graph::Values &x) {
  return apply(g, "slice", {sorted(g, x)}, {{"starts", Shape{0, 0}}, {"stops", Shape{1, 30}}, {"steps", Ints{1, 1}}});
}
Graph::Value suppressed(Graph &g, const Graph::Values &x) {
  return apply(g, "non_max_suppression", x,
               {{"iou_threshold", .6}, {"score_threshold", -9.}, {"max_output", int64_t(70)}, {"centers", false}});
}
Graph::Value scattered(Graph &g, const Graph::Values &x) {
  ir::RefTensor indices = ir::RefTensor::zeros(i64, {4, 33});
  for (size_t i = 0; i < indices.ints().size(); ++i)
    indices.ints()[i] = int64_t(i * 7 % 9) - int64_t(i % 3 == 0 ? 9 : 0); // some count from the end
  return apply(g, "scatter", {x[0], g.constant(indices), x[1]}, {{"reduction", std::string("add")}});
}

Graph::Value transposed(Graph &g, const Graph::Values &x) {
  return apply(g, "transpose", x, {{"perm", Ints{0, 2, 1}}});
}

Graph::Value addTransposed(Graph &g, const Graph::Values &x) { return apply(g, "add", {transposed(g, {x[0]}), x[1]}); }
Graph::Value pooled(Graph &g, const Graph::Values &x) {
  return apply(g, "max_pool", x, {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"padding", Ints{1, 1, 1, 1}}});
}

const Case kCases[] = {
    {"map", applyTanh, {{3, 361}}},
    {"map", applyTanh, {{1100}}},
    {"map", applyTanh, {{4, 512}}},
    {"rows", softmaxOf, {{3, 300}}},
    {"rows", softmaxOf, {{2, 33}}},
    {"sums of rows", rowSum, {{5, 33}}},
    {"sums of rows", rowSum, {{3, 530}}},
    {"sums of rows in parts", rowSum, {{2, 8200}}},
    {"columns", columnMax, {{7, 130}}},
    {"columns in parts", columnMax, {{700, 5}}},
    {"columns in parts, which one block combines", meanRemoved, {{260, 33}}, f32, kTarget, true},
    {"columns", columnMax, {{3, 5}}},
    {"product", product, {{70, 33}, {33, 66}}},
    {"product", product, {{3, 16}, {16, 64}}},
    {"product", product, {{65, 17}, {17, 3}}},
    {"convolution", convolution, {{1, 3, 9, 8}, {5, 3, 3, 3}, {5}}},
    {"convolution", convolution, {{5, 8, 7, 7}, {16, 8, 3, 3}, {16}}},
    {"large product", product, {{130, 52}, {52, 72}}, f32, kTarget, true},
    {"thin product", product, {{3, 530}, {530, 70}}},
    {"product on tensor cores", product, {{70, 136}, {136, 72}}, bf16},
    {"product on tensor cores", product, {{9, 20}, {20, 33}}, f16},
    {"product by warpgroups", product, {{70, 328}, {328, 264}}, bf16, kHopper, true},
    {"product of 8-bit floats by warpgroups", wideProduct, {{70, 656}, {656, 248}}, f8e4m3fn, kHopper, true},
    {"product of bytes by warpgroups", product, {{70, 656}, {656, 248}}, i8, kHopper, true},
    {"convolution by warpgroups", lastChannels, {{70, 1, 2, 144}, {3, 3, 144, 120}, {120}}, f16, kHopper, true},
    {"attention by warpgroups", attendAll, {{70, 24}, {384, 24}, {384, 16}}, f16, kHopper},
    {"product of bytes", product, {{70, 144}, {144, 80}}, i8},
    {"product of bytes", product, {{9, 37}, {37, 33}}, u8},
    {"product in tf32", product, {{70, 36}, {36, 72}}, f32, kTf32},
    {"product in tf32", product, {{9, 10}, {10, 33}}, f32, kTf32},
    {"product in bf16x3", product, {{70, 36}, {36, 72}}, f32, kBf16x3},
    {"convolution on tensor cores", lastChannels, {{2, 9, 8, 16}, {3, 3, 16, 32}, {32}}, f16},
    {"attention", attention, {{70, 20}, {70, 20}, {70, 12}}},
    {"attention of few rows in parts", attendAll, {{2, 3, 64}, {2, 188, 64}, {2, 188, 64}}, f16},
    {"attention of few rows in parts", attendAll, {{1, 9, 36}, {1, 63, 36}, {1, 63, 20}}},
    {"attention on tensor cores", attention, {{130, 40}, {130, 40}, {130, 24}}, bf16},
    {"gradients of attention", differentiated, {{70, 20}, {67, 20}, {67, 20}, {70, 20}}},
    {"gradients of attention on tensor cores", differentiated, {{70, 24}, {67, 24}, {67, 24}, {70, 24}}, bf16},
    {"transpose", transposed, {{1, 128, 70}}},
    {"transpose", transposed, {{1, 66, 130}}, bf16},
    {"transpose of few rows", transposed, {{2, 3, 1040}}, f16},
    {"transpose of few columns", transposed, {{2, 1037, 5}}},
    {"transposed operand", addTransposed, {{1, 128, 70}, {1, 70, 128}}},
    {"windows", pooled, {{1, 2, 10, 13}}},
    {"running sum", runningSum, {{2, 1500}}},
    {"sort", sorted, {{2, 100}}},
    {"sort", sorted, {{1, 512}}},
    {"sort of a long line", sorted, {{1, 4096}}},
    {"first of a sorted line", firstSorted, {{1, 2500}}},
    {"suppression", suppressed, {{1, 70, 4}, {1, 2, 70}}},
    {"scatter", scattered, {{9, 33}, {4, 33}}},
};

/// One session's run, with interpreted kernels.
struct Outcome {
  std::string error;
  std::vector<std::byte> results;
};

class Subject {
public:
  explicit Subject(const Case &c) {
    Graph g;
    Graph::Values values;
    for (const Ints &sizes : c.inputs) {
      Shape shape(sizes.begin(), sizes.end());
      if (c.isOpen && values.empty())
        shape[0] = Dim("rows");
      values.push_back(g.input({c.dtype, shape}));
    }
    g.output(c.build(g, values));
    rt::Status status = rt::Program::loadMemory(g.artifact({c.target}), nullptr, {}, program);
    REQUIRE(status.ok());
    Random random(3);
    for (const Ints &shape : c.inputs)
      inputs.push_back(randomTensor(c.dtype, shape, {}, Mood::Plain, random));
  }

  std::string ptx() const { return program->gpuCode(program->artifact().codes[0]); }

  Outcome run(fake::Traces traces) {
    fake::setTraces(traces, 0);
    Outcome outcome;
    runOne(outcome);
    return outcome;
  }

private:
  rt::Program::Ptr program;
  Tensors inputs;

  void runOne(Outcome &outcome) {
    std::unique_ptr<rt::Session> session;
    rt::Status status = rt::Session::create(program, {.threads = 1, .device = "cuda:0"}, session);
    if (status.ok()) {
      std::vector<std::vector<char>> bytes;
      std::vector<rt::TensorView> views, outputs(1);
      for (const ir::RefTensor &t : inputs)
        bytes.push_back(t.toBytes());
      for (size_t i = 0; i < inputs.size(); ++i)
        views.push_back({bytes[i].data(), inputs[i].shape.data(), uint32_t(inputs[i].shape.size()), inputs[i].dtype});
      status = session->run(views, outputs);
      if (status.ok()) {
        const auto *data = static_cast<const std::byte *>(outputs[0].data);
        outcome.results.insert(outcome.results.end(), data, data + session->outputBytes(0));
      }
    }
    outcome.error = status.message();
  }
};

/// A changed line, and what the change is.
struct Mutant {
  size_t line;
  std::string text, what;
};

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

/// "shfl.sync.down.b32 to, from, 16, 31, -1;" with 0 instead of 16.
std::string withDistance0(const std::string &code) {
  size_t last = code.rfind(',', code.rfind(',') - 1), before = code.rfind(',', last - 1);
  return code.substr(0, before) + ", 0" + code.substr(last);
}

/// Of the last kernel: those before it pack and transpose, as maps do.
std::vector<Mutant> mutantsOf(const std::vector<std::string> &lines) {
  std::vector<Mutant> all;
  size_t first = lines.size() - 1;
  while (first > 0 && lines[first].find(".entry") == std::string::npos)
    --first;
  for (size_t i = first; i < lines.size(); ++i) {
    const std::string &line = lines[i];
    size_t at = line.find_first_not_of(" \t");
    if (at == line.npos)
      continue;
    std::string code = line.substr(at);
    if (code.starts_with("bar.sync") || code.starts_with("bar.warp.sync"))
      all.push_back({i, "", "without " + code});
    else if (code.starts_with("st.shared") || code.starts_with("st.global"))
      all.push_back({i, "", "without " + code});
    else if (code.starts_with("cp.async") || code.starts_with("mbarrier.") || code.starts_with("wgmma.") ||
             code.starts_with("fence."))
      all.push_back({i, "", "without " + code});
    else if (code.starts_with("cvt.rna.tf32.f32")) // not rounded
      all.push_back({i, "mov.b32" + code.substr(code.find_first_of(" \t")), "without " + code});
    else if (code.starts_with("shfl.sync.down") || code.starts_with("shfl.sync.up") ||
             code.starts_with("shfl.sync.bfly")) // its own value instead of another's
      all.push_back({i, withDistance0(code), "without " + code});
    if (code.starts_with("cp.async.wait_group")) // one group less
      all.push_back(
          {i, "cp.async.wait_group " + std::to_string(1 + std::stoi(code.substr(19))) + ";", "weaker " + code});
    if (code.starts_with("mbarrier.arrive.expect_tx")) // fewer, and more bytes
      for (const char *bytes : {"16;", "131072;"})
        all.push_back({i, code.substr(0, code.rfind(',') + 1) + bytes, std::string("with ") + bytes});
    for (int groups : {0, 1})
      if (code.starts_with("wgmma.wait_group.sync.aligned \t" + std::to_string(groups)) ||
          code.starts_with("wgmma.wait_group.sync.aligned " + std::to_string(groups)))
        all.push_back({i, "wgmma.wait_group.sync.aligned " + std::to_string(groups + 1) + ";", "weaker " + code});
    if (!code.starts_with("@"))
      continue;
    std::string rest = code.substr(code.find_first_of(" \t"));
    all.push_back({i, "", "never " + code});
    all.push_back({i, rest, "always " + code});
  }
  return all;
}

std::string joined(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

/// Changes of one kind, and those of them that were found.
struct Count {
  size_t planted = 0, found = 0;
  bool isFound(size_t percent) const { return found * 100 >= planted * percent; }
  std::string text() const { return std::to_string(found) + " of " + std::to_string(planted); }
};

/// Whether no thread has come there, or the condition that was taken away had the value that it now has in all threads.
bool changesNothing(const Mutant &mutant, const std::vector<std::array<uint64_t, 2>> &executed) {
  const auto [skipped, done] = executed.at(mutant.line + 1);
  return mutant.what.starts_with("always") ? skipped == 0 : done == 0;
}

/// Whether the changed kernels behave differently.
bool isFound(Subject &subject, std::vector<std::string> lines, const Mutant &mutant, const Outcome &expected) {
  lines[mutant.line] = mutant.text;
  fake::replacePtx(joined(lines));
  Outcome outcome = subject.run(fake::Traces::Check);
  fake::replacePtx("");
  (void)fake::problems();
  return outcome.error != expected.error || outcome.results != expected.results;
}

} // namespace

TEST_CASE("Planted bugs in PTX are found") {
  fake::failCall(0);
  fake::setMultiprocessors(1); // the block of a product by warpgroups computes both tiles
  Count branches, others;
  size_t constant = 0, number = 0;
  std::string survivors;
  for (const Case &c : kCases) {
    Subject subject(c);
    ptx::limitInstructions(uint64_t(1) << 40);
    Outcome expected = subject.run(fake::Traces::Learn);
    INFO(c.name);
    REQUIRE(expected.error == "");
    const uint64_t most = 20 * ptx::instructions() + 100'000;
    const auto executed = ptx::executed();
    std::vector<std::string> lines = linesOf(subject.ptx());
    for (const Mutant &mutant : mutantsOf(lines)) {
      if (changesNothing(mutant, executed)) {
        ++constant;
        continue;
      }
      if (!isSampled(number++, 16))
        continue;
      ptx::limitInstructions(most);
      Count &count = lines[mutant.line].find('@') == std::string::npos ? others : branches;
      ++count.planted;
      if (isFound(subject, lines, mutant, expected))
        ++count.found;
      else
        survivors += std::string(c.name) + " " + std::to_string(c.inputs[0][0]) + ", line " +
                     std::to_string(mutant.line + 1) + ": " + mutant.what + "\n";
    }
  }
  ptx::limitInstructions(~uint64_t(0));
  fake::setTraces(fake::Traces::Ignore, 0);
  fake::setMultiprocessors(132);
  INFO(branches.text() << " changed branches found, " << others.text() << " others, " << constant
                       << " change nothing; not found:\n"
                       << survivors);
  CHECK(others.planted > (isLong() ? 300 : 37));
  CHECK(others.isFound(97));
  // The rest of the branches are around work that the sizes of a case do not need, or around a faster way.
  CHECK(branches.isFound(isLong() ? 90 : 80)); // some 70 branches without --long
}
