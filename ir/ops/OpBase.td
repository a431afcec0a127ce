// What every op definition shares. An op is defined once, here and in the family files: its documentation, operands,
// attributes, inference function, gradient and (elementwise) scalar meaning. The C++ API, the op table, the scalar
// lowering, the reference interpreter's scalar part, gradients and the reference pages are generated from these records
// by opgen.py.
#ifndef BURIN_OP_BASE
#define BURIN_OP_BASE

include "mlir/IR/OpBase.td"
include "mlir/IR/BuiltinTypes.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def Burin_Dialect : Dialect {
  let name = "burin";
  let cppNamespace = "::burin::ir";
  let summary = "Tensor graphs: what tracing records and the compiler optimises";
  let description = [{
    Values are dense row-major tensors. Ops are strict: element types agree and nothing broadcasts implicitly; the
    frontend records casts and `broadcast_to`. A symbolic size is a `?` in the type with its expression in the type's
    encoding, one string per `?` in order: `tensor<?x512xf32, ["batch"]>`.
  }];
  let hasConstantMaterializer = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

def Burin_Tensor : RankedTensorOf<[F32, F64, F16, BF16, I8, UI8, I16, I32, I64, I1]>;
def Burin_FloatTensor : RankedTensorOf<[F32, F64, F16, BF16]>;

// An element type as an attribute.
def Burin_DTypeAttr : TypeAttrBase<"::mlir::Type", "element type">;
// A shape: integers, and strings for symbolic sizes.
def Burin_ShapeAttr : TypedArrayAttrBase<AnyAttrOf<[I64Attr, StrAttr]>, "shape, symbolic sizes as strings">;
// The name of the size that the op's result turns out to have: one symbol, which no other op defines. The C++ functions
// make it up.
def Burin_NewSizeAttr : TypedArrayAttrBase<StrAttr, "the symbol of a size that depends on data">;

// Result types follow from the op table's inference function.
def Burin_InferredTypes : NativeOpTrait<"InferredTypes"> { let cppNamespace = "::burin::ir"; }
// One scalar function applied to every element; operands and result have one shape.
def Burin_ElementwiseTrait : NativeOpTrait<"Elementwise"> { let cppNamespace = "::burin::ir"; }

class Burin_Op<string mnemonic, list<Trait> traits = [], list<Trait> effects = [Pure]>
    : Op<Burin_Dialect, mnemonic, !listconcat(traits, effects, [Burin_InferredTypes])> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";

  // The free function `bool infer…(InferCall &)` of ir/infer/Infer.h that gives the result types.
  string infer = ?;
  // How the frontend makes operands agree: "none", "promote" (one element type), "broadcast" (and one shape),
  // "float" and "broadcast_float" (the same, integers become f32).
  string normalize = "none";
  // What the op is computed in within an Autocast scope: "lower" for the scope's type, "f32" where 16 bits lose too much,
  // "none" for the type of its operands.
  string autocast = "none";
  // Where this op comes from: the PyTorch function, ONNX operator or paper.
  string source = "";
  // The ONNX operator that takes the same operands and attributes of the same names.
  string onnx = "";
  // A C++ call for the reference pages, where one made from the operands' names would not do.
  string example = "";
  // The gradient for each operand in terms of the public API, as one C++ expression of the operands, attributes and
  // `result` by their names and `g`, the gradient of the result; "zero" where the derivative is 0 everywhere. A list
  // of tensors where operands or results are one. What a line does not hold is a function of frontend/gradients/Rules.h.
  list<string> gradient = [];
  // How vmap() has many examples computed in one call: one C++ expression of the operands and attributes by their
  // names. Each operand has one more dimension than the op sees, in front: the examples, or 1 if it is the same for all
  // of them. `examples` is their number, and the dimension in front of the result. "same" is the op itself with the
  // attributes unchanged, "refused" is for results whose size differs between examples. `self` calls the op on other
  // operands. What a line does not hold is a function of frontend/batching/Rules.h.
  string batching = "";
  // Not part of the public C++ API.
  bit internal = 0;

  // What passes and code generation ask of the op. opgen.py refuses a definition that leaves one of these open.
  // Its part in kernels, a FusionKind of passes/analysis/OpFacts.h: "pointwise", "row", "view", "free", "movement",
  // "window", "contract", "sequential"; or "none" for what is decomposed before fusion, or is the runtime's.
  string fusion = ?;
  // Of a "row" op, the dimensions that it reduces, a RowAxes of the same file: "axes", "axis", "along_axis", "from_axis".
  string rows = "none";
  // Whether it is computed at compile time: "never", "cheap" (only where that saves memory), "value".
  string folding = "value";
  // Reads of its first operand only what its second one points at.
  bit selects = 0;
  // What a part of the result along dimension 0 needs: a function of passes/analysis/BatchSemantics.cpp.
  string parts = ?;
  // How it works on channels-last values: a member function of passes/analysis/LayoutModel.h.
  string layout = ?;
  // Its floating-point operations: a function of passes/analysis/KernelCost.cpp.
  string flops = "ofOperands";
  // How one element is computed inside a kernel: a member function of codegen/emit/ElementEmitter.h, or "none" for ops
  // that kernels compute in another way.
  string element = ?;
}

// An elementwise op: `lower` builds one scalar (or vector lane) in terms of ir/Scalar.h, `reference` computes it in
// plain C++ over double or int64_t. Operands are x, y, z; attributes go by their own names.
class Burin_Elementwise<string mnemonic, dag operandsAndAttrs, code lowerCode, code referenceCode>
    : Burin_Op<mnemonic, [Burin_ElementwiseTrait]> {
  let arguments = operandsAndAttrs;
  let results = (outs Burin_Tensor:$result);
  let infer = "inferElementwise";
  let normalize = "broadcast";
  let batching = "same";
  code lower = lowerCode;
  code reference = referenceCode;
  // Element type of the result: "same" as the operands, or "bool".
  string resultElement = "same";
  // Element types taken: "float", "numeric", "integer" (and bool), "bool", "any".
  string domain = "numeric";
  let fusion = "pointwise"; let parts = "allOperands"; let layout = "sameRule"; let flops = "ofResult"; let element = "none";
}

class Burin_UnaryFloat<string m, code l, code r, dag attrs = (ins)>
    : Burin_Elementwise<m, !con((ins Burin_Tensor:$x), attrs), l, r> {
  let normalize = "broadcast_float";
  let domain = "float";
}
class Burin_UnaryNumeric<string m, code l, code r> : Burin_Elementwise<m, (ins Burin_Tensor:$x), l, r>;
class Burin_Binary<string m, code l, code r> : Burin_Elementwise<m, (ins Burin_Tensor:$x, Burin_Tensor:$y), l, r>;
class Burin_BinaryFloat<string m, code l, code r> : Burin_Binary<m, l, r> {
  let normalize = "broadcast_float";
  let domain = "float";
}
class Burin_Compare<string m, string op> : Burin_Binary<m, "return x " # op # " y;", "return x " # op # " y;"> {
  let resultElement = "bool";
  let domain = "any";
  let source = "torch." # m;
}

#endif
