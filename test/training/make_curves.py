#!/usr/bin/env python3
"""Writes curves.json: 50 training steps of five small networks by PyTorch in f64. Needs torch:  python3 make_curves.py

Weights and batches come from formulas, which CurveTest.cpp repeats: see wave() and weights(). A case has the loss of
each step, "losses", and for each final entry of the state dicts of the network and the optimiser the sum of all
elements and of their magnitudes: "state.<name>", "optimizer.<name>"."""
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
        tensors[f"state.{key}"] = torch.stack([value.double().sum(), value.double().abs().sum()])
    for index, p in enumerate(module.parameters()):
        for key, value in optimizer.state[p].items():
            tensors[f"optimizer.state.{index}.{key}"] = torch.stack([value.double().sum(), value.double().abs().sum()])
    cases[name] = tensors


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(4)
        self.conv = nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(4)
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        x = F.gelu(self.norm(self.stem(x)))
        x = F.gelu(x + self.norm2(self.conv(x)))
        return self.fc(x.mean((2, 3)))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(11, 8)
        self.position = nn.Embedding(6, 8)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0, activation="gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8), enable_nested_tensor=False)
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
      lambda m, s: F.cross_entropy(m(wave((4, 1, 6, 6), s)), classes(4, 3, s), label_smoothing=0.1),
      lambda m: optim.AdamW(m.parameters(), 0.01), lambda o: optim.lr_scheduler.CosineAnnealingLR(o, STEPS))
train("gpt", Gpt(),
      lambda m, s: F.cross_entropy(m(classes(18, 11, s).reshape(3, 6)).flatten(0, 1), classes(18, 11, s + 1)),
      lambda m: optim.AdamW(m.parameters(), 0.01), lambda o: optim.lr_scheduler.LinearLR(o, 0.1, 1, 10), clip=0.5)
train("lstm", Sequence(), lambda m, s: F.cross_entropy(m(wave((7, 3, 3), s)), classes(3, 4, s)),
      lambda m: optim.RMSprop(m.parameters(), 0.005))
write(pathlib.Path(__file__).parent / "curves.json", cases)
