"""flip.py FILE OFFSET OUT: copies a file with one bit of the byte at the offset flipped."""
import sys

data = bytearray(open(sys.argv[1], "rb").read())
data[int(sys.argv[2])] ^= 1
open(sys.argv[3], "wb").write(data)
