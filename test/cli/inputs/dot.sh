#!/bin/sh
# A stand-in for graphviz: dot -Tsvg -o OUT IN
cp "$4" "$3"
