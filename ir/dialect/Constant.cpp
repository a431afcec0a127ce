// Constant data. Small tensors are printed as numbers; large ones are resource blobs that are neither hashed nor
// copied.
#include "ir/dialect/Burin.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace burin::ir {

static constexpr size_t kMaxReadableBytes = 256, kBlobAlignment = 64;

static ElementsAttr denseBool(RankedTensorType type, ArrayRef<char> bytes) {
  SmallVector<bool> values(bytes.begin(), bytes.end());
  return DenseElementsAttr::get(type, ArrayRef<bool>(values));
}

/// A blob that refers to `bytes` and keeps their owner alive.
static AsmResourceBlob sharedBlob(ArrayRef<char> bytes, std::shared_ptr<const void> owner) {
  auto release = [owner = std::move(owner)](void *, size_t, size_t) {};
  // The memory is not ours: a mapped file may have a lower alignment.
  uint64_t alignment = llvm::MinAlign(reinterpret_cast<uintptr_t>(bytes.data()), kBlobAlignment);
  return AsmResourceBlob(bytes, alignment, std::move(release), /*dataIsMutable=*/false);
}

ElementsAttr constantAttr(RankedTensorType type, ArrayRef<char> bytes, std::shared_ptr<const void> owner,
                          StringRef name) {
  DType dtype = *dtypeOf(type.getElementType());
  assert(type.hasStaticShape() && bytes.size() == type.getNumElements() * byteWidth(dtype));
  if (bytes.size() > kMaxReadableBytes)
    return DenseResourceElementsAttr::get(
        type, name.empty() ? "constant" : name,
        owner ? sharedBlob(bytes, std::move(owner))
              : HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, kBlobAlignment, /*dataIsMutable=*/false));
  return isBool(dtype) ? denseBool(type, bytes) : ElementsAttr(DenseElementsAttr::getFromRawBuffer(type, bytes));
}

ArrayRef<char> constantBytes(ElementsAttr value, std::vector<char> &storage) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    return blob ? blob->getData() : ArrayRef<char>();
  }
  auto dense = cast<DenseElementsAttr>(value);
  size_t count = dense.getNumElements();
  if (dense.getElementType().isInteger(1)) {
    storage.assign(dense.value_begin<bool>(), dense.value_end<bool>());
    return storage;
  }
  ArrayRef<char> raw = dense.getRawData();
  if (!dense.isSplat())
    return raw;
  storage.resize(count * raw.size());
  for (size_t i = 0; i < count; ++i)
    std::copy(raw.begin(), raw.end(), storage.begin() + i * raw.size());
  return storage;
}

Value createConstant(OpBuilder &b, mlir::Location loc, const TensorSpec &spec, ArrayRef<char> bytes, StringRef name,
                     std::shared_ptr<const void> owner) {
  ElementsAttr value = constantAttr(tensorType(b.getContext(), spec), bytes, std::move(owner), name);
  return ConstantOp::create(b, loc, value.getType(), value, name.empty() ? StringAttr() : b.getStringAttr(name));
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

LogicalResult ConstantOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (type.getEncoding() || !type.hasStaticShape())
    return emitOpError("holds data, so its type ") << type << " must have a fixed shape and no encoding";
  auto resource = dyn_cast<DenseResourceElementsAttr>(getValue());
  if (!resource)
    return isa<DenseElementsAttr>(getValue()) ? success() : emitOpError("holds data in an unsupported form");
  uint64_t bytes = type.getNumElements() * byteWidth(*dtypeOf(type.getElementType()));
  AsmResourceBlob *blob = resource.getRawHandle().getBlob();
  if (!blob)
    return emitOpError("refers to the resource '")
           << resource.getRawHandle().getKey() << "', which is missing from the file";
  if (blob->getData().size() != bytes)
    return emitOpError("of type ") << type << " needs " << bytes << " bytes, but its resource has "
                                   << blob->getData().size();
  return success();
}

} // namespace burin::ir
