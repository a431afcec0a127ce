#!/usr/bin/env python3
"""Writes samples.json: the gradients of each sample's loss with respect to the weights of a small network, by
torch.func, in f64. Needs torch:  python3 make_samples.py"""
import pathlib

import torch
import torch.nn.functional as F
from torch_values import ints, rand, write

weights = {"w0": rand(3, 1, 3, 3, low=-1, high=1), "b0": rand(3, low=-1, high=1),
           "w1": rand(4, 3, 3, 3, low=-1, high=1), "b1": rand(4, low=-1, high=1),
           "w2": rand(3, 16, low=-1, high=1), "b2": rand(3, low=-1, high=1)}
images, labels = rand(5, 1, 8, 8), ints(0, 3, 5)


def loss(w, image, label):
    x = F.max_pool2d(torch.tanh(F.conv2d(image[None], w["w0"], w["b0"], padding=1)), 2)
    x = torch.relu(F.conv2d(x, w["w1"], w["b1"]))
    return F.cross_entropy(F.linear(x.flatten(1), w["w2"], w["b2"]), label[None])


gradients = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(weights, images, labels)
losses = torch.func.vmap(loss, (None, 0, 0))(weights, images, labels)
case = {**weights, "images": images, "labels": labels, "losses": losses}
case |= {f"grad.{name}": gradient for name, gradient in gradients.items()}
write(pathlib.Path(__file__).parent / "samples.json", {"convolutions": case})
