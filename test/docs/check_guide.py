#!/usr/bin/env python3
"""Runs the examples, and checks that pages show their code, their output and their commands.

In docs/guide.md, docs/architecture.md and README.md, ```cpp and ```c blocks are parts of files in docs/examples; those
in its folders, which other tests run, need no block but a link.
```text blocks are parts of the output of these, where "…" stands for any text; "$ burin…" lines of ```console blocks
are lines of commands.sh there. Relative links in all pages must lead to a file."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "docs/examples"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(command, folder, tools, errors):
    """Returns the output of the command."""
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    result = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True)
    if result.returncode:
        errors.append(f"{command[-1]} ends with {result.returncode}:\n{result.stderr}")
    return result.stdout


def hasCode(block, source):
    """Returns whether the block is part of the source; it may be taken out of functions or scopes."""
    return any(re.sub(r"^(?=.)", "  " * depth, block, flags=re.MULTILINE) in source for depth in range(4))


def hasOutput(block, output):
    at = 0
    for part in block.split("…"):
        at = output.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def guideErrors(guide, sources, outputs):
    unused = set(sources)
    for language, block in BLOCK.findall(guide):
        if language in ("cpp", "c"):
            found = [name for name, text in sources.items() if hasCode(block, text)]
            unused -= set(found)
            if not found:
                yield f"code of a page is in no example:\n{block}"
        elif language == "text" and not any(hasOutput(block, output) for output in outputs):
            yield f"no example prints this:\n{block}\n---- they print:\n" + "\n".join(outputs)
        elif language == "console":
            for command in re.findall(r"^\$ (burin.*)$", block, re.MULTILINE):
                if f"{command}\n" not in sources["commands.sh"]:
                    yield f"the guide's command is not in commands.sh: {command}"
    unused = {name for name in unused if "/" not in name or f"examples/{name})" not in guide}
    for name in sorted(unused - {"commands.sh"}):
        yield f"the guide shows nothing of docs/examples/{name}"


def linkErrors():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        prose = BLOCK.sub("", page.read_text())
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose):
            if " " not in target and not (page.parent / target).exists():  # a lambda in a code span is not a link
                yield f"{page.relative_to(ROOT)} links to {target}, which is not there"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tools", required=True)
    parser.add_argument("programs", nargs="+")
    args = parser.parse_args()
    errors = list(linkErrors())
    with tempfile.TemporaryDirectory() as folder:
        for data in EXAMPLES.glob("*.pth"):
            shutil.copy(data, folder)
        commands = [[program] for program in args.programs] + [["bash", str(EXAMPLES / "commands.sh")]]
        outputs = [run(command, folder, args.tools, errors) for command in commands]
    sources = {str(path.relative_to(EXAMPLES)): path.read_text() for path in EXAMPLES.rglob("*")
               if path.suffix in (".cpp", ".c", ".h", ".sh")}
    pages = "".join((ROOT / name).read_text() for name in ("README.md", "docs/guide.md", "docs/architecture.md"))
    errors += guideErrors(pages, sources, outputs)
    print("\n".join(errors), file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
