// Windows of the bytes of a file.
#include "burin/tensor/creation.h"
#include "burin/training/readers.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/data/Mapping.h"
#include "frontend/training/datasets/Checks.h"

namespace burin::data {

using detail::inScope;

namespace {

class ByteDataset : public Dataset {
public:
  ByteDataset(std::shared_ptr<const detail::Mapping> file, int64_t length, int64_t stride, const Location &where)
      : file(std::move(file)), length(length), stride(stride), place(where) {}
  int64_t size() const override { return (int64_t(file->bytes().size()) - length - 1) / stride + 1; }
  Example get(int64_t index) const override { return read({&index, 1}, {length}); }
  Example batch(std::span<const int64_t> indices) const override {
    return read(indices, {int64_t(indices.size()), length});
  }

private:
  const std::shared_ptr<const detail::Mapping> file;
  const int64_t length, stride;
  const Location place;

  Example read(std::span<const int64_t> indices, const Shape &shape) const {
    Example example;
    for (int64_t ahead : {0, 1}) {
      std::vector<int64_t> numbers;
      numbers.reserve(indices.size() * size_t(length));
      for (int64_t index : indices) {
        requireExample(index, size(), "byte_dataset", place);
        for (std::byte each : file->bytes().subspan(size_t(index * stride + ahead), size_t(length)))
          numbers.push_back(int64_t(each));
      }
      example.push_back(from_vector(numbers, shape));
    }
    return example;
  }
};

} // namespace

DatasetRef byte_dataset(const std::string &path, int64_t length, int64_t stride, Location where) {
  constexpr const char *kOp = "byte_dataset";
  const Location place = inScope(where);
  if (length < 1 || stride < 1)
    throw Error(place, kOp, "the length and the stride must be positive");
  std::string problem;
  auto file = detail::Mapping::open(path, problem);
  if (!file)
    throw Error(place, kOp, "cannot read \"" + path + "\": " + problem);
  if (int64_t(file->bytes().size()) < length + 1)
    throw Error(place, kOp,
                "\"" + path + "\" has " + std::to_string(file->bytes().size()) + " bytes, fewer than the " +
                    std::to_string(length + 1) + " of a window and the byte that follows");
  return std::make_shared<ByteDataset>(std::move(file), length, stride, place);
}

} // namespace burin::data
