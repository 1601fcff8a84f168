#!/usr/bin/env python3
"""Every LibTorch-free header compiles alone. Usage: headers.py ROOT CXX DIRECTORIES (of tree-sitter's headers)"""
import sys

import alone


def main():
    root, cxx, directories = sys.argv[1:4]
    headers = [h for h in alone.tracked(root, "*.hpp") if not h.startswith(("training/", "tests/torch", "tests/device"))]
    command = [cxx, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", '-DBENCH_GOLDEN_DIR=""', "-x", "c++",
               *alone.include_flags(root, directories), "-"]
    return alone.check("headers", headers, lambda header: (command, f'#include "{header}"\n'), root, allow_warnings=False)


if __name__ == "__main__":
    sys.exit(main())
