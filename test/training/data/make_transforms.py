#!/usr/bin/env python3
"""Writes transforms.safetensors: images, and what torchvision's transforms make of them.

Needs torch, torchvision and safetensors; run it again after adding a case:  python3 make_transforms.py"""
import pathlib

import torch
from safetensors.torch import save_file
from torchvision.transforms import v2

IMAGES = {"color": (3, 9, 7), "gray": (1, 6, 11)}
CASES = {
    "normalize": lambda x: v2.Normalize([0.4, 0.5, 0.6][:len(x)], [0.2, 0.3, 0.25][:len(x)])(x),
    "resize 4": v2.Resize(4),
    "resize 13": v2.Resize(13),
    "resize 5 14": v2.Resize((5, 14)),
    "center_crop 4 5": v2.CenterCrop((4, 5)),
    "center_crop 12": v2.CenterCrop(12),
    "resized_crop": v2.RandomResizedCrop((6, 5), scale=(1, 1), ratio=(0.1, 0.1000001)),  # the middle, as none fits
    "flip": v2.RandomHorizontalFlip(1),
    "flip down": v2.RandomVerticalFlip(1),
    "brightness 1.4": v2.ColorJitter(brightness=(1.4, 1.4)),
    "brightness 0.3": v2.ColorJitter(brightness=(0.3, 0.3)),
    "contrast 1.7": v2.ColorJitter(contrast=(1.7, 1.7)),
    "contrast 0.2": v2.ColorJitter(contrast=(0.2, 0.2)),
    "saturation 1.9": v2.ColorJitter(saturation=(1.9, 1.9)),
    "saturation 0": v2.ColorJitter(saturation=(0, 0)),
    "hue 0.2": v2.ColorJitter(hue=(0.2, 0.2)),
    "hue -0.45": v2.ColorJitter(hue=(-0.45, -0.45)),
}


def main():
    generator = torch.Generator().manual_seed(3)
    tensors = {}
    for name, shape in IMAGES.items():
        image = torch.rand(shape, generator=generator)
        image[:, 0, :3] = torch.tensor([0.0, 1.0, 0.5])  # grey pixels, whose hue is none
        tensors[name] = image
        for case, transform in CASES.items():
            tensors[f"{name} {case}"] = transform(image.clone()).contiguous()
    save_file(tensors, pathlib.Path(__file__).with_name("transforms.safetensors"))


if __name__ == "__main__":
    main()
