"""Reads the rows of docs/from-pytorch.md; shared by make_from_pytorch.py and from_pytorch_sources.py."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/from-pytorch.md"
STORED = ROOT / "test/docs/from_pytorch.json"
# Element types and sizes of the tensors in the rows. A name is a symbol, with this value.
SYMBOLS = {"n": 3, "b": 2}
INPUTS = {"x": ("f32", ["n", 4]), "y": ("f32", ["n", 4]), "z": ("f32", [2, "n", 4]), "v": ("f32", [4]),
          "s": ("f32", [4, 4]), "m": ("f32", [4, 5]), "c": ("f32", [5]), "a": ("f32", ["n"]), "i": ("i64", ["n"]),
          "j": ("i64", [2]), "k": ("i64", ["n", 4]), "p": ("bool", ["n", 4]), "img": ("f32", ["b", 3, 8, 8]),
          "w": ("f32", [6, 3, 3, 3]), "o": ("f32", [6])}
ROW = re.compile(r"^\| `(.*?)` \| `(.*?)` \|$")


def rows():
    """Returns (line number, section, PyTorch's expression, burin's) of each row that is an expression."""
    section = ""
    for number, line in enumerate(PAGE.read_text().splitlines(), 1):
        if line.startswith("## "):
            section = line[3:]
        elif section != "" and section != "What differs" and (match := ROW.match(line)):
            yield number, section, *(part.replace("\\|", "|") for part in match.groups())
