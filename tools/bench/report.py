"""The output of compare.py, and the pages under docs/benchmarks."""
import math
import statistics


def timeText(nanoseconds):
    us = nanoseconds / 1e3
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 1000 else f"{us:,.0f}"


AMX = "burin_amx"
OWN = ("burin", AMX)


def peerTimes(row):
    return {n: c["median"] for n, c in row["contestants"].items() if n not in OWN and "median" in c}


def quotient(x, y):
    """The median ratio of two contestants' times, turn by turn: a disturbance of the machine slows both alike."""
    return statistics.median(a / b for a, b in zip(x["turns"], y["turns"]))


def quotients(row, name="burin"):
    """{peer: its time over burin's}"""
    own = row["contestants"].get(name, {})
    return {n: quotient(row["contestants"][n], own) for n in peerTimes(row)} if "turns" in own else {}


def ratio(row, name="burin"):
    """Returns the fastest peer's time over burin's; above 1, burin is faster."""
    return min(quotients(row, name).values(), default=None)


def bestRatio(row):
    return max((r for r in map(lambda name: ratio(row, name), OWN) if r), default=None)


def fastestPeer(row):
    peers = quotients(row)
    return min(peers, key=peers.get) if peers else ""


def efficiency(row):
    """Returns the roofline floor over burin's time."""
    own = row["contestants"]["burin"]
    return row["floor_ns"] / own["median"] if "median" in own else None


def neighbourRatio(row):
    """Returns the efficiency of a shape over that of its neighbour."""
    own, beside = row["contestants"]["burin"], row["neighbour"]
    if not beside or "error" in own or "error" in beside:
        return None
    return row["floor_ns"] / row["neighbour_floor_ns"] * quotient(beside, own)


def number(value, digits=2):
    return "" if value is None else f"{value:.{digits}f}"


def geomean(values):
    values = [v for v in values if v]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def amxText(row):
    """Formats the result of burin compiled for AMX, if measured: its time and, in brackets, the ratio and the worst
    error."""
    own = row["contestants"].get(AMX)
    if not own:
        return ""
    if "error" in own:
        return "failed"
    facts = [number(ratio(row, AMX))] if peerTimes(row) else []
    if "worst_error" in own:
        facts.append(f"{own['worst_error']:.0e}")
    return timeText(own["median"]) + (f" ({'; '.join(facts)})" if facts else "")


# ---- while measuring

def heading(group, threads):
    return (f"\n{group}s, {threads} thread{'s' * (threads > 1)}: µs, medians\n"
            f"{'':28} {'burin':>10} {'p10':>10} {'p90':>10} {'GFLOP/s':>8} {'GB/s':>6} {'floor':>6} {'ratio':>6} "
            f"{'error':>8}  peers")


def line(row):
    own = row["contestants"]["burin"]
    if "error" in own:
        return f"{row['name']:28} {own['error']}"
    t = own["median"]
    peers = [f"{name} " + ("failed" if "error" in value else timeText(value["median"]))
             for name, value in row["contestants"].items() if name not in OWN]
    if amxText(row):
        peers.insert(0, f"with AMX {amxText(row)}")
    error = f"{own['worst_error']:.1e}" if "worst_error" in own else ""
    text = (f"{row['name']:28} {timeText(t):>10} {timeText(own['p10']):>10} {timeText(own['p90']):>10} "
            f"{row['flops'] / t:8.1f} {row['bytes'] / t:6.1f} {number(efficiency(row)):>6} {number(ratio(row)):>6} "
            f"{error:>8}  {', '.join(peers)}")
    neighbour = neighbourRatio(row)
    return text + (f"; {neighbour:.2f} of {row['neighbour_of']}" if neighbour else "")


# ---- docs/benchmarks/*/benchmarks.md

HEADER = """# Benchmarks

Made by `{command}`; the numbers below are its output, not edited by hand.
Burin and its peers take turns (A B C A B C …), each in a process of its own, pinned to as many cores as it has threads,
and stopped between its turns, as some threads spin on after a run; times are medians in µs. A peer that at a first look
takes more than {slow} times as long as the fastest peer cannot be the fastest, and gets {slowRounds} turns only. `floor` is the share
of the roofline floor, the sum over the steps of max(FLOP / peak, bytes / bandwidth), that was reached; both are measured
between the turns, as clocks wander and others use the memory too. The peak is that of multiplications from registers, the
bandwidth that of the first cache that holds what a run touches, or that of memory: of reading where most of it is
weights, else of copying. All weights count, also those that burin leaves in memory where a product of one row meets zeros (AlexNet's large layers, behind relu).
`burin with AMX` is code for the target x86-64-v4+amx, where products run by tiles of bf16: three bf16 terms add up to an
f32, so errors are those of f32 ([numerics](../../numerics.md)); in brackets the ratio and the error. All other columns are code
for the native target, and peers compute in f32.
`ratio` is the fastest peer's time over burin's, the median of all turns: above 1, burin is faster. A shape that lies
beside another takes turns with it, too; in brackets stands its efficiency over that of its neighbour. `error` is the
largest difference from PyTorch in f64 over the largest value (without peers: from burin's reference interpreter, and
only where that is soon done).

Measured on {date}, commit {commit}; {load}.

![Ratio to the fastest peer](benchmarks.svg)

## The machine

Looked at before and after the run; this is the faster of the two. Floors are reckoned with what was measured between the
turns.

```
{machine}```

![Bandwidth and latency](machine.svg)

## Who takes part

"""


def table(rows, columns):
    lines = ["| " + " | ".join(columns) + " |", "|---" + "|---:" * (len(columns) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def groupTable(rows):
    peers = list(dict.fromkeys(n for row in rows for n in row["contestants"] if n not in OWN))
    hasAmx = any(AMX in row["contestants"] for row in rows)
    cells = []
    for row in rows:
        own = row["contestants"]["burin"]
        if "error" in own:
            cells.append([row["name"], own["error"]] + [""] * (6 + hasAmx + len(peers)))
            continue
        times = peerTimes(row)
        best = fastestPeer(row)
        mark = lambda n: f"**{timeText(times[n])}**" if n == best else timeText(times[n]) if n in times else (
            "failed" if n in row["contestants"] else "")
        name = row["name"]
        neighbour = neighbourRatio(row)
        if neighbour:
            name += f" ({neighbour:.2f} of {row['neighbour_of']})"
        cells.append([name, timeText(own["median"]), f"{timeText(own['p10'])}–{timeText(own['p90'])}",
                      number(row["flops"] / own["median"], 1), number(row["bytes"] / own["median"], 1),
                      number(efficiency(row)), number(ratio(row)),
                      f"{own['worst_error']:.0e}" if "worst_error" in own else ""] + [amxText(row)] * hasAmx +
                     [mark(n) for n in peers])
    columns = ["", "burin", "p10–p90", "GFLOP/s", "GB/s", "floor", "ratio", "error"] + ["burin with AMX"] * hasAmx
    return table(cells, columns + peers)


def failures(rows):
    """Which peers could not run what, and what they said."""
    said = {}
    for row in rows:
        for name, value in row["contestants"].items():
            if name != "burin" and "error" in value:
                error = value["error"].removeprefix("error: ").replace("`", "'")
                said.setdefault((name, error[:200]), []).append(row["name"])
    return "".join(f"- {name} fails on {', '.join(names)}: `{error}`\n" for (name, error), names in said.items())


def document(results, settings, overheads, **header):
    """Returns the text of a page; `header` has the fields of HEADER."""
    text = HEADER.format(**header)
    text += "".join(f"- {name}: {said}\n" for name, said in settings.items())
    for threads in sorted({r["threads"] for r in results}):
        for group in ("model", "kernel"):
            rows = [r for r in results if r["threads"] == threads and r["group"] == group]
            if rows:
                mean = geomean([ratio(r) for r in rows])
                text += f"\n## {group.capitalize()}s, {threads} thread{'s' * (threads > 1)}\n\n{groupTable(rows)}"
                text += f"\nGeometric mean of the ratios: {number(mean)}{withAmx(rows)}.\n" if mean else ""
                text += failures(rows) and f"\n{failures(rows)}"
    return text + "\n## Around the kernels\n\n" + overheads


def withAmx(rows):
    used = any(AMX in r["contestants"] for r in rows)
    return f"; with AMX where there is such code, {number(geomean([bestRatio(r) for r in rows]))}" if used else ""


def picture(results):
    """Draws a bar for the ratio of each model, with 1 in the middle, on a logarithmic scale. Outlined bars are the
    ratio with AMX."""
    rows = [r for r in results if r["group"] == "model" and ratio(r)]
    left, width, height = 170, 480, 16
    middle, scale = left + width / 2, width / 2 / math.log(4)  # from 1/4 to 4
    total = 50 + height * len(rows) + 10
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 120}" height="{total}" '
           'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{left}" y="18" font-weight="bold">The fastest peer\'s time over burin\'s</text>']
    for tick in (0.25, 0.5, 1, 2, 4):
        x = middle + scale * math.log(tick)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="40" y2="{total - 8}" stroke="{"#333" if tick == 1 else "#ddd"}"/>'
                   f'<text x="{x:.1f}" y="34" text-anchor="middle">{tick:g}</text>')
    for i, row in enumerate(rows):
        y, value = 44 + i * height, ratio(row)
        end = middle + scale * math.log(min(max(value, 0.25), 4))
        colour = "#2f7d4f" if value >= 1 else "#b5432f"
        out.append(f'<text x="{left - 8}" y="{y + 10}" text-anchor="end">{row["name"]}, {row["threads"]}T</text>'
                   f'<rect x="{min(middle, end):.1f}" y="{y}" width="{abs(end - middle):.1f}" height="{height - 4}" '
                   f'fill="{colour}"/>')
        tiles = ratio(row, AMX)
        if tiles:
            far = middle + scale * math.log(min(max(tiles, 0.25), 4))
            out.append(f'<rect x="{min(middle, far):.1f}" y="{y}" width="{abs(far - middle):.1f}" '
                       f'height="{height - 4}" fill="none" stroke="#333"/>')
            end = max(end, far)
        out.append(f'<text x="{max(middle, end) + 4:.1f}" y="{y + 10}">{value:.2f} ({fastestPeer(row)})'
                   f'{f", {tiles:.2f} with AMX" if tiles else ""}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"
