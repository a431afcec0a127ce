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
  let summary = "One of two functions, chosen by a bool: only that one runs";
  let description = [{ Both functions take all of `inputs`, and their results have the types of the op's results. }];
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
  let summary = "A loop: `body` is applied to the carried values as long as `condition` says so";
  let description = [{
    The first `carried` of the inputs are the values before the first turn; the others are the same in all turns. Both
    functions take carried values and inputs in this order; `condition` gives one bool, `body` the carried values of
    the next turn, of the same types. The results are the carried values for which `condition` was false.
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
  let summary = "A loop: a function applied to each of `parts` equal parts of operands along dimension 0";
  let description = [{
    In each turn the function takes the `states` that the turn before has left, one part of each of the `sliced` operands
    behind them, and all others whole. It gives the new states, and a part of each further result.

    The operands for the states are what the first turn takes; the results are all they have ever been, one behind the
    other along dimension 0: `parts` + 1 of them, the last one last. The parts of further results lie where those of
    the sliced operands do. The turns go through the parts in order, with `reverse` from the last one to the first.
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
  let description = [{ Stays though nobody uses it, and in the order of the ops that have effects. }];
  let arguments = (ins Burin_Tensor:$x, StrAttr:$label);
  let assemblyFormat = "$label `(` $x `)` attr-dict `:` type($x)";
}
def Burin_HostCallOp : Op<Burin_Dialect, "host_call", [MemoryEffects<[MemWrite]>]> {
  let summary = "A C++ function of the process that traced the graph";
  let description = [{
    `function` counts the functions that the graph holds. It is called in each run, in the order of the ops that have
    effects, and may fail.
  }];
  let arguments = (ins I64Attr:$function, Variadic<Burin_Tensor>:$inputs);
  let results = (outs Variadic<Burin_Tensor>:$results);
  let assemblyFormat = "$function `(` $inputs `)` attr-dict `:` functional-type($inputs, $results)";
}
#endif
