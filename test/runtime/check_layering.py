#!/usr/bin/env python3
"""Checks the runtime library's imports, exports and size, and that public headers compile alone."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NEEDED = re.compile(r"^(libc|libm|libstdc\+\+|libgcc_s|ld-linux[-\w]*)\.so\.\d+$")
MAX_BYTES = 400 * 1000
PUBLIC = ["runtime/include", "ir/include", "frontend/include"]


def output(*command):
    return subprocess.run(command, check=True, text=True, capture_output=True).stdout


def libraryErrors(args):
    dynamic = output(args.readelf, "-d", args.library)
    for library in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not NEEDED.match(library):
            yield f"the runtime needs {library}"
    if re.search(r"\((RPATH|RUNPATH)\).*\[/", dynamic):
        yield "the runtime has an absolute run path"
    if "NODELETE" not in dynamic:
        yield "the runtime can be unloaded, while its threads run"
    exported = [
        fields[7]
        for fields in map(str.split, output(args.readelf, "--dyn-syms", "--wide", args.library).splitlines())
        if len(fields) >= 8 and fields[4] in ("GLOBAL", "WEAK") and fields[6] != "UND"
    ]
    if "burin_runtime_get" not in exported:
        yield "the runtime does not export burin_runtime_get"
    for symbol in exported:
        if not symbol.startswith("burin_"):
            yield f"the runtime exports {symbol}"
    with tempfile.TemporaryDirectory() as folder:
        stripped = os.path.join(folder, "stripped.so")
        output(args.strip, "-o", stripped, args.library)
        size = os.path.getsize(stripped)
    print(f"{size} bytes stripped, exports {' '.join(exported)}")
    if size > MAX_BYTES:
        yield f"the runtime has {size} bytes stripped, more than {MAX_BYTES}"


def headerErrors(compiler, generated):
    """Compiles each public header alone, with only the public folders on the include path."""
    folders = [ROOT / folder for folder in PUBLIC] + [pathlib.Path(generated)]
    includes = [f"-I{folder}" for folder in folders]
    headers = (header for folder in folders for header in folder.glob("burin/*.h"))
    part = "tensor_methods.h"  # included by class Tensor
    every = sorted((f"burin/{header.relative_to(folder / 'burin')}" for folder in folders
                    for header in (folder / "burin").rglob("*.h")
                    if header.name != part and header.parent.name != "methods"), reverse=True)
    source = "".join(f"#include <{header}>\n" for header in every)
    result = subprocess.run([compiler, "-x", "c++", "-std=c++20", "-Wall", "-Werror", "-fsyntax-only", *includes, "-"],
                            input=source, text=True, capture_output=True)
    if result.returncode:
        yield f"the public headers do not compile in another order:\n{result.stderr}"
    for header in sorted(header for header in headers if header.name != part):
        languages = [["-x", "c++", "-std=c++20"]]
        if header.name == "runtime.h":
            languages.append(["-x", "c", "-std=c11", "-pedantic"])
        for language in languages:
            command = [compiler, *language, "-Wall", "-Werror", "-fsyntax-only", "-H", *includes, "-"]
            source = f"#include <burin/{header.name}>\n"
            result = subprocess.run(command, input=source, text=True, capture_output=True)
            if result.returncode:
                yield f"{header.name} does not compile alone ({language[1]}):\n{result.stderr}"
            for reached in re.findall(r"^\.+ (.*)$", result.stderr, re.MULTILINE):
                if re.search(r"/(mlir|llvm|llvm-c|lld)/", reached):
                    yield f"{header.name} reaches {reached}"


def main():
    parser = argparse.ArgumentParser()
    for option in ("library", "readelf", "strip", "compiler", "generated", "sanitize"):
        parser.add_argument(f"--{option}", required=True)
    args = parser.parse_args()
    errors = list(headerErrors(args.compiler, args.generated))
    if not args.sanitize:  # sanitizers add libraries and symbols
        errors += libraryErrors(args)
    print("\n".join(errors), file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
