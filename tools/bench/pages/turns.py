"""What the pages about single threads share."""
import pathlib
import platform
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "common"))
from contestant import Contestant, onThreads  # noqa: E402: found by the line above


def ofOneThread(name, command):
    return Contestant(name, command, **onThreads(1))


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
