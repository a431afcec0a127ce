"""Random weights with which all parts of a model matter: no activation vanishes or explodes, no part contributes
nothing."""
import math

import torch
from torch import nn


def spread(model):
    """Scales weights by their number of inputs. Initial values for training (such as a deviation of 0.02, or zeros in a
    head) would make attention uniform, and whole branches contribute nothing."""
    for module in model.modules():
        kind = type(module).__name__
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=1 / math.sqrt(module.in_features))
        elif kind == "Conv1D":  # of transformers: a linear layer with a transposed weight
            nn.init.normal_(module.weight, std=1 / math.sqrt(module.weight.shape[0]))
        elif isinstance(module, (nn.Conv1d, nn.Conv2d)):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.5)
        if getattr(module, "layer_scale", None) is not None:  # ConvNeXt
            nn.init.constant_(module.layer_scale, 0.3)
        jitter(module)
    return model


def jitter(module):
    """Perturbs biases, and scales and shifts of normalisations, so that they are not exactly 0 or 1."""
    if isinstance(getattr(module, "bias", None), nn.Parameter):
        nn.init.normal_(module.bias, std=0.05)
    if "Norm" in type(module).__name__ and isinstance(getattr(module, "weight", None), nn.Parameter):
        nn.init.normal_(module.weight, mean=1, std=0.1)


def calibrate(model, inputs):
    """Sets the statistics of batch normalisations to those measured on the inputs."""
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    if norms:
        with torch.no_grad():
            model(*inputs)
    return model.eval()
