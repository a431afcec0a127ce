#include "test/onnx/Hostile.h"
#include <cmath>

namespace burin::test {

namespace {

using Attributes = std::vector<Bytes>;

Bytes floatsAttribute(const Bytes &name, const std::vector<float> &values) {
  Message message;
  message.add(1, name).add(20, int64_t(6));
  for (float value : values)
    message.addFloat(7, value);
  return message;
}

/// A model with one node that takes x and constants c0, c1, …
Bytes withConstants(const Bytes &op, std::vector<Bytes> constants, Attributes attributes = {},
                    OnnxType result = kFloat) {
  NodeText node{op, {"x"}, {"y"}, std::move(attributes), "n"};
  for (size_t i = 0; i < constants.size(); ++i)
    node.inputs.push_back("c" + std::to_string(i));
  return oneNode(std::move(node), std::move(constants), {}, result);
}
Bytes ints(int i, const std::vector<int64_t> &values) {
  return intTensor("c" + std::to_string(i), {int64_t(values.size())}, values);
}
Bytes number(int i, int64_t value) { return intTensor("c" + std::to_string(i), {}, {value}); }
Bytes reals(int i, const std::vector<float> &values) {
  return floatTensor("c" + std::to_string(i), {int64_t(values.size())}, values);
}
/// The same for a node that does not take x.
Bytes creating(const Bytes &op, std::vector<Bytes> constants, Attributes attributes = {}, OnnxType result = kFloat) {
  NodeText node{op, {}, {"y"}, std::move(attributes), "n"};
  for (size_t i = 0; i < constants.size(); ++i)
    node.inputs.push_back("c" + std::to_string(i));
  return oneNode(std::move(node), std::move(constants), {}, result);
}

Bytes plain(const Bytes &op, Attributes attributes = {}) { return withConstants(op, {}, std::move(attributes)); }

/// The same for images f32[1, 3, 8, 8] and, if `kernel` is given, a weight "w".
Bytes onImages(const Bytes &op, Attributes attributes, std::vector<int64_t> kernel = {}) {
  NodeText node{op, {"x"}, {"y"}, std::move(attributes), "n"};
  std::vector<Bytes> weights;
  if (!kernel.empty()) {
    node.inputs.push_back("w");
    int64_t count = 1;
    for (int64_t size : kernel)
      count *= size;
    weights.push_back(floatTensor("w", kernel, std::vector<float>(size_t(count), 1)));
  }
  return oneNode(node, weights, {valueInfo("x", kFloat, {"1", "3", "8", "8"})});
}

/// Axes whose computation overflows 64 bits.
Bytes overflowingAxes() {
  ModelText model{.nodes = {{"Shape", {"x"}, {"s"}},
                            {"Mul", {"s", "big"}, {"a"}},
                            {"Mul", {"a", "big"}, {"b"}},
                            {"ReduceSum", {"x", "b"}, {"y"}}},
                  .inputs = {valueInfo("x", kFloat, {"1", "n"})},
                  .outputs = {valueInfo("y", kFloat, {"", ""})},
                  .initializers = {intTensor("big", {1}, {int64_t(1) << 40})}};
  return model.model();
}

Bytes einsum(const char *equation) {
  return oneNode({"Einsum", {"x", "x"}, {"y"}, {attribute("equation", equation)}, "n"});
}

} // namespace

std::vector<HostileModel> hostileOps() {
  constexpr int64_t kBig = int64_t(1) << 50;
  const Bytes value = tensorAttribute("value", floatTensor("v", {1}, {1}));
  const char *const tooLarge = "memory";
  const ModelText second{.nodes = {{"Identity", {"b"}, {"c"}}}, // of two values
                         .inputs = {valueInfo("a", kFloat, {}), valueInfo("b", kFloat, {})},
                         .outputs = {valueInfo("c", kFloat, {})}};
  return {
      // ---- results of petabytes
      {"Range to 2^50", creating("Range", {number(0, 0), number(1, kBig), number(2, 1)}, {}, kInt64), 3, tooLarge},
      {"Expand to 2^50", withConstants("Expand", {ints(0, {kBig, 2, 3})}), 3, tooLarge},
      {"Expand to 2^90", withConstants("Expand", {ints(0, {1 << 30, 1 << 30, 1 << 30, 2, 3})}), 3, ""},
      {"Tile 2^50 times", withConstants("Tile", {ints(0, {kBig, 1})}), 3, tooLarge},
      {"Tile 2^63 - 1 times", withConstants("Tile", {ints(0, {INT64_MAX, 1})}), 3, "64 bits"},
      {"ConstantOfShape of 2^50", creating("ConstantOfShape", {ints(0, {kBig})}, {value}), 3, tooLarge},
      {"ConstantOfShape of -1", creating("ConstantOfShape", {ints(0, {-1})}, {value}), 3, ""},
      {"Pad by 2^50", withConstants("Pad", {ints(0, {0, 0, kBig, 0})}), 3, tooLarge},
      {"Pad by 2^63 - 1 twice", withConstants("Pad", {ints(0, {INT64_MAX, 0, INT64_MAX, 0})}), 3, "64 bits"},
      {"Pad by -2^40", withConstants("Pad", {ints(0, {-(int64_t(1) << 40), 0, 0, 0})}), 3, ""},
      {"Resize by 2^40", withConstants("Resize", {reals(0, {}), reals(1, {1.1e12f, 1})}), 3, ""},
      {"Resize to 2^50", withConstants("Resize", {reals(0, {}), reals(1, {}), ints(2, {kBig, 3})}), 3, ""},
      {"Resize by NaN", withConstants("Resize", {reals(0, {}), reals(1, {NAN, 1})}), 3, ""},
      {"Resize by infinity", withConstants("Resize", {reals(0, {}), reals(1, {INFINITY, 1})}), 3, ""},
      {"Resize by -1", withConstants("Resize", {reals(0, {}), reals(1, {-1, 1})}), 3, ""},
      {"OneHot of depth 2^50",
       oneNode({"OneHot", {"i", "c0", "c1"}, {"y"}}, {number(0, kBig), reals(1, {0, 1})},
               {valueInfo("i", kInt64, {"4"})}),
       3, tooLarge},
      {"EyeLike of 2^30 by 2^30",
       oneNode({"EyeLike", {"c"}, {"y"}, {}, "n"}, {}, {valueInfo("c", kFloat, {"1073741824", "1073741824"})}), 3, ""},
      {"a window of 2^50", creating("HannWindow", {number(0, kBig)}), 3, "a window of"},
      {"arithmetic of sizes beyond 64 bits", overflowingAxes(), 4, "must be known"},
      {"SplitToSequence of 2^40",
       oneNode({"SplitToSequence", {"x"}, {"s"}, {}, "n"}, {}, {valueInfo("x", kFloat, {"1099511627776"})}), 4,
       "a sequence of more than"},
      // ---- attributes
      {"an If without branches", oneNode({"If", {"c0"}, {"y"}, {}, "n"}, {tensorProto<char>("c0", kBool, {}, {1})}), 3,
       "needs the attribute \"then_branch\""},
      {"a Cast to nothing", plain("Cast"), 3, ""},
      {"a Cast to type 99", plain("Cast", {attribute("to", int64_t(99))}), 4, "type 99"},
      {"an axis that is a text", plain("Softmax", {attribute("axis", "one")}), 3, "is of the wrong type"},
      {"an axis of 2^62", plain("Softmax", {attribute("axis", int64_t(1) << 62)}), 3, "is out of range"},
      {"a Concat along dimension 9", oneNode({"Concat", {"x", "x"}, {"y"}, {attribute("axis", int64_t(9))}}), 3, "9"},
      {"a Constant without a value", oneNode({"Constant", {}, {"y"}}), 3, ""},
      {"a Transpose to dimensions 0 and 0", plain("Transpose", {attribute("perm", {0, 0})}), 3, ""},
      {"a Transpose to dimension -9", plain("Transpose", {attribute("perm", {-9, 1})}), 3, ""},
      {"a MaxPool of kernel 0", onImages("MaxPool", {attribute("kernel_shape", {0, 0})}), 3, ""},
      {"a MaxPool of kernel 2^40",
       onImages("MaxPool", {attribute("kernel_shape", {int64_t(1) << 40, int64_t(1) << 40})}), 3, ""},
      {"a MaxPool of stride 0", onImages("MaxPool", {attribute("kernel_shape", {2, 2}), attribute("strides", {0, 0})}),
       3, ""},
      {"a MaxPool without a kernel", onImages("MaxPool", {}), 3, ""},
      {"a Conv of stride -1", onImages("Conv", {attribute("strides", {-1, -1})}, {4, 3, 3, 3}), 3, ""},
      {"a Conv of dilation 2^62", onImages("Conv", {attribute("dilations", {int64_t(1) << 62, 1})}, {4, 3, 3, 3}), 3,
       ""},
      {"a Conv of 2^40 groups", onImages("Conv", {attribute("group", int64_t(1) << 40)}, {4, 3, 3, 3}), 3, ""},
      {"a Conv padded by 2^62",
       onImages("Conv", {attribute("pads", {int64_t(1) << 62, 0, int64_t(1) << 62, 0})}, {4, 3, 3, 3}), 3, ""},
      {"a ConvTranspose of stride 2^50", onImages("ConvTranspose", {attribute("strides", {kBig, kBig})}, {3, 4, 3, 3}),
       3, ""},
      // ---- inputs
      {"an Add of one", oneNode({"Add", {"x"}, {"y"}}), 3, "needs the input 1"},
      {"a Relu of three", oneNode({"Relu", {"x", "x", "x"}, {"y"}}), 3, "input"},
      {"an Add of floats and integers", withConstants("Add", {intTensor("c0", {3}, {1, 2, 3})}), 3, ""},
      {"a Where of floats", oneNode({"Where", {"x", "x", "x"}, {"y"}}), 3, ""},
      {"an And of floats", oneNode({"And", {"x", "x"}, {"y"}}, {}, {}, kBool), 3, ""},
      {"a MatMul that does not fit", oneNode({"MatMul", {"x", "x"}, {"y"}}), 3, "do not multiply"},
      {"a Gather with float indices", oneNode({"Gather", {"x", "x"}, {"y"}}), 3, ""},
      {"a Reshape to other sizes", withConstants("Reshape", {ints(0, {7, -1})}), 3, ""},
      {"a Reshape to -1 and -1", withConstants("Reshape", {ints(0, {-1, -1})}), 3, ""},
      {"a Reshape to -7", withConstants("Reshape", {ints(0, {-7})}), 3, ""},
      {"a Reshape to 2^63 - 1", withConstants("Reshape", {ints(0, {INT64_MAX, INT64_MAX})}), 3, ""},
      {"a Slice of step 0", withConstants("Slice", {ints(0, {0}), ints(1, {2}), ints(2, {0}), ints(3, {0})}), 3,
       "step is 0"},
      {"a Slice with lists of different lengths", withConstants("Slice", {ints(0, {0, 0}), ints(1, {2})}), 3,
       "do not agree"},
      {"a Slice by -2^63 along no dimension",
       withConstants("Slice", {ints(0, {INT64_MIN}), ints(1, {INT64_MIN}), ints(2, {INT64_MIN}), ints(3, {INT64_MIN})}),
       3, ""},
      {"a Split into pieces that are too large",
       oneNode({"Split", {"x", "c0"}, {"y", "z"}, {}, "n"}, {ints(0, {5, 5})}), 3, ""},
      {"a Split into 2^63 pieces",
       oneNode({"Split", {"x", "c0"}, {"y", "z"}, {}, "n"}, {ints(0, {INT64_MAX, INT64_MAX})}), 3, ""},
      {"a TopK of -1", oneNode({"TopK", {"x", "c0"}, {"y", "i"}, {}, "n"}, {ints(0, {-1})}), 3, ""},
      {"a Range of step 0", creating("Range", {number(0, 0), number(1, 5), number(2, 0)}, {}, kInt64), 3, ""},
      {"a Range of a list", creating("Range", {ints(0, {0, 1}), number(1, 5), number(2, 1)}, {}, kInt64), 3,
       "must be one number"},
      {"a Squeeze of what is not 1", withConstants("Squeeze", {ints(0, {0})}), 3, ""},
      {"an Unsqueeze twice at one place", withConstants("Unsqueeze", {ints(0, {0, 0})}), 3, ""},
      {"a ReduceSum over dimension 9", withConstants("ReduceSum", {ints(0, {9})}), 3, ""},
      {"a Scan over 2^30 elements whose state becomes one of them",
       oneNode({"Scan",
                {"x", "x"},
                {"y"},
                {attribute("num_scan_inputs", int64_t(1)), graphAttribute("body", second.graph())},
                "n"},
               {}, {valueInfo("x", kFloat, {"1073741824", "2"})}),
       3, "states keep their shape"},
      {"a Scan over -1 inputs",
       oneNode({"Scan",
                {"x"},
                {"y"},
                {attribute("num_scan_inputs", int64_t(-1)), graphAttribute("body", relu().graph())},
                "n"}),
       3, "does not fit"},
      // ---- equations
      {"Einsum without an equation", oneNode({"Einsum", {"x", "x"}, {"y"}, {}, "n"}), 3, ""},
      {"Einsum of garbage", einsum("%!$,->->,"), 3, ""},
      {"Einsum of too many terms", einsum("ab,ab,ab->a"), 3, "terms"},
      {"Einsum of too many letters", einsum("abcdefgh,ab->a"), 3, "does not fit"},
      {"Einsum to a letter that is not there", einsum("ab,ab->z"), 3, "label"},
      {"Einsum with two results", einsum("ab,ab->a->b"), 3, ""},
      {"Einsum of sizes that differ", einsum("ab,bc->ac"), 3, ""},
      {"Einsum to one letter twice", einsum("ab,ab->aa"), 3, ""},
      {"Einsum of many dots", einsum("......a,b->a"), 3, ""},
      {"scales for too many dimensions",
       withConstants("Upsample", {reals(0, {1, 2, 3, 4, 5})}, {floatsAttribute("scales", {1})}), 3, ""},
  };
}

} // namespace burin::test
