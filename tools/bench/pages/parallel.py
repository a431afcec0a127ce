#!/usr/bin/env python3
"""Measures asynchronous and concurrent execution by burin-bench-parallel, with one thread and with two, and writes the
tables and pictures of docs/parallel.md. Run by `tools/dev bench --parallel`."""
import argparse
import collections
import csv
import os
import pathlib
import subprocess
import sys

COLORS = ["#3050b0", "#b03030", "#308040", "#a06010", "#703090", "#207080"]
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


# ---- pictures

def svg(width, height, lines):
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
            f'font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n')
    return head + "\n".join(lines) + "\n</svg>\n"


def text(x, y, words, color="#222", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" text-anchor="{anchor}">{words}</text>'


def lineChart(series, xTitle, yTitle, logarithmic=False):
    """Draws lines; `series` maps names to points (x, y)."""
    import math
    left, top, width, height = 70, 20, 420, 240
    scale = math.log10 if logarithmic else float
    xs = [scale(x) for points in series.values() for x, _ in points]
    ys = [scale(y) for points in series.values() for _, y in points]
    lowX, highX = min(xs), max(xs)
    lowY, highY = (min(ys), max(ys)) if logarithmic else (0, max(ys) * 1.05)
    atX = lambda x: left + (scale(x) - lowX) / ((highX - lowX) or 1) * width
    atY = lambda y: top + height - (scale(y) - lowY) / ((highY - lowY) or 1) * height
    out = [f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>']
    if logarithmic:
        ticksX = [10 ** e for e in range(math.ceil(lowX), math.floor(highX) + 1)]
        ticksY = [10 ** e for e in range(math.ceil(lowY), math.floor(highY) + 1)]
    else:
        ticksX = [lowX + (highX - lowX) * i / 4 for i in range(5)]
        ticksY = [highY * i / 4 for i in range(5)]
    for x in ticksX:
        out.append(text(atX(x), top + height + 16, f"{x:g}" if logarithmic else f"{x:.3g}", anchor="middle"))
    for y in ticksY:
        out.append(f'<line x1="{left}" x2="{left + width}" y1="{atY(y):.1f}" y2="{atY(y):.1f}" stroke="#eee"/>')
        out.append(text(left - 6, atY(y) + 4, f"{y:.3g}", anchor="end"))
    for i, (name, points) in enumerate(series.items()):
        color = COLORS[i % len(COLORS)]
        out.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="'
                   + " ".join(f"{atX(x):.1f},{atY(y):.1f}" for x, y in points) + '"/>')
        out.append(text(left + width + 10, top + 14 + 18 * i, name, color))
    out.append(text(left + width / 2, top + height + 34, xTitle, anchor="middle"))
    out.append(text(8, 14, yTitle))
    return svg(left + width + 230, top + height + 44, out)


def barChart(groups, unit):
    """Draws bars; `groups` maps titles to pairs (name, value)."""
    left, bar, width = 250, 18, 330
    most = max(value for bars in groups.values() for _, value in bars)
    out, y = [], 10
    for title, bars in groups.items():
        out.append(text(8, y + 12, title, "#000"))
        y += 20
        for i, (name, value) in enumerate(bars):
            length = value / most * width
            out.append(text(left - 8, y + 13, name, anchor="end"))
            out.append(f'<rect x="{left}" y="{y}" width="{length:.1f}" height="{bar - 4}" fill="{COLORS[i % 6]}"/>')
            out.append(text(left + length + 6, y + 12, f"{value:.3g} {unit}"))
            y += bar
        y += 8
    return svg(left + width + 110, y + 10, out)


def timeline(traces, seconds):
    """Draws which thread did what over the last `seconds` of each trace; `traces` maps titles to events (activity,
    thread, start, end)."""
    left, width, lane = 110, 620, 22
    out, y = [], 10
    for title, events in traces.items():
        end = max(to for _, _, _, to in events)
        begin = max(end - seconds, min(start for _, _, start, _ in events))
        out.append(text(8, y + 12, title, "#000"))
        y += 20
        threads = sorted({thread for _, thread, start, _ in events if start >= begin})
        for thread in threads:
            out.append(text(left - 8, y + 14, "main thread" if thread == 0 else "loader", anchor="end"))
            for what, its, start, to in events:
                if its == thread and start >= begin:
                    x, w = left + (start - begin) / seconds * width, (to - start) / seconds * width
                    color = COLORS[0] if what == "step" else COLORS[3]
                    out.append(f'<rect x="{x:.1f}" y="{y}" width="{max(w, .5):.1f}" height="{lane - 4}" '
                               f'fill="{color}" stroke="white" stroke-width=".5"/>')
            y += lane
        y += 8
    out += [text(left, y + 12, "training step", COLORS[0]), text(left + 120, y + 12, "loading a batch", COLORS[3]),
            text(left + width, y + 12, f"{seconds * 1e3:.3g} ms", anchor="end")]
    return svg(left + width + 20, y + 24, out)


# ---- rows

def measure(worker, threads, small):
    command = [worker] + (["--small"] if small else [])
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:threads]))
    done = subprocess.run(["taskset", "-c", cores, *command], capture_output=True, text=True,
                          env={**os.environ, "BURIN_NUM_THREADS": str(threads)})
    if done.returncode:
        sys.exit(f"{worker} has failed: {done.stderr}")
    rows = collections.defaultdict(lambda: collections.defaultdict(list))
    for section, series, x, value in csv.reader(done.stdout.splitlines()):
        rows[section][series].append((float(x), float(value)))
    return rows


def slope(points):
    """Returns the time per call: the slope between the last two points."""
    (x0, y0), (x1, y1) = points[-2:]
    return (y1 - y0) / (x1 - x0)


def events(rows, name):
    found = []
    for what in ("load", "step"):
        for (thread, start), (_, end) in zip(rows[name][f"{what} begin"], rows[name][f"{what} end"]):
            found.append((what, int(thread), start, end))
    return found


def table(head, lines):
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
                     + ["| " + " | ".join(line) + " |" for line in lines]) + "\n\n"


def report(one, two, pictures):
    out = ""
    us = lambda s: f"{s * 1e6:.3g}"
    ms = lambda s: f"{s * 1e3:.3g}"

    # T(N)
    lines, series = [], {}
    for size, points in two["chain"].items():
        kernel = two["chain-kernel"][size][0][1]
        lines.append([f"{size}×{size}", us(kernel), us(slope(points)), f"{slope(points) / kernel:.2f}",
                      us(slope(two["chain-enqueue"][size])), us(slope(two["chain-waiting"][size]))])
        if size in ("64", "256", "8"):
            series[f"{size}×{size}"] = points
            series[f"{size}×{size}, each waited for"] = two["chain-waiting"][size]
            series[f"{size}×{size}, calls alone"] = two["chain-enqueue"][size]
    (pictures / "chains.svg").write_text(lineChart(series, "calls", "seconds", logarithmic=True))
    out += "### Time of N calls\n\n" + table(
        ["product", "t2: in a compiled chain, µs", "per eager call, µs", "ratio", "submission per call, µs",
         "with a wait after each, µs"], lines) + "![T(N)](pictures/parallel/chains.svg)\n\n"

    # memory
    series = {name: [(x / max(p[0] for p in points), y) for x, y in points] for name, points in two["producer"].items()}
    (pictures / "producer.svg").write_text(lineChart(series, "part of the submissions", "resident MB"))
    out += "### Submission faster than execution\n\n" + table(
        ["calls", "number", "resident before, MB", "largest, MB", "at the end, MB"],
        [[name, f"{points[-1][0]:,.0f}", f"{points[0][1]:.0f}", f"{max(y for _, y in points):.0f}",
          f"{points[-1][1]:.0f}"] for name, points in two["producer"].items()])
    out += "![memory](pictures/parallel/producer.svg)\n\n"

    # independent work
    lines, groups = [], {}
    serial = dict(one["independent"]["one after the other"])
    for count, at in two["independent"]["all at once"]:
        after = dict(two["independent"]["one after the other"])[count]
        lines.append([f"{count:.0f}", ms(serial[count]), ms(after), ms(at), f"{serial[count] / at:.2f}"])
        groups[f"{count:.0f} chains"] = [("one thread", serial[count] * 1e3), ("two threads, in turn", after * 1e3),
                                         ("two threads, all at once", at * 1e3)]
    (pictures / "independent.svg").write_text(barChart(groups, "ms"))
    out += "### Independent chains of 8 products of 512×512\n\n" + table(
        ["chains", "one thread, ms", "two threads, sequential, ms", "two threads, concurrent, ms",
         "one thread / concurrent"], lines) + "![independent chains](pictures/parallel/independent.svg)\n\n"

    out += "### Branches of one block\n\n" + table(
        ["block", "one thread, ms", "two threads, ms", "ratio"],
        [[name, ms(one["branches"][name][0][1]), ms(points[0][1]), f"{one['branches'][name][0][1] / points[0][1]:.2f}"]
         for name, points in two["branches"].items()])
    groups = {name: [("one thread", one["convolutions"][name][0][1] * 1e3), ("two threads", points[0][1] * 1e3)]
              for name, points in two["convolutions"].items()}
    (pictures / "convolutions.svg").write_text(barChart(groups, "ms"))
    out += ("### A convolution of eight groups\n\n![convolutions](pictures/parallel/convolutions.svg)\n\n")

    # loading
    alone = two["loading"]["loading alone"][0][1]
    lines = [["loading alone", "", ms(alone)]]
    for workers, seconds in two["loading"]["loading and training"]:
        lines.append(["loading and training", f"{workers:.0f}", ms(seconds)])
    traces = {"no loader thread": events(two, "trace-0"), "one loader thread": events(two, "trace-1")}
    longest = max(to - start for list in traces.values() for _, _, start, to in list[-20:])
    (pictures / "loading.svg").write_text(timeline(traces, max(12 * longest, 1e-3)))
    out += "### Loading, augmentation and training\n\n" + table(["", "loader threads", "ms per batch"], lines)
    out += "![a trace](pictures/parallel/loading.svg)\n\n"
    ratios = [[f"{workers:.0f}", f"{first:.2f}", f"{second:.2f}"] for (workers, first), (_, second) in
              zip(one["keeping up"]["ratio"], two["keeping up"]["ratio"])]
    return out + ("### Steps with a loader\n\nLeNet, batches of 64 without augmentation: steps per second over those on "
                  "one resident batch, measured in alternation.\n\n" +
                  table(["loader threads", "one core", "two cores"], ratios)).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", default=".build/release/bin/burin-bench-parallel")
    parser.add_argument("--docs", type=pathlib.Path, default=pathlib.Path("docs"), help="the folder with parallel.md")
    parser.add_argument("--small", action="store_true", help="few repetitions: for the tests")
    args = parser.parse_args()
    pictures = args.docs / "pictures" / "parallel"
    pictures.mkdir(parents=True, exist_ok=True)
    most = min(2, len(os.sched_getaffinity(0)))
    measured = report(measure(args.worker, 1, args.small), measure(args.worker, most, args.small), pictures)
    page = args.docs / "parallel.md"
    old = page.read_text() if page.exists() else f"{BEGIN}\n{END}\n"
    before, rest = old.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{measured}\n{END}{after}")
    print(measured)


if __name__ == "__main__":
    main()
