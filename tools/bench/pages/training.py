#!/usr/bin/env python3
"""Measures whole training steps, including the optimiser's update, on data in memory: burin jitted and eager, beside
PyTorch eager and compiled. The contestants take turns; times are medians in ms. Run by `tools/dev bench --training`."""
import argparse
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "common"))
from contestant import Contestant, onThreads  # noqa: E402: found by the line above

NAMES = ["mlp", "lenet-256", "lenet-32", "resnet-18", "gpt", "gpt-bf16", "lstm"]
TITLES = {
    "mlp": "MLP 784-512-256-10, batch 256, SGD with momentum",
    "lenet-256": "LeNet (max pool, ReLU), batch 256, SGD with momentum",
    "lenet-32": "LeNet (max pool, ReLU), batch 32, SGD with momentum",
    "resnet-18": "ResNet-18 (28×28×1), batch 64, AdamW",
    "gpt": "GPT, 4 layers of 256, 8×128 tokens, AdamW",
    "gpt-bf16": "the same GPT in a scope of Autocast(bf16)",
    "lstm": "LSTM 2×256, batch 32, 64 steps, RMSprop",
}


# ---- the worker for PyTorch

def torchStep(name, isCompiled):
    import torch
    import torch_networks as networks

    torch.manual_seed(1)
    net, x, y = {
        "mlp": networks.mlp, "lenet-256": lambda: networks.leNet(256), "lenet-32": lambda: networks.leNet(32),
        "resnet-18": networks.resNet, "gpt": networks.gpt, "gpt-bf16": networks.gpt, "lstm": networks.lstm,
    }[name]()
    parameters = list(net.parameters())
    if name in ("resnet-18", "gpt", "gpt-bf16"):
        optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    elif name == "lstm":
        optimizer = torch.optim.RMSprop(parameters, lr=1e-3)
    else:
        optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9)

    def forward(x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=name.endswith("bf16")):
            return torch.nn.functional.cross_entropy(net(x), y)

    update = optimizer.step
    if isCompiled:
        forward, update = torch.compile(forward), torch.compile(optimizer.step)

    def step():
        loss = forward(x, y)
        loss.backward()
        update()
        optimizer.zero_grad()
        return loss

    return step


def torchWorker(mode):
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    for line in sys.stdin:
        command, argument = line.split()
        if command == "setup":
            step = torchStep(argument, mode == "compile")
            for _ in range(3):
                loss = step().item()
            print("ready", loss, flush=True)
        else:
            begin = time.perf_counter()
            for _ in range(int(argument)):
                loss = step()
            loss.item()
            print((time.perf_counter() - begin) * 1e3 / int(argument), flush=True)


# ---- turns

class Step(Contestant):
    """A contestant that makes training steps."""

    def processorTime(self):
        """Returns the CPU time in ms of all threads that the process has now."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e6

    def time(self, steps, clock):
        """Returns ms per step."""
        before = self.processorTime()
        wall = float(self.ask(f"time {steps}"))
        return (self.processorTime() - before) / steps if clock == "processor" else wall


def measure(args, name, threads):
    contestants = [Step("burin", [args.worker, "jit"], **onThreads(threads)),
                   Step("burin eager", [args.worker, "eager"], **onThreads(threads))]
    for mode in args.peers:
        contestants.append(Step(f"PyTorch {mode}", [sys.executable, __file__, "--torch", mode], **onThreads(threads)))
    times = {}
    for each in contestants:
        each.ask(f"setup {name}")
        first = each.time(1, args.clock)
        times[each.name] = []
        each.steps = max(1, int(args.turn * 1e3 / first))
    for _ in range(args.turns):
        for each in contestants:
            times[each.name].append(each.time(each.steps, args.clock))
    for each in contestants:
        each.close()
    return {title: statistics.median(list) for title, list in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", default=".build/release/bin/burin-bench-training")
    parser.add_argument("--torch", help="be a worker for PyTorch: eager or compile")
    parser.add_argument("--threads", type=int, action="append")
    parser.add_argument("--only", action="append", choices=NAMES)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--turn", type=float, default=0.5, help="seconds of each turn")
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall",
                        help="processor: the time that the threads have run, for one thread on a busy machine")
    parser.add_argument("--peers", nargs="*", default=["eager", "compile"])
    parser.add_argument("--docs", type=pathlib.Path, help="a folder to write training.md into")
    args = parser.parse_args()
    if args.torch:
        return torchWorker(args.torch)
    available = len(os.sched_getaffinity(0))
    titles = ["burin", "burin eager"] + [f"PyTorch {mode}" for mode in args.peers]
    lines = ["| step | threads | " + " | ".join(titles) + " | ratio |", "|---|---|" + "---|" * (len(titles) + 1)]
    print("\n".join(lines), flush=True)
    for name in args.only or NAMES:
        for threads in args.threads or [n for n in (1, 2) if n <= available]:
            medians = measure(args, name, threads)
            peers = [medians[title] for title in titles[2:]]
            ratio = f"{min(peers) / medians['burin']:.2f}" if peers else "–"
            lines.append(f"| {TITLES[name]} | {threads} | " + " | ".join(f"{medians[t]:.3g}" for t in titles)
                         + f" | {ratio} |")
            print(lines[-1], flush=True)
    if args.docs:
        note = ("# Training steps\n\nMade by `tools/dev bench --training`; the numbers are its output, not edited by "
                "hand. Whole steps with the update, f32, on data in memory; medians in ms; the contestants take turns. "
                + ("Times are those that the processor worked, as other work ran beside. " if args.clock == "processor"
                   else "") +
                "`ratio` is the time of the faster PyTorch over that of burin's jitted step: above 1, burin is faster."
                "\n\n")
        args.docs.mkdir(parents=True, exist_ok=True)
        (args.docs / "training.md").write_text(note + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
