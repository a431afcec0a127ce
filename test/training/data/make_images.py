#!/usr/bin/env python3
"""Writes images/: PNG and JPEG files of all kinds, and images.safetensors with the pixels that Pillow reads from them.

Needs pillow, numpy and safetensors; run it again after adding a kind:  python3 make_images.py"""
import pathlib

import numpy
from PIL import Image
from safetensors.numpy import save_file

FOLDER = pathlib.Path(__file__).with_name("images")


def main():
    FOLDER.mkdir(exist_ok=True)
    generator = numpy.random.default_rng(5)
    y, x = numpy.mgrid[0:13, 0:18]
    smooth = numpy.stack([x * 14, y * 19, 255 - x * 7 - y * 9], axis=2).clip(0, 255).astype(numpy.uint8)
    noise = generator.integers(0, 256, (5, 7, 4), dtype=numpy.uint8)
    color = Image.fromarray(noise[..., :3].copy())
    wide = generator.integers(0, 65536, (4, 6), dtype=numpy.uint16)
    files = {
        "rgb.png": color,
        "rgba.png": Image.fromarray(noise),
        "palette.png": Image.fromarray(smooth).quantize(11),
        "bits.png": color.convert("1"),
        "gray.png": color.convert("L"),
        "gray_alpha.png": Image.fromarray(noise[..., :2].copy(), "LA"),
        "gray16.png": Image.fromarray(wide),
        "color.jpg": Image.fromarray(smooth),
        "progressive.jpg": Image.fromarray(smooth),
        "gray.jpg": Image.fromarray(smooth).convert("L"),
        "inks.jpg": Image.fromarray(smooth).convert("CMYK"),
    }
    options = {"color.jpg": {"quality": 90}, "progressive.jpg": {"progressive": True, "quality": 80},
               "palette.png": {"transparency": 3}}
    pixels = {}
    for name, image in files.items():
        image.save(FOLDER / name, **options.get(name, {}))
        loaded = Image.open(FOLDER / name)
        if name == "gray16.png":  # Pillow has no 16-bit colours: the upper bytes
            loaded = Image.fromarray((wide >> 8).astype(numpy.uint8))
        rgb = loaded.convert("RGB")
        pixels[name] = numpy.ascontiguousarray(numpy.asarray(rgb).transpose(2, 0, 1))
        pixels[f"{name} gray"] = numpy.asarray(rgb.convert("L"))[None].copy()
    save_file(pixels, FOLDER / "images.safetensors")
    (FOLDER / "images.safetensors").chmod(0o644)


if __name__ == "__main__":
    main()
