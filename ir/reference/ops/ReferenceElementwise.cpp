// Elementwise ops: loops around the `reference` code of the op definitions. Compiled with wrapping integers.
#include "ir/reference/ReferenceScalar.h"
#include "ir/reference/ReferenceUtil.h"
#include <algorithm>
#include <functional>

namespace burin::ir::ref {

namespace {

#include "ir/ElementwiseReference.inc"

/// The elements of `t` as T; `storage` backs them if the type differs.
template <class T> const T *elementsAs(const RefTensor &t, std::vector<T> &storage) {
  if (auto *same = std::get_if<std::vector<T>>(&t.data))
    return same->data();
  std::visit([&](auto &other) { storage.assign(other.begin(), other.end()); }, t.data);
  return storage.data();
}

constexpr size_t kMaxOperands = 3;

template <class T> bool map(RefCall &call) {
  size_t arity = call.operands.size();
  DType type = call.in(arity - 1).dtype; // the first operand of `where` is its condition
  auto f = referenceScalar<T>(call.info.name, type, call.attrs);
  if (!f || arity > kMaxOperands)
    return call.fail("is not defined on " + std::string(name(type)));
  std::vector<T> storage[kMaxOperands];
  const T *elements[kMaxOperands] = {};
  for (size_t k = 0; k < arity; ++k)
    elements[k] = elementsAs<T>(call.in(k), storage[k]);
  auto run = [&](auto &to) {
    T x[kMaxOperands] = {};
    for (size_t i = 0; i < to.size(); ++i) {
      for (size_t k = 0; k < arity; ++k)
        x[k] = elements[k][i];
      to[i] = static_cast<std::remove_cvref_t<decltype(to[i])>>(f(x));
    }
  };
  std::visit(run, call.out().data);
  return true;
}

} // namespace

bool elementwise(RefCall &call) {
  bool real = false;
  for (const RefTensor *operand : call.operands) {
    real |= isFloat(operand->dtype);
    if (operand->shape != call.out().shape)
      return call.fail("an operand has shape " + str(operand->shape) + ", the result " + str(call.out().shape));
  }
  if (std::string_view(call.info.name) == "check") {
    const auto &holds = call.in().ints();
    if (auto bad = std::ranges::find(holds, 0); bad != holds.end())
      return call.fail(call.attr<std::string>("message") + " (element " + std::to_string(bad - holds.begin()) + ")");
  }
  return real ? map<double>(call) : map<int64_t>(call);
}

} // namespace burin::ir::ref
