#!/usr/bin/env python3
"""Tests the rules of tools/bench/compare.py, with fake contestants of known speed."""
import os
import pathlib
import sys
import types
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "tools/bench"
sys.path.insert(0, str(BENCH))
import compare  # noqa: E402: found by the line above
import floor  # noqa: E402
import report  # noqa: E402

OPTIONS = types.SimpleNamespace(slice=0.001, rounds=5, seconds=0)


class Contestant:
    niceness = 0
    awake = set()

    def __init__(self, name, ns, refuses=None):
        self.name, self.ns, self.refuses = name, ns, refuses

    def ask(self, line):
        self.awake.add(self.name)
        return self.refuses or "ok"

    def pause(self):
        self.awake.remove(self.name)

    def setPriority(self, niceness):
        pass

    def nanoseconds(self, warm, count):
        assert self.awake <= {self.name}, f"{self.awake} may spin while {self.name} is measured"
        self.awake.add(self.name)
        return self.ns


class Scale(Contestant):
    def __init__(self):
        super().__init__("scale", 0)
        self.looks = {}

    def speed(self, what):
        assert self.awake <= {self.name}, f"{self.awake} may spin while the machine is measured"
        self.awake.add(self.name)
        self.looks[what] = self.looks.get(what, 0) + 1
        return 100.0 * len(what) + self.looks[what]


def measuredBeside(*contestants, group="model"):
    return compare.measure(OPTIONS, [(c, "net") for c in contestants], group, Scale(), {"peak", "read L2"})


def measured(*contestants, group="model"):
    return measuredBeside(*contestants, group=group)[0]


def row(**times):
    return {"name": "net", "group": "model", "threads": 1, "neighbour_of": "", "neighbour": None, "flops": 1, "bytes": 1, "floor_ns": 1,
            "contestants": {n: {"error": t} if isinstance(t, str) else {"median": t, "p10": t, "p90": t, "turns": [t]}
                            for n, t in times.items()}}


class Turns(unittest.TestCase):
    def testPeersThatCannotBeTheFastestGetFewer(self):
        result = measured(Contestant("burin", 10), Contestant("near", 300), Contestant("fast", 100),
                          Contestant("far", 301))
        self.assertEqual({n: len(r["turns"]) for n, r in result.items()},
                         {"burin": 5, "near": 5, "fast": 5, "far": compare.SLOW_ROUNDS})

    def testBurinAlwaysGetsAll(self):
        result = measured(Contestant("burin", 1000), Contestant("fast", 1))
        self.assertEqual({n: len(r["turns"]) for n, r in result.items()}, {"burin": 5, "fast": 5})

    def testKernelsGetTwiceAsMany(self):
        result = measured(Contestant("burin", 10), Contestant("fast", 10), group="kernel")
        self.assertEqual({n: len(r["turns"]) for n, r in result.items()}, {"burin": 10, "fast": 10})

    def testTheMachineIsMeasuredAroundEachTurn(self):
        # Median of 1 to 6.
        self.assertEqual(measuredBeside(Contestant("burin", 10))[1], {"peak": 403.5, "read L2": 703.5})

    def testFailuresAreKeptButNotWhatIsUnsupported(self):
        result = measured(Contestant("burin", 10), Contestant("broken", 10, "error: no"),
                          Contestant("other", 10, "error: unsupported: net"))
        self.assertEqual(result["broken"], {"error": "error: no"})
        self.assertNotIn("other", result)
        self.assertEqual(measured(Contestant("burin", 10, "error: no")), {"burin": {"error": "error: no"}})


class Processes(unittest.TestCase):
    def testAContestantIsStoppedUntilItIsAskedAgain(self):
        echo = "import sys\nfor line in sys.stdin: print(line.strip(), flush=True)"
        worker = compare.Worker("echo", [sys.executable, "-c", echo], os.sched_getaffinity(0), 0, None)
        state = lambda: pathlib.Path(f"/proc/{worker.process.pid}/stat").read_text().split()[2]
        self.assertEqual(worker.ask("one"), "one")
        worker.pause()
        self.assertEqual(state(), "T")
        self.assertEqual(worker.ask("two"), "two")
        self.assertNotEqual(state(), "T")
        worker.pause()
        worker.close()
        self.assertEqual(worker.process.returncode, 0)


class Floor(unittest.TestCase):
    CACHES = [{"name": "L1", "reported_bytes": 1000}]
    SPEEDS = {"peak": 100, "read L1": 200, "read DRAM": 20, "copy DRAM": 30}

    def floorOf(self, weights, planned, *steps):
        return floor.floorNs({"weights": [{"bytes": weights}], "memory": {"planned_bytes": planned},
                              "steps": [{"flops": f, "bytes": b} for f, b in steps]}, self.CACHES, self.SPEEDS)

    def testEachStepTakesItsArithmeticOrItsTraffic(self):
        self.assertEqual(self.floorOf(400, 100, (10_000, 400), (100, 600)), 100 + 3)

    def testMemoryIsReadWhereItHoldsWeightsAndElseCopied(self):
        self.assertEqual(self.floorOf(6000, 0, (0, 3000), (0, 3000)), 300)
        self.assertEqual(self.floorOf(0, 6000, (0, 3000), (0, 3000)), 200)


class Missing(unittest.TestCase):
    def testAPeerThatIsNotBuiltSaysSo(self):
        worker = compare.Worker("libtorch", ["/nowhere/burin-bench-libtorch"], [0], 0, None)
        self.assertEqual(worker.ask("settings"), "error: burin-bench-libtorch is not built")
        worker.close()


class Report(unittest.TestCase):
    def testRatiosAreOfTheSameTurns(self):
        slowed = row(burin=10.0, near=15.0, far=30.0)
        slowed["contestants"]["burin"]["turns"] = [10, 10, 20, 20, 20]  # the machine was slow in the last turns
        slowed["contestants"]["near"]["turns"] = [15, 15, 30, 30, 90]
        slowed["contestants"]["far"]["turns"] = [30, 30, 60]
        self.assertEqual((report.ratio(slowed), report.fastestPeer(slowed)), (1.5, "near"))
        self.assertIsNone(report.ratio(row(burin="error: no", near=1.0)))

    def testCodeWithAmxIsNoPeer(self):
        net = row(burin=10.0, burin_amx=5.0, near=15.0)
        self.assertEqual((report.ratio(net), report.ratio(net, report.AMX), report.fastestPeer(net)), (1.5, 3, "near"))
        self.assertEqual((report.bestRatio(net), report.bestRatio(row(burin=10.0, near=15.0))), (3, 1.5))
        self.assertIn("| 0.01 (3.00) | **0.01** |", report.groupTable([net]))
        self.assertNotIn("AMX", report.groupTable([row(burin=10.0, near=15.0)]))

    def testNeighboursAreComparedByEfficiency(self):
        net, odd = row(burin=10.0), row(burin=12.0)
        odd.update(floor_ns=0.9, neighbour_floor_ns=1, neighbour=net["contestants"]["burin"])
        self.assertAlmostEqual(report.neighbourRatio(odd), 0.9 * 10 / 12)
        self.assertIsNone(report.neighbourRatio(net))

    def testNamesWhatFailed(self):
        rows = [row(burin=10.0, iree="error: does not `compile`", openvino=20.0)]
        self.assertIn("| failed | **0.02** |", report.groupTable(rows))
        self.assertEqual(report.failures(rows), "- iree fails on net: `does not 'compile'`\n")
        self.assertEqual(report.failures([row(burin=10.0, openvino=20.0)]), "")


if __name__ == "__main__":
    unittest.main()
