"""The least time that this machine needs for a workload: each step takes as long as its arithmetic at the peak measured
beside it, or its memory traffic at the measured bandwidth, whichever is longer."""


def bandwidth(machine, threads, workingSet, isRead):
    """Bytes per ns of the first cache that holds the working set, or of memory: reading, or both ways at once."""
    level = next((c["name"] for c in machine["caches"] if c["reported_bytes"] >= workingSet), "DRAM")
    bothWays = level == "DRAM" and not isRead
    rates = {b["threads"]: max(b["sequential"], b["copy"] if bothWays else 0)
             for b in machine["bandwidths"] if b["level"] == level}
    return rates.get(threads, rates[1])


def weightBytes(facts):
    return sum(w["bytes"] for w in facts["weights"])


def workingSet(facts):
    """Bytes that one run touches: what its steps read and write, each weight and buffer once."""
    held = weightBytes(facts) + facts["memory"]["planned_bytes"]
    moved = sum(s["bytes"] for s in facts["steps"])
    return moved if len(facts["steps"]) == 1 else min(moved, held)


def floorNs(facts, machine, threads, peak):
    """`peak`: f32, in operations per ns."""
    touched = workingSet(facts)
    isRead = weightBytes(facts) > touched / 2  # weights are never written
    bytesPerNs = bandwidth(machine, threads, touched, isRead)
    return sum(max(s["flops"] / peak, s["bytes"] / bytesPerNs) for s in facts["steps"])
