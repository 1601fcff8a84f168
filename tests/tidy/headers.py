#!/usr/bin/env python3
"""Every LibTorch-free header compiles alone. Usage: headers.py ROOT CXX DIRECTORIES

DIRECTORIES, separated by semicolons, hold the headers of tree-sitter, which are not installed.
"""
import concurrent.futures
import os
import subprocess
import sys


def main():
    root, cxx, libraries = sys.argv[1:4]
    outside = [word for directory in libraries.split(";") for word in ("-isystem", directory)]
    listed = subprocess.run(["git", "-C", root, "ls-files", "*.hpp"], capture_output=True, text=True, check=True)
    headers = [h for h in listed.stdout.split() if not h.startswith(("training/", "tests/torch", "tests/device"))]

    def compile_alone(header):
        return header, subprocess.run(
            [cxx, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", '-DBENCH_GOLDEN_DIR=""', "-x", "c++", "-I", root, *outside, "-"],
            input=f'#include "{header}"\n', capture_output=True, text=True, cwd=root)

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for header, done in pool.map(compile_alone, headers):
            if done.returncode != 0 or done.stderr:
                bad += 1
                print(f"{header}:1: error: does not compile alone\n{done.stderr}")
    print(f"{len(headers) - bad} of {len(headers)} headers compile alone")
    return 1 if bad or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
