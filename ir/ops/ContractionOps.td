// Products of tensors: matrix products and convolutions. Sums of products of 16-bit and 8-bit floats are in f32.
#ifndef BURIN_CONTRACTION_OPS
#define BURIN_CONTRACTION_OPS
include "ir/ops/OpBase.td"

def Burin_MatmulOp : Burin_Op<"matmul"> {
  let fusion = "none"; let parts = "noOperands"; let layout = "fixedRule"; let element = "none";
  let summary = "Matrix product over the last two dimensions; leading dimensions broadcast";
  let autocast = "lower";
  let description = [{ A one-dimensional operand is a row on the left and a column on the right; its dimension is dropped
    from the result. In the IR both operands have rank 2 or more and equal leading dimensions. Products of 8-bit floats,
    of one type or of both, are f32. }];
  let float8 = "multiplied";
  let arguments = (ins Burin_Tensor:$lhs, Burin_Tensor:$rhs);
  let results = (outs Burin_Tensor:$result);
  let infer = "inferMatmul"; let normalize = "promote"; let source = "torch.matmul";
  let gradient = ["matmul(g, rhs.to(g.dtype()).t()).to(lhs.dtype())", "matmul(lhs.to(g.dtype()).t(), g).to(rhs.dtype())"];
  let batching = "product(lhs, rhs)";
}
def Burin_DotGeneralOp : Burin_Op<"dot_general"> {
  let fusion = "none"; let parts = "noOperands"; let layout = "fixedRule"; let element = "none";
  let summary = "Sum of products over the contracted dimensions, for each combination of batch and free dimensions";
  let autocast = "lower";
  let description = [{ The result has the batch dimensions, the free dimensions of lhs, then those of rhs. }];
  let arguments = (ins Burin_Tensor:$lhs, Burin_Tensor:$rhs, DenseI64ArrayAttr:$lhs_batch, DenseI64ArrayAttr:$rhs_batch,
                       DenseI64ArrayAttr:$lhs_contract, DenseI64ArrayAttr:$rhs_contract);
  let results = (outs Burin_Tensor:$result);
  let infer = "inferDotGeneral"; let normalize = "promote"; let source = "StableHLO dot_general";
  let example = "dot_general(x, y, {0}, {0}, {2}, {1}); // matmul of [b, m, k] and [b, k, n]";
  let gradient = ["dotGradient(g, lhs, rhs, lhs_batch, rhs_batch, lhs_contract, rhs_contract, true)",
                  "dotGradient(g, lhs, rhs, lhs_batch, rhs_batch, lhs_contract, rhs_contract, false)"];
  let batching = "dotOfEach(lhs, rhs, lhs_batch, rhs_batch, lhs_contract, rhs_contract, examples)";
}
class Burin_Convolution<string m, dag extra> : Burin_Op<m> {
  let arguments = !con((ins Burin_Tensor:$x, Burin_Tensor:$weight, Optional<Burin_Tensor>:$bias,
                            DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$strides,
                            DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$padding,
                            DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$dilations,
                            DefaultValuedAttr<I64Attr, "1">:$groups), extra);
  let results = (outs Burin_Tensor:$result);
  let normalize = "promote";
  let autocast = "lower";
  let layout = "fixedRule";
}
def Burin_ConvOp : Burin_Convolution<"conv", (ins DefaultValuedStrAttr<StrAttr, "nchw">:$layout)> {
  let fusion = "window"; let parts = "firstOperand"; let layout = "windowRule"; let flops = "ofConvolution"; let element = "windowed";
  let summary = "Convolution (cross-correlation) over 1, 2 or 3 spatial dimensions";
  let description = [{
    x [N, C, spatial…], weight [O, C/groups, kernel…], bias [O]. `padding` has one number per spatial dimension, or two
    (all starts, then all ends). Empty `strides`, `padding` and `dilations` mean 1, 0 and 1, and one number
    applies to all dimensions. The compiler may choose `layout` "nhwc": x and the result
    are channels-last, the weight is [kernel…, C/groups, O].
  }];
  let infer = "inferConv"; let source = "torch.nn.functional.conv2d, ONNX Conv";
  let gradient = ["convGradient(g, x, weight, strides, padding, dilations, groups)",
                  "kernelGradient(g, x, weight, strides, padding, dilations, groups)", "sumChannels(g)"];
  let batching = "convolution(x, weight, bias, groups, layout == \"nchw\", self, examples)";
}
def Burin_ConvTransposeOp : Burin_Convolution<"conv_transpose", (ins DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$output_padding)> {
  let fusion = "none"; let parts = "noOperands"; let element = "none";
  let summary = "Transposed convolution: the gradient of `conv` with respect to its input";
  let description = [{ x [N, C, spatial…], weight [C, O/groups, kernel…], bias [O]. Lists as in `conv`. A size becomes
    (size - 1) * stride - padding + dilation * (kernel - 1) + 1 + output_padding. }];
  let infer = "inferConvTranspose"; let source = "torch.nn.functional.conv_transpose2d, ONNX ConvTranspose";
  let gradient = ["cropTo(conv(g, weight, std::nullopt, strides, padding, dilations, groups), x.shape())",
                  "kernelGradient(x, g, weight, strides, padding, dilations, groups)", "sumChannels(g)"];
  let batching = "convolution(x, weight, bias, groups, true, self, examples)";
}
#endif
