// Ops that the compiler adds to the graph: constants, kernels, and the contractions in kernels.
#ifndef BURIN_KERNEL_OPS
#define BURIN_KERNEL_OPS
include "ir/ops/OpBase.td"

def Burin_ConstantOp : Op<Burin_Dialect, "constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "A tensor known at compile time: a weight or a folded value";
  let arguments = (ins ElementsAttr:$value, OptionalAttr<StrAttr>:$name);
  let results = (outs Burin_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  let hasVerifier = 1;
}
def Burin_KernelOp : Op<Burin_Dialect, "kernel", [IsolatedFromAbove, RecursiveMemoryEffects, SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "A fusion group: becomes one compiled function and one step of the launch plan";
  let description = [{
    The body computes the results from the operands. It has at most one contraction. `in_place`, if present, has for each
    result the input that it overwrites, or -1.
  }];
  let arguments = (ins Variadic<Burin_Tensor>:$inputs, OptionalAttr<StrAttr>:$name, OptionalAttr<DenseI64ArrayAttr>:$in_place);
  let results = (outs Variadic<Burin_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}
def Burin_YieldOp : Op<Burin_Dialect, "yield", [Pure, Terminator, ReturnLike, HasParent<"KernelOp">]> {
  let summary = "The results of a kernel";
  let arguments = (ins Variadic<Burin_Tensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), [{ build($_builder, $_state, ::mlir::ValueRange()); }]>];
}
def Burin_PackOp : Burin_Op<"pack"> {
  let float8 = "moved"; let fusion = "movement"; let parts = "ofMatrices"; let layout = "fixedRule"; let element = "packed";
  let summary = "The right operand of a contraction in panels: [batch…, K, N] becomes [batch…, ceil(N/width), K, width]";
  let description = [{ The last panel is filled with zeros. Constant operands are packed at compile time. }];
  let arguments = (ins Burin_Tensor:$x, I64Attr:$width);
  let results = (outs Burin_Tensor:$result);
  let infer = "inferPack";
  let internal = 1;
}
def Burin_Bf16TermsOp : Burin_Op<"bf16_terms"> {
  let fusion = "window"; let parts = "noOperands"; let layout = "fixedRule"; let element = "none";
  let summary = "An f32 matrix as three bf16 matrices whose sum it is, in tiles: [M, K] becomes [ceil(M/32) * 2, ceil(K/32), 3, 16, 32]";
  let description = [{
    The first term is the nearest bf16, the second the bf16 nearest to the remainder, the third the rest, exactly. A tile
    has 16 rows and 32 steps of k, in the order 0, 16, 1, 17, …; elements beyond K are 0, those beyond M undefined. Elements
    that cannot be split (not finite, or nonzero and below 2^-52) have a non-finite term.
  }];
  let arguments = (ins Burin_Tensor:$x);
  let results = (outs Burin_Tensor:$result);
  let infer = "inferBf16Terms";
  let internal = 1;
}
def Burin_Bf16PairsOp : Burin_Op<"bf16_pairs"> {
  let fusion = "movement"; let parts = "ofMatrices"; let layout = "fixedRule"; let element = "pairsOf";
  let summary = "Neighbouring bf16 along the last but one or the last dimension as the low and high half of an i32, which halves that dimension";
  let description = [{ The right side of products by instructions that multiply two neighbouring steps of k at once. A missing
    last element is 0. `axis` counts from the end: 2 or 1. }];
  let arguments = (ins Burin_Tensor:$x, I64Attr:$axis);
  let results = (outs Burin_Tensor:$result);
  let infer = "inferBf16Pairs";
  let internal = 1;
}
def Burin_ContractOp : Burin_Op<"contract", [AttrSizedOperandSegments]> {
  let float8 = "multiplied"; let fusion = "contract"; let parts = "contractOperands"; let layout = "fixedRule"; let flops = "ofContraction"; let element = "none";
  let summary = "The contraction op of kernels: strided windows of the left operand times packed panels";
  let description = [{
    result[b…, m…, n] = sum over k of lhs(b…, m…, k) * rhs[b…, n / width, k, n % width].
    lhs is [b…, spatial…, C], rhs is `pack`ed from [b…, kernel… * C, N], and k runs over (kernel…, C):
    lhs(b…, m…, k) is lhs[b…, m_i * strides_i + kernel_i * dilations_i - low_i, c]; elements outside of lhs are omitted
    from the sum. `padding` has all low_i, then those of the ends; negative ones at an end crop it. A matrix product is the
    case with one spatial dimension, kernel 1, stride 1, no padding. The last columns may be separate rows in `tail`, packed
    from [columns, K] with the width K: one panel. `batch` leading dimensions are shared by lhs, rhs and the result; `columns`
    holds N, which the packed shape does not tell. Sums of 16-bit products are rounded to 16 bits, unless `wide` keeps
    them in f32 for what follows. `terms` are the bf16_terms of lhs. Then rhs is of terms, too:
    [N/32, ceil(K/32), 3, 2, 16, 32], of which the last three are 2 times 16 columns of a panel, 16 steps of k, and each
    column of that step and of the one 16 further; products are sums of products of terms. A bf16 lhs may meet an rhs of i32, packed from
    bf16_pairs along C: [b…, ceil(N/width), kernel… * ceil(C/2), width]. Both products of a pair are added, that of the high halves
    first. `finite` tells that rhs holds no infinity and no NaN, so that a 0 of lhs adds nothing.
  }];
  let arguments = (ins Burin_Tensor:$lhs, Burin_Tensor:$rhs, Optional<Burin_Tensor>:$tail, Optional<Burin_Tensor>:$terms, I64Attr:$batch, Burin_ShapeAttr:$columns, DenseI64ArrayAttr:$kernel,
                       DenseI64ArrayAttr:$strides, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$padding,
                       DenseI64ArrayAttr:$dilations, DefaultValuedAttr<BoolAttr, "false">:$wide,
                       DefaultValuedAttr<BoolAttr, "false">:$finite);
  let results = (outs Burin_Tensor:$result);
  let infer = "inferContract";
  let internal = 1;
  // Defaults are omitted, see ir/dialect/Contract.cpp.
  let assemblyFormat = [{
    custom<Contraction>($lhs, $rhs, $tail, $terms, $batch, $columns, $kernel, $strides, $padding, $dilations, $wide,
                        $finite, type($lhs), type($rhs), type($tail), type($terms), type($result)) attr-dict
  }];
}
def Burin_AttentionGradientOp : Burin_Op<"attention_gradient"> {
  let fusion = "window"; let parts = "noOperands"; let layout = "fixedRule"; let flops = "ofAttentionGradient"; let element = "none";
  let summary = "The gradients of scale * query, scale * key and value in scaled_dot_product_attention, joined along the rows: [..., L + 2S, E]";
  let description = [{
    `gradient` [..., L, E] is that of the result. Values have as many columns as queries and keys; mask, `is_causal` and
    `scale` are those of the attention. The kernel computes the weights again, so that no matrix of them is in memory.
  }];
  let arguments = (ins Burin_FloatTensor:$query, Burin_FloatTensor:$key, Burin_FloatTensor:$value,
                       Burin_FloatTensor:$gradient, Optional<Burin_Tensor>:$mask,
                       DefaultValuedAttr<BoolAttr, "false">:$is_causal, DefaultValuedAttr<F64Attr, "0.0">:$scale);
  let results = (outs Burin_Tensor:$result);
  let infer = "inferAttentionGradient";
  let internal = 1;
}
#endif
