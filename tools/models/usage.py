#!/usr/bin/env python3
"""Runs a command; prints the seconds it took and its largest memory in bytes, as the last line of standard output.

A process of its own, as the kernel counts the memory of the process that starts a command too."""
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
