// Fields of op definitions. An op is defined once, here and in the family files: its documentation, operands,
// attributes, inference function, gradient and (elementwise) scalar meaning. opgen.py generates the C++ API, the op
// table, the scalar lowering, the reference interpreter's scalar part, gradients and the reference pages from these
// records.
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

def Burin_Tensor : RankedTensorOf<[F32, F64, F16, BF16, I8, UI8, I16, I32, I64, I1, F8E4M3FN, F8E5M2]>;
def Burin_FloatTensor : RankedTensorOf<[F32, F64, F16, BF16]>;

// An element type as an attribute.
def Burin_DTypeAttr : TypeAttrBase<"::mlir::Type", "element type">;
// A shape: integers, and strings for symbolic sizes.
def Burin_ShapeAttr : TypedArrayAttrBase<AnyAttrOf<[I64Attr, StrAttr]>, "shape, symbolic sizes as strings">;
// The name of a result size that the op computes: one symbol, which no other op defines. The C++ functions create it.
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
  // How the frontend adapts operands: "none", "promote" (one element type), "broadcast" (and one shape), "float" and
  // "broadcast_float" (the same, with integers as f32).
  string normalize = "none";
  // Type that an Autocast scope computes the op in: "lower" for the scope's type, "f32" where 16 bits are not precise
  // enough, "none" for the type of its operands.
  string autocast = "none";
  // Origin of the op: the PyTorch function, ONNX operator or paper.
  string source = "";
  // The ONNX operator that takes the same operands and attributes of the same names.
  string onnx = "";
  // Attributes whose default is one of files only: the C++ function has no default for them, because overloads without
  // these parameters are other functions.
  list<string> required = [];
  // A C++ call for the reference pages, if the generated one is not good enough.
  string example = "";
  // The gradient for each operand in terms of the public API, as one C++ expression of the operands, attributes and
  // `result` by their names and `g`, the gradient of the result; "zero" if the derivative is 0 everywhere. A list of
  // tensors where operands or results are one. Longer code is a function of frontend/autodiff/gradients/Rules.h.
  list<string> gradient = [];
  // How vmap() computes many examples in one call: one C++ expression of the operands and attributes by their names.
  // Each operand has one more dimension, in front: the examples, or 1 if they share the operand. `examples` is their
  // number, and the front dimension of the result. "same" is the op itself with unchanged attributes, "refused" is for
  // results whose size differs between examples. `self` calls the op on other operands. Longer code is a function of
  // frontend/batching/Rules.h.
  string batching = "";
  // 8-bit floats as operands: "refused", because there is no arithmetic of them; "moved" by ops that move, select or
  // convert elements, "multiplied" by products, which may have both types, and f32 sums and results.
  string float8 = "refused";
  // Whether the op is missing in the public C++ API.
  bit internal = 0;
  // Whether burin/ops.h has a function of this name. If not, it is in burin::detail, for another public function.
  bit api = 1;

  // Facts for passes and code generation, all required by opgen.py. Role in kernels, a FusionKind of
  // passes/analysis/OpFacts.h: "pointwise", "row", "view", "free", "movement", "window", "contract", "sequential";
  // "none" for ops that are decomposed before fusion or executed by the runtime.
  string fusion = ?;
  // The dimensions that a "row" op reduces, a RowAxes of the same file: "axes", "axis", "along_axis", "from_axis".
  string rows = "none";
  // Whether the op is computed at compile time: "never", "cheap" (only if that saves memory), "value".
  string folding = "value";
  // Whether the op reads only the elements of its first operand that the second one selects.
  bit selects = 0;
  // Whether each element of the result is an element of the first operand, chosen by position or by the other operands.
  bit rearranges = 0;
  // Whether an element takes about one instruction, so that a kernel may compute it again instead of reading it.
  bit oneInstruction = 0;
  // The part of operands needed for a part of the result along dimension 0: a function of
  // passes/analysis/BatchSemantics.cpp.
  string parts = ?;
  // Behaviour on channels-last values: a member function of passes/analysis/LayoutModel.h.
  string layout = ?;
  // Number of floating-point operations: a function of passes/analysis/cost/KernelCost.cpp.
  string flops = "ofOperands";
  // Computation of one element inside a kernel: a member function of codegen/emit/element/ElementEmitter.h; "none" for ops that
  // kernels compute in another way.
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
  // Accepted element types: "float", "numeric", "integer" (and bool), "bool", "any".
  string domain = "numeric";
  let fusion = "pointwise"; let parts = "allOperands"; let layout = "sameRule"; let flops = "ofResult"; let element = "none";
}

class Burin_UnaryFloat<string m, code l, code r, dag attrs = (ins)>
    : Burin_Elementwise<m, !con((ins Burin_Tensor:$x), attrs), l, r> {
  let normalize = "broadcast_float";
  let domain = "float";
}
class Burin_UnaryNumeric<string m, code l, code r> : Burin_Elementwise<m, (ins Burin_Tensor:$x), l, r> {
  let oneInstruction = 1;
}
class Burin_Binary<string m, code l, code r> : Burin_Elementwise<m, (ins Burin_Tensor:$x, Burin_Tensor:$y), l, r>;
class Burin_BinaryFloat<string m, code l, code r> : Burin_Binary<m, l, r> {
  let normalize = "broadcast_float";
  let domain = "float";
}
class Burin_Compare<string m, string op> : Burin_Binary<m, "return x " # op # " y;", "return x " # op # " y;"> {
  let resultElement = "bool";
  let domain = "any";
  let oneInstruction = 1;
  let source = "torch." # m;
}

#endif
