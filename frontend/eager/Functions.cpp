// Functions based on gradients: custom gradients, products with Jacobians and Hessians, checks.
#include "burin/ops.h"
#include "burin/tensor/creation.h"
#include "burin/training/gradients.h"
#include "frontend/autodiff/tape/Tape.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/trace/Trace.h"
#include <cmath>
#include <random>
#include <sstream>

namespace burin {

using detail::inScope;

// ---- anomalies

static thread_local bool anomalyDetected = false;
DetectAnomaly::DetectAnomaly() : before(std::exchange(anomalyDetected, true)) {}
DetectAnomaly::~DetectAnomaly() { anomalyDetected = before; }
bool is_anomaly_detected() { return anomalyDetected; }

void detail::checkFinite(const Tensor &tensor, const char *op, const Location &place, const char *what) {
  if (!tensor.defined() || !isFloat(tensor.dtype()))
    return;
  std::vector<double> values = tensor.to_vector<double>(place);
  for (size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      throw Error(place, op,
                  std::string(what) + ", " + str(tensor.spec()) + ", holds " +
                      (std::isnan(values[i]) ? "a NaN" : "an infinity") + " at position " + std::to_string(i) +
                      " of its elements in row-major order");
}

// ---- custom gradients

namespace {

class TapeCustom : public detail::TapeNode {
public:
  TapeCustom(VjpFunction vjp, const std::vector<Tensor> &given, const std::vector<Tensor> &made, const Location &where)
      : TapeNode("custom_vjp", where), vjp(std::move(vjp)) {
    for (const Tensor &input : given) {
      edges.push_back(detail::edgeOf(input));
      inputs.push_back(detail::withoutEdge(input));
    }
    for (const Tensor &result : made) {
      results.push_back(result.spec(where));
      outputs.push_back(detail::withoutEdge(result));
    }
  }

  std::vector<Tensor> propagate(std::vector<Tensor> gradients, bool recorded) override {
    std::vector<Tensor> from = inputs, to = outputs;
    for (size_t i = 0; recorded && i < from.size(); ++i)
      if (edges[i].node)
        from[i] = detail::withEdge(from[i], edges[i]);
    for (size_t i = 0; i < to.size(); ++i) {
      if (recorded && isFloat(to[i].dtype()))
        to[i] = detail::withEdge(to[i], {shared_from_this(), uint32_t(i)});
      if (!gradients[i].defined())
        gradients[i] = zeros(results[i].shape, results[i].dtype, place);
    }
    std::vector<Tensor> passed = vjp(from, to, gradients);
    if (passed.size() != from.size())
      throw Error(place, "custom_vjp",
                  "the gradient function returns " + std::to_string(passed.size()) + " tensors for " +
                      std::to_string(from.size()) + " inputs");
    for (size_t i = 0; i < passed.size(); ++i)
      if (passed[i].defined() && passed[i].spec(place) != from[i].spec(place))
        throw Error(place, "custom_vjp",
                    "the gradient of input " + std::to_string(i) + ", " + str(from[i].spec(place)) + ", came out as " +
                        str(passed[i].spec(place)));
    return passed;
  }

  void release() override {
    inputs.clear();
    outputs.clear();
  }

private:
  VjpFunction vjp;
  std::vector<Tensor> inputs, outputs; // without edges to the tape
};

} // namespace

TensorFunction custom_vjp(TensorFunction function, VjpFunction vjp) {
  return [function = std::move(function), vjp = std::move(vjp)](const std::vector<Tensor> &inputs) {
    const Location where = inScope({});
    std::vector<Tensor> results;
    {
      NoGrad off;
      results = function(inputs);
    }
    if (Trace *trace = Trace::active())
      return trace->customVjp(inputs, results, vjp, where);
    bool needed = detail::isGradEnabled() &&
                  std::ranges::any_of(inputs, [](const Tensor &input) { return input.requires_grad(); });
    if (!needed)
      return results;
    auto node = std::make_shared<TapeCustom>(vjp, inputs, results, where);
    for (size_t i = 0; i < results.size(); ++i)
      if (isFloat(results[i].dtype()))
        results[i] = detail::withEdge(results[i], {node, uint32_t(i)});
    return results;
  };
}

// ---- products with Jacobians and Hessians

/// Inputs of derivatives: separate leaves, outside of traces.
static std::vector<Tensor> variables(const std::vector<Tensor> &inputs, const Location &where) {
  std::vector<Tensor> leaves;
  for (const Tensor &input : inputs)
    leaves.push_back(Trace::active() ? input : detail::withoutEdge(input).requires_grad_(true, where));
  return leaves;
}

static void checkDirections(const std::vector<Tensor> &inputs, const std::vector<Tensor> &directions, const char *op,
                            const Location &where) {
  if (inputs.size() != directions.size())
    throw Error(where, op,
                std::to_string(directions.size()) + " directions were given for " + std::to_string(inputs.size()) +
                    " inputs");
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].spec(where) != directions[i].spec(where))
      throw Error(where, op,
                  "input " + std::to_string(i) + " is " + str(inputs[i].spec(where)) + ", but its direction " +
                      str(directions[i].spec(where)));
}

/// The sum of products of corresponding elements.
static Tensor dot(const std::vector<Tensor> &a, const std::vector<Tensor> &b) {
  Tensor sum;
  for (size_t i = 0; i < a.size(); ++i) {
    Tensor product = (a[i] * b[i]).sum();
    sum = sum.defined() ? sum + product : product;
  }
  return sum;
}

/// The gradient u -> u J is linear in u; its own gradient, with the tangents as weights, is J v.
std::pair<std::vector<Tensor>, std::vector<Tensor>> jvp(const TensorFunction &function,
                                                        const std::vector<Tensor> &inputs,
                                                        const std::vector<Tensor> &tangents, Location where) {
  const Location place = inScope(where);
  checkDirections(inputs, tangents, "jvp", place);
  LocationScope scope(place);
  EnableGrad enabled;
  std::vector<Tensor> xs = variables(inputs, place), ys = function(xs), derivatives;
  const BackwardOptions keep{.retain_graph = true, .create_graph = true};
  for (Tensor &y : ys) {
    Tensor u = variables({zeros_like(y, place)}, place)[0];
    std::vector<Tensor> products = grad(y, xs, u, keep, place);
    Tensor sum = dot(products, tangents);
    derivatives.push_back(Trace::active() || sum.requires_grad() ? grad(sum, {u}, std::nullopt, {}, place)[0]
                                                                 : zeros_like(y, place));
    y = burin::detach(y, place);
  }
  return {std::move(ys), std::move(derivatives)};
}

std::vector<Tensor> hvp(const TensorFunction &function, const std::vector<Tensor> &inputs,
                        const std::vector<Tensor> &vectors, Location where) {
  const Location place = inScope(where);
  checkDirections(inputs, vectors, "hvp", place);
  LocationScope scope(place);
  EnableGrad enabled;
  std::vector<Tensor> xs = variables(inputs, place), ys = function(xs);
  if (ys.size() != 1)
    throw Error(place, "hvp", "the function returns " + std::to_string(ys.size()) + " tensors instead of one");
  std::vector<Tensor> first = grad(ys[0], xs, std::nullopt, {.create_graph = true}, place);
  return grad(dot(first, vectors), xs, std::nullopt, {}, place);
}

// ---- gradcheck

namespace {

/// `inputs` with one element changed by `step`.
std::vector<Tensor> moved(const std::vector<Tensor> &inputs, size_t which, size_t element, double step) {
  std::vector<Tensor> result = inputs;
  std::vector<double> values = inputs[which].to_vector<double>();
  values[element] += step;
  result[which] = from_vector(values, inputs[which].shape()).to(inputs[which].device());
  return result;
}

/// Weights of the elements of `y` in the sum that is differentiated. They have no pattern along any axis, so that
/// neither permuted nor repeated gradients give the same sum.
Tensor irregularWeights(const Tensor &y) {
  std::mt19937_64 random(1);
  std::vector<double> weights(size_t(elements(y.shape()).value()));
  for (double &weight : weights)
    weight = 0.5 + double(random() >> 11) * 0x1p-53;
  return from_vector(weights, y.shape()).to(y.dtype()).to(y.device());
}

/// An element of a gradient, and how many times its tolerance it is off.
struct Mismatch {
  double excess = 0;
  size_t result = 0, input = 0;
  int64_t element = 0;
  double slope = 0, difference = 0;
  bool operator<(const Mismatch &other) const { return excess < other.excess; }
};

double excess(double slope, double difference, const GradcheckOptions &options) {
  if (std::isnan(slope) || std::isnan(difference))
    return std::isnan(slope) == std::isnan(difference) ? 0 : HUGE_VAL;
  const double error = std::abs(difference - slope), tolerance = options.atol + options.rtol * std::abs(difference);
  return error <= tolerance ? 0 : std::isfinite(error) && tolerance > 0 ? error / tolerance : HUGE_VAL;
}

void checkOptions(const std::vector<Tensor> &inputs, const GradcheckOptions &options, const Location &place) {
  if (!(options.step > 0) || !(options.atol >= 0) || !(options.rtol >= 0))
    throw Error(place, "gradcheck", "the step must be positive, and tolerances must not be negative");
  for (const Tensor &input : inputs)
    if (input.dtype(place) != DType::f64)
      throw Error(place, "gradcheck", "an input is " + str(input.spec(place)) + "; differences need f64: use .to(f64)");
}

} // namespace

void gradcheck(const TensorFunction &function, const std::vector<Tensor> &inputs, const GradcheckOptions &options,
               Location where) {
  const Location place = inScope(where);
  checkOptions(inputs, options, place);
  std::vector<Tensor> ys, xs = variables(inputs, place);
  {
    EnableGrad enabled;
    ys = function(xs);
  }
  std::vector<Tensor> weights(ys.size());
  std::vector<std::vector<Tensor>> gradients(ys.size()); // by result and input
  for (size_t j = 0; j < ys.size(); ++j)
    if (isFloat(ys[j].dtype(place))) {
      weights[j] = irregularWeights(ys[j]);
      gradients[j] = grad(ys[j], xs, weights[j], {.retain_graph = true}, place);
    }
  NoGrad off;
  Mismatch worst;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t count = elements(inputs[i].shape()).value();
    for (int64_t e = 0; e < count; ++e) {
      std::vector<Tensor> above = function(moved(inputs, i, size_t(e), options.step)),
                          below = function(moved(inputs, i, size_t(e), -options.step));
      for (size_t j = 0; j < ys.size(); ++j) {
        if (!weights[j].defined())
          continue;
        const double slope = gradients[j][i].reshape({-1})(e).item<double>(),
                     difference = ((above[j] - below[j]) * weights[j]).sum().item<double>() / (2 * options.step);
        worst = std::max(worst, Mismatch{excess(slope, difference, options), j, i, e, slope, difference});
      }
    }
  }
  if (worst.excess <= 1)
    return;
  std::ostringstream message;
  message << "the gradient of result " << worst.result << " with respect to element " << worst.element << " of input "
          << worst.input << ", " << str(inputs[worst.input].spec()) << ", is " << worst.slope
          << ", but differences say " << worst.difference;
  throw Error(place, "gradcheck", message.str());
}

} // namespace burin
