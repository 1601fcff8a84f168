#!/usr/bin/env python3
"""The sources of a unity build share file-local names with whatever a new source shifts into their batch: two batches
side by side compile as one, which holds every batch that up to a batch's length of new sources could make.
Usage: batches.py ROOT CXX DIRECTORIES (of tree-sitter's headers) FOLDER SIZE SOURCES (separated by semicolons)"""
import os
import sys

import alone


def windows(sources, size):
    """Every two batches in the order of the build; all of them when there is only one."""
    batches = [sources[i:i + size] for i in range(0, len(sources), size)]
    return [a + b for a, b in zip(batches, batches[1:])] or batches


def main():
    root, cxx, directories, folder, size, listed = sys.argv[1:7]
    sources = [s for s in listed.split(";") if s.endswith(".cpp") and not os.path.isabs(s)]
    pairs = {os.path.join(folder, pair[0]): pair for pair in windows(sources, int(size))}
    command = [cxx, "-std=c++20", "-fsyntax-only", "-x", "c++", *alone.include_flags(root, directories), "-"]

    def command_of(first):
        return command, "".join(f'#include "{folder}/{source}"\n' for source in pairs[first])

    return alone.check("pairs of unity batches", list(pairs), command_of, root, allow_warnings=True)


if __name__ == "__main__":
    sys.exit(main())
