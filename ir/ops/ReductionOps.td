// Reductions.
#ifndef BURIN_REDUCTION_OPS
#define BURIN_REDUCTION_OPS
include "ir/ops/OpBase.td"

// Reduces one tensor over axes; see Reduction in ir/dialect/Burin.h.
def Burin_ReductionTrait : NativeOpTrait<"Reduction"> { let cppNamespace = "::burin::ir"; }

class Burin_Reduction<string m, dag extra = (ins)> : Burin_Op<m, [Burin_ReductionTrait]> {
  let fusion = "row"; let rows = "axes"; let parts = "unlessReduced"; let layout = "reductionRule"; let element = "none";
  let arguments = !con((ins Burin_Tensor:$x, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$axes,
                            DefaultValuedAttr<BoolAttr, "false">:$keepdims), extra);
  let results = (outs Burin_Tensor:$result);
  let description = [{ Reduces the dimensions in `axes`, all of them if it is empty. With `keepdims` they remain with
    size 1. }];
  let infer = "inferReduction";
  let batching = "reduced(x, axes, keepdims, self)";
}
class Burin_ReductionFloat<string m, dag extra = (ins)> : Burin_Reduction<m, extra> { let normalize = "float"; }

def Burin_ReduceSumOp : Burin_Reduction<"reduce_sum"> {
  let summary = "Sum; integers and bool sum to i64, an empty sum is 0"; let source = "torch.sum"; let infer = "inferReductionI64";
  let autocast = "f32";
  let example = "reduce_sum(x, {-1}, true)";
  let gradient = ["spread(g, x, axes)"];
}
def Burin_ReduceProdOp : Burin_Reduction<"reduce_prod"> {
  let summary = "Product; integers and bool give i64, an empty product is 1"; let source = "torch.prod"; let infer = "inferReductionI64";
  let autocast = "f32";
  let gradient = ["productGradient(g, x, axes)"];
}
def Burin_ReduceMaxOp : Burin_Reduction<"reduce_max"> {
  let summary = "Largest element; NaN if any is NaN; empty gives -inf or the smallest integer"; let source = "torch.amax";
  let gradient = ["extremeGradient(g, x, result, axes)"];
}
def Burin_ReduceMinOp : Burin_Reduction<"reduce_min"> {
  let summary = "Smallest element; NaN if any is NaN; empty gives +inf or the largest integer"; let source = "torch.amin";
  let gradient = ["extremeGradient(g, x, result, axes)"];
}
def Burin_ReduceMeanOp : Burin_ReductionFloat<"reduce_mean"> {
  let summary = "Arithmetic mean; integers become f32; empty gives NaN"; let source = "torch.mean";
  let autocast = "f32";
  let gradient = ["spread(g, x, axes) / count(x, axes)"];
}
def Burin_ReduceVarOp : Burin_ReductionFloat<"reduce_var", (ins DefaultValuedAttr<I64Attr, "1">:$correction)> {
  let summary = "Variance: sum of squared distances to the mean, divided by (n - correction)"; let source = "torch.var";
  let autocast = "f32";
  let gradient = ["spread(g * 2.0, x, axes) * (x - reduce_mean(x, axes, true)) / (count(x, axes) - correction)"];
}
def Burin_ReduceAnyOp : Burin_Reduction<"reduce_any"> {
  let summary = "True if any element is non-zero"; let source = "torch.any"; let infer = "inferReductionBool";
}
def Burin_ReduceAllOp : Burin_Reduction<"reduce_all"> {
  let summary = "True if all elements are non-zero"; let source = "torch.all"; let infer = "inferReductionBool";
}
def Burin_ReduceAverageOp : Burin_Reduction<"reduce_average", (ins DefaultValuedAttr<I64Attr, "0">:$correction,
                                                               DefaultValuedAttr<BoolAttr, "false">:$squared)> {
  let summary = "Sum, or with `squared` sum of squares, divided by (n - correction): for means and variances";
  let internal = 1;
}
def Burin_ReduceMaxNumOp : Burin_Reduction<"reduce_max_num"> {
  let summary = "Largest element other than NaN, -inf without one: for formulas to which NaN propagates otherwise";
  let internal = 1;
}
def Burin_LogsumexpOp : Burin_ReductionFloat<"logsumexp"> {
  let summary = "log of the sum of exponentials, computed from the maximum"; let source = "torch.logsumexp";
  let autocast = "f32";
  let gradient = ["spread(g, x, axes) * exp(x - spread(result, x, axes))"];
}
class Burin_ArgReduction<string m> : Burin_Op<m> {
  let fusion = "row"; let rows = "axis"; let parts = "unlessReduced"; let layout = "reductionRule"; let element = "none";
  let arguments = (ins Burin_Tensor:$x, DefaultValuedAttr<I64Attr, "-1">:$axis, DefaultValuedAttr<BoolAttr, "false">:$keepdims);
  let results = (outs Burin_Tensor:$result);
  let infer = "inferArgReduction";
  let batching = m # "(x, axis + 1, keepdims)"; let required = ["axis"];
}
def Burin_ArgmaxOp : Burin_ArgReduction<"argmax"> {
  let summary = "i64 index of the first largest element along `axis`; the first NaN if there is one"; let source = "torch.argmax";
}
def Burin_ArgminOp : Burin_ArgReduction<"argmin"> {
  let summary = "i64 index of the first smallest element along `axis`; the first NaN if there is one"; let source = "torch.argmin";
}
#endif
