#!/bin/sh
# Stands in for graphviz: dot -Tsvg -o OUT IN
cp "$4" "$3"
