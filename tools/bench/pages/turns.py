"""Contestants on one core that answer questions in turns, for the scripts beside this one."""
import os
import pathlib
import platform
import subprocess
import sys
import time


class Contestant:
    """A process on one core, with one thread, that prints a line of answer per line of input."""

    def __init__(self, command):
        core = str(min(os.sched_getaffinity(0)))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "BURIN_NUM_THREADS": "1"}
        self.process = subprocess.Popen(["taskset", "-c", core, *command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)

    def ask(self, question):
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        return self.line()

    def line(self):
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"a contestant has ended: {' '.join(map(str, self.process.args))}")
        return answer.rstrip("\n")


def secondsOf(call, least=.2, warmUp=1):
    """Returns the seconds per call, averaged over at least `least` seconds of calls, after `warmUp` calls."""
    for _ in range(warmUp):
        call()
    calls = 1
    while True:
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        taken = time.perf_counter() - begin
        if taken > least:
            return taken / calls
        calls *= 2


def machine():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()
