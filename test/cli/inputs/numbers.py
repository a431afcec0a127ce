"""Writes its arguments as an array of f32 in the npy format to standard output."""
import struct
import sys

numbers = [float(x) for x in sys.argv[1:]]
header = str({"descr": "<f4", "fortran_order": False, "shape": (len(numbers),)}).ljust(117) + "\n"
sys.stdout.buffer.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
sys.stdout.buffer.write(struct.pack(f"<{len(numbers)}f", *numbers))
