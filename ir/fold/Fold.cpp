#include "ir/fold/Fold.h"
#include "ir/reference/ReferenceOp.h"
#include "ir/reference/ReferenceUtil.h"
#include "ir/reference/ops/ReferenceMove.h"
#include "mlir/IR/Matchers.h"

namespace burin::ir {

using namespace mlir;

namespace {

/// The bytes of a constant with their type and shape; `storage` may back them.
struct Constant {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<char> storage;
  ArrayRef<char> bytes;
};

/// The constant of a type, without its bytes; nullopt for symbolic sizes and types that the interpreter does not hold.
std::optional<Constant> describe(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() || !elementCount(tensor.getShape(), RefOptions().maxElements))
    return std::nullopt;
  auto dtype = dtypeOf(tensor.getElementType());
  if (!dtype)
    return std::nullopt;
  return Constant{*dtype, tensor.getShape().vec(), {}, {}};
}

bool isStatic(const Attr &attr) {
  auto *shape = std::get_if<Shape>(&attr);
  return !shape || llvm::all_of(*shape, [](const Dim &d) { return d.isStatic(); });
}

class Folding {
public:
  Folding(Operation *op, const OpInfo &info, std::vector<Attr> attrs, std::vector<Constant> &operands,
          std::vector<Constant> &results)
      : op(op), info(info), attrs(std::move(attrs)), operands(operands), results(results) {}

  /// Fills the bytes of the results. Returns false if the op cannot be folded.
  bool run() {
    if (MoveKernel kernel = findMoveKernel(info.name))
      return move(kernel);
    RefKernel kernel = findReferenceKernel(info.name);
    if (!kernel)
      return false;
    if (info.name == std::string_view("bf16_pairs"))
      return pair();
    return info.name == std::string_view("cast") ? cast(kernel) : evaluate(kernel);
  }

private:
  bool move(MoveKernel kernel);
  bool cast(RefKernel kernel);
  bool pair();
  bool evaluate(RefKernel kernel);

  Operation *op;
  const OpInfo &info;
  std::vector<Attr> attrs;
  std::vector<Constant> &operands, &results;
};

bool Folding::move(MoveKernel kernel) {
  MoveCall call{info, attrs, {}, {}, byteWidth(results[0].dtype), nullptr, {}};
  for (Constant &operand : operands)
    call.operands.push_back({const_cast<char *>(operand.bytes.data()), operand.shape});
  for (Constant &result : results) {
    result.storage.resize(size_t(ref::product(result.shape)) * byteWidth(result.dtype));
    call.results.push_back({result.storage.data(), result.shape});
  }
  std::vector<char> fill;
  if (info.name == std::string_view("pad")) {
    fill = ref::scalar(results[0].dtype, call.attr<double>("value")).toBytes();
    call.fill = fill.data();
  }
  return kernel(call);
}

/// Casts in pieces: the interpreter's 8-byte elements of a whole weight would not fit in cache.
bool Folding::cast(RefKernel kernel) {
  constexpr size_t piece = 1 << 14;
  Constant &from = operands[0], &to = results[0];
  size_t fromWidth = byteWidth(from.dtype), count = from.bytes.size() / fromWidth;
  for (size_t start = 0; start < count; start += piece) {
    size_t length = std::min(piece, count - start);
    ArrayRef<char> bytes = from.bytes.slice(start * fromWidth, length * fromWidth);
    RefTensor x = RefTensor::fromBytes(from.dtype, {int64_t(length)}, {bytes.data(), bytes.size()});
    RefCall call{info, {&x}, attrs, {RefTensor::zeros(to.dtype, {int64_t(length)})}, {}};
    if (!runGuarded(kernel, call))
      return false;
    call.out().round({});
    std::vector<char> converted = call.out().toBytes();
    to.storage.insert(to.storage.end(), converted.begin(), converted.end());
  }
  return true;
}

/// Moves bytes: an i32 of two bf16 has the first one in its low half, which is the first one in memory.
bool Folding::pair() {
  constexpr size_t half = 2; // bytes
  Constant &from = operands[0], &to = results[0];
  std::span<const int64_t> shape = from.shape;
  const size_t axis = shape.size() - size_t(std::get<int64_t>(attrs[0]));
  const int64_t outer = ref::product(shape.first(axis)), depth = shape[axis],
                inner = ref::product(shape.subspan(axis + 1)), pairs = (depth + 1) / 2;
  to.storage.resize(size_t(outer * pairs * inner) * 2 * half);
  for (int64_t second : {0, 1}) {
    const ref::Sizes moved{outer, (depth + 1 - second) / 2, inner};
    moveElements(to.storage.data(), {second, moved, {pairs * inner * 2, inner * 2, 2}}, from.bytes.data(),
                 {second * inner, moved, {depth * inner, 2 * inner, 1}}, half);
  }
  return true;
}

bool Folding::evaluate(RefKernel kernel) {
  std::vector<RefTensor> tensors;
  for (Constant &operand : operands)
    tensors.push_back(RefTensor::fromBytes(operand.dtype, operand.shape, {operand.bytes.data(), operand.bytes.size()}));
  RefCall call{info, {}, attrs, {}, {}};
  auto next = tensors.begin();
  for (Value operand : operandsOf(op))
    call.operands.push_back(operand ? &*next++ : nullptr);
  for (Constant &result : results)
    call.results.push_back(RefTensor::zeros(result.dtype, result.shape));
  if (!runGuarded(kernel, call))
    return false;
  for (auto [result, tensor] : llvm::zip_equal(results, call.results)) {
    tensor.round({});
    result.storage = tensor.toBytes();
  }
  return true;
}

} // namespace

FailureOr<std::vector<ElementsAttr>> foldOp(Operation *op, ArrayRef<Attribute> constants) try {
  const OpInfo *info = opInfo(op);
  if (!info || constants.size() != op->getNumOperands())
    return failure();
  std::vector<Constant> operands, results;
  for (auto [type, attr] : llvm::zip_equal(op->getOperandTypes(), constants)) {
    auto elements = dyn_cast_or_null<ElementsAttr>(attr);
    auto operand = describe(type);
    if (!elements || !operand)
      return failure();
    operands.push_back(std::move(*operand));
    Constant &added = operands.back();
    added.bytes = constantBytes(elements, added.storage);
    if (added.bytes.size() != size_t(ref::product(added.shape)) * byteWidth(added.dtype))
      return failure();
  }
  for (Type type : op->getResultTypes()) {
    auto result = describe(type);
    if (!result)
      return failure();
    results.push_back(std::move(*result));
  }
  std::vector<Attr> attrs = attrsOf(op);
  if (!llvm::all_of(attrs, isStatic))
    return failure();
  if (!Folding(op, *info, std::move(attrs), operands, results).run())
    return failure();
  std::vector<ElementsAttr> folded;
  for (auto [type, result] : llvm::zip_equal(op->getResultTypes(), results)) {
    auto bytes = std::make_shared<const std::vector<char>>(std::move(result.storage));
    folded.push_back(constantAttr(cast<RankedTensorType>(type), *bytes, bytes));
  }
  return folded;
} catch (const std::bad_alloc &) {
  return failure();
}

FailureOr<std::vector<ElementsAttr>> foldOp(Operation *op) {
  std::vector<Attribute> constants;
  for (Value operand : op->getOperands()) {
    Attribute attr;
    if (!matchPattern(operand, m_Constant(&attr)))
      return failure();
    constants.push_back(attr);
  }
  return foldOp(op, constants);
}

} // namespace burin::ir
