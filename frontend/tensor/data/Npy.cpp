#include "burin/tensor/creation.h"
#include "burin/training/data.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include "runtime/format/Archive.h"
#include "runtime/npy/NpyZip.h"
#include <algorithm>

namespace burin {

using namespace detail;

/// Moves the array's memory into a tensor.
static Tensor take(rt::NpyArray array, const Location &where) {
  auto owner = std::make_shared<std::vector<std::byte>>(std::move(array.data));
  Shape shape(array.shape.begin(), array.shape.end());
  void *data = owner->data();
  return from_blob(data, {array.dtype, std::move(shape)}, [owner] {}, where);
}

static rt::NpyArray arrayOf(const Tensor &tensor, const Location &where) {
  StorageRef storage = concreteStorage(tensor, "save", where);
  rt::NpyArray array{tensor.dtype(where), {}, {}};
  for (const Dim &size : tensor.shape(where))
    array.shape.push_back(size.value());
  array.data.resize(byteCount(tensor.spec(where)));
  if (!array.data.empty()) // empty tensors have null pointers, which memcpy must not get
    std::memcpy(array.data.data(), await(storage, where).data(), array.data.size());
  return array;
}

Tensor load_npy(const std::string &path, Location where) {
  std::string problem;
  auto array = rt::loadNpy(path, problem);
  if (!array)
    throw Error(inScope(where), "load_npy", problem);
  return createdInScope(take(std::move(*array), inScope(where)), "load_npy", inScope(where));
}

void save_npy(const std::string &path, const Tensor &tensor, Location where) {
  const Location &place = inScope(where);
  rt::NpyArray array = arrayOf(tensor, place);
  std::vector<std::byte> file = rt::writeNpy(array);
  if (rt::Status status = rt::writeFile(path, file); !status.ok())
    throw Error(place, "save_npy", status.message());
}

StateDict load_npz(const std::string &path, Location where) {
  const Location &place = inScope(where);
  std::string problem;
  auto file = rt::readWholeFile(path, problem);
  if (!file)
    throw Error(place, "load_npz", problem);
  auto arrays = rt::readNpz(*file, problem);
  if (!arrays)
    throw Error(place, "load_npz", path + ": " + problem);
  StateDict tensors;
  for (auto &[name, array] : *arrays)
    tensors.emplace_back(name, createdInScope(take(std::move(array), place), "load_npz", place));
  return tensors;
}

void save_npz(const std::string &path, const StateDict &tensors, bool compress, Location where) {
  const Location &place = inScope(where);
  rt::NamedArrays arrays;
  for (const auto &[name, tensor] : tensors) {
    if (std::ranges::any_of(arrays, [&](const auto &known) { return known.first == name; }))
      throw Error(place, "save_npz", "there are two tensors with the name \"" + name + "\"");
    arrays.emplace_back(name, arrayOf(tensor, place));
  }
  if (rt::Status status = rt::writeFile(path, rt::writeNpz(arrays, compress)); !status.ok())
    throw Error(place, "save_npz", status.message());
}

} // namespace burin
