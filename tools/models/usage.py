#!/usr/bin/env python3
"""Runs a command and prints its seconds and its peak memory in bytes, as the last line of standard output.

A small process of its own, as the peak memory of a child includes that of the process that forked it."""
import os
import sys
import time

start = time.monotonic()
pid = os.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(time.monotonic() - start, usage.ru_maxrss * 1024)
sys.exit(os.waitstatus_to_exitcode(status) & 255)
