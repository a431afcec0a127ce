// Helpers of the gradient expressions of op definitions (`gradient` in ir/ops/*.td): functions of public Tensor calls,
// independent of graphs.
#pragma once
#include "burin/ops.h"
#include "ir/infer/OpInfo.h"

namespace burin::gradients {

/// A call of an op, and the gradients of its results.
struct GradientCall {
  const ir::OpInfo &info;
  std::vector<Tensor> operands; // undefined if absent
  std::vector<ir::Attr> attrs;  // canonical
  std::vector<Tensor> results, gradients;
  std::vector<bool> isNeeded; // by operand
};
/// The gradients of the operands; undefined if they are zero or not needed.
using GradientRule = std::vector<Tensor> (*)(const GradientCall &);
/// Null if the op has no rule.
GradientRule ruleOf(const ir::OpInfo &info);

/// An op without a rule, or without one for its attributes or shapes.
class NoGradient : public Error {
public:
  explicit NoGradient(const std::string &message);
  NoGradient(const std::string &message, const Location &where) : Error(where, "grad", message), message(message) {}
  const std::string message; // without the location
};

using Ints = std::vector<int64_t>;

// ---- elementwise
/// g where x > y, half of it where they are equal.
Tensor larger(const Tensor &g, const Tensor &x, const Tensor &y);
Tensor powerGradient(const Tensor &g, const Tensor &x, const Tensor &y);
Tensor exponentGradient(const Tensor &g, const Tensor &x, const Tensor &y, const Tensor &result);
Tensor geluSlope(const Tensor &x, bool isTanh);

// ---- reductions
/// Broadcasts the result of a reduction over `axes` to the shape of x.
Tensor spread(const Tensor &result, const Tensor &x, const Ints &axes);
/// Number of elements that are reduced to one.
Tensor count(const Tensor &x, const Ints &axes);
Tensor productGradient(const Tensor &g, const Tensor &x, const Ints &axes);
Tensor cumprodGradient(const Tensor &g, const Tensor &x, int64_t axis, bool exclusive, bool reverse);
/// Distributed equally among the elements that equal the result.
Tensor extremeGradient(const Tensor &g, const Tensor &x, const Tensor &result, const Ints &axes);
/// The sum over all dimensions except 1.
Tensor sumChannels(const Tensor &x);
/// Broadcasts numbers per channel along dimension 1 of x.
Tensor perChannel(const Tensor &numbers, const Tensor &x);

// ---- shapes and selection
Tensor reshapeTo(const Tensor &x, const Shape &shape);
inline Tensor reshapeAs(const Tensor &g, const Tensor &x) { return reshapeTo(g, x.shape()); }
/// Sums over the dimensions that broadcasting has added or repeated, to `shape`.
Tensor sumTo(const Tensor &x, const Shape &shape);
/// The first elements of each dimension, as many as `shape` has.
Tensor cropTo(const Tensor &x, const Shape &shape);
/// g at the elements that a slice selects from a tensor of this shape, zeros elsewhere.
Tensor unslice(const Tensor &g, const Shape &shape, const Shape &starts, const Ints &steps);
/// Pads the rows of g with zeros, to as many rows as x has.
Tensor unprefix(const Tensor &g, const Tensor &x);
Ints inverse(const Ints &perm);
std::vector<Tensor> concatGradient(const Tensor &g, const std::vector<Tensor> &xs, int64_t axis);
std::vector<Tensor> stackGradient(const Tensor &g, const std::vector<Tensor> &xs, int64_t axis);
Tensor tileGradient(const Tensor &g, const Tensor &x, const Ints &repeats);
Tensor padGradient(const Tensor &g, const Tensor &x, const Ints &low, const Ints &high, const std::string &mode,
                   const Ints &interior);
Tensor takeGradient(const Tensor &g, const Tensor &x, const Tensor &indices, int64_t axis);
Tensor gatherGradient(const Tensor &g, const Tensor &x, const Tensor &indices, int64_t axis);
/// Gradients of the operands of scatter.
class Scatter {
public:
  Scatter(const Tensor &g, const Tensor &x, const Tensor &indices, const Tensor &updates, const Tensor &result,
          int64_t axis, const std::string &reduction, bool drop);
  Tensor ofX() const;
  Tensor ofUpdates() const;

private:
  Tensor g, x, indices, updates, result;
  int64_t axis;
  std::string reduction;
  bool drop;
  Tensor places, isWritten; // valid indices; which of them are in range, undefined if all are

  Tensor into(const Tensor &start, const Tensor &values, const std::string &how) const;
  Tensor read(const Tensor &values) const { return gather(values, places, axis); }
  Tensor share() const;
  /// Of the factors of each product: the product of those that are not 0, and the number and the sum of those that are.
  /// The sum is 0, but has a gradient, as the gradient of another factor has one at 0.
  struct Factors {
    Tensor products, zeros, sumOfZeros;
  };
  Factors factors() const;
  Tensor factorGradient(const Tensor &factor, const Factors &all, const Tensor &g) const;
};

// ---- products
/// The gradient of one operand of dot_general.
Tensor dotGradient(const Tensor &g, const Tensor &lhs, const Tensor &rhs, const Ints &lhsBatch, const Ints &rhsBatch,
                   const Ints &lhsContract, const Ints &rhsContract, bool isLhs);
Tensor convGradient(const Tensor &g, const Tensor &x, const Tensor &weight, const Ints &strides, const Ints &padding,
                    const Ints &dilations, int64_t groups);
Tensor kernelGradient(const Tensor &g, const Tensor &x, const Tensor &weight, const Ints &strides, const Ints &padding,
                      const Ints &dilations, int64_t groups);

// ---- windows
struct Window {
  const Ints &kernel, &strides, &padding, &dilations;
};
/// kernelGradient over symbolic sizes.
Tensor kernelGradientByPlaces(const Tensor &g, const Tensor &x, const Tensor &weight, const Window &window,
                              int64_t groups);
/// Goes to the first of equal largest elements.
Tensor maxPoolGradient(const Tensor &g, const Tensor &x, const Tensor &result, const Window &window);
Tensor avgPoolGradient(const Tensor &g, const Tensor &x, const Window &window, bool ceilMode, bool countIncludePad);
Tensor adaptiveGradient(const Tensor &g, const Tensor &x, const Ints &outputSize);

// ---- normalisation and attention
/// The common form of layer_norm and related ops: x with mean 0 (unless only the scale is normalised) and variance 1,
/// then scaled.
class Normalized {
public:
  Tensor gradient(const Tensor &g) const;
  Tensor weightGradient(const Tensor &g) const { return toParameter(g * standard); }
  Tensor biasGradient(const Tensor &g) const { return toParameter(g); }

  Tensor weight;   // undefined, or broadcast to multiply x
  Tensor standard; // normalised x, before it is scaled
  Tensor inverse;  // inverse deviation, in the grouped shape
  Shape grouped;   // shape of x in which the dimensions from `axis` on are normalised
  int64_t axis;
  bool isCentered = true;
  std::optional<Shape> parameter; // the shape of weight and bias; nullopt: one number per channel

private:
  Tensor toParameter(const Tensor &g) const { return parameter ? sumTo(g, *parameter) : sumChannels(g); }
};
Normalized layerNorm(const Tensor &x, const Tensor &weight, int64_t axis, double epsilon);
Normalized rmsNorm(const Tensor &x, const Tensor &weight, int64_t axis, double epsilon);
Normalized groupNorm(const Tensor &x, const Tensor &weight, int64_t groups, double epsilon);
Normalized instanceNorm(const Tensor &x, const Tensor &weight, double epsilon);

/// Gradients of the operands of scaled_dot_product_attention.
class Attention {
public:
  Attention(const Tensor &query, const Tensor &key, const Tensor &value, const Tensor &mask, bool isCausal,
            double scale);
  Tensor query(const Tensor &g) const { return matmul(ofScores(g), k) * factor; }
  Tensor key(const Tensor &g) const { return matmul(ofScores(g).t(), q) * factor; }
  Tensor value(const Tensor &g) const { return matmul(weights.t(), g); }
  Tensor mask(const Tensor &g) const { return sumTo(ofScores(g), m.shape()); }

private:
  Tensor q, k, v, m, weights;
  Tensor factor;
  Tensor ofScores(const Tensor &g) const;
};

} // namespace burin::gradients
