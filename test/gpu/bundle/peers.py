#!/usr/bin/env python3
"""peers.py FOLDER [SECONDS]: times what gpu-check has timed with PyTorch, eagerly and by torch.compile.

Reads FOLDER/speed.txt (what is timed) and FOLDER/report.md (burin's times), and appends a table to the report. After
SECONDS (default 120) no more functions are compiled. Needs PyTorch for CUDA.
"""
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

DTYPES = {0: torch.float32, 1: torch.float64, 2: torch.float16, 3: torch.bfloat16}  # burin's numbers of element types


def centred(x):
    return x - x.mean(-1, keepdim=True)


def layer_norm(x):
    y = centred(x)
    return y * torch.rsqrt((y * y).mean(-1, keepdim=True) + 1e-5)


def attention_with_gradients(q, k, v, g, is_causal):
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    y = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
    of_q, of_k, of_v = torch.autograd.grad(y, (q, k, v), g)
    return y.detach() + of_q + of_k + of_v


# The functions of Artifacts.cpp. Operands of one call are moved to channels-last where a user of PyTorch would.
FUNCTIONS = {
    "elementwise": lambda x: torch.relu(x * 2.0 + 1.0),
    "softmax": lambda x: torch.softmax(x, -1),
    "layer-norm": layer_norm,
    "sum-over-rows": lambda x: x.sum(-1),
    "transpose": lambda x: x.t().contiguous(),
    "product": lambda x, w: x @ w,
    "product+bias+relu": lambda x, w, b: torch.relu(x @ w + b),
    "attention": lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
    "attention-causal": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "attention+gradients": lambda q, k, v, g: attention_with_gradients(q, k, v, g, False),
    "attention-causal+gradients": lambda q, k, v, g: attention_with_gradients(q, k, v, g, True),
    "convolution": lambda x, w: F.conv2d(x, w, padding=1),
    "convolution-1x1": lambda x, w: F.conv2d(x, w),
    "convolution-depthwise": lambda x, w: F.conv2d(x, w, padding=1, groups=w.shape[0]),
    "max-pool": lambda x: F.max_pool2d(x, 3, 2, 1),
    "gelu": F.gelu,
    "sum-of-columns": lambda x: x.sum(0),
    "sum-of-all": lambda x: x.sum(),
    "cumsum": lambda x: x.cumsum(1),
    "sort": lambda x: x.sort(1).values,
    "topk": lambda x: x.topk(50, 1).values,
    "argmax": lambda x: x.argmax(1),
}


def rows(folder):
    for line in (folder / "speed.txt").read_text().splitlines():
        name, is_large, _, _, _, dtype, *numbers = line.split()
        numbers = [int(n) for n in numbers]
        shapes = []
        while numbers:
            shapes.append(numbers[1 : 1 + numbers[0]])
            numbers = numbers[1 + numbers[0] :]
        if int(is_large) and name in FUNCTIONS and int(dtype) in DTYPES:
            yield name, DTYPES[int(dtype)], shapes


def microseconds(call):
    """The best of five times at least 20 ms of calls in a row, as gpu-check measures."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    count, best = 1, None
    while True:
        start = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        taken = time.perf_counter() - start
        if taken > 0.02:
            break
        count *= 2
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            call()
        torch.cuda.synchronize()
        taken = (time.perf_counter() - start) / count
        best = taken if best is None else min(best, taken)
    return best * 1e6


def own_times(folder):
    """Of burin, by the first two cells of the rows of the report."""
    times = {}
    for line in (folder / "report.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 8 and cells[3].replace(".", "").isdigit():
            times[cells[1], cells[2]] = float(cells[3])
    return times


def main():
    folder = pathlib.Path(sys.argv[1])
    deadline = time.monotonic() + float(sys.argv[2] if len(sys.argv) > 2 else 120)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    own = own_times(folder)
    table = [
        f"\n| kernel | operands | burin, µs | PyTorch {torch.__version__}, µs | torch.compile, µs | best peer / burin |",
        "|---|---|---:|---:|---:|---:|",
    ]
    names = {torch.float32: "f32", torch.float64: "f64", torch.float16: "f16", torch.bfloat16: "bf16"}
    for name, dtype, shapes in rows(folder):
        operands = [torch.rand(shape, device="cuda").mul_(2).sub_(1).to(dtype) for shape in shapes]
        label = names[dtype] + "".join(f" {shape}" for shape in shapes)
        times = {}
        try:
            function = FUNCTIONS[name]
            times["eager"] = microseconds(lambda: function(*operands))
            if time.monotonic() < deadline:
                torch._dynamo.reset()
                compiled = torch.compile(function)
                times["compiled"] = microseconds(lambda: compiled(*operands))
        except Exception as error:  # one that PyTorch cannot run must not end the others
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
        mine = own.get((name, label))
        cells = [f"{t:.1f}" if t else "–" for t in (mine, times.get("eager"), times.get("compiled"))]
        ratio = f"{min(times.values()) / mine:.2f}" if mine and times else "–"
        table.append(f"| {name} | {label} | {cells[0]} | {cells[1]} | {cells[2]} | {ratio} |")
        print(table[-1], flush=True)
    with open(folder / "report.md", "a", encoding="utf-8") as report:
        report.write("\n".join(table) + "\n")


if __name__ == "__main__":
    main()
