"""Inputs of models: shapes, and how values are drawn. A size is a number, the name of a size, or a sum of names
("past+sequence")."""
import dataclasses
import zlib

import torch


def sizeOf(size, sizes):
    return size if isinstance(size, int) else sum(sizes[part] for part in size.split("+"))


@dataclasses.dataclass(frozen=True)
class Input:
    shape: tuple

    def make(self, name, sizes):
        """Returns a tensor that depends only on the name and the shape."""
        shape = [sizeOf(size, sizes) for size in self.shape]
        return self.draw(shape, torch.Generator().manual_seed(zlib.crc32(f"{name} {shape}".encode())))

    def dynamicAxes(self):
        return {axis: size for axis, size in enumerate(self.shape) if isinstance(size, str)}


class Floats(Input):
    def draw(self, shape, generator):
        return torch.randn(shape, generator=generator)


@dataclasses.dataclass(frozen=True)
class Tokens(Input):
    vocabulary: int = 0

    def draw(self, shape, generator):
        return torch.randint(0, self.vocabulary, shape, generator=generator)


class Mask(Input):
    """A padding mask: 1 for the tokens of a text, 0 after its end. The first text has the full length."""

    def draw(self, shape, generator):
        batch, length = shape
        lengths = torch.randint(1, length + 1, (batch, 1), generator=generator)
        lengths[0] = length
        return (torch.arange(length) < lengths).long()
