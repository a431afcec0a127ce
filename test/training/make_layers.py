#!/usr/bin/env python3
"""Writes layers.json: PyTorch's layers and their gradients in f64. Needs torch:  python3 make_layers.py

The tensors of a case are the state_dict "w.<name>", the arguments "0", "1", …, the results "out.0", …, the gradients
"grad.w.<name>" and "grad.0" of the sum of all results weighted by (-3, -2, …, 3, -3, …) / 4, and in training mode the
final buffers, "after.<name>"."""
import pathlib

import torch
from torch import nn
from torch_values import generator, ints, rand, write

cases = {}


def flat(results):
    return [results] if isinstance(results, torch.Tensor) else [t for r in results for t in flat(r)]


def case(name, module, *arguments, call=None, train=False, grads=True):
    module = module.double().train(train)
    with torch.no_grad():
        for key, value in module.state_dict().items():
            if value.is_floating_point():
                value.copy_(rand(*value.shape, low=0.5, high=1.5) if "running_var" in key else
                            rand(*value.shape, low=-1, high=1))
    tensors = {f"w.{key}": value.clone() for key, value in module.state_dict().items()}
    given = [a.clone().requires_grad_(grads and a.is_floating_point()) for a in arguments]
    results = flat(call(module, *given) if call else module(*given))
    tensors |= {str(i): a for i, a in enumerate(arguments)}
    tensors |= {f"out.{i}": r for i, r in enumerate(results)}
    if grads:
        total = sum((r * ((torch.arange(r.numel()) % 7 - 3) / 4).double().reshape(r.shape)).sum() for r in results)
        wanted = [(f"w.{key}", p) for key, p in module.named_parameters()]
        wanted += [(str(i), a) for i, a in enumerate(given) if a.requires_grad]
        found = torch.autograd.grad(total, [x for _, x in wanted])
        tensors |= {f"grad.{key}": g for (key, _), g in zip(wanted, found)}
    if train:
        tensors |= {f"after.{key}": value for key, value in module.named_buffers()}
    cases[name] = tensors


def windows():
    line, image, volume = rand(2, 4, 9), rand(2, 4, 6, 7), rand(1, 2, 4, 5, 4)
    case("Conv1d", nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2), line)
    case("Conv2d", nn.Conv2d(4, 2, (3, 2), padding=(1, 0), bias=False), image)
    case("Conv3d", nn.Conv3d(2, 3, (2, 3, 1), stride=(1, 2, 1), padding=(1, 0, 0)), volume)
    case("ConvTranspose1d", nn.ConvTranspose1d(4, 2, 3, stride=2, padding=1, output_padding=1), line)
    case("ConvTranspose2d", nn.ConvTranspose2d(4, 2, 3, stride=2, groups=2), image)
    case("ConvTranspose3d", nn.ConvTranspose3d(2, 1, 2, stride=2), volume)
    case("MaxPool1d", nn.MaxPool1d(3, stride=2, padding=1), line)
    case("MaxPool2d", nn.MaxPool2d((2, 3), stride=2), image)
    case("MaxPool3d", nn.MaxPool3d(2), volume)
    case("AvgPool1d", nn.AvgPool1d(3, stride=1, padding=1), line)
    case("AvgPool2d", nn.AvgPool2d(2, ceil_mode=True), image)
    case("AvgPool3d", nn.AvgPool3d(2, stride=1), volume)
    case("AdaptiveAvgPool1d", nn.AdaptiveAvgPool1d(4), line)
    case("AdaptiveAvgPool2d", nn.AdaptiveAvgPool2d((2, 3)), image)
    case("AdaptiveAvgPool3d", nn.AdaptiveAvgPool3d(2), volume)


def trackedNorms():
    line, image = rand(3, 4, 5), rand(3, 4, 2, 3)
    case("InstanceNorm1d tracked", nn.InstanceNorm1d(4, track_running_stats=True), line)
    case("InstanceNorm2d train", nn.InstanceNorm2d(4, momentum=0.25, affine=True, track_running_stats=True), image,
         train=True)


def norms():
    line, image, volume = rand(3, 4, 5), rand(3, 4, 2, 3), rand(2, 2, 2, 3, 2)
    case("BatchNorm1d", nn.BatchNorm1d(4), line)
    case("BatchNorm1d rows", nn.BatchNorm1d(4), rand(5, 4))
    case("BatchNorm3d", nn.BatchNorm3d(2, affine=False), volume)
    case("BatchNorm1d train", nn.BatchNorm1d(4, momentum=0.25), rand(5, 4), train=True)
    case("BatchNorm2d train", nn.BatchNorm2d(4), image, train=True)
    case("BatchNorm2d average", nn.BatchNorm2d(4, momentum=None), image, train=True)
    case("BatchNorm2d untracked", nn.BatchNorm2d(4, track_running_stats=False), image)
    case("InstanceNorm1d", nn.InstanceNorm1d(4), line)
    case("InstanceNorm2d", nn.InstanceNorm2d(4, affine=True), image)
    case("InstanceNorm3d", nn.InstanceNorm3d(2, affine=True), volume)
    case("GroupNorm", nn.GroupNorm(2, 4), image)
    case("LayerNorm", nn.LayerNorm((2, 3)), image)


def elements():
    x, image = rand(2, 4, 3), rand(2, 3, 4, 5)
    case("Mish", nn.Mish(), x)
    case("PReLU", nn.PReLU(), x)
    case("PReLU channels", nn.PReLU(4), x)
    case("Linear", nn.Linear(3, 2), x)
    for options in ({"scale_factor": 2}, {"size": (3, 9)}):
        case(f"Upsample nearest {next(iter(options))}", nn.Upsample(**options), image)
    case("Upsample linear", nn.Upsample(scale_factor=1.5, mode="linear"), x)
    case("Upsample bilinear", nn.Upsample(scale_factor=2, mode="bilinear"), image)
    case("Upsample bilinear corners", nn.Upsample(size=(7, 3), mode="bilinear", align_corners=True), image)
    case("Upsample trilinear", nn.Upsample(size=(3, 5, 2), mode="trilinear"), rand(1, 2, 2, 3, 4))
    case("Upsample bicubic", nn.Upsample(scale_factor=2, mode="bicubic"), image)
    case("PixelShuffle", nn.PixelShuffle(2), rand(2, 8, 3, 2))
    case("PixelUnshuffle", nn.PixelUnshuffle(3), rand(1, 2, 6, 3))


def embeddings():
    indices = ints(0, 6, 3, 4)
    case("Embedding padding", nn.Embedding(6, 3, padding_idx=2), indices)
    for mode in ("mean", "sum", "max"):
        case(f"EmbeddingBag {mode}", nn.EmbeddingBag(6, 3, mode=mode), indices)
    offsets = torch.tensor([0, 3, 3, 4])
    case("EmbeddingBag mean offsets", nn.EmbeddingBag(6, 3, mode="mean"), ints(0, 6, 7), offsets)
    case("EmbeddingBag max offsets", nn.EmbeddingBag(6, 3, mode="max"), ints(0, 6, 7), offsets, grads=False)
    case("EmbeddingBag sum weights offsets", nn.EmbeddingBag(6, 3, mode="sum"), ints(0, 6, 7), offsets, rand(7),
         call=lambda m, i, o, w: m(i, o, per_sample_weights=w))


def recurrent():
    x, h = rand(5, 2, 3), rand(1, 2, 4)
    packed = nn.utils.rnn.pack_padded_sequence
    padded = nn.utils.rnn.pad_packed_sequence

    def lengths(module, x, lengths):
        output, states = module(packed(x, lengths, enforce_sorted=False))
        return padded(output, total_length=x.shape[0])[0], states

    case("RNN", nn.RNN(3, 4), x, h)
    case("RNN relu", nn.RNN(3, 4, nonlinearity="relu", bias=False), x)
    case("GRU", nn.GRU(3, 4), x, h)
    case("GRU batch_first", nn.GRU(3, 4, batch_first=True), x)
    case("GRU unbatched", nn.GRU(3, 4, 2), rand(5, 3), rand(2, 4))
    case("LSTM", nn.LSTM(3, 4), x, h, rand(1, 2, 4), call=lambda m, x, h, c: m(x, (h, c)))
    case("LSTM deep", nn.LSTM(3, 4, 2, bidirectional=True), x, rand(4, 2, 4), rand(4, 2, 4),
         call=lambda m, x, h, c: m(x, (h, c)))
    case("LSTM lengths", nn.LSTM(3, 4, 2, bidirectional=True), x, torch.tensor([3, 5]), call=lengths)
    case("RNNCell", nn.RNNCell(3, 4), rand(2, 3), rand(2, 4))
    case("GRUCell", nn.GRUCell(3, 4), rand(2, 3), rand(2, 4))
    case("LSTMCell", nn.LSTMCell(3, 4), rand(2, 3), rand(2, 4), rand(2, 4), call=lambda m, x, h, c: m(x, (h, c)))


def transformers():
    torch.backends.mha.set_fastpath_enabled(False)
    x, memory = rand(5, 2, 8), rand(3, 2, 8)
    encoder = {"d_model": 8, "nhead": 2, "dim_feedforward": 6}
    case("TransformerEncoderLayer", nn.TransformerEncoderLayer(**encoder), x)
    mask = nn.Transformer.generate_square_subsequent_mask(5).isinf()
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    case("TransformerEncoder masks", nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**encoder, activation="gelu", norm_first=True, batch_first=True), 2, nn.LayerNorm(8)),
        rand(2, 5, 8), mask, padding, call=lambda m, x, a, p: m(x, a, p))
    case("TransformerDecoderLayer", nn.TransformerDecoderLayer(**encoder, norm_first=True), x, memory)
    case("TransformerDecoder", nn.TransformerDecoder(nn.TransformerDecoderLayer(**encoder), 2), x, memory, mask,
         torch.tensor([[False, False, True], [False] * 3]),
         call=lambda m, x, y, a, p: m(x, y, tgt_mask=a, memory_key_padding_mask=p))


def parametrized():
    weight_norm, spectral_norm = nn.utils.parametrizations.weight_norm, nn.utils.parametrizations.spectral_norm
    case("WeightNorm Linear", weight_norm(nn.Linear(3, 4)), rand(2, 3))
    case("WeightNorm Conv1d", weight_norm(nn.Conv1d(2, 3, 3), dim=1), rand(2, 2, 5))
    case("SpectralNorm Linear", spectral_norm(nn.Linear(3, 4)), rand(2, 3))
    case("SpectralNorm Conv2d train", spectral_norm(nn.Conv2d(2, 3, 2, bias=False)), rand(2, 2, 4, 3), train=True)


def activations():
    x, line, image, volume = rand(2, 4, 3), rand(2, 4, 9), rand(2, 2, 5, 7), rand(1, 2, 3, 4, 3)
    for name in ("ReLU6", "SELU", "CELU", "Hardtanh", "LogSigmoid", "Softsign", "Tanhshrink", "Softshrink", "Hardshrink"):
        case(name, getattr(nn, name)(), 4 * x if name == "ReLU6" else x)
    case("CELU 0.5", nn.CELU(0.5), x)
    case("Threshold", nn.Threshold(0.25, -3.0), x)
    case("GLU", nn.GLU(1), x)
    case("Softmin", nn.Softmin(-1), x)
    case("Unflatten", nn.Unflatten(1, (2, -1)), x)
    case("ConstantPad1d", nn.ConstantPad1d((2, -1), 0.5), line)
    case("ZeroPad2d", nn.ZeroPad2d((1, 0, 2, 1)), image)
    case("ReflectionPad2d", nn.ReflectionPad2d((1, 2, 3, 0)), image)
    case("ReplicationPad3d", nn.ReplicationPad3d((1, 0, 2, 1, 0, 1)), volume)
    case("ReflectionPad1d all", nn.ReflectionPad1d(2), line)
    # Without equal elements, among which PyTorch gives the gradient to the first.
    line, image, volume = ((torch.randperm(x.numel(), generator=generator).double() / 64).reshape(x.shape)
                           for x in (line, image, volume))
    case("AdaptiveMaxPool1d", nn.AdaptiveMaxPool1d(4), line)
    case("AdaptiveMaxPool2d", nn.AdaptiveMaxPool2d((2, 3)), image)
    case("AdaptiveMaxPool2d larger", nn.AdaptiveMaxPool2d((7, 7)), image)
    case("AdaptiveMaxPool3d", nn.AdaptiveMaxPool3d(2), volume)


def wholeTransformer():
    mask = nn.Transformer.generate_square_subsequent_mask(4).isinf()
    case("Transformer", nn.Transformer(8, 2, 1, 2, 6, batch_first=True), rand(2, 5, 8), rand(2, 4, 8), mask,
         torch.tensor([[False] * 5, [False] * 3 + [True] * 2]),
         call=lambda m, x, y, a, p: m(x, y, tgt_mask=a, src_key_padding_mask=p, memory_key_padding_mask=p))


windows(), norms(), elements(), embeddings(), recurrent(), transformers(), parametrized(), activations()
trackedNorms(), wholeTransformer()
write(pathlib.Path(__file__).parent / "layers.json", cases)
