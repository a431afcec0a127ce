// Common mistakes of users: each message is short, names the line and suggests a correction.
#include "test/frontend/Check.h"
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace {
/// Flips one bit of a file.
void damage(const std::string &path, long offset) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(offset);
  int byte = file.get();
  file.seekp(offset);
  file.put(char(byte ^ 4));
}
} // namespace

TEST_CASE("mistakes in calls are explained") {
  auto net = nn::Linear(4, 2);
  StateDict state = net.state_dict();
  state.pop_back();
  CHECK_ERROR(ones({2, 3}) + ones({4}), "x f32[2, 3] and y f32[4] do not broadcast", "unsqueeze or reshape");
  CHECK_ERROR(matmul(ones({2, 3}), ones({4, 5})), "lhs has 3 columns but rhs has 4 rows", "make the two sizes equal");
  CHECK_ERROR(matmul(ones({2, 3}), ones({5, 3})), "lhs has 3 columns but rhs has 5 rows", "transpose rhs");
  CHECK_ERROR(bitwise_and(ones({2}), ones({2})), "f32[2] has the wrong element type", "cast to an integer type");
  CHECK_ERROR(net.load_state_dict(state), "missing (1): bias", "load_state_dict(state, false)");
  CHECK_ERROR(net.load_state_dict(nn::Linear(3, 2).state_dict()), "weight is [2, 3], not [2, 4]", "build the module");
  Graph graph = trace(net, {TensorSpec{f32, {Dim("batch"), 4}}});
  CHECK_ERROR(compile(graph, {.targets = {"riscv"}}), "unknown target 'riscv'", "known are: native, x86-64-v3");
}

TEST_CASE("files that cannot be used are explained") {
  namespace fs = std::filesystem;
  fs::path folder = fs::temp_directory_path() / ("burin-errors-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  std::string text = folder / "text", plate = folder / "a.plate", burin = folder / "a.burin", none = folder / "none";
  std::ofstream(text) << "hello, this is another file";
  std::string missing = none + ": No such file or directory\n  check the path";
  CHECK_ERROR(load_safetensors(none), "No such file or directory\n  check the path");
  CHECK_ERROR(load_npy(none), missing.c_str());
  CHECK_ERROR(load(none), missing.c_str());
  CHECK_ERROR(Graph::load(none), "No such file or directory\n  give the path of a graph");
  CHECK_ERROR(load_safetensors(text), "another format", "copy the file again");
  Graph graph = trace(nn::Linear(4, 2), {TensorSpec{f32, {Dim("batch"), 4}}});
  compile(graph).save(plate);
  graph.save(burin);
  damage(plate, 200);
  damage(burin, 200);
  CHECK_ERROR(load(plate), "the artifact is damaged: checksum mismatch", "copy or compile it again");
  CHECK_ERROR(Graph::load(burin), "the file is damaged: its checksum does not match", "copy the file again");
  fs::remove_all(folder);
}

TEST_CASE("arithmetic of sizes throws the one exception, at the caller's line") {
  const int line = __LINE__ + 1;
  Size size = zeros({4}).size(0);
  CHECK_ERROR(Dim("a b"), "a b", "identifier");
  CHECK_ERROR(Dim("batch").value(), "batch", "symbolic");
  CHECK(contains(messageOf([&] { size / 0; }), atLine(__FILE__, line) + "a size is divided by 0"));
  CHECK(contains(messageOf([&] { size % 0; }), "divided by 0"));
  CHECK(contains(messageOf([&] { size *INT64_MAX; }), "64 bits"));
  CHECK_THROWS_AS(floordiv(Dim(1), 0), Error);
}
