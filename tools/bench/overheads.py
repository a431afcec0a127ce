"""Measures overheads outside of kernels: a step of the plan, starting a process, compiling, planning memory, eager
calls."""
import statistics
import subprocess
import time


STARTED = ("mlp", "lenet", "resnet50")


def stepText(rows):
    """The time per step: the slope over graphs with different numbers of tiny steps."""
    lines = []
    for threads in sorted({r["threads"] for r in rows}):
        few, many = ({n: c["median"] for n, c in row["contestants"].items() if "median" in c}
                     for row in sorted((r for r in rows if r["threads"] == threads), key=lambda r: r["steps"]))
        steps = [r["steps"] for r in rows if r["threads"] == threads]
        for name in few:
            if name in many:
                slope = (many[name] - few[name]) / (max(steps) - min(steps))
                lines.append(f"- a step of the plan, {threads} thread{'s' * (threads > 1)}: {slope:.0f} ns ({name}; slope "
                             "over products of 1×8 by 8×8)\n")
    return "".join(lines)


def startSeconds(options, name):
    """Returns the seconds from starting a process to its first line of output."""
    inputs = (options.data / f"{name}.inputs").read_text().split()
    command = [options.bin / "burin-run", options.data / f"{name}.plate"]
    for tensor in inputs:
        command += ["--input", f"{tensor}=@{options.data / name}.{tensor}.npy"]
    times = []
    for _ in range(2 if options.quick else 15):
        start = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            times.append(time.perf_counter() - start)
            process.stdout.read()
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
    return statistics.median(times)


def text(options, facts, results):
    out = stepText([r for r in results if r["group"] == "overhead"])
    for name in STARTED:
        if name in facts:
            out += f"- from the start of burin-run to its first output, {name}: {startSeconds(options, name) * 1e3:.1f} ms\n"
    models = [name for name in facts if any(r["name"] == name and r["group"] == "model" for r in results)]
    if models:
        out += "- burin compile: " + ", ".join(f"{n} {facts[n]['compile_seconds']:.2f} s" for n in models) + "\n"
        worst = max(models, key=lambda n: facts[n]["memory"]["ratio"])
        out += f"- planned memory over the largest live set: at most {facts[worst]['memory']['ratio']:.3f} ({worst})\n"
        out += "- planned memory: " + ", ".join(
            f"{n} {facts[n]['memory']['planned_bytes'] / 1e6:.2f} MB" for n in models) + "\n"
    if options.quick:
        return out
    eager = subprocess.run([options.bin / "burin-bench"], check=True, capture_output=True, text=True).stdout
    return out + "".join(f"- {line}\n" for line in eager.splitlines())


