"""The least time that this machine needs for a workload: each step takes as long as its arithmetic at the peak, or its
memory traffic at the bandwidth that was measured beside it, whichever is longer."""

PEAK = "peak"


def weightBytes(facts):
    return sum(w["bytes"] for w in facts["weights"])


def workingSet(facts):
    """Bytes that one run touches: what its steps read and write, each weight and buffer once."""
    held = weightBytes(facts) + facts["memory"]["planned_bytes"]
    moved = sum(s["bytes"] for s in facts["steps"])
    return moved if len(facts["steps"]) == 1 else min(moved, held)


def bandwidthOf(facts, caches):
    """What to measure: reading the first cache that holds the working set, or memory, which is copied where most of the
    working set is no weights, as these are never written."""
    touched = workingSet(facts)
    level = next((c["name"] for c in caches if c["reported_bytes"] >= touched), "DRAM")
    isCopied = level == "DRAM" and weightBytes(facts) <= touched / 2
    return f"{'copy' if isCopied else 'read'} {level}"


def floorNs(facts, caches, speeds):
    """`speeds`: of the machine, of `PEAK` in operations per ns and of `bandwidthOf` in bytes per ns."""
    bytesPerNs = speeds[bandwidthOf(facts, caches)]
    return sum(max(s["flops"] / speeds[PEAK], s["bytes"] / bytesPerNs) for s in facts["steps"])
