#!/usr/bin/env python3
"""Applies each diff of docs/extending to a copy of the tree and checks that it still fits.

extending.py --build BUILD: the diffs apply, tablegen and opgen.py accept the definitions, the files that they touch
compile, and the page names the number of files. With BURIN_LONG_TESTS the changed trees are also built, and their tests
run for each target of this machine: half an hour and more.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DIFFS = ROOT / "docs/extending"
COPIED = ["CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "codegen", "docs", "frontend", "ir", "passes",
          "runtime", "test", "tools"]
# ctest patterns of the tests that a changed tree must pass.
TESTS = {"family": "codegen/copy|ops-tests: |sources", "op": "ops-tests: cube|gradients.*cube|reference-tests|sources",
         "pass": "passes/remove-double-negation|passes-page|passes-tests|sources"}


def run(*command, **options):
    result = subprocess.run(list(map(str, command)), text=True, capture_output=True, **options)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))[:300]}\n{result.stdout[-3000:]}{result.stderr[-3000:]}")
    return result.stdout


def changedTree(diff, folder):
    """Copies the sources and applies a diff. Returns the changed files."""
    for entry in COPIED:
        source, target = ROOT / entry, folder / entry
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.plate", "benchmarks"))
        else:
            shutil.copy(source, target)
    run("git", "apply", "--verbose", diff, cwd=folder, env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)})
    return re.findall(r"^\+\+\+ b/(.*)$", diff.read_text(), re.MULTILINE)


def generate(folder, build, tools):
    """Runs tablegen and opgen.py on the changed definitions; the output precedes that of the build on the include
    path."""
    made = folder / "generated"
    for name in ("ir", "passes/analysis", "codegen/emit/element", "codegen/scalar", "include/burin"):
        (made / name).mkdir(parents=True)
    includes = [f"-I{tools['include']}", f"-I{folder}"]
    run(tools["mlir-tblgen"], "-gen-pass-decls", "-name", "Burin", *includes, folder / "passes/Passes.td", "-o",
        made / "passes/Passes.h.inc")
    for family in (path.stem for path in (folder / "ir/ops").glob("*Ops.td") if path.stem != "Ops"):
        run(tools["mlir-tblgen"], "-gen-op-decls", *includes, folder / f"ir/ops/{family}.td", "-o", made / f"ir/{family}.h.inc")
    run(tools["llvm-tblgen"], "--dump-json", *includes, folder / "ir/ops/Ops.td", "-o", made / "Ops.json")
    for what, path in {"ids": "ir/OpIds.inc", "facts": "passes/analysis/OpFacts.inc", "parts": "passes/analysis/PartRules.inc",
                       "layout": "passes/analysis/LayoutRules.inc", "flops": "passes/analysis/FlopRules.inc",
                       "element": "codegen/emit/element/ElementRules.inc", "lowering": "codegen/scalar/ElementwiseLowering.inc",
                       "api-header": "include/burin/ops.h", "api-methods": "include/burin/tensor_methods.h"}.items():
        run(sys.executable, folder / "tools/cmake/opgen.py", made / "Ops.json", what, "-o", made / path)
    return made


def compileChanged(files, folder, build, made):
    """Checks the changed sources with the flags of the build; a new source uses those of a neighbour."""
    commands = {entry["file"]: entry["command"] for entry in json.loads((build / "compile_commands.json").read_text())}
    for file in (file for file in files if file.endswith(".cpp")):
        neighbour = str(ROOT / file)
        if neighbour not in commands:
            neighbour = next(path for path in commands if pathlib.Path(path).parent == (ROOT / file).parent)
        command = commands[neighbour]
        command = command.replace(neighbour, str(folder / file)).replace(f"-I{ROOT}", f"-I{folder}")
        command = command.replace(f"-I{folder}/.build", f"-I{ROOT}/.build")
        command = re.sub(r"^.*?(\S*clang\+\+|\S*g\+\+) ", rf"\1 -I{made} -I{made}/include -I{folder} ", command, count=1)
        command = re.sub(r" -MD -MT \S+ -MF \S+| -o \S+", "", command).replace(" -c ", " -fsyntax-only ")
        run("bash", "-c", command, cwd=build)


def buildAndTest(name, folder):
    """Builds the whole changed tree (ccache has most objects) and runs its tests for each target."""
    run("cmake", "--preset", "release", cwd=folder)
    run("cmake", "--build", folder / ".build/release", "--parallel", os.cpu_count())
    for target in ("native", "x86-64-v3"):
        run("ctest", "--test-dir", folder / ".build/release", "-R", TESTS[name], "--output-on-failure", "--no-tests=error",
            env={**os.environ, "BURIN_TARGET": target})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--tool", action="append", default=[], help="NAME=PATH of a tablegen, and of its headers")
    args = parser.parse_args()
    tools = dict(tool.split("=", 1) for tool in args.tool)
    page = (ROOT / "docs/extending.md").read_text()
    for diff in sorted(DIFFS.glob("*.diff")):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            files = changedTree(diff, folder)
            compileChanged(files, folder, args.build, generate(folder, args.build, tools))
            if f"[{diff.name}](extending/{diff.name}) ({len(files)} files)" not in page:
                sys.exit(f"docs/extending.md must name {diff.name} and that it changes {len(files)} files")
            print(f"{diff.stem}: {len(files)} files: {', '.join(files)}")
            if os.environ.get("BURIN_LONG_TESTS"):
                shutil.rmtree(folder / "generated")
                buildAndTest(diff.stem, folder)


if __name__ == "__main__":
    main()
