"""The roofline floor of a workload: the sum over its steps of the longer of arithmetic at peak rate and memory traffic
at the bandwidth that was measured in the same turns."""

PEAK = "peak"


def weightBytes(facts):
    return sum(w["bytes"] for w in facts["weights"])


def workingSet(facts):
    """Returns the bytes that one run touches: the operands and results of its steps, with each weight and buffer
    counted once."""
    held = weightBytes(facts) + facts["memory"]["planned_bytes"]
    moved = sum(s["bytes"] for s in facts["steps"])
    return moved if len(facts["steps"]) == 1 else min(moved, held)


def bandwidthOf(facts, caches):
    """Returns the bandwidth that bounds the workload: reading from the smallest cache that holds the working set;
    otherwise from DRAM, copying if weights, which are only read, are at most half of the working set."""
    touched = workingSet(facts)
    level = next((c["name"] for c in caches if c["reported_bytes"] >= touched), "DRAM")
    isCopied = level == "DRAM" and weightBytes(facts) <= touched / 2
    return f"{'copy' if isCopied else 'read'} {level}"


def floorNs(facts, caches, speeds):
    """Returns the floor in ns. `speeds` has the peak in operations per ns and the bandwidth in bytes per ns."""
    bytesPerNs = speeds[bandwidthOf(facts, caches)]
    return sum(max(s["flops"] / speeds[PEAK], s["bytes"] / bytesPerNs) for s in facts["steps"])
