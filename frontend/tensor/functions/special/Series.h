// What the special functions are made of.
#pragma once
#include "burin/tensor.h"
#include "frontend/tensor/context/LocationScope.h"
#include <functional>
#include <span>

namespace burin::detail {

/// x in the type in which functions of it are computed: f64, or f32 for all others.
Tensor working(const Tensor &x);
/// The type of the function's result: that of a float, f32 otherwise.
DType resultType(const Tensor &x);

/// The sum of c[k] T_k(t) for t in [-1, 1], by Clenshaw's recurrence; in f32 without the coefficients that are too
/// small for it.
Tensor chebyshev(const Tensor &t, std::span<const double> c);
/// c[0] + c[1] x + …
Tensor polynomial(const Tensor &x, std::span<const double> c);

/// Of x in its working type.
using Function1 = std::function<Tensor(const Tensor &x)>;
/// The derivative at x, where the function has this result.
using Slope = std::function<Tensor(const Tensor &x, const Tensor &result)>;
/// function(x) with this derivative, in the result type of x.
Tensor computed(const Tensor &x, const Location &where, const Function1 &function, const Slope &slope);

/// x minus the nearest integer, exactly.
Tensor distanceToInteger(const Tensor &x);
/// sin(pi x), exactly 0 at integers.
Tensor sinPi(const Tensor &x);

} // namespace burin::detail
