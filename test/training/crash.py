#!/usr/bin/env python3
"""Kills a training process at random moments, and makes each system call of its saves fail: training resumes with the
same bits."""
import argparse
import errno
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time


def run(args, folder, steps, environment=None, timeout=None):
    process = subprocess.Popen(
        [args.trainer, folder, str(steps)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()  # SIGKILL
        process.communicate()
        return None
    return process.returncode, out.strip(), err.strip()


def checked(args, folder):
    """Checks that every checkpoint is complete; returns their number."""
    result = subprocess.run([args.trainer, "--check", folder], text=True, capture_output=True)
    if result.returncode:
        sys.exit(f"a checkpoint in {folder} is damaged: {result.stderr}")
    return int(result.stdout)


def killing(args, scratch):
    steps = 120
    run(args, scratch / "first", steps)  # compiles the kernels that later processes find in the cache
    begin = time.monotonic()
    code, wanted, err = run(args, scratch / "whole", steps)
    duration = time.monotonic() - begin
    if code:
        sys.exit(err)
    draws = random.Random(args.seed)
    kills = resumed = trainings = 0
    while kills < args.kills:
        trainings += 1
        folder = scratch / f"killed{trainings}"
        while True:
            before = checked(args, folder) if folder.exists() else 0
            result = run(args, folder, steps, timeout=duration * draws.uniform(0.1, 1.1))
            resumed += before > 0
            if result is None:
                kills += 1
                continue
            if result != (0, wanted, ""):
                sys.exit(f"seed {args.seed}, after {kills} kills: got {result}, wanted {wanted}")
            break
    print(f"{kills} kills in {trainings} trainings of {duration:.2f} s, resumed {resumed} times: same bits")
    if resumed < args.kills // 4:
        sys.exit("too few trainings went on from a checkpoint for this to say much")


def failing(args, scratch):
    steps = 20  # five checkpoints, two of which are deleted again
    _, wanted, _ = run(args, scratch / "undisturbed", steps)
    calls = {}
    for error in (errno.ENOSPC, errno.EIO, 0):
        for at in range(1, 1000):
            folder, log = scratch / f"failed{error}-{at}", scratch / "log"
            log.unlink(missing_ok=True)
            code, out, err = run(
                args,
                folder,
                steps,
                {
                    "LD_PRELOAD": args.shim,
                    "FAIL_FOLDER": str(folder),
                    "FAIL_AT": str(at),
                    "FAIL_ERROR": str(error),
                    "FAIL_LOG": str(log),
                },
            )
            if not log.exists():
                break  # the save has fewer calls
            call = log.read_text()
            what = f"{call} ({errno.errorcode.get(error, 'short')}), call {at}"
            calls[call] = calls.get(call, 0) + 1
            if code == 0 and out != wanted:
                sys.exit(f"{what}: other weights")
            if code == 0 and error and call in ("write", "fsync", "rename", "open", "open64"):
                sys.exit(f"{what}: the save failed, and nothing was said")
            if code not in (0, 1) or (code == 1 and ("Checkpoint" not in err or not error)):
                sys.exit(f"{what}: exit code {code}: {err}")
            if folder.exists():
                checked(args, folder)
            if run(args, folder, steps) != (0, wanted, ""):
                sys.exit(f"{what}: the training did not go on")
    print("failures: " + ", ".join(f"{count} of {call}" for call, count in sorted(calls.items())))
    if not {"write", "fsync", "rename", "close"} <= calls.keys():
        sys.exit("the shim has not seen the calls of a save")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--shim", required=True)
    parser.add_argument("--kills", type=int, default=100 if os.environ.get("BURIN_LONG_TESTS") else 15)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        killing(args, pathlib.Path(folder))
        failing(args, pathlib.Path(folder))


if __name__ == "__main__":
    main()
