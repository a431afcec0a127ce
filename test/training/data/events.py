#!/usr/bin/env python3
"""Reads the event files that `data-tests "writes event files"` writes, without TensorBoard: checks the framing with its
checksums, the messages, the pixels of images. With TensorBoard installed, it reads them, too.

events.py --tests DATA_TESTS"""
import argparse
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import zlib


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283


def masked(data):
    crc = crc32c(data)
    return (crc >> 15 | crc << 17 & 0xFFFFFFFF) + 0xA282EAD8 & 0xFFFFFFFF


def records(data):
    while data:
        length, check = struct.unpack("<QI", data[:12])
        assert check == masked(data[:8]), "the checksum of a length"
        message, rest = data[12:12 + length], data[12 + length:]
        assert len(message) == length and struct.unpack("<I", rest[:4])[0] == masked(message), "the checksum of a message"
        yield message
        data = rest[4:]


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """Returns the fields of a protobuf message by number, each a list."""
    at, result = 0, {}
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        else:
            size, pattern = {1: (8, "<d"), 5: (4, "<f")}[kind]
            value, at = struct.unpack(pattern, data[at:at + size])[0], at + size
        result.setdefault(key >> 3, []).append(value)
    assert at == len(data)
    return result


def doubles(packed):
    return list(struct.unpack(f"<{len(packed) // 8}d", packed))


def pixels(png):
    """Returns width, height, colour type and the samples of a PNG file without filters."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + length
    assert b"IEND" in chunks
    width, height, bits, color = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert bits == 8
    row = width * {0: 1, 2: 3}[color]
    data = zlib.decompress(chunks[b"IDAT"])
    lines = [data[y * (row + 1):(y + 1) * (row + 1)] for y in range(height)]
    assert len(data) == height * (row + 1) and all(line[0] == 0 for line in lines)
    return width, height, color, [list(line[1:]) for line in lines]


def check(path):
    events = [fields(record) for record in records(path.read_bytes())]
    assert events[0][3] == [b"brain.Event:2"], "the version comes first"
    assert all(abs(event[1][0] - time.time()) < 3600 for event in events), "wall times"
    values = {}
    for event in events[1:]:
        summary = fields(event[5][0])
        value = fields(summary[1][0])
        values.setdefault(value[1][0].decode(), []).append((event[2][0], value))
    scalars = [(step, value[2][0]) for step, value in values["loss/train"]]
    assert [step for step, _ in scalars] == [0, 10, 20, 30, 40]
    assert all(abs(value - 1 / (i + 1)) < 1e-7 for i, (_, value) in enumerate(scalars))
    assert values["far"][0][0] == 1 << 40 and abs(values["far"][0][1][2][0] / -1e30 - 1) < 1e-6
    histogram = fields(values["weights"][0][1][5][0])
    assert [histogram[i][0] for i in (1, 2, 3)] == [-2, 8, 101], histogram
    numbers = [i / 10 - 2 for i in range(101)]
    assert abs(histogram[4][0] - sum(numbers)) < 1e-4 and abs(histogram[5][0] - sum(x * x for x in numbers)) < 1e-3
    limits, counts = doubles(histogram[6][0]), doubles(histogram[7][0])
    assert [round(limit, 6) for limit in limits] == [0, 2, 4, 6, 8] and sum(counts) == 101 and min(counts) >= 19, counts
    equal = fields(values["equal"][0][1][5][0])
    assert sum(doubles(equal[7][0])) == 7 and equal[1] == equal[2] == [2.5]
    image = fields(values["picture"][0][1][4][0])
    assert [image[i][0] for i in (1, 2, 3)] == [2, 3, 1]
    assert pixels(image[4][0]) == (3, 2, 0, [[0, 255, 128], [255, 0, 51]])
    image = fields(values["colors"][0][1][4][0])
    assert pixels(image[4][0]) == (5, 4, 2, [[c * 20 + y * 5 + x for x in range(5) for c in range(3)] for y in range(4)])
    text = values["note"][0][1]
    assert fields(fields(text[9][0])[1][0])[1] == [b"text"] and fields(text[8][0])[8][0].decode() == "trained on ✓ <data>"


def checkWithTensorBoard(folder):
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    except ImportError:
        return
    events = EventAccumulator(str(folder))
    events.Reload()
    assert [event.step for event in events.Scalars("loss/train")] == [0, 10, 20, 30, 40]
    assert events.Histograms("weights")[0].histogram_value.num == 101
    assert events.Images("colors")[0].width == 5
    assert events.Tensors("note/text_summary" if "note/text_summary" in events.Tags()["tensors"] else "note")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tests", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([args.tests, "writes event files"], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "BURIN_TEST_EVENTS": folder})
        found = list(pathlib.Path(folder).iterdir())
        assert len(found) == 1, found
        check(found[0])
        checkWithTensorBoard(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
