"""The networks of the training benchmark and of the training demo, in PyTorch; each function returns the network, a batch
of inputs and its targets."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
        self.shortcut = nn.Sequential()
        if before != after:
            self.shortcut = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + self.shortcut(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.position = nn.Embedding(256, 256), nn.Embedding(128, 256)
        layer = nn.TransformerEncoderLayer(256, 4, 1024, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 4, nn.LayerNorm(256), enable_nested_tensor=False)
        self.head = nn.Linear(256, 256, bias=False)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(128))

    def forward(self, x):
        y = self.blocks(self.token(x) + self.position.weight, mask=self.mask, is_causal=True)
        return self.head(y).flatten(0, 1)


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.fc = nn.LSTM(256, 256, 2), nn.Linear(256, 10)

    def forward(self, x):
        return self.fc(self.lstm(x)[0][-1])


def leNet(batch):
    net = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84),
                        nn.ReLU(), nn.Linear(84, 10))
    return net, torch.randn(batch, 1, 28, 28), torch.arange(batch) % 10


def resNet():
    blocks = [Block(64, 64, 1), Block(64, 64, 1), Block(64, 128, 2), Block(128, 128, 1), Block(128, 256, 2),
              Block(256, 256, 1), Block(256, 512, 2), Block(512, 512, 1)]
    net = nn.Sequential(nn.Conv2d(1, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), *blocks,
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    return net, torch.randn(64, 1, 28, 28), torch.arange(64) % 10


def mlp():
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))
    return net, torch.randn(256, 784), torch.arange(256) % 10


def gpt():
    text = (torch.arange(8 * 129) * 7919 % 256).reshape(8, 129)
    return Gpt(), text[:, :128].contiguous(), text[:, 1:].flatten()


def lstm():
    return Sequence(), torch.randn(64, 32, 256), torch.arange(32) % 10
