"""flip.py FILE OFFSET OUT: a copy of a file with one bit of the byte at an offset flipped."""
import sys

data = bytearray(open(sys.argv[1], "rb").read())
data[int(sys.argv[2])] ^= 1
open(sys.argv[3], "wb").write(data)
