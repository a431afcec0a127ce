#!/usr/bin/env python3
"""Writes special.txt: values of special functions with 40 digits, rounded to f64, at f32 numbers.

A line is a function, x and the value. Needs mpmath and numpy:  python3 make_special.py"""
import pathlib

import mpmath as mp
import numpy

mp.mp.dps = 40
PATH = pathlib.Path(__file__).resolve().parent / "special.txt"
random = numpy.random.default_rng(7)


def between(low, high, count=40):
    return list(random.uniform(low, high, count))


def around(low, high, count=15):
    """Of all magnitudes between these."""
    return list(numpy.exp(random.uniform(numpy.log(low), numpy.log(high), count)))


def ndtr(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def bessel(order):
    return lambda x: mp.besseli(order, x)


def scaledBessel(order):
    return lambda x: mp.exp(-abs(x)) * mp.besseli(order, x)


nearOne = [1 + d for d in around(1e-6, 1e-2)] + [2 - d for d in around(1e-6, 1e-2)] + [1 - d for d in around(1e-6, 1e-2)]
CASES = {
    "erfc": (mp.erfc, between(-6, 9) + around(1e-6, 1)),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), between(-9, 9) + around(1, 1e6)),
    "ndtr": (ndtr, between(-12, 6)),
    "log_ndtr": (lambda x: mp.log1p(-ndtr(-x)) if x > 0 else mp.log(ndtr(x)), between(-60, 9) + between(-3, 3)),
    "erfinv": (mp.erfinv, between(-1, 1) + around(1e-20, 1e-2) + [1 - d for d in around(2e-7, 1e-1)]),
    "ndtri": (lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), between(0, 1) + around(1e-7, 1e-1)),
    "lgamma": (mp.loggamma, between(0, 5) + between(5, 100) + around(1e-30, 1e30) + nearOne),
    "lgamma_negative": (lambda x: mp.log(abs(mp.gamma(x))), between(-10, 0) + [-x for x in around(1e-20, 1)]),
    "digamma": (mp.digamma, between(0, 5) + around(1e-20, 1e20) + [1.4616321 + d for d in between(-1e-3, 1e-3, 15)]),
    "digamma_negative": (mp.digamma, between(-10, 0) + [-x for x in around(1e-20, 1)]),
    "trigamma": (lambda x: mp.polygamma(1, x), between(-10, 10) + around(1e-15, 1e15)),
    "polygamma2": (lambda x: mp.polygamma(2, x), between(-10, 10) + around(1e-10, 1e10)),
    "i0": (bessel(0), between(-9, 9) + between(-90, 90, 20)),
    "i1": (bessel(1), between(-9, 9) + between(-90, 90, 20) + around(1e-20, 1)),
    "i0e": (scaledBessel(0), between(-20, 20) + around(1, 1e4)),
    "i1e": (scaledBessel(1), between(-20, 20) + around(1, 1e4)),
    "logit": (lambda x: mp.log(x / (1 - x)), between(0, 1) + around(1e-20, 1e-1) + [0.5 + d for d in around(1e-6, 0.3)]),
    "sinc": (lambda x: mp.sincpi(x), between(-20, 20) + around(1e-5, 1e5)),
}


def main():
    lines = []
    for name, (function, points) in CASES.items():
        for point in sorted({float(numpy.float32(p)) for p in points}):
            lines.append(f"{name} {point!r} {float(function(mp.mpf(point)))!r}\n")
    PATH.write_text("".join(lines))


if __name__ == "__main__":
    main()
