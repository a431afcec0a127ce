// A TorchScript module in libtorch. The headers of libtorch 1.13 do not compile as C++20, so other sources only include
// this header.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace burin::bench {

struct TorchArray {
  bool isInteger = false; ///< i64 rather than f32
  std::vector<int64_t> shape;
  std::vector<std::byte> data;
};

class TorchModule {
public:
  TorchModule(const std::string &path, const std::vector<TorchArray> &inputs);
  ~TorchModule();
  void run();
  /// The outputs of the latest run.
  std::vector<TorchArray> outputs() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

void setTorchThreads(int threads);
std::string torchVersion();

} // namespace burin::bench
