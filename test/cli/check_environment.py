"""Compares the variables of `burin env --markdown` with the getenv calls of the sources and with
docs/environment.md."""
import pathlib
import re
import sys

listed = pathlib.Path(sys.argv[1]).read_text()
root = pathlib.Path(sys.argv[2])
names = set(re.findall(r"^\| `(\w+)`", listed, re.M))
read = set()
for folder in ("frontend", "ir", "passes", "codegen", "runtime", "tools/burin", "tools/common"):
    for path in (root / folder).rglob("*"):
        if path.suffix in (".cpp", ".h"):
            read |= set(re.findall(r'getenv\("(\w+)"\)', path.read_text()))
assert read == names, f"only in the sources: {read - names}, only listed: {names - read}"
page = (root / "docs" / "environment.md").read_text()
assert listed in page, "docs/environment.md is out of date: put the output of `burin env --markdown` into it"
