#!/usr/bin/env python3
"""Counts the tests in a JUnit file of ctest, and lists the skipped ones with reasons. Fails if a test failed, if one
was skipped for a feature that this processor has, or if fewer ran than required."""
import argparse
import re
import sys
import xml.etree.ElementTree

# The messages of Catch2 cases (test/Features.h) and lit.
REASON = re.compile(r"skipped: needs (?P<one>\w+)|unavailable features: (?P<list>[\w, ]+)")


def processorFeatures():
    with open("/proc/cpuinfo") as cpuinfo:
        flags = next((line for line in cpuinfo if line.startswith(("flags", "Features"))), ":")
    return set(flags.partition(":")[2].split())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--fewest", type=int, default=0, help="executed tests, at least")
    arguments = parser.parse_args()
    available = processorFeatures()
    passed = failed = skipped = 0
    problems = []
    for case in xml.etree.ElementTree.parse(arguments.file).getroot().iter("testcase"):
        name, skip = case.get("name"), case.find("skipped")
        if case.get("status") == "run":
            passed += 1
        elif case.get("status") == "disabled" or (skip is not None and skip.get("message", "").startswith("SKIP_")):
            skipped += 1
            reason = REASON.search(case.findtext("system-out") or "")
            needs = (reason["one"] or reason["list"]).replace(",", " ").split() if reason else []
            print(f"skipped: {name}" + (f" (needs {', '.join(needs)})" if needs else ""))
            if needs and available.issuperset(needs):
                problems.append(f"{name} was skipped, but the processor has {', '.join(needs)}")
        else:
            failed += 1
    if passed + failed < arguments.fewest:
        problems.append(f"only {passed + failed} tests ran, which should be {arguments.fewest} or more")
    for problem in problems:
        print(f"error: {problem}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or problems else 0


if __name__ == "__main__":
    sys.exit(main())
