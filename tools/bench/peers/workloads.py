"""The workloads of `burin-bench --list --json` as PyTorch modules. Parameters have the names that burin-bench writes,
so that all contestants read the same weight files."""
import hashlib
import os
import pathlib

import numpy
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import nn


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 20, 3), nn.Conv2d(20, 50, 5)
        self.fc1, self.fc2 = nn.Linear(800, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = F.avg_pool2d(F.relu(self.conv1(x)), 2)
        x = F.avg_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class AlexNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 96, 11, stride=4, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(96, 256, 5, padding=2), nn.ReLU(), nn.MaxPool2d(3, 2),
            nn.Conv2d(256, 384, 3, padding=1), nn.ReLU(), nn.Conv2d(384, 384, 3, padding=1), nn.ReLU(),
            nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Flatten(),
            nn.Linear(6400, 4096), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(0.5),
            nn.Linear(4096, 10))

    def forward(self, x):
        return self.net(x)


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.conv3 = nn.Conv2d(inputs, outputs, 1, stride=stride) if inputs != outputs or stride != 1 else None
        self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (self.conv3(x) if self.conv3 is not None else x))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Sequential(
            nn.Conv2d(1, 64, 7, stride=2, padding=3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)))
        inputs = 64
        for stage in range(4):
            outputs = 64 << stage
            self.net.add_module(f"b{stage + 2}", nn.Sequential(
                Residual(inputs, outputs, 2 if stage else 1), Residual(outputs, outputs, 1)))
            inputs = outputs
        self.net.add_module("last", nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)))

    def forward(self, x):
        return self.net(x)


def splitHeads(x, heads):
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def mergeHeads(x):
    return x.transpose(1, 2).flatten(2)


def named(**modules):
    """A module that only contains other modules."""
    holder = nn.Module()
    for name, module in modules.items():
        holder.add_module(name, module)
    return holder


class BertLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        linear = lambda: nn.Linear(width, width)
        norm = lambda: nn.LayerNorm(width, 1e-12)
        self.attention = nn.Module()
        self.attention.add_module("self", named(query=linear(), key=linear(), value=linear()))
        self.attention.add_module("output", named(dense=linear(), LayerNorm=norm()))
        self.intermediate = named(dense=nn.Linear(width, 4 * width))
        self.output = named(dense=nn.Linear(4 * width, width), LayerNorm=norm())

    def forward(self, x):
        inner, output = getattr(self.attention, "self"), self.attention.output
        q, k, v = (splitHeads(layer(x), self.heads) for layer in (inner.query, inner.key, inner.value))
        mixed = mergeHeads(F.scaled_dot_product_attention(q, k, v))
        x = output.LayerNorm(output.dense(mixed) + x)
        return self.output.LayerNorm(self.output.dense(F.gelu(self.intermediate.dense(x))) + x)


class Bert(nn.Module):
    def __init__(self, layers, width, heads, vocabulary, positions, **_):
        super().__init__()
        self.embeddings = named(
            word_embeddings=nn.Embedding(vocabulary, width), position_embeddings=nn.Embedding(positions, width),
            token_type_embeddings=nn.Embedding(2, width), LayerNorm=nn.LayerNorm(width, 1e-12))
        self.encoder = named(layer=nn.ModuleList(BertLayer(width, heads) for _ in range(layers)))

    def forward(self, ids):
        e = self.embeddings
        position = e.position_embeddings.weight[:ids.shape[1]]
        x = e.LayerNorm(e.word_embeddings(ids) + e.token_type_embeddings.weight[0] + position)
        for layer in self.encoder.layer:
            x = layer(x)
        return x


class Conv1D(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(inputs, outputs)), nn.Parameter(torch.empty(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x.flatten(0, -2), self.weight).view(*x.shape[:-1], -1)


class Gpt2(nn.Module):
    LAYERS, WIDTH, HEADS = 12, 768, 12

    def __init__(self):
        super().__init__()
        width = self.WIDTH
        block = lambda: named(
            ln_1=nn.LayerNorm(width), attn=named(c_attn=Conv1D(width, 3 * width), c_proj=Conv1D(width, width)),
            ln_2=nn.LayerNorm(width), mlp=named(c_fc=Conv1D(width, 4 * width), c_proj=Conv1D(4 * width, width)))
        self.transformer = named(
            wte=nn.Embedding(50257, width), wpe=nn.Embedding(1024, width),
            h=nn.ModuleList(block() for _ in range(self.LAYERS)), ln_f=nn.LayerNorm(width))

    def forward(self, ids, positions, *past):
        t = self.transformer
        x = t.wte(ids) + t.wpe(positions)
        new = []
        for i, block in enumerate(t.h):
            q, k, v = (splitHeads(part, self.HEADS) for part in block.attn.c_attn(block.ln_1(x)).chunk(3, -1))
            mixed = F.scaled_dot_product_attention(
                q, torch.cat((past[2 * i], k), 2), torch.cat((past[2 * i + 1], v), 2))
            x = x + block.attn.c_proj(mergeHeads(mixed))
            x = x + block.mlp.c_proj(F.gelu(block.mlp.c_fc(block.ln_2(x)), approximate="tanh"))
            new += (k, v)
        return (F.linear(t.ln_f(x), t.wte.weight), *new)


class Kernel(nn.Module):
    """A function of its inputs, with weights by name."""

    def __init__(self, function, **shapes):
        super().__init__()
        self.function = function
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.empty(shape)))

    def forward(self, *inputs):
        return self.function(self, *inputs)


def convKernel(s):
    def run(self, x):  # burin-bench writes channels-last images, which for PyTorch are a matter of strides
        y = F.conv2d(x.permute(0, 3, 1, 2), self.weight, self.bias, s["stride"], s["kernel"] // 2, 1, s["groups"])
        return y.permute(0, 2, 3, 1)

    return Kernel(run, weight=(s["out"], s["in"] // s["groups"], s["kernel"], s["kernel"]), bias=(s["out"],))


def torchvisionModel(name):
    import torchvision
    return getattr(torchvision.models, name)(weights=None)


class Steps(nn.Module):
    def __init__(self, count):
        super().__init__()
        for i in range(count):
            self.register_parameter(f"weight{i}", nn.Parameter(torch.empty(8, 8)))

    def forward(self, x):
        for weight in self.parameters():
            x = x @ weight
        return x


KINDS = {
    "mlp": lambda s: nn.Sequential(
        nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 2)),
    "lenet": lambda s: LeNet(),
    "alexnet": lambda s: AlexNet(),
    "resnet18": lambda s: ResNet18(),
    "resnet50": lambda s: torchvisionModel("resnet50"),
    "mobilenet_v2": lambda s: torchvisionModel("mobilenet_v2"),
    "bert": lambda s: Bert(**s),
    "gpt2": lambda s: Gpt2(),
    "gemm": lambda s: Kernel(lambda self, x: x @ self.weight, weight=(s["k"], s["n"])),
    "gemm-inputs": lambda s: Kernel(lambda self, x, weight: x @ weight),
    "conv": convKernel,
    "steps": lambda s: Steps(**s),
    "softmax": lambda s: Kernel(lambda self, x: F.softmax(x, -1)),
    "layer_norm": lambda s: Kernel(
        lambda self, x: F.layer_norm(x, x.shape[-1:], self.weight, self.bias),
        weight=(s["columns"],), bias=(s["columns"],)),
    "gelu": lambda s: Kernel(lambda self, x: F.gelu(x)),
    "bias_gelu": lambda s: Kernel(lambda self, x: F.gelu(x + self.bias), bias=(s["columns"],)),
}


def inputNames(workload, folder):
    """Returns the input names in the order of burin-bench, which stored them in a file beside the arrays."""
    return pathlib.Path(folder, workload["name"] + ".inputs").read_text().split()


def loadInputs(workload, folder):
    """Loads the inputs into memory that PyTorch has aligned."""
    return [torch.from_numpy(numpy.load(pathlib.Path(folder, f"{workload['name']}.{name}.npy"))).clone()
            for name in inputNames(workload, folder)]


def loadModel(workload, folder):
    model = KINDS[workload["kind"]](workload["sizes"])
    model.load_state_dict(load_file(pathlib.Path(folder, workload["name"] + ".safetensors")), strict=True)
    return model.eval()


def hasConvolutions(workload, folder):
    return any(isinstance(m, nn.Conv2d) for m in loadModel(workload, folder).modules())


def cached(workload, folder, suffix, make, settings=""):
    """Returns the path NAME.suffix. make(path) writes it again if the weights, the inputs, the settings or this file
    have changed."""
    base = pathlib.Path(folder, workload["name"])
    sources = [f"{base}.safetensors", *(f"{base}.{name}.npy" for name in inputNames(workload, folder)), __file__]
    key = hashlib.sha1(settings.encode())
    for source in sources:
        with open(source, "rb") as file:
            key.update(hashlib.file_digest(file, "sha1").digest())
    made, keyFile = f"{base}.{suffix}", f"{base}.{suffix}.key"
    if not os.path.exists(keyFile) or open(keyFile).read() != key.hexdigest():
        make(made)
        with open(keyFile, "w") as file:
            file.write(key.hexdigest())
    return made
