// States of a module, and ops that call functions of it: branches and loops.
#ifndef BURIN_CONTROL_OPS
#define BURIN_CONTROL_OPS
include "ir/ops/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"

def Burin_StateOp : Op<Burin_Dialect, "state", [Symbol, HasParent<"::mlir::ModuleOp">]> {
  let summary = "A tensor that outlives a run: running statistics, a cache, a random key";
  let description = [{
    An argument of a function with the attribute `burin.state = @name` is the state before a run, a result with the same
    attribute is the state after it. Such arguments and results come last, and callers do not see them. Without an initial
    value the state starts as zeros.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<Burin_Tensor>:$type, OptionalAttr<ElementsAttr>:$initial);
  let assemblyFormat = "$sym_name `:` $type (`=` $initial^)? attr-dict";
  let hasVerifier = 1;
}
// Ops that call functions have the effects of these functions, such as prints.
class Burin_ApplyingOp<string mnemonic> : Op<Burin_Dialect, mnemonic, [AlwaysSpeculatable,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]>;

def Burin_IfOp : Burin_ApplyingOp<"if"> {
  let summary = "Calls one of two functions, selected by a bool";
  let description = [{ Both functions take all `inputs`, and their results have the types of the op's results. }];
  let arguments = (ins Burin_Tensor:$condition, FlatSymbolRefAttr:$then, FlatSymbolRefAttr:$otherwise,
                       Variadic<Burin_Tensor>:$inputs);
  let results = (outs Variadic<Burin_Tensor>:$results);
  let assemblyFormat = "$condition `,` $then `,` $otherwise `(` $inputs `)` attr-dict `:` functional-type(operands, $results)";
  let extraClassDeclaration = [{
    /// The function for this value of the condition; null if it does not exist.
    ::mlir::Operation *branch(bool condition);
  }];
  let hasCanonicalizer = 1;
}
def Burin_WhileOp : Burin_ApplyingOp<"while"> {
  let summary = "A loop: applies `body` to the carried values as long as `condition` is true for them";
  let description = [{
    The first `carried` inputs are the initial carried values; the others are loop-invariant. Both functions take the
    carried values, followed by the invariant inputs; `condition` returns one bool, `body` the carried values of the next
    iteration, of the same types. The results are the carried values for which `condition` was false.
  }];
  let arguments = (ins FlatSymbolRefAttr:$condition, FlatSymbolRefAttr:$body, I64Attr:$carried, Variadic<Burin_Tensor>:$inputs);
  let results = (outs Variadic<Burin_Tensor>:$results);
  let assemblyFormat = "$condition `,` $body `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)";
  let extraClassDeclaration = [{
    /// The functions; null if they do not exist.
    ::mlir::Operation *conditionFunction();
    ::mlir::Operation *bodyFunction();
  }];
}
def Burin_ScanOp : Burin_ApplyingOp<"scan"> {
  let summary = "A loop: applies a function to each of `parts` equal parts of operands along dimension 0";
  let description = [{
    In each iteration the function takes the `states` after the previous iteration, one part of each of the next `sliced`
    operands, and the other operands as a whole. It returns the new states, and a part of each further result.

    The operands for the states are the initial states; the results are the states before and after all iterations,
    concatenated along dimension 0: `parts` + 1 of them, the final one last. Parts of further results are at the positions
    of the parts of sliced operands. Iterations run over the parts in order, with `reverse` from the last to the first.
    Without states they are independent: they may run in any order, or at once.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Burin_Tensor>:$inputs, I64Attr:$sliced, Burin_ShapeAttr:$parts,
                       DefaultValuedAttr<I64Attr, "0">:$states, DefaultValuedAttr<BoolAttr, "false">:$reverse);
  let results = (outs Variadic<Burin_Tensor>:$results);
  let assemblyFormat = "$callee `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)";
  let extraClassDeclaration = [{
    /// The number of parts.
    Dim partCount();
    /// The called function; null if it does not exist.
    ::mlir::Operation *body();
    /// Index of the first operand that is not sliced.
    unsigned firstWhole() { return unsigned(getStates() + getSliced()); }
  }];
}
def Burin_DebugPrintOp : Op<Burin_Dialect, "debug_print", [MemoryEffects<[MemWrite]>]> {
  let summary = "Writes a tensor to the standard error stream of the process";
  let description = [{ Is kept without uses, and in the order of ops with effects. }];
  let arguments = (ins Burin_Tensor:$x, StrAttr:$label);
  let assemblyFormat = "$label `(` $x `)` attr-dict `:` type($x)";
}
def Burin_HostCallOp : Op<Burin_Dialect, "host_call", [MemoryEffects<[MemWrite]>]> {
  let summary = "A C++ function of the process that traced the graph";
  let description = [{
    `function` is an index into the functions of the graph. It is called in each run, in the order of ops with effects,
    and may fail.
  }];
  let arguments = (ins I64Attr:$function, Variadic<Burin_Tensor>:$inputs);
  let results = (outs Variadic<Burin_Tensor>:$results);
  let assemblyFormat = "$function `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)";
}
#endif
