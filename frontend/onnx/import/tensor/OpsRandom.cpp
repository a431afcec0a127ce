// Random numbers from the default generator, or from one with the node's seed. Both are states of the graph, so each
// run draws new numbers.
#include "burin/tensor/composed.h"
#include "burin/tensor/random.h"
#include "frontend/onnx/import/Node.h"

namespace burin::onnx {

namespace {

/// Shape and element type of an input, or of the attributes.
TensorSpec specOf(const Node &n, bool isLike) {
  DType fallback = isLike && isFloat(n.dtype()) ? n.dtype() : DType::f32;
  TensorSpec spec{n.attributeType("dtype", fallback), {}};
  if (!isFloat(spec.dtype))
    n.unsupported("random numbers of the type " + std::string(name(spec.dtype)));
  if (isLike) {
    spec.shape = n.shape();
  } else {
    std::vector<int64_t> shape = n.attribute("shape", std::vector<int64_t>());
    spec.shape = Shape(shape.begin(), shape.end());
  }
  return spec;
}

template <bool isLike> Values normalOf(Node &n) {
  TensorSpec spec = specOf(n, isLike);
  return n.generator().normal(spec.shape, n.attribute("mean", 0.0), n.attribute("scale", 1.0), spec.dtype);
}

template <bool isLike> Values uniformOf(Node &n) {
  TensorSpec spec = specOf(n, isLike);
  return n.generator().uniform(spec.shape, n.attribute("low", 0.0), n.attribute("high", 1.0), spec.dtype);
}

Values bernoulliOf(Node &n) { return n.generator().bernoulli(n[0]).to(n.attributeType("dtype", n.dtype())); }

/// Samples from rows of logits.
Values multinomialOf(Node &n) {
  n.requireRank(0, 2);
  Tensor drawn = n.generator().multinomial(softmax(n[0], 1), n.attribute("sample_size", int64_t(1)), true);
  return drawn.to(n.attributeType("dtype", DType::i32));
}

/// Drops elements in training mode.
Values dropoutOf(Node &n) {
  const bool isTraining = n.opset() >= 12 && n.has(2) && n.integer(2);
  const double ratio = n.opset() >= 12 ? n.has(1) ? n.real(1) : 0.5 : n.attribute("ratio", 0.5);
  if (!isTraining || ratio == 0) {
    Values results{n.value(0)};
    if (n.wants(1))
      results.push_back(full(n.shape(), 1, DType::boolean));
    return results;
  }
  Tensor isKept = n.generator().rand(n.shape()) >= ratio;
  return std::vector<Tensor>{where(isKept, n[0] / (1 - ratio), zeros_like(n[0])), isKept};
}

constexpr OpEntry table[] = {
    {"Bernoulli", bernoulliOf},
    {"Dropout", dropoutOf},
    {"Multinomial", multinomialOf},
    {"RandomNormal", normalOf<false>},
    {"RandomNormalLike", normalOf<true>},
    {"RandomUniform", uniformOf<false>},
    {"RandomUniformLike", uniformOf<true>},
};

} // namespace

std::span<const OpEntry> randomOps() { return table; }

} // namespace burin::onnx
