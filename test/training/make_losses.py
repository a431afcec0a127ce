#!/usr/bin/env python3
"""Writes losses.json: PyTorch's losses and their gradients in f64. Needs torch:  python3 make_losses.py

The tensors of a case are the arguments "0", "1", …, the loss "loss", and the gradients of the float arguments "grad.0",
…"""
import pathlib

import torch
import torch.nn.functional as F
from torch_values import ints, rand, write

cases = {}


def case(name, function, *arguments, fixed=()):
    """A case; `fixed` arguments get no gradient."""
    given = [a.clone().requires_grad_(a.is_floating_point() and i not in fixed) for i, a in enumerate(arguments)]
    loss = function(*given)
    wanted = [a for a in given if a.requires_grad]
    weights = torch.arange(1, loss.numel() + 1, dtype=loss.dtype).reshape(loss.shape)
    found = iter(torch.autograd.grad((loss * weights).sum(), wanted))
    tensors = {str(i): a for i, a in enumerate(arguments)}
    tensors["loss"] = loss
    for i, a in enumerate(given):
        if a.requires_grad:
            tensors[f"grad.{i}"] = next(found)
    cases[name] = tensors


def classes():
    x, wide, image = rand(5, 4), rand(3, 7) * 400, rand(2, 3, 2, 2)
    t = torch.tensor([0, 3, -100, 2, 3])
    w = torch.tensor([0.5, 1, 2, 0.25], dtype=torch.float64)
    p = torch.softmax(rand(5, 4), 1).mul(256).round().div(256)
    case("cross_entropy", F.cross_entropy, x, t)
    case("cross_entropy sum", lambda a, b: F.cross_entropy(a, b, reduction="sum"), x, t)
    case("cross_entropy none", lambda a, b: F.cross_entropy(a, b, reduction="none"), x, t)
    case("cross_entropy weight", lambda a, b, c: F.cross_entropy(a, b, c), x, t, w, fixed=(2,))
    case("cross_entropy ignore", lambda a, b: F.cross_entropy(a, b, ignore_index=3), x, t.clamp(min=0))
    case("cross_entropy smoothing", lambda a, b: F.cross_entropy(a, b, label_smoothing=0.1), x, t)
    case("cross_entropy smoothing weight", lambda a, b, c: F.cross_entropy(a, b, c, label_smoothing=0.3), x, t, w,
         fixed=(2,))
    case("cross_entropy large", F.cross_entropy, wide, ints(0, 7, 3))
    case("cross_entropy image", F.cross_entropy, image, ints(0, 3, 2, 2, 2))
    case("cross_entropy row", F.cross_entropy, rand(6), torch.tensor(4))
    case("cross_entropy probabilities", F.cross_entropy, x, p)
    case("cross_entropy probabilities weight smoothing", lambda a, b, c: F.cross_entropy(a, b, c, label_smoothing=0.1),
         x, p, w, fixed=(2,))
    case("cross_entropy probabilities image", F.cross_entropy, image, torch.full((2, 3, 2, 2), 0.25).double())
    logs = torch.log_softmax(x, 1).mul(64).round().div(64)
    case("nll_loss", F.nll_loss, logs, t)
    case("nll_loss weight sum", lambda a, b, c: F.nll_loss(a, b, c, reduction="sum"), logs, t, w, fixed=(2,))
    case("nll_loss none", lambda a, b: F.nll_loss(a, b, reduction="none"), logs, t)


def regression():
    x, y = rand(3, 5), rand(3, 5)
    x[0, :2] = y[0, :2]
    x[1, 0] = y[1, 0] + 1
    for reduction in ("mean", "sum", "none"):
        case(f"mse_loss {reduction}", lambda a, b: F.mse_loss(a, b, reduction=reduction), x, y)
    case("l1_loss", F.l1_loss, x, y)
    case("smooth_l1_loss", F.smooth_l1_loss, x, y)
    case("smooth_l1_loss beta", lambda a, b: F.smooth_l1_loss(a, b, beta=0.25, reduction="sum"), x, y)
    case("huber_loss", F.huber_loss, x, y)
    case("huber_loss delta", lambda a, b: F.huber_loss(a, b, delta=0.5, reduction="none"), x, y)


def probabilities():
    p, t = rand(3, 4, low=0.1, high=0.9), rand(3, 4, low=0, high=1)
    p[0, 0], p[0, 1], t[0, 0], t[0, 1] = 0, 1, 1, 0
    w = rand(3, 4, low=0, high=2)
    case("binary_cross_entropy", F.binary_cross_entropy, p, t, fixed=(1,))
    case("binary_cross_entropy weight", lambda a, b, c: F.binary_cross_entropy(a, b, c, reduction="sum"), p, t, w,
         fixed=(1, 2))
    x = rand(3, 4)
    x[0] = torch.tensor([0, 800, -800, 30])
    logits = F.binary_cross_entropy_with_logits
    case("binary_cross_entropy_with_logits", logits, x, t, fixed=(1,))
    case("binary_cross_entropy_with_logits weights",
         lambda a, b, c, d: logits(a, b, weight=c, pos_weight=d, reduction="sum"), x, t, w, rand(4, low=0, high=3),
         fixed=(1, 2, 3))
    logs = torch.log_softmax(rand(3, 4), 1).mul(64).round().div(64)
    q = torch.softmax(rand(3, 4), 1).mul(64).round().div(64)
    q[1, 2] = 0
    case("kl_div batchmean", lambda a, b: F.kl_div(a, b, reduction="batchmean"), logs, q, fixed=(1,))
    case("kl_div sum", lambda a, b: F.kl_div(a, b, reduction="sum"), logs, q, fixed=(1,))
    case("kl_div log_target", lambda a, b: F.kl_div(a, b, reduction="none", log_target=True), logs, rand(3, 4))


def vectors():
    a, b, c = rand(4, 3), rand(4, 3), rand(4, 3)
    t = torch.tensor([1, -1, 1, -1])
    case("cosine_embedding_loss", lambda x, y, z: F.cosine_embedding_loss(x, y, z), a, b, t)
    case("cosine_embedding_loss margin",
         lambda x, y, z: F.cosine_embedding_loss(x, y, z, margin=-0.5, reduction="none"), a, b, t)
    case("triplet_margin_loss", F.triplet_margin_loss, a, b, c)
    case("triplet_margin_loss swap p", lambda x, y, z: F.triplet_margin_loss(x, y, z, margin=4, p=3, swap=True), a, b, c)
    case("triplet_margin_loss none p1", lambda x, y, z: F.triplet_margin_loss(x, y, z, margin=4, p=1, reduction="none"),
         a, b, c)


def sequences():
    # With respect to logits: PyTorch's gradient with respect to log_probs is right only after a log_softmax.
    def ctc(**options):
        return lambda x, *rest: F.ctc_loss(torch.log_softmax(x, 2), *rest, **options)

    x = rand(7, 3, 5)
    targets = torch.tensor([[1, 1, 2], [3, 0, 0], [4, 2, 4]])
    lengths, sizes = torch.tensor([7, 4, 6]), torch.tensor([3, 1, 3])
    case("ctc_loss", ctc(), x, targets, lengths, sizes)
    case("ctc_loss none", ctc(reduction="none"), x, targets, lengths, sizes)
    case("ctc_loss blank empty", ctc(blank=4, reduction="sum"), x, torch.tensor([[1, 1, 2], [3, 0, 0], [0, 0, 0]]),
         lengths, torch.tensor([3, 1, 0]))
    case("ctc_loss zero_infinity", ctc(reduction="sum", zero_infinity=True), x, targets, torch.tensor([3, 4, 6]), sizes)


classes(), regression(), probabilities(), vectors(), sequences()
write(pathlib.Path(__file__).parent / "losses.json", cases)
