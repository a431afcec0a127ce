// Calls of ops: recorded in a trace, otherwise run.
#include "burin/ops.h"
#include "frontend/autodiff/tape/Tape.h"
#include "frontend/eager/Eager.h"
#include "frontend/tensor/composed/Composed.h"
#include "frontend/tensor/context/AutocastScope.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/PartWrite.h"
#include "frontend/trace/Trace.h"

namespace burin {

namespace detail {

/// An operand as stored by the generated functions.
class Argument {
public:
  Argument(const Tensor &tensor) : tensor(&tensor) {}
  Argument(const std::optional<Tensor> &tensor) : tensor(tensor && tensor->defined() ? &*tensor : nullptr) {}
  const Tensor *tensor;
};

static std::vector<Argument> operandList(const std::vector<Tensor> &tensors) {
  return {tensors.begin(), tensors.end()};
}

static std::vector<Tensor> apply(const ir::OpInfo &info, std::span<const Argument> arguments,
                                 std::vector<ir::Attr> attrs, const Location &where) {
  const Location &place = inScope(where);
  llvm::SmallVector<const Tensor *, 4> operands;
  for (const Argument &argument : arguments)
    operands.push_back(argument.tensor);
  std::deque<Tensor> casts;
  autocast(info, operands, casts, place);
  if (Trace *trace = Trace::active())
    return trace->call(info, operands, std::move(attrs), place);
  return callEagerly(info, operands, std::move(attrs), place);
}
static std::vector<Tensor> apply(const ir::OpInfo &info, std::initializer_list<Argument> arguments,
                                 std::vector<ir::Attr> attrs, const Location &where) {
  return apply(info, std::span(arguments.begin(), arguments.size()), std::move(attrs), where);
}

/// The attribute by which an op names the size that its result turns out to have.
static ir::Attr newSize(const char *op, const Location &where) {
  Trace *trace = Trace::active();
  return Shape{trace ? trace->newSize(op, where) : Dim(std::string(op) + "_0")};
}

bool canWritePart(const Tensor &operand) {
  const Tensor *operands[]{&operand};
  if (Trace::active() || is_anomaly_detected() || isRecorded(operands))
    return false;
  const TensorState &state = *Access::state(operand);
  auto *storage = std::get_if<StorageRef>(&state.value);
  return storage ? !(*storage)->gpu : std::holds_alternative<ScalarValue>(state.value) && !state.weak;
}

} // namespace detail

#include "frontend/ops_api.inc"

// ---- operators

using detail::Operand;

#define BURIN_BINARY(symbol, op)                                                                                       \
  Tensor operator symbol(const Operand &a, const Operand &b) { return burin::op(a.tensor, b.tensor, a.where); }
BURIN_BINARY(+, add)
BURIN_BINARY(-, sub)
BURIN_BINARY(*, mul)
BURIN_BINARY(/, div)
BURIN_BINARY(%, remainder)
BURIN_BINARY(==, eq)
BURIN_BINARY(!=, ne)
BURIN_BINARY(<, lt)
BURIN_BINARY(<=, le)
BURIN_BINARY(>, gt)
BURIN_BINARY(>=, ge)
BURIN_BINARY(&, bitwise_and)
BURIN_BINARY(|, bitwise_or)
BURIN_BINARY(^, bitwise_xor)
BURIN_BINARY(<<, shift_left)
BURIN_BINARY(>>, shift_right)
#undef BURIN_BINARY

Tensor operator-(const Operand &x) { return neg(x.tensor, x.where); }
Tensor operator!(const Operand &x) { return logical_not(x.tensor, x.where); }
Tensor operator~(const Operand &x) { return bitwise_not(x.tensor, x.where); }

Tensor &Tensor::assign(const char *op, const Tensor &result, const Location &where) {
  const Location &place = detail::inScope(where);
  const TensorSpec before = spec(place), after = result.spec(place);
  auto category = [](DType type) { return isFloat(type) ? 2 : isInteger(type) ? 1 : 0; };
  if (before.shape != after.shape || category(after.dtype) > category(before.dtype)) {
    const std::string name(op, strlen(op) - 1); // without "=" or "_"
    throw Error(place, op,
                "the result " + burin::str(after) + " does not fit the tensor " + burin::str(before) +
                    " that it is to replace; write x = x" +
                    (op[name.size()] == '_' ? "." + name + "(…)" : " " + name + " y"));
  }
  return *this = result.to(before.dtype, place);
}

#define BURIN_INPLACE(symbol, op)                                                                                      \
  Tensor &Tensor::operator symbol(const Operand &y) & {                                                                \
    return assign(#symbol, burin::op(*this, y.tensor, y.where), y.where);                                              \
  }
BURIN_INPLACE(+=, add)
BURIN_INPLACE(-=, sub)
BURIN_INPLACE(*=, mul)
BURIN_INPLACE(/=, div)
BURIN_INPLACE(%=, remainder)
BURIN_INPLACE(&=, bitwise_and)
BURIN_INPLACE(|=, bitwise_or)
BURIN_INPLACE(^=, bitwise_xor)
BURIN_INPLACE(<<=, shift_left)
BURIN_INPLACE(>>=, shift_right)
#undef BURIN_INPLACE

} // namespace burin
