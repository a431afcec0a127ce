#!/usr/bin/env python3
"""Writes features.pth, the weights of a network that PyTorch has trained; precision.cpp goes on from it. Needs torch."""
import pathlib

import torch
from torch import nn

torch.manual_seed(1)


class Net(nn.Module):
    """Is a point within a circle?"""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh())
        self.head = nn.Linear(24, 2)

    def forward(self, x):
        return self.head(self.features(x))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for _ in range(400):
    x = torch.rand(256, 2) * 2 - 1
    loss = nn.functional.cross_entropy(net(x), (x.norm(dim=1) < 0.6).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
torch.save(net.state_dict(), pathlib.Path(__file__).parent / "features.pth")
