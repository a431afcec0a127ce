#!/usr/bin/env python3
"""Generates everything that is derived from the op definitions in ir/*.td: op table, scalar code, C++ API, gradients,
batching rules, reference pages.

opgen.py <llvm-tblgen --dump-json output>
    <table|ids|reference|lowering|api-header|api-methods|api-source|gradients|batching|onnx|docs> -o <file>
"""
import argparse
import json
import pathlib
import re
import textwrap

FAMILIES = ["Elementwise", "Reduction", "Shape", "Contraction", "Neural", "Kernel"]
FAMILY_TITLES = {
    "Elementwise": "Elementwise",
    "Reduction": "Reductions",
    "Shape": "Shapes, selection and creation",
    "Contraction": "Products",
    "Neural": "Windows, normalisation and attention",
    "Kernel": "Inside the compiler",
}
KIND_OF_BASE = {
    "BoolAttr": "Bool",
    "I64Attr": "Int",
    "F64Attr": "Float",
    "StrAttr": "String",
    "DenseI64ArrayAttr": "Ints",
    "Burin_DTypeAttr": "DType",
    "Burin_ShapeAttr": "Shape",
    "Burin_NewSizeAttr": "Shape",
}
# The C++ type of an attribute kind as a stored value, and as a parameter.
CPP_TYPE = {
    "Bool": "bool",
    "Int": "int64_t",
    "Float": "double",
    "String": "std::string",
    "Ints": "std::vector<int64_t>",
    "DType": "DType",
    "Shape": "Shape",
}
CPP_PARAMETER = {k: t if k in ("Bool", "Int", "Float", "DType") else f"const {t} &" for k, t in CPP_TYPE.items()}
# Parameter types of the public API, where a single integer may be given for a list of one.
API_PARAMETER = {**CPP_PARAMETER, "Ints": "const IntList &"}
DOMAIN_TEXT = {
    "any": "any",
    "numeric": "integers and floats",
    "float": "floats",
    "integer": "integers and bool",
    "bool": "bool",
}
NORMALIZE_TEXT = {
    "none": "",
    "promote": "Operands are converted to their common element type.",
    "broadcast": "Operands are broadcast to one shape and converted to their common element type.",
    "float": "Integers become f32.",
    "broadcast_float": "Operands are broadcast to one shape; integers become f32.",
}


# Properties that passes and code generation look up for every op. Each field names the function that computes the
# property.
RULES = ("parts", "layout", "flops", "element")


def fail(op, what):
    raise SystemExit(f"opgen: {op}: {what}")


def typed(kind, name):
    """Returns a declaration such as "int64_t axis" or "const Shape &shape"."""
    return kind + ("" if kind.endswith("&") else " ") + name


def upperCamel(snake):
    return "".join(part.capitalize() for part in snake.split("_"))


class Operand:
    def __init__(self, name, superclasses):
        self.name = name
        self.arity = "Optional" if "Optional" in superclasses else "Variadic" if "Variadic" in superclasses else "One"


class Attribute:
    def __init__(self, op, name, record, records):
        self.name = name
        self.default = None
        base = record["!name"]
        if "DefaultValuedAttr" in record["!superclasses"] or "DefaultValuedStrAttr" in record["!superclasses"]:
            base = record["baseAttr"]["def"]
            self.default = record["defaultValue"]
        if base not in KIND_OF_BASE:
            fail(op, f"attribute {name} has the unsupported kind {base}")
        self.kind = KIND_OF_BASE[base]
        self.isNewSize = base == "Burin_NewSizeAttr"
        if self.kind == "String" and self.default is not None:
            self.default = '"' + self.default.strip('"') + '"'

    def held(self):
        """Returns the default as a C++ expression of the stored type."""
        value = self.default
        if value is None:
            return f"{CPP_TYPE[self.kind]}()"
        return f"{CPP_TYPE[self.kind]}{value if value.startswith('{') else '(' + value + ')'}"


class Op:
    def __init__(self, record, records):
        self.name = record["opName"]
        self.family = re.sub(r"Ops\.td:\d+$", "", record["!locs"][0])
        if self.family not in FAMILIES:
            self.family = re.sub(r"Ops\.td:\d+$", "", record["!locs"][-1])
        self.line = int(record["!locs"][0].rpartition(":")[2])
        self.summary = record["summary"]
        self.description = " ".join(textwrap.dedent(record["description"] or "").split())
        self.source = record["source"]
        self.onnx = record["onnx"]
        self.example = record["example"]
        self.required = record["required"]
        self.infer = record["infer"] or fail(self.name, "has no inference function")
        self.normalize = record["normalize"]
        self.autocast = record["autocast"]
        self.internal = bool(record["internal"])
        self.isPublic = bool(record["api"]) and not self.internal
        self.float8 = record["float8"]
        self.domain = record.get("domain", "any")
        self.boolResult = record.get("resultElement") == "bool"
        self.lower = record.get("lower")
        self.reference = record.get("reference")
        self.gradient = record["gradient"]
        self.batching = record["batching"]
        for field in RULES + ("fusion",):
            setattr(self, field, record[field] or fail(self.name, f"does not say its `{field}`, see ir/ops/OpBase.td"))
        self.rows, self.selects = record["rows"], bool(record["selects"])
        self.rearranges, self.oneInstruction = bool(record["rearranges"]), bool(record["oneInstruction"])
        self.elementwise = any(t["def"] == "Burin_ElementwiseTrait" for t in record["traits"])
        self.variadicResults = any("Variadic" in records[a["def"]]["!superclasses"] for a, _ in record["results"]["args"])
        self.operands, self.attrs = [], []
        for argument, name in record["arguments"]["args"]:
            definition = records[argument["def"]]
            if "TypeConstraint" in definition["!superclasses"]:
                self.operands.append(Operand(name, definition["!superclasses"]))
            else:
                self.attrs.append(Attribute(self.name, name, definition, records))
        # Elementwise ops on integers and bool are a few instructions, so constant operands can always be folded.
        self.folding = "cheap" if self.elementwise and self.domain != "float" else record["folding"]
        if (self.rows == "none") == (self.fusion == "row"):
            fail(self.name, "must say which `rows` it reduces if its `fusion` is \"row\", and only then")
        if not self.summary:
            fail(self.name, "has no summary")
        if self.gradient and len(self.gradient) != len(self.operands):
            fail(self.name, f"has {len(self.operands)} operands, but {len(self.gradient)} gradients")
        if self.operands and not self.internal and not self.batching:
            fail(self.name, "has no batching rule for vmap")

    def parameters(self):
        """Returns (type, name, default) in the order of the C++ function: parameters without a default come first."""
        required, optional = [], []
        for o in self.operands:
            if o.arity == "Optional":
                optional.append(("const std::optional<Tensor> &", o.name, "std::nullopt"))
            else:
                required.append(("const std::vector<Tensor> &" if o.arity == "Variadic" else "const Tensor &", o.name, None))
        for a in self.attrs:
            if a.isNewSize:
                continue
            if a.default is None or a.name in self.required:
                required.append((API_PARAMETER[a.kind], a.name, None))
            else:
                optional.append((API_PARAMETER[a.kind], a.name, a.default))
        return required + optional

    def returnType(self):
        return "std::vector<Tensor>" if self.variadicResults else "Tensor"

    def isMethod(self):
        """Returns whether op(x, ...) is also a method x.op(...)."""
        return self.isPublic and self.operands and self.operands[0].arity == "One" and self.operands[0].name in ("x", "lhs")

    def signature(self, defaults, method=False, scope=""):
        def text(kind, name, default):
            suffix = f" = {default}" if defaults and default is not None else ""
            return typed(kind, name) + suffix

        parameters = self.parameters()[1 if method else 0:] + [("Location", "where", "Location::current()")]
        suffix = " const" if method else ""
        return f"{self.returnType()} {scope}{self.name}({', '.join(text(*p) for p in parameters)}){suffix}"

    def documentation(self):
        """The paragraphs under the signature, summary first."""
        text = [re.sub(r"\.$", "", self.summary) + "."]
        if self.description:
            text.append(self.description)
        if NORMALIZE_TEXT[self.normalize]:
            text.append(NORMALIZE_TEXT[self.normalize])
        return text


def readOps(path):
    records = json.load(open(path))
    ops = [Op(records[name], records) for name in records["!instanceof"]["Burin_Op"]]
    return sorted(ops, key=lambda op: (FAMILIES.index(op.family), op.line, op.name))


HEADER = "// Generated from ir/*.td by tools/cmake/opgen.py.\n"


# ---- the op table

def table(ops):
    out = [HEADER]
    for op in ops:
        operands = ", ".join(f'{{"{o.name}", Arity::{o.arity}}}' for o in op.operands)
        attrs = ",\n      ".join(
            f'{{"{a.name}", AttrKind::{a.kind}, {"true" if a.default is not None else "false"}, Attr({a.held()}){", true" if a.isNewSize else ""}}}'
            for a in op.attrs)
        flags = ", ".join("true" if f else "false" for f in (op.elementwise, op.boolResult, op.variadicResults, op.internal))
        out.append(f'{{"{op.name}", {json.dumps(op.summary, ensure_ascii=False)},\n    {{{operands}}},\n    {{{attrs}}},\n'
                   f"    Normalize::{upperCamel(op.normalize)}, Domain::{upperCamel(op.domain)}, "
                   f"Autocast::{upperCamel(op.autocast)}, {flags}, Float8::{upperCamel(op.float8)}, {op.infer}}},\n")
    return "".join(out)


def onnx(ops):
    """Generates the pairs of an op and the equivalent ONNX operator."""
    return HEADER + "".join(f'{{"{op.name}", "{op.onnx}"}},\n' for op in ops if op.onnx)


def ids(ops):
    """Generates the position of each op in the table."""
    return HEADER + "".join(f"{op.name},\n" for op in ops)


# ---- properties for passes and code generation

def facts(ops):
    return HEADER + "".join(
        f"{{FusionKind::{upperCamel(op.fusion)}, RowAxes::{upperCamel(op.rows)}, Folding::{upperCamel(op.folding)}, "
        f"{'true' if op.selects else 'false'}, {'true' if op.oneInstruction else 'false'}, "
        f"{'true' if op.rearranges else 'false'}}}, // {op.name}\n" for op in ops)


def rules(field):
    """Generates OP_RULE(op, function) for each op of the table."""
    return lambda ops: HEADER + "".join(f"OP_RULE({op.name}, {getattr(op, field)})\n" for op in ops) + "#undef OP_RULE\n"


# ---- scalar code

def scalarOps(ops):
    return [op for op in ops if op.lower]


def scalarArguments(op, scalar):
    return [f"{scalar} {operand.name}" for operand in op.operands]


def reference(ops):
    out = [HEADER, textwrap.dedent("""\
        // The including file provides, in an enclosing namespace, the functions the `reference` snippets call.
        // Integers are int64_t of which the caller takes the low bits; signed overflow must wrap (-fwrapv).
        """)]
    for op in scalarOps(ops):
        parameters = scalarArguments(op, "T") + ["DType type"] + [typed(CPP_PARAMETER[a.kind], a.name) for a in op.attrs]
        result = "bool" if op.boolResult else "T"
        out.append(f"template <class T> {result} reference_{op.name}({', '.join(parameters)}) {{{op.reference.rstrip()} }}\n")
    out.append(textwrap.dedent("""
        /// What `op` computes from one element of each operand; empty if it is not defined on this kind of number.
        /// `T` is double for floats, int64_t for integers and bool. `type` is the element type of the operands.
        template <class T>
        std::function<T(const T *)> referenceScalar(std::string_view op, DType type, const std::vector<Attr> &attrs) {
          constexpr bool isReal = std::is_same_v<T, double>;
        """))
    for op in scalarOps(ops):
        condition = {"float": "isReal", "integer": "!isReal", "bool": "!isReal"}.get(op.domain, "")
        arguments = [f"x[{i}]" for i in range(len(op.operands))] + ["type"] + [a.name for a in op.attrs]
        gets = "".join(f" {a.name} = std::get<{CPP_TYPE[a.kind]}>(attrs[{i}])," for i, a in enumerate(op.attrs)).rstrip(",")
        captures = "type" + ("," + gets if gets else "")
        guard = f"  if constexpr ({condition})\n  " if condition else ""
        out.append(f'{guard}  if (op == "{op.name}")\n{"    " if condition else "  "}    '
                   f"return [{captures}](const T *x) {{ return T(reference_{op.name}<T>({', '.join(arguments)})); }};\n")
    out.append("  return {};\n}\n")
    return "".join(out)


def lowering(ops):
    out = [HEADER, "// The including file provides the class Scalar and the functions the `lower` snippets call.\n"]
    for op in scalarOps(ops):
        parameters = scalarArguments(op, "Scalar") + [typed(CPP_PARAMETER[a.kind], a.name) for a in op.attrs]
        out.append(f"static Scalar lower_{op.name}({', '.join(parameters)}) {{{op.lower.rstrip()} }}\n")
    out.append(textwrap.dedent("""
        struct ScalarLowering {
          const char *op;
          Scalar (*lower)(llvm::ArrayRef<Scalar> operands, llvm::ArrayRef<burin::ir::Attr> attrs);
        };
        /// In table order.
        static const ScalarLowering scalarLowerings[] = {
        """))
    for op in scalarOps(ops):
        arguments = [f"x[{i}]" for i in range(len(op.operands))]
        arguments += [f"std::get<{CPP_TYPE[a.kind]}>(attrs[{i}])" for i, a in enumerate(op.attrs)]
        attrs = " attrs" if op.attrs else ""
        out.append(f'    {{"{op.name}", [](llvm::ArrayRef<Scalar> x, llvm::ArrayRef<burin::ir::Attr>{attrs}) '
                   f"{{ return lower_{op.name}({', '.join(arguments)}); }}}},\n")
    out.append("};\n")
    return "".join(out)


# ---- the public API

def comment(paragraphs):
    return "".join(line + "\n" for p in paragraphs for line in
                   textwrap.wrap(p, 116, initial_indent="/// ", subsequent_indent="/// "))


def declaration(op, prefix="", method=False):
    """The prototype, broken between parameters only."""
    text = prefix + op.signature(defaults=True, method=method) + ";"
    glued = re.sub(r"(?<!,) ", "\0", text)
    indent = " " * (len(prefix) + len(op.returnType()) + len(op.name) + 2)
    lines = textwrap.wrap(glued, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")


def apiHeader(ops):
    out = ["// Tensor operations. Generated from the op definitions in ir/*.td: edit those.\n"
           "// Every function throws burin::Error, naming the caller's line, if shapes or element types do not fit.\n"
           "#pragma once\n#include \"burin/tensor.h\"\n\nnamespace burin {\n"]
    for family in FAMILIES:
        public = [op for op in ops if op.family == family and op.isPublic]
        if public:
            out.append(f"\n// ---- {FAMILY_TITLES[family]}\n")
        for op in public:
            paragraphs = op.documentation() + ([f"See {op.source}."] if op.source else [])
            out.append("\n" + comment(paragraphs) + declaration(op, "BURIN_API ") + "\n")
    out.append("\n} // namespace burin\n")
    return "".join(out)


def apiMethods(ops):
    out = [HEADER, "// Included by burin/tensor.h inside class Tensor: x.op(...) is op(x, ...), see burin/ops.h.\n\n"]
    out += [declaration(op, method=True) + "\n" for op in ops if op.isMethod()]
    return "".join(out)


def apiSource(ops):
    out = [HEADER]
    for op in (op for op in ops if not op.internal):
        if any(o.arity == "Variadic" for o in op.operands):
            operands = f"detail::operandList({op.operands[0].name})"
        else:
            operands = "{" + ", ".join(o.name for o in op.operands) + "}"
        attrs = "{" + ", ".join(f'detail::newSize("{op.name}", where)' if a.isNewSize else f"ir::Attr({CPP_TYPE[a.kind]}({a.name}))"
                                for a in op.attrs) + "}"
        call = f"detail::apply(ir::opInfo(ir::OpId::{op.name}), {operands}, {attrs}, where)"
        suffix = "" if op.variadicResults else ".front()"
        scope = "" if op.isPublic else "detail::"
        out.append(f"{op.signature(defaults=False, scope=scope)} {{\n  return {call}{suffix};\n}}\n")
        if op.isMethod():
            arguments = ", ".join(["*this"] + [name for _, name, _ in op.parameters()[1:]] + ["where"])
            signature = op.signature(defaults=False, method=True, scope="Tensor::")
            out.append(f"{signature} {{\n  return burin::{op.name}({arguments});\n}}\n")
    return "".join(out)


# ---- gradients and batches of examples

def ruleOperands(op):
    """Generates declarations of the operands of a rule, with their values."""
    if op.operands[0].arity == "Variadic":
        return [(f"const std::vector<Tensor> &{op.operands[0].name}", "call.operands")]
    return [(f"const Tensor &{o.name}", f"call.operands[{i}]") for i, o in enumerate(op.operands)]


def ruleAttributes(op):
    return [(typed(CPP_PARAMETER[a.kind], a.name), f"std::get<{CPP_TYPE[a.kind]}>(call.attrs[{i}])")
            for i, a in enumerate(op.attrs)]


def declarations(names):
    return [f"  [[maybe_unused]] {declaration} = {value};\n" for declaration, value in names]


def batching(ops):
    out = [HEADER, "// The including file provides BatchingCall and the functions the `batching` snippets call.\n"]
    for op in ops:
        if op.batching in ("", "same", "refused"):
            continue
        names = ruleOperands(op) + ruleAttributes(op)
        names += [("const Self self", "call.self()"), ("const Dim &examples", "call.examples"),
                  ("const Randomness randomness", "call.randomness")]
        names.append(("const TensorSpec &result", "call.results[0]"))
        words = re.findall(r"\w+", op.batching)
        names = [(declaration, value) for declaration, value in names if re.search(r"\w+$", declaration)[0] in words]
        out.append(f"static std::vector<Tensor> batching_{op.name}(const BatchingCall &call) {{\n")
        out += declarations(names)
        out.append(f"  return {op.batching};\n}}\n" if op.variadicResults else f"  return {{{op.batching}}};\n}}\n")
    out.append("/// In table order; null where there is no rule.\nstatic constexpr BatchingRule batchingRules[] = {\n")
    for op in ops:
        known = {"": "nullptr", "same": "batchingIsSame", "refused": "batchingIsRefused"}
        rule = known.get(op.batching, f"batching_{op.name}")
        out.append(f"    {rule}, // {op.name}\n")
    out.append("};\n")
    return "".join(out)


def gradients(ops):
    out = [HEADER, "// The including file provides GradientCall and the functions the `gradient` snippets call.\n"]
    for op in ops:
        if not any(expression != "zero" for expression in op.gradient):
            continue
        isList = op.operands[0].arity == "Variadic"
        names = ruleOperands(op)
        names += [("const std::vector<Tensor> &g", "call.gradients")] if op.variadicResults else [
            ("const Tensor &g", "call.gradients[0]"), ("const Tensor &result", "call.results[0]")]
        names += ruleAttributes(op)
        out.append(f"static std::vector<Tensor> gradient_{op.name}(const GradientCall &call) {{\n")
        out += declarations(names)
        if isList:
            out.append(f"  return {op.gradient[0]};\n}}\n")
            continue
        out.append(f"  std::vector<Tensor> gradients({len(op.operands)});\n")
        out += [f"  if (call.isNeeded[{i}])\n    gradients[{i}] = {expression};\n"
                for i, expression in enumerate(op.gradient) if expression != "zero"]
        out.append("  return gradients;\n}\n")
    out.append("static std::vector<Tensor> gradientIsZero(const GradientCall &call) {\n"
               "  return std::vector<Tensor>(call.operands.size());\n}\n"
               "/// In table order; null where there is no rule.\n"
               "static constexpr GradientRule gradientRules[] = {\n")
    for op in ops:
        isZero = op.gradient and all(expression == "zero" for expression in op.gradient)
        rule = "gradientIsZero" if isZero else f"gradient_{op.name}" if op.gradient else "nullptr"
        out.append(f"    {rule}, // {op.name}\n")
    out.append("};\n")
    return "".join(out)


# ---- reference pages

def example(op):
    names = [o.name for o in op.operands if o.arity != "Optional"]
    sample = {"Bool": "true", "Int": "1", "Float": "0.5", "DType": "f32"}
    call = op.example or f"{op.name}({', '.join(names + [sample[a.kind] for a in op.attrs if a.default is None or a.name in op.required])})"
    if ";" not in call:
        call += ";"
    return f"auto {'pieces' if op.variadicResults else 'result'} = {call}"


def docs(ops):
    out = ["# Operations\n\nGenerated from the op definitions. Functions are in namespace `burin`, header `burin/ops.h`.\n"]
    for family in FAMILIES:
        public = [op for op in ops if op.family == family and op.isPublic]
        if public:
            links = ", ".join(f"[`{op.name}`](#{op.name})" for op in public)
            out.append(f"\n- **{FAMILY_TITLES[family]}**: {links}")
    out.append("\n")
    for op in ops:
        if not op.isPublic:
            continue
        out.append(f"\n## {op.name}\n\n```cpp\n{declaration(op)}\n```\n")
        out.append("\n".join(op.documentation()) + "\n")
        if op.isMethod():
            out.append(f"\nAlso a method: `{op.operands[0].name}.{op.name}(…)`.\n")
        if any(not a.isNewSize for a in op.attrs):
            out.append("\n| attribute | type | default |\n|---|---|---|\n")
            for a in (a for a in op.attrs if not a.isNewSize):
                default = "required" if a.default is None or a.name in op.required else f"`{a.default}`"
                out.append(f"| `{a.name}` | `{CPP_TYPE[a.kind]}` | {default} |\n")
        if op.lower:
            out.append(f"\nElement types: {DOMAIN_TEXT[op.domain]}" + ("; the result is bool" if op.boolResult else "") + ".\n")
        if op.source:
            out.append(f"\nAs in: {op.source}.\n")
        if op.onnx:
            out.append(f"\nIn ONNX: `{op.onnx}`.\n")
        out.append(f"\n```cpp\n{example(op)}\n```\n")
    return "".join(out)


OUTPUTS = {"table": table, "ids": ids, "reference": reference, "lowering": lowering, "api-header": apiHeader,
           "api-methods": apiMethods, "api-source": apiSource, "gradients": gradients, "batching": batching,
           "onnx": onnx, "docs": docs, "facts": facts, **{field: rules(field) for field in RULES}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("records")
    parser.add_argument("output", choices=OUTPUTS)
    parser.add_argument("-o", required=True)
    arguments = parser.parse_args()
    text = OUTPUTS[arguments.output](readOps(arguments.records))
    path = pathlib.Path(arguments.o)
    # An unchanged file must keep its time stamp, or its users are rebuilt.
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    main()
