// Sizes that must be equal but are not known to be. For example, the skip connection of a U-Net has the size of the
// tensor that it is concatenated with only for heights that are multiples of 8. Such sizes are assumed to be equal, and
// every run checks them.
#include "burin/ops.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include "frontend/trace/Trace.h"
#include <algorithm>

namespace burin {

namespace {

/// Whether the size is 1 for a number of sample values: strides, windows and paddings may cancel in ways that the
/// normal form of sizes does not see.
bool isOneInSamples(const Dim &size) {
  constexpr int64_t samples[] = {1, 2, 3, 5, 8, 16, 31, 64, 100, 128, 224, 256, 320, 512, 576, 1000, 1024, 2048};
  if (size.isStatic())
    return size == Dim(1);
  size_t positive = 0;
  for (int64_t sample : samples)
    for (int64_t step : {0, 1, 16}) { // difference between the symbols
      int64_t next = sample - step;
      std::map<std::string, int64_t, std::less<>> values;
      auto value = [&](std::string_view name) -> std::optional<int64_t> {
        auto [at, isNew] = values.try_emplace(std::string(name), next + step);
        next += isNew ? step : 0;
        return at->second;
      };
      std::optional<int64_t> found = size.evaluate(value);
      if (found && *found > 1)
        return false;
      positive += found == 1;
    }
  return positive > 0;
}

/// The size to use for two that must be equal.
Dim simpler(const Dim &a, const Dim &b) {
  if (a.isStatic() || b.isStatic())
    return a.isStatic() ? a : b;
  std::string left = a.str(), right = b.str();
  return std::pair(left.size(), left) <= std::pair(right.size(), right) ? a : b;
}

} // namespace

/// One call of an op, repeated with sizes that are assumed to be equal.
class Trace::Assumption {
public:
  Assumption(Trace &trace, const ir::OpInfo &info, std::span<const Tensor *const> given, std::vector<ir::Attr> attrs,
             const Location &where)
      : trace(trace), info(info), where(where), attrs(std::move(attrs)), operands(given.begin(), given.end()),
        replaced(given.size()) {}

  std::vector<Tensor> call() {
    constexpr int kMostAttempts = 64;
    for (int attempt = 0;; ++attempt)
      try {
        return trace.record(info, operands, attrs, where);
      } catch (const detail::UnequalSizes &problem) {
        if (attempt == kMostAttempts)
          throw;
        if (std::string_view(info.name) == "reshape")
          return {reshape(problem.sizes)};
        if (!repeat(problem.sizes) && !take(problem.sizes))
          throw;
      }
  }

private:
  Trace &trace;
  const ir::OpInfo &info;
  const Location &where;
  std::vector<ir::Attr> attrs;
  std::vector<const Tensor *> operands;
  std::vector<Tensor> replaced;

  /// Repeats the operands of an op that broadcasts along a dimension in which they have both sizes, each of which may
  /// be 1 in a run. Returns false if they may not be.
  bool repeat(const ir::InferCall::Unequal &sizes) {
    if (!sizes.repeats)
      return false;
    const size_t fixed = std::string_view(info.name) == "matmul" ? 2 : 0; // the last dimensions, which are multiplied
    size_t most = 0;
    for (const Tensor *operand : operands)
      most = std::max(most, operand ? operand->shape(where).size() : 0);
    for (size_t fromEnd = fixed + 1; fromEnd <= most; ++fromEnd) {
      auto sizeOf = [&](const Tensor *x) {
        const Shape shape = x ? x->shape(where) : Shape();
        return fromEnd <= shape.size() ? shape[shape.size() - fromEnd] : Dim(1);
      };
      auto has = [&](const Dim &size) {
        return std::any_of(operands.begin(), operands.end(), [&](const Tensor *x) { return sizeOf(x) == size; });
      };
      if (!has(sizes.left) || !has(sizes.right))
        continue;
      std::optional<Dim> joint = trace.jointSize(sizes.left, sizes.right, where);
      for (size_t i = 0; joint && i < operands.size(); ++i)
        if (Dim size = sizeOf(operands[i]); size != *joint && (size == sizes.left || size == sizes.right)) {
          replaced[i] = trace.repeatTo(*operands[i], operands[i]->rank(where) - int64_t(fromEnd), *joint, where);
          operands[i] = &replaced[i];
        }
      return joint.has_value();
    }
    return false;
  }

  /// Replaces one size by the other wherever it occurs. Returns false if that changes nothing.
  bool take(const ir::InferCall::Unequal &sizes) {
    auto [left, right] = std::pair(sizes.left, sizes.right);
    if (sizes.repeats && (isOneInSamples(left) || isOneInSamples(right)))
      (isOneInSamples(left) ? right : left) = 1;
    const Dim common = simpler(left, right), other = common == left ? right : left;
    bool isChanged = false;
    auto replace = [&](Shape &shape) {
      isChanged |= std::find(shape.begin(), shape.end(), other) != shape.end();
      std::replace(shape.begin(), shape.end(), other, common);
    };
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i])
        continue;
      Shape shape = operands[i]->shape(where);
      replace(shape);
      if (shape == operands[i]->shape(where))
        continue;
      replaced[i] = trace.reshapeUnproved(*operands[i], shape, where);
      operands[i] = &replaced[i];
    }
    for (ir::Attr &attr : attrs)
      if (auto *shape = std::get_if<Shape>(&attr))
        replace(*shape);
    if (isChanged)
      trace.assume(left, right, where);
    return isChanged;
  }

  /// To a shape with as many elements, where -1 is the remainder.
  Tensor reshape(const ir::InferCall::Unequal &) {
    Shape shape = std::get<Shape>(attrs[0]);
    const Dim total = elements(operands[0]->shape(where));
    Dim known = 1;
    auto open = std::find(shape.begin(), shape.end(), Dim(-1));
    for (auto size = shape.begin(); size != shape.end(); ++size)
      if (size != open)
        known = known * *size;
    if (open != shape.end()) {
      *open = floordiv(total, known);
      known = known * *open;
    }
    trace.assume(known, total, where);
    return trace.reshapeUnproved(*operands[0], shape, where);
  }
};

void Trace::assume(const Dim &left, const Dim &right, const Location &where) {
  require(left, right, where);
  assumed->emplace_back(left, right);
}

std::vector<Tensor> Trace::call(const ir::OpInfo &info, std::span<const Tensor *const> operands,
                                std::vector<ir::Attr> attrs, const Location &where) {
  if (!assumed)
    try {
      return record(info, operands, std::move(attrs), where);
    } catch (const detail::UnequalSizes &error) {
      noteRefused(error);
      throw;
    }
  return Assumption(*this, info, operands, std::move(attrs), where).call();
}

Tensor Trace::assumeShape(const Tensor &x, const Shape &shape, const Location &where) {
  const Shape &from = x.shape(where);
  bool mayFit = from.size() == shape.size();
  for (size_t i = 0; mayFit && i < shape.size(); ++i)
    mayFit = mayEqual(from[i], shape[i]);
  if (!assumed || !mayFit || from == shape)
    return x;
  for (size_t i = 0; i < shape.size(); ++i)
    if (from[i] != shape[i])
      assume(from[i], shape[i], where);
  return reshapeUnproved(x, shape, where);
}

std::optional<Dim> Trace::jointSize(const Dim &left, const Dim &right, const Location &where) {
  auto isJoint = [&](const Dim &size) { return std::find(joints.begin(), joints.end(), size) != joints.end(); };
  auto partsOf = [&](const Dim &size) -> std::vector<Dim> {
    std::vector<Dim> parts{size};
    if (isJoint(size)) {
      parts.clear();
      for (const Dim::Symbol &symbol : size.symbols())
        parts.push_back(Dim(symbol.name, symbol.min, symbol.max, symbol.where));
    }
    return parts;
  };
  const std::vector<Dim> ofLeft = partsOf(left), ofRight = partsOf(right);
  auto contains = [](const std::vector<Dim> &all, const std::vector<Dim> &some) {
    return std::all_of(some.begin(), some.end(),
                       [&](const Dim &one) { return std::find(all.begin(), all.end(), one) != all.end(); });
  };
  for (const auto &[whole, parts, others] : {std::tuple(left, ofLeft, ofRight), std::tuple(right, ofRight, ofLeft)})
    if (isJoint(whole) && contains(parts, others))
      return whole;
  for (const Dim &a : ofLeft)
    for (const Dim &b : ofRight)
      if (!repeats || (a != b && !repeats(a, b)))
        return std::nullopt;
  // The other size where one is 1. That both agree means that the sizes are equal, or one of them is 1.
  auto otherIfOne = [](const Dim &one, const Dim &other) {
    const Dim differs = min(max(one - 1, Dim(1) - one), 1);
    return one * differs + other * (Dim(1) - differs);
  };
  const std::string place = ir::fileLine(detail::mlirLocation(&graph->context, where)),
                    separator = place.empty() ? "" : ": ";
  checks.push_back(builder.getStrArrayAttr({otherIfOne(left, right).str(), otherIfOne(right, left).str(),
                                            place + separator + "the sizes " + left.str() + " and " + right.str() +
                                                " must be equal, or one of them must be 1"}));
  joints.push_back(max(left, right) * min(min(left, right), 1)); // 0 if one of them is
  return joints.back();
}

Tensor Trace::repeatTo(const Tensor &x, int64_t axis, const Dim &size, const Location &where) {
  LocationScope named(where);
  const Tensor last = detail::sizeTensor(x.shape(where)[size_t(axis)]) - 1;
  return take(x, minimum(iota({size}, DType::i64), last), axis);
}

} // namespace burin
