#!/usr/bin/env python3
"""find.py BUG NET PASS OP: checks that burin bisect finds the pass and the op of a planted bug, and that the reproducer
that it writes fails."""
import json
import os
import shlex
import subprocess
import sys

bug, net, wantedPass, wantedOp = sys.argv[1:]
small = f"{bug}.mlir"


def planted(*arguments):
    return subprocess.run(["burin-planted", bug, *arguments], text=True, capture_output=True)


found = planted("bisect", f"{net}.burin", "-o", small, "--json")
assert found.returncode == 1, found
report = json.loads(found.stdout)
assert report["failure"] == "an output differs", report
assert (report["pass"], report["op"]) == (wantedPass, wantedOp), report
assert 1 <= len(report["ops"]) <= 4 and os.path.getsize(small) < 20_000, report

# The command says "differs" with the bug, and "ok" without it.
command = shlex.split(report["command"])
assert command[:3] == ["burin", "verify", small], command
assert planted(*command[1:]).returncode == 1, command
assert subprocess.run(command, capture_output=True).returncode == 0, command
for name in report["cured_without"]:
    assert planted(*command[1:], "--disable-pass", name).returncode == 0, name
if wantedPass not in ("code generation", "burin-decompose", "burin-fuse", "burin-decompose-in-kernels"):
    assert wantedPass in report["cured_without"], report
print(f"{bug}: {wantedOp}, {len(report['ops'])} ops")
