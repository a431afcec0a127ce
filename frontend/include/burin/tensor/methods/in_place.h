// Included by burin/tensor.h inside class Tensor: in-place methods. x.name_(…) is x = x.name(…) and returns x: the
// handle gets a new value of the same shape, converted to the same element type, and other handles of the old value
// keep it. Throws if the shape differs, or if integers would become floats. As torch.Tensor.name_.

Tensor &add_(const detail::Operand &other) & { return *this += other; }
Tensor &sub_(const detail::Operand &other) & { return *this -= other; }
Tensor &mul_(const detail::Operand &other) & { return *this *= other; }
Tensor &div_(const detail::Operand &other) & { return *this /= other; }
/// Adds, or subtracts, alpha * other.
Tensor &add_(const Tensor &other, const Tensor &alpha, Location where = Location::current()) & {
  return assign("add_", add(other, alpha, where), where);
}
Tensor &sub_(const Tensor &other, const Tensor &alpha, Location where = Location::current()) & {
  return assign("sub_", sub(other, alpha, where), where);
}

// ---- values
/// All elements become `value`, 0, or those of `source`, which broadcasts and is converted.
Tensor &fill_(const detail::Operand &value) &;
Tensor &zero_(Location where = Location::current()) &;
Tensor &copy_(const detail::Operand &source) &;
/// Random numbers of the default generator: uniform in [low, high), normal, with density rate * exp(-rate * x),
/// integers in [low, high), or 1 with probability p and else 0.
Tensor &uniform_(double low = 0, double high = 1, Location where = Location::current()) &;
Tensor &normal_(double mean = 0, double deviation = 1, Location where = Location::current()) &;
Tensor &exponential_(double rate = 1, Location where = Location::current()) &;
Tensor &random_(int64_t low, int64_t high, Location where = Location::current()) &;
Tensor &bernoulli_(double p = 0.5, Location where = Location::current()) &;

// ---- elementwise
#define BURIN_IN_PLACE(name)                                                                                           \
  Tensor &name##_(Location where = Location::current()) & { return assign(#name "_", name(where), where); }
BURIN_IN_PLACE(abs)
BURIN_IN_PLACE(acos)
BURIN_IN_PLACE(asin)
BURIN_IN_PLACE(atan)
BURIN_IN_PLACE(bitwise_not)
BURIN_IN_PLACE(ceil)
BURIN_IN_PLACE(cos)
BURIN_IN_PLACE(cosh)
BURIN_IN_PLACE(erf)
BURIN_IN_PLACE(exp)
BURIN_IN_PLACE(exp2)
BURIN_IN_PLACE(expm1)
BURIN_IN_PLACE(floor)
BURIN_IN_PLACE(frac)
BURIN_IN_PLACE(log)
BURIN_IN_PLACE(log10)
BURIN_IN_PLACE(log1p)
BURIN_IN_PLACE(log2)
BURIN_IN_PLACE(logical_not)
BURIN_IN_PLACE(neg)
BURIN_IN_PLACE(reciprocal)
BURIN_IN_PLACE(relu)
BURIN_IN_PLACE(round)
BURIN_IN_PLACE(rsqrt)
BURIN_IN_PLACE(sigmoid)
BURIN_IN_PLACE(sign)
BURIN_IN_PLACE(sin)
BURIN_IN_PLACE(sinh)
BURIN_IN_PLACE(sqrt)
BURIN_IN_PLACE(square)
BURIN_IN_PLACE(tan)
BURIN_IN_PLACE(tanh)
BURIN_IN_PLACE(trunc)
#undef BURIN_IN_PLACE
Tensor &pow_(const Tensor &exponent, Location where = Location::current()) & {
  return assign("pow_", pow(exponent, where), where);
}
Tensor &remainder_(const Tensor &other, Location where = Location::current()) & {
  return assign("remainder_", remainder(other, where), where);
}
Tensor &fmod_(const Tensor &other, Location where = Location::current()) & {
  return assign("fmod_", fmod(other, where), where);
}
Tensor &clamp_(const Tensor &low, const Tensor &high, Location where = Location::current()) & {
  return assign("clamp_", clamp(low, high, where), where);
}
Tensor &clamp_min_(const Tensor &low, Location where = Location::current()) & {
  return assign("clamp_min_", clamp_min(low, where), where);
}
Tensor &clamp_max_(const Tensor &high, Location where = Location::current()) & {
  return assign("clamp_max_", clamp_max(high, where), where);
}
Tensor &lerp_(const Tensor &end, const Tensor &weight, Location where = Location::current()) & {
  return assign("lerp_", lerp(end, weight, where), where);
}
Tensor &addcmul_(const Tensor &a, const Tensor &b, double value = 1, Location where = Location::current()) & {
  return assign("addcmul_", addcmul(a, b, value, where), where);
}
Tensor &addcdiv_(const Tensor &a, const Tensor &b, double value = 1, Location where = Location::current()) & {
  return assign("addcdiv_", addcdiv(a, b, value, where), where);
}
Tensor &nan_to_num_(double nan = 0, std::optional<double> posinf = std::nullopt,
                    std::optional<double> neginf = std::nullopt, Location where = Location::current()) & {
  return assign("nan_to_num_", nan_to_num(nan, posinf, neginf, where), where);
}
Tensor &tril_(int64_t diagonal = 0, Location where = Location::current()) & {
  return assign("tril_", tril(diagonal, where), where);
}
Tensor &triu_(int64_t diagonal = 0, Location where = Location::current()) & {
  return assign("triu_", triu(diagonal, where), where);
}
Tensor &masked_fill_(const Tensor &mask, const Tensor &value, Location where = Location::current()) & {
  return assign("masked_fill_", masked_fill(mask, value, where), where);
}
Tensor &masked_scatter_(const Tensor &mask, const Tensor &source, Location where = Location::current()) & {
  return assign("masked_scatter_", masked_scatter(mask, source, where), where);
}

// ---- by indices
/// set(indices, value), or with `accumulate`, adds it.
Tensor &index_put_(const Indices &indices, const detail::Operand &value, bool accumulate = false) &;
Tensor &index_add_(int64_t axis, const Tensor &indices, const Tensor &updates, double alpha = 1,
                   Location where = Location::current()) & {
  return assign("index_add_", index_add(axis, indices, updates, alpha, where), where);
}
Tensor &index_copy_(int64_t axis, const Tensor &indices, const Tensor &updates,
                    Location where = Location::current()) & {
  return assign("index_copy_", index_copy(axis, indices, updates, where), where);
}
Tensor &index_fill_(int64_t axis, const Tensor &indices, const Tensor &value, Location where = Location::current()) & {
  return assign("index_fill_", index_fill(axis, indices, value, where), where);
}
Tensor &scatter_(int64_t axis, const Tensor &indices, const Tensor &updates, Location where = Location::current()) & {
  return assign("scatter_", scatter(axis, indices, updates, where), where);
}
template <Arithmetic V>
Tensor &scatter_(int64_t axis, const Tensor &indices, V value, Location where = Location::current()) & {
  return assign("scatter_", scatter(axis, indices, value, where), where);
}
Tensor &scatter_add_(int64_t axis, const Tensor &indices, const Tensor &updates,
                     Location where = Location::current()) & {
  return assign("scatter_add_", scatter_add(axis, indices, updates, where), where);
}
Tensor &scatter_reduce_(int64_t axis, const Tensor &indices, const Tensor &updates, const std::string &reduce,
                        bool include_self = true, Location where = Location::current()) & {
  return assign("scatter_reduce_", scatter_reduce(axis, indices, updates, reduce, include_self, where), where);
}

// ---- the same elements in another shape
Tensor &unsqueeze_(int64_t axis, Location where = Location::current()) & { return *this = unsqueeze({axis}, where); }
Tensor &squeeze_(const IntList &axes = {}, Location where = Location::current()) & {
  return *this = squeeze(axes, where);
}
Tensor &t_(Location where = Location::current()) & { return *this = t(where); }

// ---- of temporaries, as in zeros({n, 4}).scatter_(1, labels, 1). The result must be used: x[0].fill_(1) would be
// lost, instead of which write x.set({0}, 1).
[[nodiscard]] Tensor fill_(const detail::Operand &value) && { return std::move(fill_(value)); }
[[nodiscard]] Tensor uniform_(double low = 0, double high = 1, Location where = Location::current()) && {
  return std::move(uniform_(low, high, where));
}
[[nodiscard]] Tensor normal_(double mean = 0, double deviation = 1, Location where = Location::current()) && {
  return std::move(normal_(mean, deviation, where));
}
[[nodiscard]] Tensor exponential_(double rate = 1, Location where = Location::current()) && {
  return std::move(exponential_(rate, where));
}
[[nodiscard]] Tensor random_(int64_t low, int64_t high, Location where = Location::current()) && {
  return std::move(random_(low, high, where));
}
[[nodiscard]] Tensor bernoulli_(double p = 0.5, Location where = Location::current()) && {
  return std::move(bernoulli_(p, where));
}
[[nodiscard]] Tensor tril_(int64_t diagonal = 0, Location where = Location::current()) && {
  return std::move(tril_(diagonal, where));
}
[[nodiscard]] Tensor triu_(int64_t diagonal = 0, Location where = Location::current()) && {
  return std::move(triu_(diagonal, where));
}
[[nodiscard]] Tensor masked_fill_(const Tensor &mask, const Tensor &value, Location where = Location::current()) && {
  return std::move(masked_fill_(mask, value, where));
}
[[nodiscard]] Tensor index_add_(int64_t axis, const Tensor &indices, const Tensor &updates, double alpha = 1,
                                Location where = Location::current()) && {
  return std::move(index_add_(axis, indices, updates, alpha, where));
}
[[nodiscard]] Tensor index_copy_(int64_t axis, const Tensor &indices, const Tensor &updates,
                                 Location where = Location::current()) && {
  return std::move(index_copy_(axis, indices, updates, where));
}
[[nodiscard]] Tensor index_fill_(int64_t axis, const Tensor &indices, const Tensor &value,
                                 Location where = Location::current()) && {
  return std::move(index_fill_(axis, indices, value, where));
}
[[nodiscard]] Tensor scatter_(int64_t axis, const Tensor &indices, const Tensor &updates,
                              Location where = Location::current()) && {
  return std::move(scatter_(axis, indices, updates, where));
}
[[nodiscard]] Tensor scatter_add_(int64_t axis, const Tensor &indices, const Tensor &updates,
                                  Location where = Location::current()) && {
  return std::move(scatter_add_(axis, indices, updates, where));
}
template <Arithmetic V>
[[nodiscard]] Tensor scatter_(int64_t axis, const Tensor &indices, V value, Location where = Location::current()) && {
  return std::move(scatter_(axis, indices, value, where));
}
