#include "runtime/format/Safetensors.h"
#include "test/runtime/Checks.h"
#include <cstring>
#include <unistd.h>

using namespace burin;
using namespace burin::rt;
using namespace burin::rt::test;

extern "C" const char *checkCApi(const char *path, const void *data, size_t bytes);
extern "C" const char *checkStates(const void *data, size_t bytes, const char *const *paths);

TEST_CASE("the C interface works from C") {
  std::vector<std::byte> file = threeSteps(5).bytes();
  std::string path = "c-api-" + std::to_string(::getpid()) + ".plate";
  requireOk(writeFile(path, file));
  const char *failure = checkCApi(path.c_str(), file.data(), file.size());
  ::unlink(path.c_str());
  INFO((failure ? failure : ""));
  CHECK(failure == nullptr);
}

namespace {
/// A safetensors file.
std::vector<std::byte> stateFile(std::vector<Safetensor> tensors) {
  SafetensorsFile content{std::move(tensors), {}};
  std::vector<std::byte> file;
  std::string problem;
  REQUIRE(startSafetensors(content, file, problem));
  for (const Safetensor &tensor : content.tensors)
    file.resize(std::max<size_t>(file.size(), tensor.end));
  return file;
}
} // namespace

TEST_CASE("states are accessed, copied, reordered, saved and loaded from C") {
  Model model = threeSteps(5);
  model.weight("first rows", {1, 2, 3, 4, 5, 6});
  const uint32_t initial = uint32_t(model.a.constants.size() - 1);
  model.a.states = {{"on", DType::boolean, {2}, UINT32_MAX},
                    {"rows", DType::f32, {3, 2}, initial},
                    {"count", DType::i64, {}, UINT32_MAX},
                    {"none", DType::f32, {0, 4}, UINT32_MAX}};
  const std::vector<std::byte> artifact = model.bytes();
  const Safetensor on{"on", DType::boolean, {2}}, rows{"rows", DType::f32, {3, 2}}, count{"count", DType::i64, {}},
      none{"none", DType::f32, {0, 4}};
  std::vector<std::byte> whole = stateFile({on, rows, count, none}), badBool = whole, cutOff = whole;
  badBool.back() = std::byte(2); // bools are last
  cutOff.pop_back();
  const std::vector<std::vector<std::byte>> files = {
      {},
      stateFile({on, {"rows", DType::f32, {2, 3}}, count, none}),
      stateFile({on, {"rows", DType::i32, {3, 2}}, count, none}),
      stateFile({on, rows, count, none, {"other", DType::f32, {1}}}),
      stateFile({on, rows, none}),
      cutOff,
      badBool,
  };
  std::vector<std::string> names;
  std::vector<const char *> paths;
  for (size_t i = 0; i < files.size(); ++i)
    names.push_back("c-states-" + std::to_string(::getpid()) + "-" + std::to_string(i));
  for (size_t i = 0; i < files.size(); ++i) {
    paths.push_back(names[i].c_str());
    if (i)
      requireOk(writeFile(names[i], files[i]));
  }
  const char *failure = checkStates(artifact.data(), artifact.size(), paths.data());
  for (const std::string &name : names)
    ::unlink(name.c_str());
  INFO((failure ? failure : ""));
  CHECK(failure == nullptr);
}
