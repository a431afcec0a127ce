"""Models that no package has, and wrappers that give transformers models the signatures to export."""
import torch
import torch.nn.functional as F
import torchvision
from torch import nn


class UNet(nn.Module):
    """Two convolutions per level, downsampling by pooling, upsampling by transposed convolution, with a skip connection
    at each level."""

    def __init__(self, widths=(32, 64, 128, 256), classes=4):
        super().__init__()
        block = lambda inputs, outputs: nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())
        self.down = nn.ModuleList(block(i, o) for i, o in zip((3, *widths), widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(o, i, 2, stride=2) for i, o in zip(widths, widths[1:]))
        self.join = nn.ModuleList(block(2 * i, i) for i in widths[:-1])
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, image):
        x, skips = image, []
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            skips.append(x)
        for i in reversed(range(len(self.up))):
            x = self.join[i](torch.cat([skips[i], self.up[i](x)], 1))
        return self.head(x)


class Detector(nn.Module):
    """Detects boxes in one image, like YOLO: a feature pyramid of three strides, a prediction for each position of
    each, and selection of predictions by score and non-maximum suppression."""

    def __init__(self, width=24, classes=6):
        super().__init__()
        conv = lambda inputs, outputs, stride: nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.SiLU())
        self.stem = nn.Sequential(conv(3, width, 2), conv(width, 2 * width, 2))
        self.stages = nn.ModuleList(conv(2 * width, 2 * width, 2) for _ in range(3))
        self.merge = nn.ModuleList(conv(4 * width, 2 * width, 1) for _ in range(2))
        self.heads = nn.ModuleList(nn.Conv2d(2 * width, 4 + classes, 1) for _ in range(3))

    def pyramid(self, image):
        levels, x = [], self.stem(image)
        for stage in self.stages:
            x = stage(x)
            levels.append(x)
        for i in (1, 0):
            finer = F.interpolate(levels[i + 1], scale_factor=2.0, mode="nearest")
            levels[i] = self.merge[i](torch.cat([levels[i], finer], 1))
        return levels

    def forward(self, image):
        boxes, scores = [], []
        for level, (head, x) in enumerate(zip(self.heads, self.pyramid(image))):
            stride, y = 8 << level, head(x)
            rows = torch.arange(x.shape[2], device=x.device).view(1, -1, 1).to(x.dtype)
            columns = torch.arange(x.shape[3], device=x.device).view(1, 1, -1).to(x.dtype)
            centerX, centerY = (y[:, 0].sigmoid() + columns) * stride, (y[:, 1].sigmoid() + rows) * stride
            halfX, halfY = (4 * stride * y[:, i].clamp(max=4).exp() for i in (2, 3))
            corners = (centerX - halfX, centerY - halfY, centerX + halfX, centerY + halfY)
            boxes.append(torch.stack(corners, -1).flatten(1, 2))
            scores.append(y[:, 4:].sigmoid().flatten(2).transpose(1, 2))
        boxes, (scores, labels) = torch.cat(boxes, 1)[0], torch.cat(scores, 1)[0].max(-1)
        good = scores > 0.6
        boxes, scores, labels = boxes[good], scores[good], labels[good]
        kept = torchvision.ops.nms(boxes, scores, 0.5)
        return boxes[kept], scores[kept], labels[kept]


class Classifier(nn.Module):
    """Classifies texts: a bidirectional recurrent network over embeddings."""

    def __init__(self, recurrent, vocabulary=5000, width=128, hidden=256, layers=2, classes=5):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.net = recurrent(width, hidden, layers, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, tokens):
        states, _ = self.net(self.embedding(tokens))
        return self.head(states.mean(1))


class Encoder(nn.Module):
    """A transformers model that returns hidden states."""

    def __init__(self, model, *names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values):
        return self.model(**dict(zip(self.names, values)), return_dict=True).last_hidden_state


class Logits(nn.Module):
    """A transformers model that returns logits."""

    def __init__(self, model, *names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *values):
        return self.model(**dict(zip(self.names, values)), use_cache=False, return_dict=True).logits


class Decoder(nn.Module):
    """A language model whose inputs and outputs include the keys and values of earlier tokens: key, value of each
    layer."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, mask, *past):
        from transformers import DynamicCache
        cache = DynamicCache()
        for layer in range(0, len(past), 2):
            cache.update(past[layer], past[layer + 1], layer // 2)
        position = (mask.cumsum(1) - 1).clamp(min=0)[:, -tokens.shape[1]:]
        result = self.model(input_ids=tokens, attention_mask=mask, position_ids=position, past_key_values=cache)
        present = [part for layer in result.past_key_values.layers for part in (layer.keys, layer.values)]
        return result.logits, *present
