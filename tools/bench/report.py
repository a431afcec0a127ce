"""What compare.py prints."""


def workOf(facts):
    """Of an artifact, from burin inspect --json."""
    steps = facts["steps"]
    return {"flops": sum(s["flops"] for s in steps), "bytes": sum(s["bytes"] for s in steps), "steps": len(steps),
            "compile_seconds": facts["compile_seconds"], "arena_ratio": facts["memory"]["ratio"],
            "arena_bytes": facts["memory"]["planned_bytes"]}


def timeText(nanoseconds):
    return f"{nanoseconds / 1e3:.1f}" if nanoseconds < 1e5 else f"{nanoseconds / 1e3:.0f}"


def fastestPeer(row):
    peers = {n: c["median"] for n, c in row["contestants"].items() if n != "burin" and "median" in c}
    return min(peers.items(), key=lambda item: item[1]) if peers else (None, None)


def heading(group, threads):
    return (f"\n{group}s, {threads} thread{'s' * (threads > 1)}: µs, medians (p10–p90)\n"
            f"{'':30} {'burin':>10} {'p10':>9} {'p90':>9} {'GFLOP/s':>8} {'GB/s':>6} {'ratio':>6}  "
            f"{'error':>7}  peers")


def line(row):
    own = row["contestants"]["burin"]
    if "error" in own:
        return f"{row['name']:30} {own['error']}"
    t = own["median"]
    _, best = fastestPeer(row)
    peers = []
    for name, value in row["contestants"].items():
        if name != "burin":
            peers.append(f"{name} " + ("failed" if "error" in value else timeText(value["median"])))
    ratio = f"{best / t:6.2f}" if best else " " * 6
    error = f"{own['worst_error']:.1e}" if "worst_error" in own else ""
    return (f"{row['name']:30} {timeText(t):>10} {timeText(own['p10']):>9} {timeText(own['p90']):>9} "
            f"{row['flops'] / t:8.1f} {row['bytes'] / t:6.1f} {ratio}  {error:>7}  {', '.join(peers)}")
