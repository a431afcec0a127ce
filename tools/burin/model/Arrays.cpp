#include "tools/burin/model/Arrays.h"
#include "burin/tensor/creation.h"
#include "frontend/onnx/import/Import.h"
#include "tools/burin/Commands.h"
#include <charconv>

namespace burin::cli {

const char *const kFixHelp =
    "NAME=@FILE or NAME=NUMBER: an ONNX input that becomes a constant, such as one that decides "
    "on a shape";

rt::NpyArray arrayOf(const Tensor &tensor) {
  rt::NpyArray array{tensor.dtype(), {}, {}};
  for (const Dim &size : tensor.shape())
    array.shape.push_back(size.value());
  std::span<const std::byte> bytes = tensor.bytes();
  array.data.assign(bytes.begin(), bytes.end());
  return array;
}

std::optional<rt::NpyArray> readArray(const std::string &path, std::string &error) {
  if (!path.ends_with(".pb"))
    return rt::loadNpy(path, error);
  try {
    return arrayOf(onnx::readTensorFile(path, {}));
  } catch (const Error &problem) {
    error = problem.what();
    return std::nullopt;
  }
}

int readFixedInputs(const std::vector<std::string> &arguments, StateDict &out) {
  for (const std::string &argument : arguments) {
    size_t equals = argument.find('=');
    std::string value = equals == argument.npos ? "" : argument.substr(equals + 1), error;
    if (equals == 0 || value.empty())
      return fail(kUsage, "--fix needs NAME=@FILE or NAME=NUMBER, got '" + argument + "'");
    rt::NpyArray array{DType::i64, {}, std::vector<std::byte>(sizeof(int64_t))};
    if (value[0] == '@') {
      std::optional<rt::NpyArray> read = readArray(value.substr(1), error);
      if (!read)
        return fail(kUsage, error);
      array = *std::move(read);
    } else {
      int64_t number = 0;
      auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (failure != std::errc() || end != value.data() + value.size())
        return fail(kUsage, "--fix needs NAME=@FILE or NAME=NUMBER, a whole number; got '" + argument + "'");
      std::memcpy(array.data.data(), &number, sizeof number);
    }
    Shape shape(array.shape.begin(), array.shape.end());
    out.emplace_back(argument.substr(0, equals), from_bytes(array.data.data(), {array.dtype, shape}));
  }
  return kOk;
}

} // namespace burin::cli
