// State dicts that PyTorch saved; see make_pth.py.
#include "test/frontend/Check.h"
#include "test/training/Cases.h"
#include <cstdio>
#include <filesystem>
#include <fstream>

using namespace burin::test;

namespace {

std::string pathOf(const std::string &name) { return BURIN_SOURCE_DIR "/test/training/inputs/" + name + ".pth"; }

std::string bytesOf(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

TEST_CASE("state dicts of PyTorch are read") {
  for (const auto &[name, expected] : loadCases("pth.json")) {
    StateDict got = load_pth(pathOf(name));
    for (const auto &[key, value] : expected) {
      INFO(name << ": " << key);
      REQUIRE(got.find(key));
      checkClose(got.at(key), value, 1e-7, key);
    }
  }
  CHECK(load_pth(pathOf("views")).at("e4m3").dtype() == f8e4m3fn);
  CHECK(load_pth(pathOf("views")).at("e5m2").dtype() == f8e5m2);
  StateDict checkpoint = load_pth(pathOf("checkpoint"));
  CHECK(checkpoint.at("odd.bf16").dtype() == bf16);
  CHECK(checkpoint.at("odd.half").dtype() == f16);
  CHECK(checkpoint.at("odd.flags").dtype() == boolean);
  CHECK(ints(checkpoint.at("odd.bytes")) == std::vector<int64_t>{0, 1, 2});
  CHECK_FALSE(checkpoint.find("name"));
}

TEST_CASE("weights and the optimiser's state go from PyTorch into a module") {
  auto net = nn::Sequential({{"fc", nn::Linear(3, 2)}, {"norm", nn::BatchNorm1d(2)}});
  net.load_state_dict(load_pth(pathOf("weights")));
  StateDict checkpoint = load_pth(pathOf("checkpoint"));
  net.load_state_dict(checkpoint.part("model."));
  optim::AdamW optimizer(net.parameters());
  optimizer.load_state_dict(checkpoint.part("optimizer."));
  CHECK(optimizer.lr() == 0.01);
  CHECK(optimizer.state_dict().at("state.3.step").item() == 2);
  CHECK(largestDifference(optimizer.state_dict().at("state.0.exp_avg_sq"),
                          checkpoint.at("optimizer.state.0.exp_avg_sq")) == 0);
}

TEST_CASE("what is no state dict is refused by name, and nothing runs") {
  CHECK_ERROR(load_pth(pathOf("module")), "torch.nn.modules.linear.Linear", "state_dict()");
  CHECK_ERROR(load_pth(pathOf("evil")), "system", "refused");
  CHECK_ERROR(load_pth(pathOf("endless")), "nested");
  CHECK_ERROR(load_pth(pathOf("legacy")), "zip", "save it again");
  CHECK_ERROR(load_pth(pathOf("none")), "none.pth", "check the path");
}

TEST_CASE("damaged files of PyTorch are refused or read, but never crash") {
  const std::string good = bytesOf(pathOf(GENERATE("checkpoint", "views")));
  const std::string path = (std::filesystem::temp_directory_path() / "burin-damaged.pth").string();
  auto attempt = [&](const std::string &bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
    try {
      for (const auto &[name, tensor] : load_pth(path))
        tensor.wait();
      return true;
    } catch (const Error &) {
      return false;
    }
  };
  CHECK(attempt(good));
  for (size_t cut = 0; cut < good.size(); cut += 997)
    CHECK_FALSE(attempt(good.substr(0, cut)));
  size_t begin = good.find("data.pkl") + 8, end = good.find("PK", begin);
  for (size_t at = 0; at < good.size(); at += at >= begin && at < end ? 3 : 41) {
    std::string bytes = good;
    bytes[at] = char(bytes[at] ^ (1 << (at % 8)));
    attempt(bytes);
  }
  std::remove(path.c_str());
}
