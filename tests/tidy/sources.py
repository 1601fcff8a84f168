#!/usr/bin/env python3
"""Every source of the rules compiles alone: in a unity build one that lacks an include or a using borrows it from the
source before, until another comes between.

Usage: sources.py ROOT CXX DIRECTORIES. DIRECTORIES, separated by semicolons, hold the headers of tree-sitter.
"""
import concurrent.futures
import os
import subprocess
import sys


def main():
    root, cxx, libraries = sys.argv[1:4]
    outside = [word for directory in libraries.split(";") for word in ("-isystem", directory)]
    listed = subprocess.run(["git", "-C", root, "ls-files", "scenarios/pitfalls/*.cpp"], capture_output=True, text=True,
                            check=True)
    sources = listed.stdout.split()

    def compile_alone(source):
        command = [cxx, "-std=c++20", "-fsyntax-only", "-I", root, *outside, source]
        return source, subprocess.run(command, capture_output=True, text=True, cwd=root)

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, done in pool.map(compile_alone, sources):
            if done.returncode != 0:
                bad += 1
                print(f"{source}:1: error: does not compile alone\n{done.stderr}")
    print(f"{len(sources) - bad} of {len(sources)} sources compile alone")
    return 1 if bad or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
