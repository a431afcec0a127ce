#!/usr/bin/env python3
"""Writes curves.json: 50 training steps of five networks by PyTorch in f64. Needs torch:  python3 make_curves.py

Weights and batches come from formulas, which CurveTest.cpp repeats: see wave() and weights(). A case has the loss of
each step, "losses", and for each final entry of the state dicts of the network and the optimiser, "state.<name>" and
"optimizer.<name>", three sums over its elements: of their values, of their magnitudes, and of their products with
wave(), which notices elements in another order."""
import math
import pathlib

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch_values import write

torch.set_default_dtype(torch.float64)
torch.backends.mha.set_fastpath_enabled(False)
cases = {}
STEPS = 50


def wave(shape, seed):
    count = math.prod(shape)
    return torch.sin(torch.arange(count) * 0.7 + seed).reshape(shape)


def classes(count, of, seed):
    return (torch.arange(count) * 7 + seed * 3) % of


def weights(module):
    with torch.no_grad():
        for seed, p in enumerate(module.parameters()):
            p.copy_(wave(p.shape, seed) / math.sqrt(p.shape[-1] if p.ndim > 1 else 4) + (p.ndim == 1) * 0.5)


def sums(value):
    value = value.double()
    return torch.stack([value.sum(), value.abs().sum(), (value * wave(value.shape, 0.5)).sum()])


def train(name, module, loss_of, make, schedule=None, clip=None):
    weights(module)
    optimizer = make(module)
    lr = schedule(optimizer) if schedule else None
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(module, step)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(module.parameters(), clip)
        optimizer.step()
        if lr:
            lr.step()
        losses.append(loss.detach())
    tensors = {"losses": torch.stack(losses)}
    for key, value in module.state_dict().items():
        tensors[f"state.{key}"] = sums(value)
    for index, p in enumerate(module.parameters()):
        for key, value in optimizer.state[p].items():
            tensors[f"optimizer.state.{index}.{key}"] = sums(value)
    cases[name] = tensors


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = nn.Sequential()
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.gelu(self.bn2(self.conv2(F.gelu(self.bn1(self.conv1(x))))) + self.downsample(x))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        sizes = [(8, 8, 1), (8, 8, 1), (8, 16, 2), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1)]
        self.blocks = nn.Sequential(*[ResidualBlock(*size) for size in sizes])
        self.fc = nn.Linear(64, 3)

    def forward(self, x):
        return self.fc(self.blocks(F.gelu(self.norm(self.stem(x)))).mean((2, 3)))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(11, 8)
        self.position = nn.Embedding(6, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0, activation="gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 4, nn.LayerNorm(8), enable_nested_tensor=False)
        self.head = nn.Linear(8, 11, bias=False)

    def forward(self, x):
        mask = torch.ones(6, 6, dtype=torch.bool).triu(1)
        return self.head(self.blocks(self.token(x) + self.position.weight, mask))


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 5, num_layers=2, bidirectional=True)
        self.fc = nn.Linear(10, 4)

    def forward(self, x):
        return self.fc(self.lstm(x)[0][-1])


train("mlp", nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 4)),
      lambda m, s: F.cross_entropy(m(wave((16, 8), s)), classes(16, 4, s)),
      lambda m: optim.SGD(m.parameters(), 0.1, momentum=0.9))
train("lenet", nn.Sequential(nn.Conv2d(1, 3, 3, padding=1), nn.Sigmoid(), nn.AvgPool2d(2), nn.Conv2d(3, 4, 3), nn.Tanh(),
                             nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 5)),
      lambda m, s: F.cross_entropy(m(wave((4, 1, 12, 12), s)), classes(4, 5, s)),
      lambda m: optim.Adam(m.parameters(), 0.01))
train("resnet", Residual(),
      lambda m, s: F.cross_entropy(m(wave((4, 1, 14, 14), s)), classes(4, 3, s), label_smoothing=0.1),
      lambda m: optim.AdamW(m.parameters(), 0.01), lambda o: optim.lr_scheduler.CosineAnnealingLR(o, STEPS))
train("gpt", Gpt(),
      lambda m, s: F.cross_entropy(m(classes(18, 11, s).reshape(3, 6)).flatten(0, 1), classes(18, 11, s + 1)),
      lambda m: optim.AdamW(m.parameters(), 0.01), lambda o: optim.lr_scheduler.LinearLR(o, 0.1, 1, 10), clip=0.5)
train("lstm", Sequence(), lambda m, s: F.cross_entropy(m(wave((7, 3, 3), s)), classes(3, 4, s)),
      lambda m: optim.RMSprop(m.parameters(), 0.005))
write(pathlib.Path(__file__).parent / "curves.json", cases)
