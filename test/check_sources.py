#!/usr/bin/env python3
"""Checks rules about the sources that no compiler checks: file and function lengths, the number of entries of a folder,
the files at the top level, and which layer and folder may include which."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MAX_LINES = 500
MAX_FUNCTION_LINES = 80
MAX_ENTRIES = 10
TOP_LEVEL = {"CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "LICENSE", "README.md",
             "SECURITY.md", "docs", "test"}

# The layers, each with those that it may include. "public" means the headers under <layer>/include/burin.
LAYERS = {
    "runtime": {"runtime"},
    "ir": {"ir"},
    "passes": {"passes", "ir"},
    "codegen": {"codegen", "passes", "ir"},
    "frontend": {"frontend", "codegen", "passes", "ir", "runtime"},
    "tools": {"tools", "frontend", "codegen", "passes", "ir", "runtime"},
}
# burin-run, which uses the runtime alone, and the code that it shares with burin.
RUNTIME_TOOLS = {("tools", "burin-run"), ("tools", "common")}
RUNTIME_TOOL_USES = {"runtime"}
# Single headers that a layer may include in addition: the compiler's view of the artifact format.
EXTRA = {
    "ir": {"burin/dtype.h"},
    "passes": {"burin/dtype.h"},
    "codegen": {"burin/dtype.h", "runtime/format/Artifact.h", "runtime/format/Archive.h", "runtime/format/ArenaPlacement.h"},
}
USES_MLIR = {"ir", "passes", "codegen", "frontend", "tools"}

SOURCE = {".h", ".c", ".cpp", ".cu", ".td", ".inc", ".py", ".cmake", ".mlir", ".test", ".sh"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def trackedFiles():
    """Returns the files that git would commit; without git or a checkout (a release tarball), all files."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    listing = shutil.which("git") and subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    if listing and listing.returncode == 0:
        paths = map(pathlib.Path, listing.stdout.splitlines())
    else:
        paths = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
    return sorted(path for path in paths if path.parts[0][0] != "." and (ROOT / path).is_file())


NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.DOTALL)
NO_FUNCTION = re.compile(r"(?:\}\s*)?(?:if|for|while|switch|else|do|catch|namespace|class|struct|union|enum|extern)\b")
PARAMETERS_END = re.compile(r"\)\s*(?:(?:const|noexcept|override|final|mutable|try|->[\w\s:<>,&*]+|:[^?]*)\s*)*$")


def functionLengths(text):
    """Yields (lines, first line) of each function body and lambda, found by matching braces."""
    opened, header = [], ""
    for number, line in enumerate(NO_CODE.sub(lambda m: re.sub(r"[^\n]", "", m.group()), text).splitlines(), 1):
        if line.startswith("#"):
            continue
        for character in line:
            if character == "{":
                head = header.strip()
                opened.append((bool(PARAMETERS_END.search(head)) and not NO_FUNCTION.match(head), number))
            elif character == "}" and opened:
                isFunction, first = opened.pop()
                if isFunction:
                    yield number - first + 1, first
            header = "" if character in "{};" else header + character
        header += " "


def publicOwners(files):
    """Maps each `burin/…` header to its layer."""
    return {"burin/" + path.name: path.parts[0] for path in files if path.parts[1:3] == ("include", "burin")}


def includeErrors(path, text, owners):
    layer = path.parts[0]
    isPublic = path.parts[1:3] == ("include", "burin")
    allowed = RUNTIME_TOOL_USES if path.parts[:2] in RUNTIME_TOOLS else LAYERS[layer]
    for included in INCLUDE.findall(text):
        target = owners.get(included, included.partition("/")[0])
        if allowed is RUNTIME_TOOL_USES and included.startswith("tools/common/"):
            continue
        if included in EXTRA.get(layer, ()) or pathlib.Path(included).parent == path.parent:
            continue
        if target in LAYERS and target not in allowed:
            yield f"{path}: {layer}/ may not include {included}"
        elif isPublic and target in LAYERS and included not in owners:
            yield f"{path}: a public header may not include the private {included}"
        elif target in {"mlir", "llvm", "lld"} and (isPublic or layer not in USES_MLIR or allowed is RUNTIME_TOOL_USES):
            yield f"{path}: may not include {included}"


def folderGraphs(files, owners):
    """Returns two graphs, which map each folder to the folders whose headers it includes, each with one such line. Public
    headers are not part of them. In the first graph a folder is the files that are directly in it; the second one has
    edges between neighbours, the subfolders of one folder, with everything below them."""
    direct, neighbours = {}, {}
    for path in files:
        if path.suffix not in {".h", ".c", ".cpp"} or path.parts[0] not in LAYERS:
            continue
        for included in INCLUDE.findall((ROOT / path).read_text()):
            folder = pathlib.Path(included).parent
            if included in owners or not folder.parts or folder.parts[0] not in LAYERS or folder == path.parent:
                continue
            line = f"{path} includes {included}"
            direct.setdefault(str(path.parent), {}).setdefault(str(folder), line)
            shared = len(pathlib.Path(os.path.commonpath([path.parent, folder])).parts)
            ours, theirs = path.parent.parts[: shared + 1], folder.parts[: shared + 1]
            if len(ours) == len(theirs) == shared + 1:
                neighbours.setdefault("/".join(ours), {}).setdefault("/".join(theirs), line)
    return direct, neighbours


def entryErrors(files):
    """Yields an error per folder of a layer with too many entries. A source counts as one entry with its headers, and so
    does a folder; the files that describe the build do not count."""
    entries = {}
    for path in files:
        if path.parts[0] in LAYERS and path.name not in {"CMakeLists.txt", "exports.map", ".clang-tidy"}:
            for folder, entry in zip(path.parents, (path.stem, *(parent.name for parent in path.parents))):
                entries.setdefault(folder, set()).add(entry)
    return [f"{folder}: {len(names)} entries, more than {MAX_ENTRIES}; sort them into folders"
            for folder, names in sorted(entries.items()) if folder.parts and len(names) > MAX_ENTRIES]


def cycleErrors(graph):
    """Yields an error per cycle of folders, found by depth-first search."""
    done, errors = set(), []

    def visit(folder, trail):
        if folder in trail:
            circle = trail[trail.index(folder):] + [folder]
            errors.append("folders include each other in a circle: "
                          + "; ".join(graph[a][b] for a, b in zip(circle, circle[1:])))
        elif folder not in done:
            for target in sorted(graph.get(folder, ())):
                visit(target, trail + [folder])
            done.add(folder)

    for folder in sorted(graph):
        visit(folder, [])
    return errors


def main():
    files = trackedFiles()
    owners = publicOwners(files)
    errors = [
        f"{entry}: not one of the top level's entries; put it into the folder of its layer"
        for entry in sorted({path.parts[0] for path in files} - TOP_LEVEL - LAYERS.keys())
    ]
    for path in files:
        if path.suffix not in SOURCE:
            continue
        text = (ROOT / path).read_text()
        lines = text.count("\n")
        if lines > MAX_LINES:
            errors.append(f"{path}: {lines} lines, more than {MAX_LINES}; split it")
        if path.parts[0] in LAYERS and path.suffix in {".h", ".c", ".cpp"}:
            errors.extend(f"{path}:{first}: a function of {length} lines, more than {MAX_FUNCTION_LINES}; split it"
                          for length, first in functionLengths(text) if length > MAX_FUNCTION_LINES)
        if path.parts[0] in LAYERS:
            errors.extend(includeErrors(path, text, owners))
    errors.extend(entryErrors(files))
    for graph in folderGraphs(files, owners):
        errors.extend(cycleErrors(graph))
    print("\n".join(errors) or f"{len(files)} files are in order", file=sys.stderr if errors else sys.stdout)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
