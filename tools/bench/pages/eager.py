#!/usr/bin/env python3
"""Measures single ops on one thread: burin's eager call, the same op jitted, and PyTorch. The contestants take turns;
numbers are medians. Run by `tools/dev bench --eager`."""
import argparse
import pathlib
import statistics
import sys
import time

from turns import Contestant, machine, secondsOf


# ---- the worker for PyTorch

def peerOps():
    """Maps the names of programs/EagerOps.cpp to the shapes of inputs and the call."""
    import torch
    import torch.nn.functional as F

    vector, image = (1000000,), (1, 64, 56, 56)
    return {
        "matmul 1024x1024x1024": ([(1024, 1024)] * 2, torch.matmul),
        "matmul 64x768x3072": ([(64, 768), (768, 3072)], torch.matmul),
        "linear 128x784x512": ([(128, 784), (512, 784), (512,)], F.linear),
        "batched matmul 48x128x64x128": ([(48, 128, 64), (48, 64, 128)], torch.matmul),
        "conv 3x3 64 to 64, 56x56": ([image, (64, 64, 3, 3)], lambda x, w: F.conv2d(x, w, padding=1)),
        "conv 1x1 64 to 256, 56x56": ([image, (256, 64, 1, 1)], F.conv2d),
        "depthwise conv 3x3 of 144, 56x56":
            ([(1, 144, 56, 56), (144, 1, 3, 3)], lambda x, w: F.conv2d(x, w, padding=1, groups=144)),
        "max pool 3x3 stride 2, 64x112x112": ([(1, 64, 112, 112)], lambda x: F.max_pool2d(x, 3, 2, 1)),
        "average pool 2x2, 64x112x112": ([(1, 64, 112, 112)], lambda x: F.avg_pool2d(x, 2)),
        "add 1e6": ([vector] * 2, torch.add),
        "add a row, 4096x512": ([(4096, 512), (512,)], torch.add),
        "exp 1e6": ([vector], torch.exp),
        "tanh 1e6": ([vector], torch.tanh),
        "gelu 512x3072": ([(512, 3072)], F.gelu),
        "relu 64x56x56": ([image], torch.relu),
        "maximum 1e6": ([vector] * 2, torch.maximum),
        "softmax 1024x1024": ([(1024, 1024)], lambda x: torch.softmax(x, -1)),
        "layer norm 512x768": ([(512, 768), (768,), (768,)], lambda x, w, b: F.layer_norm(x, (768,), w, b)),
        "batch norm 64x56x56": ([image] + [(64,)] * 4, lambda x, m, w, b, v: F.batch_norm(x, m, v, w, b)),
        "group norm of 8, 64x56x56": ([image], lambda x: F.group_norm(x, 8)),
        "sum over rows, 4096x512": ([(4096, 512)], lambda x: x.sum(0)),
        "sum over columns, 4096x512": ([(4096, 512)], lambda x: x.sum(1)),
        "mean 1e6": ([vector], torch.mean),
        "argmax 1000x1000": ([(1000, 1000)], lambda x: x.argmax(1)),
        "cumsum 1000x1000": ([(1000, 1000)], lambda x: x.cumsum(1)),
        "transpose 2048x2048": ([(2048, 2048)], lambda x: x.t().contiguous()),
        "heads, 8x128x12x64 to 8x12x128x64": ([(8, 128, 12, 64)], lambda x: x.transpose(1, 2).contiguous()),
        "concat of 4 over channels, 64x56x56": ([image] * 4, lambda *x: torch.cat(x, 1)),
        "embedding, 1000 of 30522x768":
            ([(30522, 768)], lambda table, rows=torch.randint(0, 30522, (1000,)): F.embedding(rows, table)),
        "sort 1e5": ([(100000,)], lambda x: torch.sort(x).values),
        "topk 100 of 1e6": ([vector], lambda x: torch.topk(x, 100).values),
        "attention of 12 heads, 128x64": ([(1, 12, 128, 64)] * 3, F.scaled_dot_product_attention),
    }


def peerWorker():
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    ops = peerOps()
    with torch.inference_mode():
        for line in sys.stdin:
            shapes, call = ops[line.strip()]
            inputs = [torch.randn(shape).abs() for shape in shapes]
            print(secondsOf(lambda: call(*inputs), .05, warmUp=40), flush=True)


# ---- turns

def namesOf(burin):
    names = [burin.ask("list")]
    while name := burin.line():
        names.append(name)
    return names


def timeText(seconds):
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", default=".build/release/bin/burin-bench-eager")
    parser.add_argument("--peer", action="store_true", help="be the worker for PyTorch")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--docs", type=pathlib.Path, help="a folder to write eager.md into")
    args = parser.parse_args()
    if args.peer:
        return peerWorker()
    burin, peer = Contestant([args.worker]), Contestant([sys.executable, __file__, "--peer"])
    rows, overJitted, overPeer = [], [], []
    for name in namesOf(burin):
        turns = [(float(burin.ask(f"eager {name}")), float(burin.ask(f"jit {name}")), float(peer.ask(name)))
                 for _ in range(args.turns)]
        eager, jitted, theirs = (statistics.median(column) for column in zip(*turns))
        overJitted.append(statistics.median(one / other for one, other, _ in turns))
        overPeer.append(statistics.median(other / one for one, _, other in turns))
        rows.append(f"| {name} | {timeText(eager)} | {timeText(jitted)} | {timeText(theirs)} | {overJitted[-1]:.2f} | "
                    f"{overPeer[-1]:.2f} |")
        print(rows[-1], flush=True)
    summary = (f"{len(rows)} ops: eager over jitted at most {max(overJitted):.2f}, geometric mean "
               f"{statistics.geometric_mean(overJitted):.2f}; PyTorch over burin's eager call: geometric mean "
               f"{statistics.geometric_mean(overPeer):.2f}, least {min(overPeer):.2f}.")
    print(summary)
    if args.docs:
        import torch
        args.docs.mkdir(parents=True, exist_ok=True)
        text = ("# Eager calls\n\nSingle ops on f32, one thread: a call and the wait for its result. Made by `tools/dev bench "
                "--eager`; the contestants take turns, the numbers are medians.\n\n"
                f"Machine: {machine()}; PyTorch {torch.__version__}; {time.strftime('%Y-%m-%d')}. {summary}\n\n"
                "| op | eager | jitted | PyTorch, eager | eager / jitted | PyTorch / eager |\n|---|---:|---:|---:|---:|---:|\n")
        (args.docs / "eager.md").write_text(text + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
