#!/usr/bin/env python3
"""The hygiene checks can fail: each is shown a tree with one fault and must name it."""
import os
import subprocess
import sys
import tempfile

TIDY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tidy.py")
LONG = "void f() {\n" + "  g();\n" * 80 + "}\n"
FAULTS = [
    ("layers", "report/a.cpp", '#include <torch/torch.h>\n', "may include LibTorch"),
    ("layers", "simulator/a.cpp", '#include "report/x.hpp"\n', "may not include"),
    ("layers", "training/a.cpp", "#include <fmt/core.h>\n", "no fmt"),
    ("length", "report/a.cpp", "int a;\n" * 501, "501 lines"),
    ("length", "report/a.cpp", "// " + "x" * 110 + "\n", "columns"),
    ("functions", "report/a.cpp", "namespace a {\n" + LONG + "}\n", "function of 82 lines"),
    ("functions", "report/a.hpp", "class A {\n A() : b_(1) {\n" + "  g();\n" * 80 + "}\n};\n", "function of 82"),
    ("words", "docs/a.md", "TO" + "DO: later\n", "unfinished"),
    ("words", "docs/a.md", "see /home/" + "me/x\n", "a path of one machine"),
    ("targets", "report/a.cpp", "int a;\n", "no CMakeLists.txt"),
    ("targets", "report/a.hpp", "#pragma once\n", "paragraph of purpose"),
    ("blobs", "docs/a.bin", "x" * 300_000, "bytes; at most"),
    ("docs", "report/a.cpp", "int a;\n", "not on the map"),
    ("docs", "docs/lonely.md", "text\n", "is not linked"),
]


def run(files, check):
    with tempfile.TemporaryDirectory() as root:
        subprocess.run(["git", "init", "-q", root], check=True)
        for path, text in {"docs/architecture.md": "map\n", "README.md": "docs/architecture.md\n", **files}.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as f:
                f.write(text)
        return subprocess.run([sys.executable, TIDY, root, check], capture_output=True, text=True)


def batches(last):
    """Two unity batches of one source each, and what tidy.batches says of them."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in {"a.cpp": "static int first() { return 1; }\n", "b.cpp": last}.items():
            with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                f.write(text)
        script = os.path.join(os.path.dirname(TIDY), "batches.py")
        return subprocess.run([sys.executable, script, root, "c++", "", ".", "1", "a.cpp;b.cpp"],
                              capture_output=True, text=True)


def batches_can_fail():
    """How many of two trees are judged wrongly."""
    clash, clean = batches("static int first() { return 2; }\n"), batches("static int second() { return 2; }\n")
    bad = (clash.returncode != 1 or "redefinition" not in clash.stdout) + (clean.returncode != 0)
    if bad:
        print("pairs of batches:", clash.stdout, clean.stdout)
    return bad


def main():
    bad = batches_can_fail()
    for check, path, text, expected in FAULTS:
        done = run({path: text}, check)
        if done.returncode != 1 or expected not in done.stdout:
            bad += 1
            print(f"{check} on {path}: expected '{expected}', got {done.returncode}: {done.stdout}{done.stderr}")
    clean = run({"report/a.cpp": "int f() {\n  return 1;\n}\n", "report/CMakeLists.txt": "a.cpp\n"}, "functions")
    if clean.returncode != 0:
        bad += 1
        print("a clean tree is refused:", clean.stdout)
    print(f"{len(FAULTS) + 3 - bad} of {len(FAULTS) + 3} as expected")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
