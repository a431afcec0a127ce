// Window ops and composites. Composites stay single ops until fusion has placed them in a kernel.
#ifndef BURIN_NEURAL_OPS
#define BURIN_NEURAL_OPS
include "ir/ops/OpBase.td"

// Decomposed into simpler ops by a pass.
def Burin_CompositeTrait : NativeOpTrait<"Composite"> { let cppNamespace = "::burin::ir"; }

class Burin_Window<string m, dag extra> : Burin_Op<m> {
  let fusion = "window"; let parts = "ofImages"; let layout = "windowRule";
  let arguments = !con((ins Burin_Tensor:$x, DenseI64ArrayAttr:$kernel,
                            DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$strides,
                            DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$padding,
                            DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$dilations,
                            DefaultValuedAttr<BoolAttr, "false">:$ceil_mode), extra,
                       (ins DefaultValuedStrAttr<StrAttr, "nchw">:$layout));
  let results = (outs Burin_Tensor:$result);
  let infer = "inferPool";
}
def Burin_MaxPoolOp : Burin_Window<"max_pool", (ins)> {
  let element = "windowed";
  let summary = "Largest element of each window over the spatial dimensions of x [N, C, spatial…]";
  let description = [{ Empty `strides` equal `kernel`; otherwise lists and `layout` as in `conv`. Padding is never the largest. With
    `ceil_mode` a last, partial window is included if it starts inside x or the padding before it. }];
  let source = "torch.nn.functional.max_pool2d, ONNX MaxPool";
  let example = "max_pool(x, {3, 3}, {2, 2}, {1, 1})";
  let gradient = ["maxPoolGradient(g, x, result, {kernel, strides, padding, dilations})"];
  let batching = "folded(x, self)";
}
def Burin_AvgPoolOp : Burin_Window<"avg_pool", (ins DefaultValuedAttr<BoolAttr, "true">:$count_include_pad)> {
  let element = "averaged";
  let summary = "Mean of each window over the spatial dimensions of x [N, C, spatial…]";
  let description = [{ Lists, `ceil_mode` and `layout` as in `max_pool`. With `count_include_pad` the mean includes
    padding as zeros, but never elements that `ceil_mode` adds beyond it. }];
  let source = "torch.nn.functional.avg_pool2d, ONNX AveragePool";
  let example = "avg_pool(x, {2, 2})";
  let gradient = ["avgPoolGradient(g, x, {kernel, strides, padding, dilations}, ceil_mode, count_include_pad)"];
  let batching = "folded(x, self)";
}
def Burin_AdaptiveAvgPoolOp : Burin_Op<"adaptive_avg_pool"> {
  let fusion = "window"; let parts = "noOperands"; let layout = "windowRule"; let element = "averaged";
  let summary = "Mean of windows chosen so that the spatial sizes become `output_size`";
  let arguments = (ins Burin_Tensor:$x, DenseI64ArrayAttr:$output_size, DefaultValuedStrAttr<StrAttr, "nchw">:$layout);
  let results = (outs Burin_Tensor:$result);
  let infer = "inferAdaptivePool"; let source = "torch.nn.functional.adaptive_avg_pool2d";
  let example = "adaptive_avg_pool(x, {1, 1})";
  let gradient = ["adaptiveGradient(g, x, output_size)"];
  let batching = "folded(x, self)";
}

class Burin_Composite<string m, dag args, list<Trait> traits = []> : Burin_Op<m, !listconcat(traits, [Burin_CompositeTrait])> {
  let arguments = args;
  let results = (outs Burin_Tensor:$result);
  let infer = "inferSameAsOperand";
  let fusion = "none"; let parts = "noOperands"; let layout = "fixedRule"; let element = "none";
}
// A composite along the rows of its operand, which kernels compute.
class Burin_RowComposite<string m, dag args, string axes, list<Trait> traits = []> : Burin_Composite<m, args, traits> {
  let fusion = "row"; let rows = axes; let parts = "firstUnlessAlongBatch";
}
def Burin_SoftmaxOp : Burin_RowComposite<"softmax", (ins Burin_FloatTensor:$x, DefaultValuedAttr<I64Attr, "-1">:$axis), "along_axis"> {
  let layout = "sameRule";
  let summary = "exp(x - max) divided by its sum along `axis`"; let onnx = "Softmax"; let normalize = "float"; let infer = "inferAlongAxis"; let source = "torch.softmax";
  let autocast = "f32";
  let gradient = ["result * (g - reduce_sum(g * result, {axis}, true))"];
  let batching = "softmax(x, axis + 1)";
}
def Burin_LogSoftmaxOp : Burin_RowComposite<"log_softmax", (ins Burin_FloatTensor:$x, DefaultValuedAttr<I64Attr, "-1">:$axis), "along_axis"> {
  let layout = "sameRule";
  let summary = "Logarithm of softmax"; let onnx = "LogSoftmax"; let normalize = "float"; let infer = "inferAlongAxis"; let source = "torch.log_softmax";
  let autocast = "f32";
  let gradient = ["g - exp(result) * reduce_sum(g, {axis}, true)"];
  let batching = "log_softmax(x, axis + 1)";
}
def Burin_LayerNormOp : Burin_RowComposite<"layer_norm", (ins Burin_FloatTensor:$x, Optional<Burin_FloatTensor>:$weight,
      Optional<Burin_FloatTensor>:$bias, DefaultValuedAttr<I64Attr, "-1">:$axis, DefaultValuedAttr<F64Attr, "1e-5">:$epsilon),
      "from_axis", [AttrSizedOperandSegments]> {
  let summary = "Zero mean and unit variance over the dimensions from `axis` on, then scale and shift";
  let autocast = "f32";
  let description = [{ weight and bias have the shape of those dimensions. }];
  let normalize = "promote"; let infer = "inferNorm"; let source = "Ba et al. 2016, torch.nn.functional.layer_norm, ONNX LayerNormalization";
  let example = "layer_norm(x, weight, bias)";
  let gradient = ["layerNorm(x, weight, axis, epsilon).gradient(g)",
                  "layerNorm(x, weight, axis, epsilon).weightGradient(g)",
                  "layerNorm(x, weight, axis, epsilon).biasGradient(g)"];
  let batching = "layerNorm(x, weight, bias, axis, self, examples)";
}
def Burin_RmsNormOp : Burin_RowComposite<"rms_norm", (ins Burin_FloatTensor:$x, Optional<Burin_FloatTensor>:$weight,
      DefaultValuedAttr<I64Attr, "-1">:$axis, DefaultValuedAttr<F64Attr, "1e-6">:$epsilon), "from_axis"> {
  let summary = "x divided by the root of its mean square over the dimensions from `axis` on, then scale";
  let autocast = "f32";
  let normalize = "promote"; let infer = "inferNorm"; let source = "Zhang and Sennrich 2019, torch.nn.functional.rms_norm";
  let gradient = ["rmsNorm(x, weight, axis, epsilon).gradient(g)",
                  "rmsNorm(x, weight, axis, epsilon).weightGradient(g)"];
  let batching = "layerNorm(x, weight, std::nullopt, axis, self, examples)";
}
def Burin_BatchNormOp : Burin_Composite<"batch_norm", (ins Burin_FloatTensor:$x, Burin_FloatTensor:$mean, Burin_FloatTensor:$variance,
      Burin_FloatTensor:$weight, Burin_FloatTensor:$bias, DefaultValuedAttr<F64Attr, "1e-5">:$epsilon)> {
  let summary = "(x - mean) / sqrt(variance + epsilon) * weight + bias per channel of x [N, C, …], with stored statistics";
  let autocast = "f32";
  let normalize = "promote"; let infer = "inferBatchNorm"; let source = "Ioffe and Szegedy 2015, torch.nn.functional.batch_norm (inference)";
  let gradient = ["g * perChannel(weight * rsqrt(variance + epsilon), x)",
                  "-sumChannels(g) * weight * rsqrt(variance + epsilon)",
                  "sumChannels(g * (x - perChannel(mean, x))) * weight * pow(variance + epsilon, -1.5) * -0.5",
                  "sumChannels(g * (x - perChannel(mean, x))) * rsqrt(variance + epsilon)", "sumChannels(g)"];
  let batching = "batchNorm({x, mean, variance, weight, bias}, self, examples)";
}
def Burin_GroupNormOp : Burin_Composite<"group_norm", (ins Burin_FloatTensor:$x, Optional<Burin_FloatTensor>:$weight,
      Optional<Burin_FloatTensor>:$bias, I64Attr:$groups, DefaultValuedAttr<F64Attr, "1e-5">:$epsilon), [AttrSizedOperandSegments]> {
  let summary = "Zero mean and unit variance over each group of channels of x [N, C, …], then scale and shift per channel";
  let autocast = "f32";
  let normalize = "promote"; let infer = "inferGroupNorm"; let source = "Wu and He 2018, torch.nn.functional.group_norm";
  let example = "group_norm(x, 8, weight, bias)";
  let gradient = ["groupNorm(x, weight, groups, epsilon).gradient(g)",
                  "groupNorm(x, weight, groups, epsilon).weightGradient(g)",
                  "groupNorm(x, weight, groups, epsilon).biasGradient(g)"];
  let batching = "groupNorm(x, weight, bias, self, examples)";
}
def Burin_InstanceNormOp : Burin_Composite<"instance_norm", (ins Burin_FloatTensor:$x, Optional<Burin_FloatTensor>:$weight,
      Optional<Burin_FloatTensor>:$bias, DefaultValuedAttr<F64Attr, "1e-5">:$epsilon), [AttrSizedOperandSegments]> {
  let summary = "Zero mean and unit variance over the spatial dimensions of each channel, then scale and shift per channel";
  let autocast = "f32";
  let normalize = "promote"; let infer = "inferGroupNorm"; let source = "Ulyanov et al. 2016, torch.nn.functional.instance_norm";
  let gradient = ["instanceNorm(x, weight, epsilon).gradient(g)", "instanceNorm(x, weight, epsilon).weightGradient(g)",
                  "instanceNorm(x, weight, epsilon).biasGradient(g)"];
  let batching = "groupNorm(x, weight, bias, self, examples)";
}
def Burin_ScaledDotProductAttentionOp : Burin_Composite<"scaled_dot_product_attention", (ins Burin_FloatTensor:$query,
      Burin_FloatTensor:$key, Burin_FloatTensor:$value, Optional<Burin_Tensor>:$mask, DefaultValuedAttr<BoolAttr, "false">:$is_causal,
      DefaultValuedAttr<F64Attr, "0.0">:$scale)> {
  let summary = "softmax(query · keyᵀ · scale + mask) · value";
  let autocast = "lower";
  let description = [{
    query [..., L, E], key [..., S, E], value [..., S, V]; mask broadcasts to [..., L, S]: bool (true: visible) or added to the scores.
    `is_causal` lets row i see columns up to i. A `scale` of 0 means 1/sqrt(E). A row that sees nothing gives zeros.
  }];
  let fusion = "window"; let parts = "attentionOperands"; let flops = "ofAttention";
  let infer = "inferAttention"; let source = "torch.nn.functional.scaled_dot_product_attention";
  let gradient = ["Attention(query, key, value, mask, is_causal, scale).query(g)",
                  "Attention(query, key, value, mask, is_causal, scale).key(g)",
                  "Attention(query, key, value, mask, is_causal, scale).value(g)",
                  "Attention(query, key, value, mask, is_causal, scale).mask(g)"];
  let batching = "attention({query, key, value, mask}, self, examples)";
}
def Burin_DropoutOp : Burin_Op<"dropout"> {
  let fusion = "none"; let parts = "noOperands"; let layout = "fixedRule"; let element = "none"; let folding = "cheap";
  let summary = "The identity: dropout acts in training only";
  let arguments = (ins Burin_Tensor:$x, DefaultValuedAttr<F64Attr, "0.5">:$p);
  let results = (outs Burin_Tensor:$result);
  let infer = "inferSameAsOperand"; let source = "torch.nn.functional.dropout (inference)"; let hasFolder = 1;
  let api = 0; // dropout() of burin/functional.h drops in training, too
  let gradient = ["g"];
  let batching = "same";
}
#endif
