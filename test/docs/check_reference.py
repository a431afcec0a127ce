"""Runs doxygen on the public headers. Fails on a warning, or if a class or function of a namespace has no comment."""
import argparse
import os
import re
import shutil
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--build", required=True, help="folder of the build")
parser.add_argument("--source", required=True, help="root of the repository")
arguments = parser.parse_args()

pages = os.path.join(arguments.build, "docs/reference/html")
shutil.rmtree(pages, ignore_errors=True)
run = subprocess.run(["doxygen", "docs/Doxyfile"], cwd=arguments.source, text=True, capture_output=True,
                     env={**os.environ, "BURIN_BUILD": os.path.relpath(arguments.build, arguments.source)})
undocumented = re.compile(r"warning: (Member|Compound) .* is not documented\.$")
# Members of a class may be without comment, but not the class, and not functions outside of classes.
required = re.compile(r"Compound|\((function|enumeration)\) of (file|namespace)")
problems = [line for line in run.stderr.splitlines()
            if not undocumented.search(line) or (required.search(line) and "operator" not in line)]
print("\n".join(problems))
for page in ["classburin_1_1Tensor.html", "classburin_1_1nn_1_1Module.html", "runtime_8h.html", "index.html"]:
    if not os.path.exists(os.path.join(pages, page)):
        problems.append(page)
        print(f"{page} was not written")
sys.exit(1 if problems or run.returncode else 0)
