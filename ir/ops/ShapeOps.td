// Ops that move, select or create elements without computing on them.
#ifndef BURIN_SHAPE_OPS
#define BURIN_SHAPE_OPS
include "ir/ops/OpBase.td"

class Burin_ShapeOp<string m, dag args> : Burin_Op<m> {
  let fusion = "movement"; let folding = "cheap"; let layout = "fixedRule"; let float8 = "moved";
  let arguments = args;
  let results = (outs Burin_Tensor:$result);
}

def Burin_ReshapeOp : Burin_ShapeOp<"reshape", (ins Burin_Tensor:$x, Burin_ShapeAttr:$shape)> {
  let rearranges = 1; let fusion = "view"; let parts = "allOperands"; let layout = "reshapeRule"; let element = "reshaped";
  let summary = "The same elements in row-major order under another shape; one size may be -1";
  let infer = "inferReshape"; let source = "torch.reshape"; let hasFolder = 1; let hasCanonicalizer = 1;
  let example = "reshape(x, {-1, 4})";
  let gradient = ["reshapeAs(g, x)"];
  let batching = "reshape(x, inFront(examples, shape))";
}
def Burin_SqueezeOp : Burin_ShapeOp<"squeeze", (ins Burin_Tensor:$x, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$axes)> {
  let rearranges = 1; let fusion = "view"; let parts = "unlessResized"; let element = "reshaped";
  let summary = "Drops dimensions of size 1: the given ones, or all when none is given";
  let infer = "inferSqueeze"; let source = "torch.squeeze"; let hasCanonicalizer = 1;
  let gradient = ["reshapeAs(g, x)"];
  let batching = "reshape(x, inFront(examples, result.shape))";
}
def Burin_UnsqueezeOp : Burin_ShapeOp<"unsqueeze", (ins Burin_Tensor:$x, DenseI64ArrayAttr:$axes)> {
  let rearranges = 1; let fusion = "view"; let parts = "unlessResized"; let element = "reshaped";
  let summary = "Inserts dimensions of size 1 at the given positions of the result";
  let infer = "inferUnsqueeze"; let source = "torch.unsqueeze"; let hasCanonicalizer = 1;
  let example = "unsqueeze(x, {0})";
  let gradient = ["reshapeAs(g, x)"];
  let batching = "unsqueeze(x, behind(axes))";
}
def Burin_TransposeOp : Burin_ShapeOp<"transpose", (ins Burin_Tensor:$x, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$perm)> {
  let rearranges = 1; let parts = "unlessPermuted"; let layout = "transposeRule"; let element = "transposed";
  let summary = "Dimension i of the result is dimension perm[i] of x; without `perm`, the order is reversed"; let onnx = "Transpose";
  let infer = "inferTranspose"; let source = "numpy.transpose"; let hasFolder = 1; let hasCanonicalizer = 1;
  let example = "transpose(x, {0, 2, 1})";
  let gradient = ["transpose(g, inverse(perm))"];
  let batching = "transpose(x, inFront(0, behind(perm)))";
}
def Burin_BroadcastToOp : Burin_ShapeOp<"broadcast_to", (ins Burin_Tensor:$x, Burin_ShapeAttr:$shape)> {
  let rearranges = 1; let fusion = "free"; let parts = "unlessRepeated"; let layout = "broadcastRule"; let element = "repeated";
  let summary = "Repeats dimensions of size 1 and prepends dimensions until the shape is `shape`";
  let infer = "inferBroadcastTo"; let source = "numpy.broadcast_to"; let hasFolder = 1; let hasCanonicalizer = 1;
  let example = "broadcast_to(x, {8, 1, 4})";
  let gradient = ["sumTo(g, x.shape())"];
  let batching = "broadcast_to(aligned(x, shape.size() + 1), inFront(examples, shape))";
}
def Burin_SliceOp : Burin_ShapeOp<"slice", (ins Burin_Tensor:$x, Burin_ShapeAttr:$starts, Burin_ShapeAttr:$stops,
                                            DenseI64ArrayAttr:$steps)> {
  let rearranges = 1; let parts = "unlessCut"; let layout = "sameRule"; let element = "sliced";
  let summary = "Elements starts[i], starts[i] + steps[i], … below stops[i] of each dimension";
  let description = [{
    One entry per dimension. Negative starts and stops count from the end; both are then clamped to the size, as in
    Python. Steps are positive in the IR: the frontend records a negative step as a `flip` and a slice.
  }];
  let infer = "inferSlice"; let source = "Python slicing"; let hasFolder = 1; let hasCanonicalizer = 1;
  let example = "slice(x, {0, 1}, {2, -1}, {1, 2}); // x[0:2, 1:-1:2]";
  let gradient = ["unslice(g, x.shape(), starts, steps)"];
  let batching = "slice(x, inFront(0, starts), inFront(examples, stops), inFront(1, steps))";
}
def Burin_FlipOp : Burin_ShapeOp<"flip", (ins Burin_Tensor:$x, DenseI64ArrayAttr:$axes)> {
  let rearranges = 1; let parts = "unlessFlipped"; let layout = "sameRule"; let element = "flipped";
  let summary = "Reverses the given dimensions"; let infer = "inferFlip"; let source = "torch.flip"; let hasFolder = 1;
  let example = "flip(x, {-1})";
  let gradient = ["flip(g, axes)"];
  let batching = "flip(x, behind(axes))";
}
def Burin_ConcatOp : Burin_ShapeOp<"concat", (ins Variadic<Burin_Tensor>:$xs, DefaultValuedAttr<I64Attr, "0">:$axis)> {
  let parts = "unlessAlongBatch"; let layout = "sameRule"; let element = "concatenated";
  let summary = "Concatenates tensors along an existing dimension"; let onnx = "Concat";
  let infer = "inferConcat"; let normalize = "promote"; let source = "torch.cat"; let hasFolder = 1; let hasCanonicalizer = 1;
  let example = "concat({x, y}, 1)";
  let gradient = ["concatGradient(g, xs, axis)"];
  let batching = "concat(expand(xs, examples), axis + 1)";
}
def Burin_StackOp : Burin_ShapeOp<"stack", (ins Variadic<Burin_Tensor>:$xs, DefaultValuedAttr<I64Attr, "0">:$axis)> {
  let fusion = "none"; let parts = "unlessAlongBatch"; let element = "none";
  let summary = "Concatenates tensors of one shape along a new dimension";
  let infer = "inferStack"; let normalize = "promote"; let source = "torch.stack"; let hasCanonicalizer = 1;
  let example = "stack({x, y})";
  let gradient = ["stackGradient(g, xs, axis)"];
  let batching = "stack(expand(xs, examples), axis + 1)";
}
def Burin_SplitOp : Burin_Op<"split"> {
  let float8 = "moved"; let fusion = "none"; let folding = "cheap"; let parts = "unlessAlongBatch"; let layout = "fixedRule"; let element = "none";
  let summary = "Splits a dimension into pieces of the given sizes, which must add up to its size";
  let arguments = (ins Burin_Tensor:$x, DenseI64ArrayAttr:$sizes, DefaultValuedAttr<I64Attr, "0">:$axis);
  let results = (outs Variadic<Burin_Tensor>:$results);
  let infer = "inferSplit"; let source = "torch.split"; let hasCanonicalizer = 1;
  let example = "split(x, {2, 3, -1}, 1); // -1: what is left";
  let gradient = ["concat(g, axis)"];
  let batching = "split(x, sizes, axis + 1)";
}
def Burin_TileOp : Burin_ShapeOp<"tile", (ins Burin_Tensor:$x, DenseI64ArrayAttr:$repeats)> {
  let fusion = "none"; let parts = "noOperands"; let element = "none";
  let summary = "Repeats the whole tensor repeats[i] times along dimension i";
  let infer = "inferTile"; let source = "numpy.tile"; let hasCanonicalizer = 1;
  let example = "tile(x, {2, 1})";
  let gradient = ["tileGradient(g, x, repeats)"];
  let batching = "tile(x, inFront(1, repeats))";
}
def Burin_PadOp : Burin_ShapeOp<"pad", (ins Burin_Tensor:$x, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
      DefaultValuedStrAttr<StrAttr, "constant">:$mode, DefaultValuedAttr<F64Attr, "0.0">:$value,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$interior)> {
  let parts = "unlessPadded"; let layout = "sameRule"; let element = "padded";
  let summary = "Adds low[i] elements before and high[i] after dimension i; negative amounts crop";
  let description = [{
    `mode` is "constant" (filled with `value`), "edge" (repeats the border) or "reflect" (mirrors without repeating the
    border). In constant mode, interior[i] elements are also inserted between adjacent ones (which assumes that
    a symbolic size is at least 1).
  }];
  let infer = "inferPad"; let source = "torch.nn.functional.pad, StableHLO pad"; let hasFolder = 1;
  let example = "pad(x, {0, 1}, {0, 1}); // a column of zeros on both sides";
  let gradient = ["padGradient(g, x, low, high, mode, interior)"];
  let batching = "pad(x, inFront(0, low), inFront(0, high), mode, value, interior.empty() ? interior : inFront(0, " #
                 "interior))";
}
def Burin_TakeOp : Burin_ShapeOp<"take", (ins Burin_Tensor:$x, Burin_Tensor:$indices, DefaultValuedAttr<I64Attr, "0">:$axis)> {
  let rearranges = 1; let folding = "value"; let selects = 1; let parts = "takeOperands"; let layout = "takeRule"; let flops = "ofResult"; let element = "taken";
  let summary = "Slices of x along `axis`, selected by integer indices of any shape"; let onnx = "Gather";
  let description = [{ The shape of `indices` replaces the dimension. Negative indices count from the end; an index out
    of range is an error. take(x, indices) without an axis is another function, which flattens x, as
    numpy.take and torch.take do. }];
  let required = ["axis"]; let infer = "inferTake"; let source = "numpy.take, ONNX Gather";
  let example = "take(embeddings, tokens, 0)";
  let gradient = ["takeGradient(g, x, indices, axis)", "zero"];
  let batching = "takeOfEach(x, indices, axis, examples)";
}
def Burin_GatherOp : Burin_ShapeOp<"gather", (ins Burin_Tensor:$x, Burin_Tensor:$indices, DefaultValuedAttr<I64Attr, "0">:$axis)> {
  let rearranges = 1; let folding = "value"; let selects = 1; let parts = "unlessAlongBatch"; let flops = "ofResult"; let element = "taken";
  let summary = "result[i][j] = x[indices[i][j]][j] for axis 0, and so on; `indices` has the rank of x"; let onnx = "GatherElements";
  let description = [{ Negative and out of range indices as in `take`. }];
  let infer = "inferGather"; let source = "torch.gather, ONNX GatherElements";
  let gradient = ["gatherGradient(g, x, indices, axis)", "zero"];
  let batching = "gather(expand(x, examples), expand(indices, examples), axis + 1)";
}
def Burin_ScatterOp : Burin_ShapeOp<"scatter", (ins Burin_Tensor:$x, Burin_Tensor:$indices, Burin_Tensor:$updates,
      DefaultValuedAttr<I64Attr, "0">:$axis, DefaultValuedStrAttr<StrAttr, "set">:$reduction,
      DefaultValuedAttr<BoolAttr, "false">:$drop)> {
  let fusion = "sequential"; let folding = "value"; let parts = "noOperands"; let element = "none";
  let summary = "x with result[indices[i][j]][j] set to (or combined with) updates[i][j] for axis 0, and so on";
  let description = [{ `reduction` is "set" (the last update in row-major order wins), "add", "mul", "min" or "max". Negative
    indices count from the end; an index out of range is an error, or writes nothing if `drop` is set. }];
  let infer = "inferScatter"; let source = "torch.scatter, ONNX ScatterElements";
  let gradient = ["Scatter(g, x, indices, updates, result, axis, reduction, drop).ofX()", "zero",
                  "Scatter(g, x, indices, updates, result, axis, reduction, drop).ofUpdates()"];
  let batching = "scatter(expand(x, examples), expand(indices, examples), expand(updates, examples), axis + 1, " #
                 "reduction, drop)";
}
def Burin_IotaOp : Burin_ShapeOp<"iota", (ins Burin_ShapeAttr:$shape, Burin_DTypeAttr:$dtype, DefaultValuedAttr<I64Attr, "0">:$axis)> {
  let fusion = "free"; let parts = "unlessAlongBatch"; let layout = "fillRule"; let element = "counted";
  let summary = "0, 1, 2, … along `axis`"; let infer = "inferIota"; let source = "StableHLO iota";
  let example = "iota({8}, i64); // 0 to 7";
}
def Burin_FullOp : Burin_ShapeOp<"full", (ins Burin_ShapeAttr:$shape, F64Attr:$value, Burin_DTypeAttr:$dtype)> {
  let fusion = "free"; let parts = "allOperands"; let layout = "fillRule"; let element = "filled";
  let summary = "Every element is `value`"; let infer = "inferFull"; let source = "torch.full";
  let example = "full({2, 3}, 0.5, f32)";
}
def Burin_TrilOp : Burin_ShapeOp<"tril", (ins Burin_Tensor:$x, DefaultValuedAttr<I64Attr, "0">:$diagonal)> {
  let parts = "ofMatrices"; let element = "lowerTriangle";
  let summary = "Keeps the elements on and below a diagonal of the last two dimensions, zeros elsewhere";
  let infer = "inferTriangle"; let source = "torch.tril";
  let gradient = ["tril(g, diagonal)"];
  let batching = "same";
}
def Burin_TriuOp : Burin_ShapeOp<"triu", (ins Burin_Tensor:$x, DefaultValuedAttr<I64Attr, "0">:$diagonal)> {
  let parts = "ofMatrices"; let element = "upperTriangle";
  let summary = "Keeps the elements on and above a diagonal of the last two dimensions, zeros elsewhere";
  let infer = "inferTriangle"; let source = "torch.triu";
  let gradient = ["triu(g, diagonal)"];
  let batching = "same";
}

// ---- results whose size depends on the elements. The size may be used without the result, so the ops are not dead
// when their results are unused.
class Burin_SizingOp<string m, dag args> : Burin_Op<m, [], [MemoryEffects<[MemWrite]>]> {
  let fusion = "none"; let parts = "noOperands"; let layout = "fixedRule"; let element = "none";
  let arguments = args;
  let results = (outs Burin_Tensor:$result);
}
def Burin_PrefixOp : Burin_SizingOp<"prefix", (ins Burin_Tensor:$x, Burin_Tensor:$count, Burin_NewSizeAttr:$size)> {
  let summary = "The first `count` rows of x, for a computed integer `count`";
  let description = [{ A run fails if `count` is negative or larger than the number of rows. }];
  let float8 = "moved"; let infer = "inferPrefix"; let source = "x[:count.item()]"; let example = "prefix(x, reduce_sum(x > 0))";
  let gradient = ["unprefix(g, x)", "zero"];
  let batching = "refused";
}
def Burin_NonzeroOp : Burin_SizingOp<"nonzero", (ins Burin_Tensor:$x, Burin_NewSizeAttr:$size)> {
  let summary = "The positions of the non-zero elements, in row-major order: i64[their number, rank of x]";
  let infer = "inferNonzero"; let source = "torch.nonzero"; let example = "nonzero(x > 0)";
  let batching = "refused";
}
def Burin_CumsumOp : Burin_ShapeOp<"cumsum", (ins Burin_Tensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$exclusive,
      DefaultValuedAttr<BoolAttr, "false">:$reverse)> {
  let float8 = "refused"; let fusion = "sequential"; let folding = "value"; let parts = "unlessAlongBatch"; let layout = "sameRule"; let element = "none";
  let summary = "Cumulative sum along `axis`"; let infer = "inferCumsum"; let source = "torch.cumsum, ONNX CumSum";
  let autocast = "f32";
  let example = "cumsum(x, -1)";
  let gradient = ["cumsum(g, axis, exclusive, !reverse)"];
  let batching = "cumsum(x, axis + 1, exclusive, reverse)";
}
def Burin_CumprodOp : Burin_ShapeOp<"cumprod", (ins Burin_Tensor:$x, I64Attr:$axis, DefaultValuedAttr<BoolAttr, "false">:$exclusive,
      DefaultValuedAttr<BoolAttr, "false">:$reverse)> {
  let float8 = "refused"; let fusion = "sequential"; let folding = "value"; let parts = "noOperands"; let element = "none";
  let summary = "Cumulative product along `axis`"; let infer = "inferCumsum"; let source = "torch.cumprod, ONNX CumProd";
  let autocast = "f32";
  let example = "cumprod(x, -1)";
  let gradient = ["cumprodGradient(g, x, axis, exclusive, reverse)"];
  let batching = "cumprod(x, axis + 1, exclusive, reverse)";
}
def Burin_ArgsortOp : Burin_ShapeOp<"argsort", (ins Burin_Tensor:$x, DefaultValuedAttr<I64Attr, "-1">:$axis,
      DefaultValuedAttr<BoolAttr, "false">:$descending)> {
  let float8 = "refused"; let fusion = "sequential"; let folding = "value"; let parts = "noOperands"; let element = "none";
  let summary = "The i64 indices that sort x along `axis`; equal elements keep their order";
  let description = [{ NaN is larger than every number. }];
  let infer = "inferArgsort"; let source = "torch.argsort";
  let batching = "argsort(x, axis + 1, descending)";
}
def Burin_NonMaxSuppressionOp : Burin_ShapeOp<"non_max_suppression", (ins Burin_FloatTensor:$boxes, Burin_FloatTensor:$scores,
      F64Attr:$iou_threshold, F64Attr:$score_threshold, I64Attr:$max_output, DefaultValuedAttr<BoolAttr, "false">:$centers)> {
  let float8 = "refused"; let fusion = "sequential"; let folding = "value"; let parts = "noOperands"; let element = "none";
  let summary = "Indices of boxes with little overlap, by decreasing score: i64[batch, classes, min(max_output, n)], -1 after the last";
  let description = [{
    For each batch and class: selects the box with the highest score above `score_threshold`, then repeatedly the best
    remaining one whose intersection over union with every selected box is at most `iou_threshold`, up to `max_output`
    boxes. Of equal scores the first is better. `boxes` are [batch, n, 4]: two opposite corners, or with `centers` the
    center, width and height; `scores` are [batch, classes, n].
  }];
  let infer = "inferNonMaxSuppression"; let source = "ONNX NonMaxSuppression";
  let example = "non_max_suppression(boxes, scores, 0.5, 0.1, 100)";
  let batching = "suppressed(boxes, scores, self, examples)";
}

// ---- random numbers: element i depends only on the key and i (Philox 4x32-10, Salmon et al. 2011). The key is `seed`,
// plus the operand `key` if present.
class Burin_RandomOp<string m, dag args> : Burin_ShapeOp<m, args> {
  let float8 = "refused"; let source = "Philox 4x32-10"; let folding = "never"; let parts = "noOperands"; let element = "random";
}
def Burin_RandomUniformOp : Burin_RandomOp<"random_uniform", (ins Optional<Burin_Tensor>:$key, Burin_ShapeAttr:$shape, I64Attr:$seed,
      DefaultValuedAttr<F64Attr, "0.0">:$low, DefaultValuedAttr<F64Attr, "1.0">:$high, Burin_DTypeAttr:$dtype)> {
  let summary = "Uniform in [low, high), reproducible from the seed"; let infer = "inferRandom";
  let example = "random_uniform({2, 3}, 42, f32)";
  let batching = "drawn(key, shape, self, examples)";
}
def Burin_RandomNormalOp : Burin_RandomOp<"random_normal", (ins Optional<Burin_Tensor>:$key, Burin_ShapeAttr:$shape, I64Attr:$seed,
      DefaultValuedAttr<F64Attr, "0.0">:$mean, DefaultValuedAttr<F64Attr, "1.0">:$stddev, Burin_DTypeAttr:$dtype)> {
  let summary = "Normal distribution (Box-Muller), reproducible from the seed"; let infer = "inferRandom";
  let example = "random_normal({2, 3}, 42, f32)";
  let batching = "drawn(key, shape, self, examples)";
}
def Burin_RandomIntegersOp : Burin_RandomOp<"random_integers", (ins Optional<Burin_Tensor>:$key, Burin_ShapeAttr:$shape, I64Attr:$seed,
      I64Attr:$low, I64Attr:$high, Burin_DTypeAttr:$dtype)> {
  let summary = "Integers in [low, high), reproducible from the seed"; let infer = "inferRandomIntegers";
  let example = "random_integers({2, 3}, 42, 0, 6, i64)";
  let batching = "drawn(key, shape, self, examples)";
}
def Burin_BernoulliOp : Burin_RandomOp<"bernoulli", (ins Burin_FloatTensor:$probability, Optional<Burin_Tensor>:$key, I64Attr:$seed)> {
  let summary = "1 with the given probability, else 0; same shape and type as `probability`"; let infer = "inferBernoulli";
  let example = "bernoulli(full({4}, 0.1, f32), 42)";
  let gradient = ["zero", "zero"];
  let batching = "drawnWith(probability, key, self, examples, randomness)";
}
def Burin_RandomKeyOp : Burin_RandomOp<"random_key", (ins Burin_Tensor:$generator)> {
  let folding = "value";
  let summary = "The key of a generator's next draw; the generator is i64[2]: its seed and the number of draws";
  let infer = "inferRandomKey";
  let example = "random_key(from_vector(std::vector<int64_t>{42, 0}))";
  let batching = "oneByOne({generator}, self, examples)";
}
#endif
