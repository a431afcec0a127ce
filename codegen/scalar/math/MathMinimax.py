#!/usr/bin/env python3
"""Computes the polynomial coefficients in Math*.cpp: weighted minimax fits by Lawson's iteration
(least squares, reweighted by the errors), rounded to f32.

Coefficients are rounded one by one, the most significant first, and the others fitted again each time, so that the
rounded polynomial is nearly as good as the exact one. Prints each as C++ and the error that remains, as a power of 2.
Needs python3-mpmath. usage: MathMinimax.py [name…]
"""
import struct
import sys

from mpmath import erf, erfc, exp, expm1, log, log1p, matrix, mp, mpf, lu_solve, sin, cos, sqrt, tanh

mp.dps = 40


tiny = mpf(10) ** -12  # stands for 0 where a quotient has a limit there


def toF32(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def fit(target, powers, weight, low, high, points=160, rounds=25):
    """Makes max |target(x) - sum c_i x^powers[i]| * weight(x) nearly as small as can be; returns the c_i."""
    n = len(powers)
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (i + mpf(1) / 2) / points) for i in range(points)]
    rows = [[x**p * weight(x) for p in powers] for x in grid]
    values = [target(x) * weight(x) for x in grid]
    shares = [mpf(1)] * points
    best = None
    for _ in range(rounds):
        normal = matrix(n, n)
        right = matrix(n, 1)
        for row, value, share in zip(rows, values, shares):
            for i in range(n):
                scaled = share * row[i]
                right[i] += scaled * value
                for j in range(i, n):
                    normal[i, j] += scaled * row[j]
        for i in range(n):
            for j in range(i):
                normal[i, j] = normal[j, i]
        solution = lu_solve(normal, right)
        errors = [abs(v - sum(solution[j] * r[j] for j in range(n))) for v, r in zip(values, rows)]
        worst = max(errors)
        if best is None or worst < best[0]:
            best = (worst, [solution[j] for j in range(n)])
        shares = [s * e / worst for s, e in zip(shares, errors)]
        total = sum(shares)
        shares = [s / total for s in shares]
    return best[1]


def fitF32(target, powers, weight, low, high):
    """The coefficients by ascending power, all f32."""
    low, high = mpf(low), mpf(high)
    fixed = {}
    for power in powers:
        rest = [p for p in powers if p not in fixed]
        known = dict(fixed)
        coefficients = fit(lambda x: target(x) - sum(c * x**p for p, c in known.items()), rest, weight, low, high)
        fixed[power] = toF32(coefficients[0])
    points = [low + (high - low) * i / 2000 for i in range(2001)]
    error = max(abs(target(x) - sum(c * x**p for p, c in fixed.items())) * weight(x) for x in points)
    return [fixed[p] for p in powers], error


half = log(mpf(2)) / 2


def guarded(f):
    return lambda x: f(x if abs(x) > tiny else tiny)


# name: (function, powers, weight, low, high). The error is relative to the final result unless said otherwise.
FITS = {
    # exp(r) = 1 + r + r^2 q(r)
    "exp": (guarded(lambda r: (expm1(r) - r) / r**2), range(5), lambda r: r**2 / exp(r), -half, half),
    # log1p(r) = r + r^2 q(r)
    "log": (guarded(lambda r: (log1p(r) - r) / r**2), range(9), guarded(lambda r: abs(r**2 / log1p(r))),
            sqrt(mpf(2)) / 2 - 1, sqrt(mpf(2)) - 1),
    # sin(r) = r + r t q(t), cos(r) = 1 + t q(t), with t = r^2
    "sin": (guarded(lambda t: (sin(sqrt(abs(t))) / sqrt(abs(t)) - 1) / t), range(3), lambda t: t, 0, (mp.pi / 4) ** 2 * 1.02),
    "cos": (guarded(lambda t: (cos(sqrt(abs(t))) - 1) / t), range(4), lambda t: t, 0, (mp.pi / 4) ** 2 * 1.02),
    # tanh(x) = x + x t q(t)
    "tanhSmall": (guarded(lambda t: (tanh(sqrt(abs(t))) / sqrt(abs(t)) - 1) / t), range(5),
                  guarded(lambda t: t * sqrt(abs(t)) / tanh(sqrt(abs(t)))), 0, mpf("0.36")),
    # erf(x) = x + x q(t)
    "erfSmall": (guarded(lambda t: erf(sqrt(abs(t))) / sqrt(abs(t)) - 1), range(6),
                 guarded(lambda t: sqrt(abs(t)) / erf(sqrt(abs(t)))), 0, mpf("0.81")),
    # erf(x) = 1 - exp(-q(x))
    "erfLarge": (lambda x: -log(erfc(x)), range(7), lambda x: erfc(x) / erf(x), mpf("0.9"), mpf("3.95")),
}

# name: (function, powers, step, pieces). A polynomial in the distance from each multiple of the step, below 0 none; the
# error is relative.
PIECES = {
    # Phi(-x) = erfc(x / sqrt(2)) / 2
    "phi": (lambda x: erfc(x / sqrt(mpf(2))) / 2, range(6), mpf("0.40625"), 15),
}


def fitPiece(name, i):
    target, powers, step, _ = PIECES[name]
    there = lambda r: target(i * step + r)
    return fitF32(there, list(powers), lambda r: 1 / there(r), -step / 2 if i else 0, step / 2)


def literals(coefficients):
    return ", ".join(float(c).hex().replace("0000000p", "p") for c in coefficients)


def main():
    wanted = sys.argv[1:] or [*FITS, *PIECES]
    for name in wanted:
        if name in FITS:
            target, powers, weight, low, high = FITS[name]
            coefficients, error = fitF32(target, list(powers), weight, low, high)
            print(f"{name}: {{{literals(coefficients)}}}  // 2^{float(log(error, 2)):.1f}")
        else:
            pieces = [fitPiece(name, i) for i in range(PIECES[name][3])]
            errors = " ".join(f"{float(log(error, 2)):.1f}" for _, error in pieces)
            print(f"{name}, errors 2^: {errors}")
            for power in PIECES[name][1]:
                print(f"    {{{literals(c[power] for c, _ in pieces)}}},")


if __name__ == "__main__":
    main()
