#!/usr/bin/env python3
"""Writes optimizers.json and schedules.json: 20 steps of PyTorch's optimisers in f64, and 40 learning rates of its
schedules. Needs torch:  python3 make_optimizers.py

Two parameters, of the shapes [3, 4] and [5], get stored gradients "grad.<step>.<parameter>" (LBFGS: those of a
function, see curved()). "w.<parameter>" is the initial value, "after.<parameter>" that after 20 steps, "after10.…" that
after 10."""
import math
import pathlib

import torch
from torch import optim
from torch.optim import lr_scheduler as lrs
from torch_values import rand, write

torch.set_default_dtype(torch.float64)  # that of slots of one number
FOLDER = pathlib.Path(__file__).parent
START = [rand(3, 4), rand(5)]
GRADIENTS = [[rand(3, 4), rand(5)] for _ in range(20)]
cases = {"common": {f"w.{i}": w for i, w in enumerate(START)} |
                   {f"grad.{s}.{i}": g for s, list_ in enumerate(GRADIENTS) for i, g in enumerate(list_)}}


def run(name, make, count=2, slots={}):
    params = [torch.nn.Parameter(w.clone()) for w in START[:count]]
    optimizer = make(params)
    tensors = {}
    for step, gradients in enumerate(GRADIENTS):
        for p, g in zip(params, gradients):
            p.grad = g.clone()
        optimizer.step()
        if step == 9:
            tensors |= {f"after10.{i}": p.detach().clone() for i, p in enumerate(params)}
    tensors |= {f"{kept}.{i}": optimizer.state[p][slot] for slot, kept in slots.items() for i, p in enumerate(params)}
    cases[name] = tensors | {f"after.{i}": p for i, p in enumerate(params)}


class Lion(optim.Optimizer):
    """Chen et al. 2023, algorithm 2; torch does not have it."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            first, second = group["betas"]
            for p in group["params"]:
                m = self.state[p].setdefault("m", torch.zeros_like(p))
                update = torch.sign(first * m + (1 - first) * p.grad)
                p -= group["lr"] * (update + group["weight_decay"] * p)
                self.state[p]["m"] = second * m + (1 - second) * p.grad


def rules():
    run("SGD", lambda p: optim.SGD(p, 0.05))
    run("SGD momentum", lambda p: optim.SGD(p, 0.05, momentum=0.9, dampening=0.2, weight_decay=0.1))
    run("SGD nesterov", lambda p: optim.SGD(p, 0.05, momentum=0.9, nesterov=True, maximize=True))
    run("Adam", lambda p: optim.Adam(p))
    run("Adam amsgrad", lambda p: optim.Adam(p, 0.02, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, amsgrad=True))
    run("AdamW", lambda p: optim.AdamW(p, 0.02))
    run("AdamW groups", lambda p: optim.AdamW([{"params": p[:1], "weight_decay": 0.3},
                                               {"params": p[1:], "weight_decay": 0, "lr": 0.1}], 0.02))
    run("RMSprop", lambda p: optim.RMSprop(p))
    run("RMSprop centered", lambda p: optim.RMSprop(p, 0.02, alpha=0.9, weight_decay=0.1, momentum=0.8, centered=True))
    run("Adagrad", lambda p: optim.Adagrad(p))
    run("Adagrad decay", lambda p: optim.Adagrad(p, 0.1, lr_decay=0.2, weight_decay=0.1, initial_accumulator_value=0.5))
    run("Lion", lambda p: Lion(p))
    run("Lion decay", lambda p: Lion(p, 0.02, betas=(0.8, 0.9), weight_decay=0.1))
    run("Adafactor", lambda p: optim.Adafactor(p))
    run("Adafactor decay", lambda p: optim.Adafactor(p, 0.05, beta2_decay=-0.6, eps=(1e-6, 1e-2), d=1.5,
                                                      weight_decay=0.1))
    run("Adadelta", lambda p: optim.Adadelta(p))
    run("Adadelta decay", lambda p: optim.Adadelta(p, 0.5, rho=0.8, eps=1e-4, weight_decay=0.1))
    run("Adamax", lambda p: optim.Adamax(p))
    run("Adamax decay", lambda p: optim.Adamax(p, 0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1))
    run("NAdam", lambda p: optim.NAdam(p))
    run("NAdam decay", lambda p: optim.NAdam(p, 0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1, momentum_decay=0.02,
                                             decoupled_weight_decay=True))
    run("RAdam", lambda p: optim.RAdam(p))
    run("RAdam decay", lambda p: optim.RAdam(p, 0.05, betas=(0.8, 0.9), eps=1e-3, weight_decay=0.1,
                                             decoupled_weight_decay=True, maximize=True))
    run("Rprop", lambda p: optim.Rprop(p))
    run("Rprop sizes", lambda p: optim.Rprop(p, 0.05, etas=(0.3, 1.5), step_sizes=(0.02, 0.2), maximize=True))
    run("ASGD", lambda p: optim.ASGD(p))
    run("ASGD mean", lambda p: optim.ASGD(p, 0.05, lambd=0.1, alpha=0.6, t0=5, weight_decay=0.1),
        slots={"ax": "average"})
    narrow = torch.Tensor.to
    torch.Tensor.to = lambda x, *a, **k: x.clone() if k.get("dtype") == torch.bfloat16 else narrow(x, *a, **k)
    run("Muon", lambda p: optim.Muon(p), count=1)  # in f64, although torch's iteration uses bf16
    run("Muon rms", lambda p: optim.Muon(p, 0.05, momentum=0.8, nesterov=False, adjust_lr_fn="match_rms_adamw"), count=1)
    torch.Tensor.to = narrow


def curved(a, b):
    return ((a - 1) ** 2 * torch.arange(1, 13).double().reshape(3, 4)).sum() + (b ** 4).sum() + a.sum() * b.sum() / 10


def lbfgs():
    for name, options in {"LBFGS": {"lr": 0.5, "max_iter": 4}, "LBFGS short": {"lr": 0.1, "history_size": 2},
                          "LBFGS search": {"max_iter": 3, "line_search_fn": "strong_wolfe"}}.items():
        params = [torch.nn.Parameter(w.clone()) for w in START]
        optimizer = optim.LBFGS(params, **options)

        def closure():
            optimizer.zero_grad()
            loss = curved(*params)
            loss.backward()
            return loss

        losses = torch.stack([optimizer.step(closure).detach() for _ in range(20)])
        cases[name] = {"losses": losses} | {f"after.{i}": p for i, p in enumerate(params)}


def other():
    gradients = [g.clone() for g in GRADIENTS[0]]
    for kind in (1.0, 2.0, math.inf):
        params = [torch.nn.Parameter(w.clone()) for w in START]
        for p, g in zip(params, gradients):
            p.grad = g.clone()
        norm = torch.nn.utils.clip_grad_norm_(params, 1.5, kind)
        cases[f"clip {kind:g}"] = {"norm": norm} | {f"after.{i}": p.grad for i, p in enumerate(params)}


def chains(found):
    """Several schedules of one optimiser, and learning rates that are set between steps."""
    chainable = {
        "StepLR": lambda o: lrs.StepLR(o, 3, 0.5), "MultiStepLR": lambda o: lrs.MultiStepLR(o, [3, 3, 7], 0.3),
        "ExponentialLR": lambda o: lrs.ExponentialLR(o, 0.93), "ConstantLR": lambda o: lrs.ConstantLR(o),
        "LinearLR": lambda o: lrs.LinearLR(o, 0.2, 0.9, 6), "PolynomialLR": lambda o: lrs.PolynomialLR(o, 8, 1.7),
        "CosineAnnealingLR": lambda o: lrs.CosineAnnealingLR(o, 5, 0.05),
        "LambdaLR": lambda o: lrs.LambdaLR(o, lambda e: 1 / (1 + e)),
        "CosineAnnealingWarmRestarts": lambda o: lrs.CosineAnnealingWarmRestarts(o, 4, 1, 0.01),
        "SequentialLR": lambda o: lrs.SequentialLR(o, [lrs.LinearLR(o, 0.1, 1, 3), lrs.ExponentialLR(o, 0.8)], [4])}
    for name, make in chainable.items():
        optimizer = optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.8)
        schedule, other = make(optimizer), lrs.ExponentialLR(optimizer, 0.9)
        lr = []
        for i in range(12):
            lr.append(optimizer.param_groups[0]["lr"])
            if i == 5:
                optimizer.param_groups[0]["lr"] = 0.5
            optimizer.step()
            schedule.step()
            other.step()
        found["chain " + name] = {"lr": torch.tensor(lr, dtype=torch.float64)}


def schedules():
    found = {}
    plateau = [3, 2.5, 2.5, 2.6, 2.49999, 2.7, 1, 1, 1, 1.1, 1.2, 0.9999, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5] * 2

    def rates(name, make, optimizer=None, metric=False):
        optimizer = optimizer or optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.8, momentum=0.9)
        schedule = make(optimizer)
        lr, momentum = [], []
        for i in range(40):
            group = optimizer.param_groups[0]
            lr.append(group["lr"])
            momentum.append(group["betas"][0] if "betas" in group else group["momentum"])
            optimizer.step()
            schedule.step(plateau[i]) if metric else schedule.step()
        found[name] = {"lr": torch.tensor(lr, dtype=torch.float64)}
        if "cycle" in name:
            found[name]["momentum"] = torch.tensor(momentum, dtype=torch.float64)

    rates("StepLR", lambda o: lrs.StepLR(o, 7, 0.5))
    rates("MultiStepLR", lambda o: lrs.MultiStepLR(o, [3, 3, 20], 0.3))
    rates("ExponentialLR", lambda o: lrs.ExponentialLR(o, 0.93))
    rates("ConstantLR", lambda o: lrs.ConstantLR(o))
    rates("LinearLR", lambda o: lrs.LinearLR(o, 0.2, 0.9, 13))
    rates("PolynomialLR", lambda o: lrs.PolynomialLR(o, 30, 1.7))
    rates("CosineAnnealingLR", lambda o: lrs.CosineAnnealingLR(o, 16, 0.05))
    rates("CosineAnnealingWarmRestarts", lambda o: lrs.CosineAnnealingWarmRestarts(o, 6, 1, 0.01))
    rates("CosineAnnealingWarmRestarts growing", lambda o: lrs.CosineAnnealingWarmRestarts(o, 5, 2))
    rates("OneCycleLR cycle", lambda o: lrs.OneCycleLR(o, 2.0, 45))
    rates("OneCycleLR cycle three", lambda o: lrs.OneCycleLR(o, 2.0, 45, pct_start=0.25, anneal_strategy="linear",
                                                             three_phase=True),
          optim.Adam([torch.nn.Parameter(torch.zeros(1))]))
    rates("LambdaLR", lambda o: lrs.LambdaLR(o, lambda e: 1 / (1 + e)))
    rates("SequentialLR", lambda o: lrs.SequentialLR(
        o, [lrs.LinearLR(o, 0.1, 1, 5), lrs.CosineAnnealingLR(o, 30), lrs.ConstantLR(o, 0.01, 1000)], [5, 32]))
    rates("ChainedScheduler", lambda o: lrs.ChainedScheduler([lrs.ConstantLR(o, 0.1, 4), lrs.ExponentialLR(o, 0.9)]))
    rates("ChainedScheduler linear", lambda o: lrs.ChainedScheduler(
        [lrs.LinearLR(o, 0.2, 0.9, 13), lrs.CosineAnnealingLR(o, 16, 0.05)]))
    chains(found)
    rates("ReduceLROnPlateau", lambda o: lrs.ReduceLROnPlateau(o, patience=2, factor=0.5, cooldown=1), metric=True)
    rates("ReduceLROnPlateau max", lambda o: lrs.ReduceLROnPlateau(
        o, "max", patience=1, threshold=0.1, threshold_mode="abs", min_lr=0.01), metric=True)
    found["plateau"] = {"metric": torch.tensor(plateau, dtype=torch.float64)}
    write(FOLDER / "schedules.json", found)


rules(), lbfgs(), other(), schedules()
write(FOLDER / "optimizers.json", cases)
