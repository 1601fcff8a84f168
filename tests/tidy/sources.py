#!/usr/bin/env python3
"""Every source of the rules compiles alone: in a unity build one that lacks an include or a using borrows it from the
source before, until another comes between. Usage: sources.py ROOT CXX DIRECTORIES (of tree-sitter's headers)"""
import sys

import alone


def main():
    root, cxx, directories = sys.argv[1:4]
    sources = alone.tracked(root, "scenarios/pitfalls/*.cpp")
    command = [cxx, "-std=c++20", "-fsyntax-only", *alone.include_flags(root, directories)]
    return alone.check("sources", sources, lambda source: ([*command, source], None), root, allow_warnings=True)


if __name__ == "__main__":
    sys.exit(main())
