// The contents of TensorProtos, from the model's file or from files beside it.
#pragma once
#include "burin/tensor.h"
#include "frontend/onnx/proto/Proto.h"
#include "frontend/tensor/data/Mapping.h"
#include <map>
#include <optional>

namespace burin::onnx {

/// The element type by which a tensor of the model's type is represented.
std::optional<DType> dtypeOf(DataType);
/// An integer type of the standard that burin represents by a wider one, with the range of its numbers.
struct NarrowType {
  DataType type;
  DType dtype;
  int bits;
  bool isSigned = false;

  int64_t least() const { return isSigned ? -(int64_t(1) << (bits - 1)) : 0; }
  int64_t most() const { return bits == 64 ? INT64_MAX : (int64_t(1) << (bits - isSigned)) - 1; }
};
/// Null for other types.
const NarrowType *narrowType(DataType);
/// The same, but throws Unsupported; `what` is named in the error.
DType requireType(DataType, const std::string &what, const Location &where);

/// Reads tensors, without copies if their alignment allows it. External data is confined to the model's folder.
class TensorReader {
public:
  /// `file` holds the bytes of the protos; `folder` that of external data, "" for none.
  TensorReader(std::shared_ptr<const detail::Mapping> file, std::string folder)
      : file(std::move(file)), folder(std::move(folder)) {}

  Tensor read(const TensorProto &proto, const Location &where);

private:
  using MappingRef = std::shared_ptr<const detail::Mapping>;
  MappingRef file;
  std::string folder;
  std::map<std::string, MappingRef, std::less<>> external; // by location

  Tensor view(std::span<const std::byte> bytes, const TensorSpec &spec, const MappingRef &owner, const Location &where);
  std::span<const std::byte> externalBytes(const TensorProto &proto, uint64_t size, MappingRef &owner,
                                           const Location &where);
  const MappingRef &open(std::string_view location, const std::string &what, const Location &where);
};

} // namespace burin::onnx
