#!/usr/bin/env python3
"""Writes torch_cases.json: PyTorch's results for the ops of burin, to compare the reference interpreter with.

Needs torch and numpy; run it again after adding a case:  python3 make_torch_cases.py > torch_cases.json
Every case is [op, operands, attributes, results]; a tensor is [dtype, shape, elements].
"""
import itertools
import json
import math
import sys

import torch
import torch.nn.functional as F

NAMES = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16", torch.int8: "i8",
         torch.uint8: "u8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64", torch.bool: "bool"}
TYPES = {name: dtype for dtype, name in NAMES.items()}
nan, inf = math.nan, math.inf
cases = []
generator = torch.Generator().manual_seed(7)


def number(x):
    if isinstance(x, (bool, int)):
        return int(x)
    if math.isnan(x) or math.isinf(x):
        return str(x)
    return float(f"{x:.9g}")


def tensor(t):
    if t is None:
        return None
    return [NAMES[t.dtype], list(t.shape), [number(x) for x in t.reshape(-1).tolist()]]


def case(op, operands, results, **attrs):
    results = results if isinstance(results, (list, tuple)) else [results]
    cases.append([op, [tensor(t) for t in operands], attrs, [tensor(t) for t in results]])


def rand(*shape, dtype=torch.float64, low=-3, high=3):
    """Multiples of 1/8: short in the file and exact in every float type."""
    return (torch.randint(low * 8, high * 8 + 1, shape, generator=generator) / 8).to(dtype)


def ints(*shape, dtype=torch.int32, low=-9, high=9):
    return torch.randint(low, high + 1, shape, generator=generator).to(dtype)


def f(*values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype)


SPECIAL = f(0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.75, -7.25, 30, -30, 100, -100, 800, -800, 1e-9, -1e-9, 1e30, -1e30,
            inf, -inf, nan)


def unary():
    plain = ["exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
             "cosh", "asinh", "acosh", "atanh", "tanh", "erf", "sigmoid", "neg", "abs", "floor", "ceil", "round", "trunc", "relu"]
    for op in plain:
        x = SPECIAL if op not in ("sin", "cos", "tan") else SPECIAL[SPECIAL.abs() != 1e30]
        case(op, [x], getattr(torch, op)(x))
    for dtype in (torch.float16, torch.bfloat16):
        x = f(-3, -0.5, 0, 0.125, 2, 11, 12, 300, inf, nan, dtype=dtype)
        for op in ("exp", "sqrt", "tanh", "neg", "reciprocal", "round"):
            case(op, [x], getattr(torch, op)(x))
    case("sign", [SPECIAL[:-1]], torch.sign(SPECIAL[:-1]))
    case("leaky_relu", [SPECIAL], F.leaky_relu(SPECIAL, 0.1), negative_slope=0.1)
    case("elu", [SPECIAL], F.elu(SPECIAL, 1.25), alpha=1.25)
    finite = SPECIAL[SPECIAL != -inf]  # at -inf the result is the limit, but PyTorch gives NaN
    for mode in ("none", "tanh"):
        case("gelu", [finite], F.gelu(finite, approximate=mode), approximate=mode)
    case("silu", [finite], F.silu(finite))
    case("softplus", [SPECIAL], F.softplus(SPECIAL, 2, 10), beta=2.0, threshold=10.0)
    case("hardswish", [finite], F.hardswish(finite))
    case("hardsigmoid", [SPECIAL], F.hardsigmoid(SPECIAL))
    for op, torchOp in (("is_nan", torch.isnan), ("is_inf", torch.isinf), ("logical_not", torch.logical_not)):
        case(op, [SPECIAL], torchOp(SPECIAL))
    for dtype in (torch.int8, torch.uint8, torch.int64):
        x = torch.tensor([0, 1, 5, 127, -128, -1, -7]).to(dtype)
        for op in ("neg", "abs", "sign", "bitwise_not", "logical_not", "relu"):
            case(op, [x], getattr(torch, op)(x))
    case("bitwise_not", [torch.tensor([True, False])], torch.tensor([False, True]))


def binary():
    pairs = torch.tensor(list(itertools.product([0.0, -0.0, 1, -2.5, 3, 7.25, inf, -inf, nan], repeat=2)), dtype=torch.float64)
    x, y = pairs[:, 0].contiguous(), pairs[:, 1].contiguous()
    for op in ("add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "pow", "maximum", "minimum", "atan2", "eq", "ne", "lt",
               "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"):
        case(op, [x, y], getattr(torch, op)(x, y))
    for dtype in (torch.float16, torch.bfloat16):
        x, y = rand(9, dtype=dtype, low=-200, high=200), rand(9, dtype=dtype, low=-500, high=500)
        for op in ("add", "sub", "mul", "div"):
            case(op, [x, y], getattr(torch, op)(x, y))
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
        limits = torch.iinfo(dtype)
        values = torch.tensor(list(itertools.product([0, 1, 3, 7, limits.max - 1 if dtype != torch.int64 else 2**50,
                                                      limits.min if dtype == torch.uint8 else -5], repeat=2)))
        x, y = values[:, 0].to(dtype), values[:, 1].to(dtype)
        for op in ("add", "sub", "mul", "maximum", "minimum", "lt", "eq", "bitwise_and", "bitwise_or", "bitwise_xor"):
            case(op, [x, y], getattr(torch, op)(x, y))
        nonZero = y != 0
        for op in ("floor_divide", "remainder", "fmod"):
            case(op, [x[nonZero], y[nonZero]], getattr(torch, op)(x[nonZero], y[nonZero]))
        shifts = torch.arange(0, limits.bits, 3).to(dtype)
        for op, torchOp in (("shift_left", torch.bitwise_left_shift), ("shift_right", torch.bitwise_right_shift)):
            for base in (3, 77, limits.min):
                x = torch.full_like(shifts, base)
                case(op, [x, shifts], torchOp(x, shifts))
        base, exponent = torch.tensor([0, 1, 2, 3, 5, 11]).to(dtype), torch.tensor([0, 5, 7, 30, 2, 9]).to(dtype)
        case("pow", [base, exponent], torch.pow(base, exponent))
    c, x, y = torch.tensor([True, False, True]), f(1, 2, nan), f(-1, nan, 5)
    case("where", [c, x, y], torch.where(c, x, y))
    x, y = ints(3), ints(3)
    case("where", [c, x, y], torch.where(c, x, y))
    x, low, high = f(-5, 0, 5, nan, 1), f(-1, -1, -1, -1, 3), f(1, 1, 1, 1, 2)
    case("clamp", [x, low, high], torch.clamp(x, low, high))


def casts():
    x = f(0, -0.5, 1.9, -1.9, 100.5, 120, 1e-8, 65519, 70000, 3.0e38)
    for to in ("f32", "f16", "bf16"):
        case("cast", [x], x.to(TYPES[to]), dtype=to)
    small = x[:6]
    for to in ("i8", "i16", "i32", "i64", "bool"):
        case("cast", [small], small.to(TYPES[to]), dtype=to)
    i = torch.tensor([0, 1, -1, 127, 128, 255, 256, -129, 65535, 65536, 2**31, -2**31 - 1, 2**40 + 3])
    for to in NAMES.values():
        if to != "f16":
            case("cast", [i], i.to(TYPES[to]), dtype=to)


def shapes():
    x = rand(2, 3, 4)
    case("reshape", [x], x.reshape(4, 6), shape=[4, 6])
    case("squeeze", [x.reshape(1, 24, 1)], x.reshape(24), axes=[0, 2])
    case("unsqueeze", [x], x[:, None, :, :, None], axes=[1, 4])
    for perm in itertools.permutations(range(3)):
        case("transpose", [x], x.permute(perm).contiguous(), perm=list(perm))
    y = ints(5, 3, 1, 2, dtype=torch.int8)
    case("transpose", [y], y.permute(3, 1, 0, 2).contiguous(), perm=[3, 1, 0, 2])
    y = y[:1, :, :, :1].contiguous()
    case("broadcast_to", [y], y.expand(4, 3, 2, 3).contiguous(), shape=[4, 3, 2, 3])
    case("broadcast_to", [x[0, 0]], x[0, 0].expand(2, 2, 4).contiguous(), shape=[2, 2, 4])
    case("slice", [x], x[0:2, 1:3, 3:4].contiguous(), starts=[0, -2, 3], stops=[100, 3, 100], steps=[1, 1, 2])
    case("slice", [x], x[1:1, :, ::3].contiguous(), starts=[1, 0, 0], stops=[1, 3, 4], steps=[1, 1, 3])
    case("flip", [x], x.flip(0, 2), axes=[0, 2])
    case("concat", [x, x[:, :1], x[:, :0]], torch.cat([x, x[:, :1]], 1), axis=1)
    case("stack", [x[0], x[1], x[0]], torch.stack([x[0], x[1], x[0]], 1), axis=1)
    case("split", [x], [t.contiguous() for t in x.split([1, 3, 0], 2)], sizes=[1, 3, 0], axis=2)
    case("tile", [x], x.tile(2, 1, 3), repeats=[2, 1, 3])
    case("pad", [x], F.pad(x, (1, 2, -1, 1, 0, 3), value=9.5), low=[0, -1, 1], high=[3, 1, 2], value=9.5)
    case("pad", [x], F.pad(x, (2, 1), mode="replicate"), low=[0, 0, 2], high=[0, 0, 1], mode="edge")
    case("pad", [x], F.pad(x, (3, 2), mode="reflect"), low=[0, 0, 3], high=[0, 0, 2], mode="reflect")
    case("pad", [x], F.pad(x[None], (1, 3, 2, 1), mode="reflect")[0], low=[0, 2, 1], high=[0, 1, 3], mode="reflect")
    index = torch.tensor([[0, 2], [-1, 1]])
    case("take", [x, index], x[:, index].contiguous(), axis=1)
    case("take", [x, torch.tensor(1)], x[:, :, 1].contiguous(), axis=2)
    g = torch.tensor([[[0, 1, 2, 0], [2, 2, 1, 1]]])
    case("gather", [x, g], torch.gather(x, 1, g), axis=1)
    u = rand(1, 2, 4)
    case("scatter", [x, g, u], x.scatter_add(1, g, u), axis=1, reduction="add")
    g = torch.tensor([[[0, 1, 2, 0], [2, 0, 1, 1]]])
    case("scatter", [x, g, u], x.scatter(1, g, u), axis=1)
    case("tril", [x], x.tril(1), diagonal=1)
    case("triu", [x], x.triu(-1), diagonal=-1)
    case("cumsum", [x], x.cumsum(1), axis=1)
    case("cumsum", [x], x.flip(2).cumsum(2).flip(2), axis=2, reverse=True)
    case("cumsum", [x], x.cumsum(0) - x, axis=0, exclusive=True)


def reductions():
    x = rand(3, 4, 5)
    for axes, keep in (([0], False), ([1], True), ([0, 2], False), ([0, 1, 2], True), ([2], False)):
        attrs = {"axes": axes, "keepdims": keep}
        case("reduce_sum", [x], x.sum(axes, keep), **attrs)
        case("reduce_mean", [x], x.mean(axes, keep), **attrs)
        case("reduce_max", [x], x.amax(axes, keep), **attrs)
        case("reduce_min", [x], x.amin(axes, keep), **attrs)
        case("reduce_var", [x], x.var(axes, correction=1, keepdim=keep), **attrs)
        case("reduce_var", [x], x.var(axes, correction=0, keepdim=keep), correction=0, **attrs)
        case("logsumexp", [x], x.logsumexp(axes, keep), **attrs)
        case("reduce_any", [x > 2.5], (x > 2.5).any(axes, keep) if len(axes) == 1 else (x > 2.5).to(torch.uint8).amax(axes, keep).bool(), **attrs)
        case("reduce_all", [x], (x != 0).to(torch.uint8).amin(axes, keep).bool(), **attrs)
    case("reduce_prod", [x], x.prod(1), axes=[1])
    i = ints(4, 3)
    case("reduce_sum", [i], i.sum(0), axes=[0])
    case("reduce_prod", [i], i.prod(1), axes=[1])
    case("reduce_max", [i.to(torch.uint8)], i.to(torch.uint8).amax(1), axes=[1])
    case("reduce_sum", [i > 0], (i > 0).sum(1), axes=[1])
    special = f(1, nan, 3, -inf, 5, inf).reshape(2, 3)
    for op, torchOp in (("reduce_max", torch.amax), ("reduce_min", torch.amin), ("reduce_sum", torch.sum), ("logsumexp", torch.logsumexp)):
        case(op, [special], torchOp(special, 1), axes=[1])
    low = torch.full((2, 2), -inf, dtype=torch.float64)
    case("logsumexp", [low], low.logsumexp(1), axes=[1])
    empty = torch.zeros(2, 0, dtype=torch.float64)
    case("reduce_sum", [empty], empty.sum(1), axes=[1])
    case("reduce_prod", [empty], empty.prod(1), axes=[1])
    case("reduce_mean", [empty], empty.mean(1), axes=[1])
    for axis in (0, 1, 2):
        case("argmax", [x], x.argmax(axis), axis=axis)
        case("argmin", [x], x.argmin(axis, True), axis=axis, keepdims=True)
    case("argmax", [special], special.argmax(1), axis=1)
    case("argmin", [special], special.argmin(1), axis=1)


def products():
    for a, b in (((2, 3), (3, 4)), ((5, 1, 7), (5, 7, 2)), ((2, 3, 1, 4), (2, 3, 4, 1)), ((2, 0), (0, 3))):
        x, y = rand(*a), rand(*b)
        case("matmul", [x, y], x @ y)
    x, y = ints(3, 4, dtype=torch.int64), ints(4, 2, dtype=torch.int64)
    case("matmul", [x, y], x @ y)
    x, y = rand(2, 3, 4, 5), rand(5, 2, 4, 6)
    case("dot_general", [x, y], torch.einsum("bfcd,dbcg->bfg", x, y), lhs_batch=[0], rhs_batch=[1], lhs_contract=[2, 3], rhs_contract=[2, 0])
    x, y = rand(2, 3), rand(3, 2)
    case("dot_general", [x, y], torch.einsum("ab,bc->ac", x, y), lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0])
    case("dot_general", [x, y], torch.einsum("ab,cd->abcd", x, y), lhs_batch=[], rhs_batch=[], lhs_contract=[], rhs_contract=[])


def convolutions():
    def conv(xShape, wShape, bias, **attrs):
        x, w = rand(*xShape), rand(*wShape)
        b = rand(wShape[0]) if bias else None
        spatial = len(xShape) - 2
        padding = attrs.get("padding", [0] * spatial)
        padded = x
        if len(padding) == 2 * spatial:
            flat = [p for d in reversed(range(spatial)) for p in (padding[d], padding[spatial + d])]
            padded, padding = F.pad(x, flat), [0] * spatial
        function = (F.conv1d, F.conv2d, F.conv3d)[spatial - 1]
        y = function(padded, w, b, attrs.get("strides", 1), padding, attrs.get("dilations", 1), attrs.get("groups", 1))
        case("conv", [x, w] + [b] * bias, y, **attrs)
        if bias and spatial == 2 or spatial == 1:
            lastX, lastY = x.movedim(1, -1).contiguous(), y.movedim(1, -1).contiguous()
            lastW = w.movedim((0, 1), (-1, -2)).contiguous()
            case("conv", [lastX, lastW] + [b] * bias, lastY, layout="nhwc", **attrs)

    conv((2, 3, 7), (4, 3, 3), False)
    conv((1, 2, 9), (2, 1, 4), True, strides=[2], padding=[1, 3], dilations=[2], groups=2)
    conv((2, 3, 5, 6), (2, 3, 3, 2), True, strides=[2, 1], padding=[1, 0])
    conv((1, 4, 6, 5), (6, 2, 3, 3), True, padding=[2, 0, 1, 3], dilations=[2, 1], groups=2)
    conv((1, 3, 4, 4), (6, 1, 1, 1), False, strides=[3, 2], groups=3)
    conv((1, 2, 4, 3, 5), (3, 2, 2, 3, 2), True, strides=[2, 1, 2], padding=[1, 1, 0], dilations=[1, 1, 2])
    conv((0, 2, 5, 5), (3, 2, 3, 3), False)

    def transposed(xShape, wShape, bias, **attrs):
        x, w, groups = rand(*xShape), rand(*wShape), attrs.get("groups", 1)
        b = rand(wShape[1] * groups) if bias else None
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[len(xShape) - 3]
        y = function(x, w, b, attrs.get("strides", 1), attrs.get("padding", 0), attrs.get("output_padding", 0), groups, attrs.get("dilations", 1))
        case("conv_transpose", [x, w] + [b] * bias, y, **attrs)

    transposed((2, 3, 4), (3, 2, 3), False)
    transposed((1, 4, 3, 4), (4, 3, 3, 2), True, strides=[2, 3], padding=[1, 0], output_padding=[1, 2], groups=2)
    transposed((1, 2, 3, 3), (2, 2, 3, 3), False, strides=[2, 2], padding=[2, 1], dilations=[2, 1])
    transposed((1, 2, 2, 3, 2), (2, 1, 2, 2, 3), True, strides=[1, 2, 1], padding=[0, 1, 1])


def pools():
    last = lambda t: t.movedim(1, -1).contiguous()
    x = rand(1, 2, 7, 6)
    for kernel, stride, padding, ceil in (([2, 2], [2, 2], [0, 0], False), ([3, 2], [2, 3], [1, 1], True), ([3, 3], [1, 2], [1, 0], False),
                                          ([2, 3], [3, 2], [1, 1], True)):
        attrs = {"kernel": kernel, "strides": stride, "padding": padding, "ceil_mode": ceil}
        y = F.max_pool2d(x, kernel, stride, padding, ceil_mode=ceil)
        case("max_pool", [x], y, **attrs)
        case("max_pool", [last(x)], last(y), layout="nhwc", **attrs)
        for include in (True, False):
            y = F.avg_pool2d(x, kernel, stride, padding, ceil, include)
            case("avg_pool", [x], y, count_include_pad=include, **attrs)
        case("avg_pool", [last(x)], last(y), layout="nhwc", count_include_pad=False, **attrs)
    case("max_pool", [x], F.max_pool2d(x, 2, 1, 1, 2), kernel=[2, 2], strides=[1, 1], padding=[1, 1], dilations=[2, 2])
    x1, x3 = rand(2, 1, 8), rand(1, 2, 4, 3, 5)
    x1[0, 0, 3] = nan
    case("max_pool", [x1], F.max_pool1d(x1, 3, 2), kernel=[3], strides=[2])
    case("avg_pool", [x1], F.avg_pool1d(x1, 3, 2, 1, True), kernel=[3], strides=[2], padding=[1], ceil_mode=True)
    case("max_pool", [x3], F.max_pool3d(x3, (2, 3, 2), 2, 1, ceil_mode=True), kernel=[2, 3, 2], strides=[2, 2, 2], padding=[1, 1, 1], ceil_mode=True)
    case("avg_pool", [x3], F.avg_pool3d(x3, 2, 2), kernel=[2, 2, 2], strides=[2, 2, 2])
    for size in ((1, 1), (3, 4), (7, 6), (5, 9)):
        y = F.adaptive_avg_pool2d(x, size)
        case("adaptive_avg_pool", [x], y, output_size=list(size))
    case("adaptive_avg_pool", [last(x)], last(y), output_size=list(size), layout="nhwc")
    case("adaptive_avg_pool", [x3], F.adaptive_avg_pool3d(x3, (2, 2, 3)), output_size=[2, 2, 3])


def composites():
    x = rand(2, 3, 5)
    for axis in (0, 1, 2):
        case("softmax", [x], x.softmax(axis), axis=axis)
        case("log_softmax", [x], x.log_softmax(axis), axis=axis)
    wide = f(1000, 0, -1000, -inf, -inf, 3).reshape(2, 3)
    case("softmax", [wide], wide.softmax(1), axis=1)
    case("log_softmax", [wide], wide.log_softmax(1), axis=1)
    w, b = rand(3, 5), rand(3, 5)
    case("layer_norm", [x, None, None], F.layer_norm(x, (5,)), axis=2)
    case("layer_norm", [x, w, b], F.layer_norm(x, (3, 5), w, b, 0.1), axis=1, epsilon=0.1)
    case("layer_norm", [x, None, b], F.layer_norm(x, (3, 5), None, b), axis=1)
    case("layer_norm", [x, w, None], F.layer_norm(x, (3, 5), w), axis=1)
    case("rms_norm", [x], F.rms_norm(x, (5,), None, 1e-6), axis=2)
    case("rms_norm", [x, w], F.rms_norm(x, (3, 5), w, 0.5), axis=1, epsilon=0.5)
    x = rand(2, 6, 3, 2)
    mean, variance, w, b = rand(6), rand(6, low=1, high=4), rand(6), rand(6)
    case("batch_norm", [x, mean, variance, w, b], F.batch_norm(x, mean, variance, w, b, eps=0.01), epsilon=0.01)
    case("group_norm", [x, None, None], F.group_norm(x, 2), groups=2)
    case("group_norm", [x, w, b], F.group_norm(x, 3, w, b, 0.1), groups=3, epsilon=0.1)
    case("instance_norm", [x, w, b], F.instance_norm(x, None, None, w, b))
    case("instance_norm", [x, None, None], F.instance_norm(x))
    q, k, v = rand(2, 2, 3, 4), rand(2, 2, 5, 4), rand(2, 2, 5, 2)
    mask = rand(3, 5)
    allowed = mask > -2
    attention = F.scaled_dot_product_attention
    case("scaled_dot_product_attention", [q, k, v], attention(q, k, v))
    case("scaled_dot_product_attention", [q, k, v], attention(q, k, v, scale=0.3), scale=0.3)
    case("scaled_dot_product_attention", [q, k, v], attention(q, k, v, is_causal=True), is_causal=True)
    case("scaled_dot_product_attention", [q, k, v, mask], attention(q, k, v, mask))
    case("scaled_dot_product_attention", [q, k, v, allowed], attention(q, k, v, allowed))
    case("dropout", [x], x, p=0.5)


def order():
    x = rand(2, 3, 4)
    case("cumprod", [x], x.cumprod(1), axis=1)
    case("cumprod", [x], x.flip(2).cumprod(2).flip(2), axis=2, reverse=True)
    ties = f(1, nan, -2, 1, inf, 0.0, -0.0, nan, -inf, 1).reshape(2, 5)
    for descending in (False, True):
        case("argsort", [x], x.argsort(dim=1, descending=descending, stable=True), axis=1, descending=descending)
        case("argsort", [ties], ties.argsort(dim=1, descending=descending, stable=True), axis=1, descending=descending)
        y = ints(3, 6, dtype=torch.uint8, low=0, high=3)
        case("argsort", [y], y.argsort(dim=0, descending=descending, stable=True), axis=0, descending=descending)


for family in (unary, binary, casts, shapes, reductions, products, convolutions, pools, composites, order):
    family()
print("[" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "]")
print(f"{len(cases)} cases of {len({c[0] for c in cases})} ops", file=sys.stderr)
