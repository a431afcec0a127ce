"""Names of the files that the sweep writes per model, and of the states of variants."""

EXPORTS = ("old11", "old13", "old17", "new")
OPTIMISED = "+ort"
WRONG = ("DIFFERS", "REFUSED", "TOO SLOW", "CRASHED")
VARIANTS = [variant + suffix for variant in EXPORTS for suffix in ("", OPTIMISED)]


def isPackaged(name):
    return "/" in name


def variantsOf(name):
    return ["file"] if isPackaged(name) else VARIANTS


def firstLines(text, count=3):
    return " | ".join(line.strip() for line in text.strip().splitlines()[:count])[:400]
