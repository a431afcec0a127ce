#!/usr/bin/env python3
"""Measures burin and its peers side by side.

Each contestant is a process of its own, pinned to as many cores as it has threads. All contestants load a workload and
then take turns (A B C A B C …) of some milliseconds each, so that changes of the machine affect all of them alike.
Outputs are checked against PyTorch in f64, or without peers against burin's reference interpreter. Prints the median of
the turns with the first and last decile."""
import argparse
import array
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import floor
import overheads
import report

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "common"))
from contestant import Contestant, Ended  # noqa: E402: found by the line above

PEERS = {"model": ["onnxruntime", "openvino", "torch", "torchscript", "libtorch", "inductor", "iree"],
         "kernel": ["onednn", "openblas", "onnxruntime", "torch"], "overhead": ["onnxruntime"]}
WARM_NS = 5e6  # warm-up time of a turn: enough to wake a contestant's own threads and to refill the caches
CHECKED_FLOPS = 1e8  # limit for the reference interpreter, which would take too long for more
NATIVE_PEERS = {"onednn": "burin-bench-onednn", "openblas": "burin-bench-openblas", "libtorch": "burin-bench-libtorch"}
MAKES_CODE = ["inductor", "iree", "libtorch"]  # slowest to compile first, so that the pool of processes ends evenly
MAKES_CODE_PER_THREADS = ["inductor"]
SLOW = 3  # a peer that takes this many times as long as the fastest one in a first run gets only SLOW_ROUNDS turns
SLOW_ROUNDS = 3
SCALE = "scale"  # the process (burin-bench-scale) that measures the machine between turns
AMX = "burin_amx"  # burin compiled for AMX (bf16 tiles)
AMX_TARGET = "x86-64-v4+amx"
NEIGHBOUR = "neighbour"  # burin on the neighbour (Workload::neighbourOf) of a workload, measured in the same turns
LONG_NS = 50e6  # a call this long needs no warm-up
# Debian's OpenBLAS takes newer AVX-512 processors for Haswell; it detects all others correctly.
PROCESSOR = pathlib.Path("/proc/cpuinfo").read_text()
OPENBLAS = {"OPENBLAS_CORETYPE": "SkylakeX"} if " avx512f " in PROCESSOR else {}


class Worker(Contestant):
    """A contestant whose failures are answers that begin with "error"."""

    def __init__(self, name, command, cores, niceness, log):
        self.name, self.niceness, self.missing = name, niceness, None
        if not os.path.exists(command[0]):
            self.missing = f"error: {os.path.basename(command[0])} is not built"
            return
        threads = {f"{library}_NUM_THREADS": str(len(cores)) for library in ("BURIN", "OMP", "OPENBLAS")}
        super().__init__(name, command, cores, {**threads, "PYTHONWARNINGS": "ignore", **OPENBLAS}, log)

    def ask(self, line):
        if self.missing:
            return self.missing
        try:
            return super().ask(line)
        except Ended as error:
            return f"error: {error}"

    def setPriority(self, niceness):
        if not self.niceness:
            return
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            try:
                os.setpriority(os.PRIO_PROCESS, int(thread), niceness)
            except (PermissionError, ProcessLookupError):
                pass

    def nanoseconds(self, warm, count):
        """Returns the time of one call in ns: the mean of `count` calls after `warm` untimed ones."""
        answer = self.ask(f"run {warm} {count}")
        if answer.startswith("error"):
            raise RuntimeError(answer)
        return int(answer) / count

    def speed(self, what):
        """Returns the rate that the machine reaches now, in operations or bytes per ns."""
        return float(self.ask(what))

    def close(self):
        if not self.missing:
            super().close()


def commandOf(name, options, threads):
    if name == "burin":
        return [str(options.bin / "burin-bench-worker"), str(options.data), str(threads)]
    if name == AMX:
        return [str(options.bin / "burin-bench-worker"), str(options.data), str(threads), AMX]
    if name == SCALE:
        return [str(options.bin / "burin-bench-scale"), str(threads)]
    if name in NATIVE_PEERS:
        return [str(options.bin / NATIVE_PEERS[name]), str(options.data), str(threads)]
    return [str(options.python), str(HERE / "peers/worker.py"), name, "--threads", str(threads),
            "--folder", str(options.data)]


def prepare(options, workloads):
    """Writes graphs, weights and inputs (if burin-bench is newer than them), and compiles the artifacts. Returns the
    facts of each artifact, with the compile time, by workload."""
    bench, compiler = options.bin / "burin-bench", options.bin / "burin"
    facts = {}
    for workload in workloads:
        name = workload["name"]
        graph, artifact = options.data / f"{name}.burin", options.data / f"{name}.plate"
        if not graph.exists() or graph.stat().st_mtime < bench.stat().st_mtime:
            subprocess.run([bench, "--write", options.data, name], check=True)
        start = time.monotonic()
        subprocess.run([compiler, "compile", graph, "-o", artifact], check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - start
        facts[name] = json.loads(subprocess.check_output([compiler, "inspect", "--json", artifact]))
        facts[name]["compile_seconds"] = seconds
        facts[name]["has_amx"] = " amx_bf16 " in PROCESSOR and compileForAmx(compiler, graph, artifact)
    return facts


def compileForAmx(compiler, graph, artifact):
    """Compiles for AMX and returns whether any kernel uses it."""
    path = artifact.with_suffix(f".{AMX}.plate")
    subprocess.run([compiler, "compile", graph, "--target", AMX_TARGET, "-o", path], check=True,
                   stdout=subprocess.DEVNULL)
    kernels = json.loads(subprocess.check_output([compiler, "inspect", "--json", path]))["kernels"]
    return any(kernel["name"] == "bf16_terms" for kernel in kernels)


def measure(options, entries, group, scale, asked):
    """Measures (worker, workload name) pairs by turns. Returns {contestant: {median, p10, p90, turns, in ns}}, and
    {quantity: median rate} of the machine quantities `asked`, which `scale` measures between the turns."""
    isModel = group == "model"
    seconds, least = (options.seconds, options.rounds) if isModel else (options.seconds / 4, 2 * options.rounds)
    loaded, result = [], {}
    for worker, workload in entries:
        answer = worker.ask("load " + workload)
        if answer == "ok":
            answer = worker.ask("output")
        if answer == "ok":
            loaded.append(worker)
        elif not answer.startswith("error: unsupported"):
            result[worker.name] = {"error": answer}
        worker.pause()
    once = {}
    for worker in loaded:
        worker.setPriority(worker.niceness)
        once[worker] = firstLook(worker)
        worker.pause()
    slow = slowOnes(once)
    rounds, times, speeds = 0, {worker.name: [] for worker in loaded}, {what: [] for what in asked}

    def lookAtMachine():
        for what in asked:
            speeds[what].append(scale.speed(what))
        scale.pause()

    lookAtMachine()
    end = time.monotonic() + seconds * (len(loaded) - len(slow))
    while loaded and (rounds < least or time.monotonic() < end) and rounds < 101:
        for worker in loaded[rounds % len(loaded):] + loaded[:rounds % len(loaded)]:
            if worker in slow and rounds >= SLOW_ROUNDS:
                continue
            warm = 0 if once[worker] > LONG_NS else max(1, int(min(WARM_NS, options.slice * 1e6) / once[worker]))
            times[worker.name].append(worker.nanoseconds(warm, max(1, int(options.slice * 1e6 / once[worker]))))
            worker.pause()
        lookAtMachine()
        rounds += 1
    for worker in loaded:
        worker.setPriority(0)
        values = sorted(times[worker.name])
        pick = lambda q: values[int(q * (len(values) - 1))]
        result[worker.name] = {"median": statistics.median(values), "p10": pick(0.1), "p90": pick(0.9),
                               "turns": times[worker.name]}
    return result, {what: statistics.median(values) for what, values in speeds.items()}


def firstLook(worker):
    """Returns a rough time of one call in ns."""
    once = worker.nanoseconds(0, 1)
    return once if once > LONG_NS else min(once, worker.nanoseconds(1, max(1, int(2e6 / once))))


def slowOnes(once):
    """Returns the peers that are too slow to be the fastest peer; `once` is {worker: ns}."""
    peers = {worker: ns for worker, ns in once.items() if worker.name not in ("burin", AMX, NEIGHBOUR)}
    return {worker for worker, ns in peers.items() if ns > SLOW * min(peers.values())}


def select(options, workloads):
    chosen = [w for w in workloads if not options.filter or any(re.search(f, w["name"]) for f in options.filter)]
    chosen = [w for w in chosen if options.group in ("all", w["group"])]
    if not chosen:
        sys.exit(f"compare.py: no workload matches {options.filter}; burin-bench --list shows them")
    return chosen


def peersOf(options, group):
    if not options.peers:
        return []
    return [n for n in PEERS[group] if n in (options.only or [n]) and n not in options.without]


class Checker:
    """Compares the outputs of contestants with those of PyTorch in f64."""

    def __init__(self, options, log):
        command = [options.python, HERE / "peers/check.py", "--folder", options.data]
        self.process = Contestant("the check", command, log=log)
        self.process.line()  # waits until it has started

    def check(self, row):
        """Adds the worst relative error to each contestant of the row that ran."""
        for name, value in row["contestants"].items():
            if "error" not in value:
                value["worst_error"] = float(self.process.ask(f"{row['name']} {name}"))

    def close(self):
        self.process.close()


class ReferenceChecker:
    """Compares burin's outputs with its reference interpreter's when no peers are measured; only for small
    workloads."""

    def __init__(self, options, log):
        self.options, self.log = options, log

    def check(self, row):
        own = row["contestants"]["burin"]
        if "error" in own or row["flops"] > CHECKED_FLOPS:
            return
        folder, name = self.options.data, row["name"]
        inputs = [f"{i}=@{folder / name}.{i}.npy" for i in (folder / f"{name}.inputs").read_text().split()]
        command = [self.options.bin / "burin", "verify", folder / f"{name}.burin", "--artifact",
                   folder / f"{name}.plate", "--threads", str(row["threads"]), "--json"]
        said = subprocess.run(command + [w for i in inputs for w in ("--input", i)], stdout=subprocess.PIPE,
                              stderr=self.log, text=True).stdout
        own["worst_error"] = max(output["worst_absolute"] / largest(folder / f"{name}.burin.{i}.npy")
                                 for i, output in enumerate(json.loads(said)["outputs"]))

    def close(self):
        pass


def largest(path):
    """Returns the largest absolute value in an .npy file of f32."""
    data = path.read_bytes()
    header = 10 + int.from_bytes(data[8:10], "little")
    values = array.array("f", data[header:])
    return max(max(values), -min(values), 1e-30)


def describe(row, facts, caches):
    """Adds the work of the artifact, from `facts` of all workloads, and its time on the roofline to the row."""
    own = facts[row["name"]]
    least = lambda workload: floor.floorNs(workload, caches, row["speeds"])
    row["flops"] = sum(step["flops"] for step in own["steps"])
    row["bytes"] = sum(step["bytes"] for step in own["steps"])
    row["steps"] = len(own["steps"])
    row["floor_ns"] = least(own)
    row["neighbour_floor_ns"] = least(facts[row["neighbour_of"]]) if row["neighbour"] else None


def measureGroup(options, group, workloads, threads, facts, caches, log):
    cores = sorted(os.sched_getaffinity(0))[-threads:]
    names = ["burin"] + [AMX] * any(facts[w["name"]]["has_amx"] for w in workloads) + peersOf(options, group)
    contestants = [Worker(n, commandOf(n, options, threads), cores, options.nice, log) for n in names]
    settings = {worker.name: worker.ask("settings") for worker in contestants}
    if AMX in settings:
        settings[AMX] = f"the same, target {AMX_TARGET}"
    for worker in [w for w in contestants if settings[w.name].startswith("error")]:
        settings[worker.name] = f"left out ({settings[worker.name]})"
        print(f"{worker.name} is {settings[worker.name]}", flush=True)
        worker.close()
        contestants.remove(worker)
    makeChecker = Checker if options.python.exists() else ReferenceChecker
    checker = None if options.quick else makeChecker(options, log)
    beside = Worker(NEIGHBOUR, commandOf("burin", options, threads), cores, options.nice, log)
    scale = Worker(SCALE, commandOf(SCALE, options, threads), cores, options.nice, log)
    rows = []
    for workload in workloads:
        neighbour = workload["neighbour_of"]
        entries = [(worker, workload["name"]) for worker in contestants
                   if worker.name != AMX or facts[workload["name"]]["has_amx"]]
        entries += [(beside, neighbour)] * (neighbour in facts)
        asked = {floor.PEAK} | {floor.bandwidthOf(facts[name], caches) for name in (workload["name"], neighbour)
                                if name in facts}
        times, speeds = measure(options, entries, group, scale, asked)
        row = {"name": workload["name"], "group": group, "threads": threads, "neighbour_of": neighbour,
               "neighbour": times.pop(NEIGHBOUR, None), "contestants": times, "speeds": speeds}
        describe(row, facts, caches)
        rows.append(row)
        if checker:
            checker.check(row)
        print(report.line(row), flush=True)
    for worker in contestants + [beside, scale] + ([checker] if checker else []):
        worker.close()
    return rows, settings


def makePeerFiles(options, workloads, log):
    """Prepares files that peers take long to generate, on all cores: first the ONNX files, from which others are
    derived, then compiled code."""
    wanted = {group: [w["name"] for w in workloads if w["group"] == group] for group in PEERS}

    def jobs(peer):
        for threads in options.threads.split(",") if peer in MAKES_CODE_PER_THREADS else ["1"]:
            for group, names in wanted.items():
                size = 1 if group == "model" else 16  # several kernels per process, as starting one takes seconds
                if peer in peersOf(options, group):
                    yield from ((peer, threads, names[i:i + size]) for i in range(0, len(names), size))

    def run(job):
        peer, threads, names = job
        subprocess.run([options.python, HERE / "peers/worker.py", peer, "--folder", options.data, "--threads", threads,
                        "--make", *names], stdout=log, stderr=log)

    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
        list(threads.map(run, jobs("onnxruntime")))
        list(threads.map(run, [job for peer in MAKES_CODE for job in jobs(peer)]))


@contextlib.contextmanager
def timed(used, what):
    start = time.monotonic()
    yield
    used[what] = time.monotonic() - start


class Machine:
    """The description of the machine by `burin machine` at one moment."""

    def __init__(self, options):
        command = [options.bin / "burin", "machine"] + ["--quick"] * options.quick
        facts, text, picture = (options.data / f"machine.{kind}" for kind in ("json", "txt", "svg"))
        subprocess.run([*command, "--svg", picture, "--json-file", facts, "--text-file", text], check=True,
                       stdout=subprocess.DEVNULL)
        self.text, self.picture, self.facts = text.read_text(), picture.read_text(), json.loads(facts.read_text())

    def speed(self):
        """A figure of merit, by which the less disturbed of two descriptions is chosen."""
        return sum(b["sequential"] + b["copy"] for b in self.facts["bandwidths"] if b["level"] in ("L3", "DRAM"))


def loadText(before):
    """Reports the load average, which shows whether other processes disturbed the run."""
    return (f"the machine's load average was {before:.1f} before the run and {os.getloadavg()[0]:.1f} at its end, on "
            f"{len(os.sched_getaffinity(0))} cores, of which the run itself takes 1 or 2")


def timeText(used):
    whole = sum(used.values())
    return (", ".join(f"{what} {seconds:.0f} s" for what, seconds in used.items()) +
            f"; together {whole / 60:.1f} minutes, after installing and building")


def writeDocs(options, results, settings, machine, around, load):
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
    words = " ".join(a for a in sys.argv[1:] if a not in ("--build", str(options.build)))
    document = report.document(results, settings, around, machine=machine.text, command=f"tools/dev bench {words}",
                               slow=SLOW, slowRounds=SLOW_ROUNDS,
                               date=time.strftime("%Y-%m-%d"), commit=commit, load=load)
    options.docs.mkdir(parents=True, exist_ok=True)
    (options.docs / "benchmarks.md").write_text(document)
    (options.docs / "benchmarks.svg").write_text(report.picture(results))
    (options.docs / "machine.svg").write_text(machine.picture)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(".build/release"))
    parser.add_argument("--data", type=pathlib.Path, help="graphs, artifacts and outputs (default: .build/bench)")
    parser.add_argument("--peers", action="store_true", help="measure the peers too")
    parser.add_argument("--only", action="append", help="only this peer (may be repeated)")
    parser.add_argument("--without", action="append", default=[], help="not this peer (may be repeated)")
    parser.add_argument("--filter", action="append", help="only workloads that match this regular expression")
    parser.add_argument("--group", choices=["model", "kernel", "overhead", "all"], default="all")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, each measured (default 1,2)")
    parser.add_argument("--seconds", type=float, default=1,
                        help="per contestant and model; kernels take a quarter")
    parser.add_argument("--slice", type=float, default=20, help="milliseconds a turn lasts at least")
    parser.add_argument("--rounds", type=int, default=7, help="turns at least of models; kernels get twice as many")
    parser.add_argument("--nice", type=int, default=0, help="scheduling priority while measuring (root: below 0)")
    parser.add_argument("--quick", action="store_true", help="two short turns, to see whether everything works")
    parser.add_argument("--json", type=pathlib.Path, help="write the results there")
    parser.add_argument("--docs", type=pathlib.Path, help="write benchmarks.md and its pictures into this folder, "
                        "such as docs/benchmarks/MACHINE")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    options.bin = options.build.resolve() / "bin"
    options.python = options.build.resolve().parent / "peers/bin/python"
    options.data = (options.data or options.build / "../bench").resolve()
    options.data.mkdir(exist_ok=True)
    if options.quick:
        options.seconds, options.slice, options.rounds = 0, 0.1, 2
    if options.peers and not options.python.exists():
        sys.exit(f"compare.py: the peers are not installed in {options.python.parent.parent}: run tools/dev bench --peers")

    listed = json.loads(subprocess.check_output([options.bin / "burin-bench", "--list", "--json"]))
    (options.data / "list.json").write_text(json.dumps(listed))
    workloads = select(options, listed)
    used, results, settings = {}, [], {}
    with open(options.data / "peers.log", "w") as log:
        with timed(used, "weights and burin's compiler"):
            facts = prepare(options, workloads)
        if options.peers:
            with timed(used, "the peers' compilers"):
                makePeerFiles(options, workloads, log)
        with timed(used, "the machine"):
            machine = Machine(options)
        print(machine.text)
        for threads in map(int, options.threads.split(",")):
            for group in PEERS:
                chosen = [w for w in workloads if w["group"] == group]
                if chosen:
                    print(report.heading(group, threads), flush=True)
                    with timed(used, f"{group}s with {threads} thread{'s' * (threads > 1)}"):
                        rows, said = measureGroup(options, group, chosen, threads, facts, machine.facts["caches"], log)
                    results += rows
                    settings.update(said)
    with timed(used, "overheads"):
        around = overheads.text(options, facts, results)
    with timed(used, "the machine again"):
        machine = max(machine, Machine(options), key=Machine.speed)
    around += f"- time used: {timeText(used)}\n"
    print("\naround the kernels\n" + around)
    if options.json:
        options.json.write_text(json.dumps(
            {"machine": machine.facts, "settings": settings, "results": results, "overheads": around}, indent=1))
    if options.docs:
        writeDocs(options, results, settings, machine, around, loadText(load))


if __name__ == "__main__":
    main()
