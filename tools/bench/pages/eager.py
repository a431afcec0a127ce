#!/usr/bin/env python3
"""Measures single ops on one thread: burin's eager call, the same op jitted, and PyTorch. The contestants take turns;
numbers are medians. Run by `tools/dev bench --eager`."""
import argparse
import pathlib
import statistics
import sys
import time

from turns import machine, ofOneThread, secondsOf


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


def peerChanging():
    """Maps the names of calls whose indices or sizes depend on a number, as in programs/EagerOps.cpp, to the calls."""
    import torch
    import torch.nn.functional as F

    table, weight = torch.randn(600, 64), torch.randn(8, 8, 3, 3)

    def attention(i):
        keys = torch.zeros(1, 4, i, 16)
        return F.scaled_dot_product_attention(torch.zeros(1, 4, 1, 16), keys, keys)

    return {
        "row i of 600x64": lambda i: table[i],
        "rows i to i + 8 of 600x64": lambda i: table[i:i + 8],
        "concat of ix64 and 1x64": lambda i: torch.cat([table[:i], table[:1]]),
        "split of 600x64 by i rows": lambda i: table.split(i)[0],
        "pad of 64x64, i columns": lambda i: F.pad(table[:64], (i, 0)),
        "64 columns, repeated i times": lambda i: table[0].repeat(i, 1),
        "softmax of ix64": lambda i: torch.softmax(torch.zeros(i, 64), -1),
        "product of ix64 and 64x64": lambda i: torch.zeros(i, 64) @ table[:64],
        "attention of 1 row and i keys, 4 heads of 16": attention,
        "conv 3x3 of 8 channels, 20 + i by 23 + i": lambda i: F.conv2d(torch.zeros(1, 8, 20 + i, 23 + i), weight),
        "max pool 3x3 stride 2 of 8 channels, 20 + i by 23 + i":
            lambda i: F.max_pool2d(torch.zeros(1, 8, 20 + i, 23 + i), 3, 2, 1),
    }


def secondsOfNew(call, last):
    """Seconds per call; each is a new one."""
    call(last + 1)
    begin = time.perf_counter()
    for i in range(last + 2, last + 41):
        call(i)
    return (time.perf_counter() - begin) / 39


def peerWorker():
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(1)
    ops, changing, last = peerOps(), peerChanging(), {}
    with torch.inference_mode():
        for line in sys.stdin:
            if line.startswith("changing "):
                name = line.strip().removeprefix("changing ")
                print(secondsOfNew(changing[name], last.get(name, 0)), flush=True)
                last[name] = last.get(name, 0) + 40
                continue
            shapes, call = ops[line.strip()]
            inputs = [torch.randn(shape).abs() for shape in shapes]
            print(secondsOf(lambda: call(*inputs), .05, warmUp=40), flush=True)


# ---- turns

def namesOf(burin, what="list"):
    names = [burin.ask(what)]
    while name := burin.line():
        names.append(name)
    return names


def timeText(seconds):
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


def changingRows(burin, peer, turns):
    """The lines of the table of calls whose indices or sizes change; the first turn also compiles."""
    for name in namesOf(burin, "list changing"):
        pairs = [(float(burin.ask(f"changing {name}")), float(peer.ask(f"changing {name}"))) for _ in range(turns)]
        ours, theirs = (statistics.median(column) for column in zip(*pairs))
        ratio = statistics.median(other / one for one, other in pairs)
        yield f"| {name} | {timeText(ours)} | {timeText(theirs)} | {ratio:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", default=".build/release/bin/burin-bench-eager")
    parser.add_argument("--peer", action="store_true", help="be the worker for PyTorch")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--docs", type=pathlib.Path, help="a folder to write eager.md into")
    args = parser.parse_args()
    if args.peer:
        return peerWorker()
    burin, peer = ofOneThread("burin", [args.worker]), ofOneThread("PyTorch", [sys.executable, __file__, "--peer"])
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
    changing = []
    for row in changingRows(burin, peer, args.turns):
        changing.append(row)
        print(row, flush=True)
    if args.docs:
        import torch
        args.docs.mkdir(parents=True, exist_ok=True)
        text = ("# Eager calls\n\nSingle ops on f32, one thread: a call and the wait for its result. Made by `tools/dev bench "
                "--eager`; the contestants take turns, the numbers are medians.\n\n"
                f"Machine: {machine()}; PyTorch {torch.__version__}; {time.strftime('%Y-%m-%d')}. {summary}\n\n"
                "| op | eager | jitted | PyTorch, eager | eager / jitted | PyTorch / eager |\n|---|---:|---:|---:|---:|---:|\n")
        text += "\n".join(rows) + "\n\n"
        text += ("## Calls whose indices or sizes change\n\nEach call has an index or size i that no call before it had, 40 "
                 "in a turn from 1 on; sources are made in the call. PyTorch's rows and splits are views, burin's are "
                 "copies.\n\n| call | burin | PyTorch, eager | PyTorch / burin |\n|---|---:|---:|---:|\n")
        (args.docs / "eager.md").write_text(text + "\n".join(changing) + "\n")


if __name__ == "__main__":
    main()
