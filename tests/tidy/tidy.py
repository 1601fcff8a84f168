#!/usr/bin/env python3
"""Hygiene as a test: every message is `path:line: error: what`, the exit status is the verdict.

Checks the rules of the house that a compiler does not know: who may include whom, how long files,
functions and lines get, names of this or that machine in the tree, sources that no target builds.
Usage: tidy.py ROOT [CHECK...]; without a check's name all run.
"""
import os
import re
import subprocess
import sys

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 70
MAX_LINE_COLUMNS = 100
MAX_BLOB_BYTES = 256 * 1024
CODE = (".cpp", ".hpp", ".c", ".h")

# Which rooms a room may include from. A room always sees itself.
LAYERS = {
    "bench/core": [],
    "simulator": ["bench/core", "profiling"],
    "profiling": ["bench/core", "simulator"],
    "bench/plan": ["bench/core", "simulator"],
    "bench/calibrate": ["bench/core", "simulator"],
    "bench/launch": ["bench/core", "bench/calibrate", "simulator"],
    "report": ["bench/core", "profiling", "simulator"],
    "diagnose": ["bench/core", "report", "scenarios"],
    "scenarios": ["bench/core", "profiling", "diagnose"],
    "bench/harness": ["bench/core", "bench/plan", "bench/launch", "simulator", "profiling", "report",
                      "scenarios"],
    "bench/predict": ["bench/core", "bench/plan", "bench/launch", "bench/harness", "simulator",
                      "profiling", "report"],
    "bench/cli": ["bench/core", "bench/plan", "bench/calibrate", "bench/launch", "bench/harness", "bench/predict",
                  "simulator", "profiling", "report", "diagnose", "scenarios"],
    "bench/micro": ["bench", "simulator", "profiling", "report", "diagnose"],
    "training": ["bench/core", "bench/calibrate", "bench/launch", "simulator", "profiling"],
    "tests": ["bench", "simulator", "profiling", "report", "diagnose", "scenarios", "training"],
}
ROOMS = ("bench", "simulator", "profiling", "report", "diagnose", "scenarios", "training", "tests")
TORCH_ROOMS = ("training/", "tests/torch/", "tests/device/")
TORCH_INCLUDE = re.compile(r'#include [<"](torch|ATen|c10|caffe2)/')

problems = []


def report(path, line, text):
    problems.append(f"{path}:{line}: error: {text}")


def tracked(root):
    out = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         capture_output=True, check=True).stdout.decode()
    return sorted(p for p in out.split("\0") if p and os.path.isfile(os.path.join(root, p)))


def lines_of(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read().split("\n")


def room_of(path):
    return max((r for r in LAYERS if path.startswith(r + "/")), key=len, default=None)


def check_layers(root, files):
    """Dependencies point one way; LibTorch stays behind its wall."""
    for path in (p for p in files if p.endswith(CODE)):
        room = room_of(path)
        for number, line in enumerate(lines_of(root, path), 1):
            if TORCH_INCLUDE.match(line) and not path.startswith(TORCH_ROOMS):
                report(path, number, "only training/ and tests/torch/ may include LibTorch")
            if "fmt/" in line and line.startswith("#include") and path.startswith("training/"):
                report(path, number, "no fmt in training/: the torch wheel ships another version of it")
            match = re.match(r'#include "([^"]+)"', line)
            if not match or room is None:
                continue
            target = match.group(1)
            if not target.startswith(ROOMS):
                report(path, number, f'include "{target}" by its path from the root')
                continue
            allowed = [room, *LAYERS[room]]
            if not any(target.startswith(a + "/") for a in allowed):
                report(path, number, f"{room}/ may not include {target}; it may see {', '.join(allowed)}")


def check_length(root, files):
    """Small files, short lines."""
    for path in (p for p in files if p.endswith(CODE)):
        lines = lines_of(root, path)
        if len(lines) - 1 > MAX_FILE_LINES:
            report(path, len(lines), f"{len(lines) - 1} lines; at most {MAX_FILE_LINES}")
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_LINE_COLUMNS and "http" not in line and "#include" not in line:
                report(path, number, f"{len(line)} columns; at most {MAX_LINE_COLUMNS}")


def strip_code(text):
    """Blanks comments, strings and characters so that braces can be counted; keeps newlines."""
    pattern = r'R"(\w*)\((?:.|\n)*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*(?:.|\n)*?\*/'
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group(0)), text)


def check_functions(root, files):
    """Functions fit on a screen. A function opens with `) {` (or its qualifiers) at namespace or class
    level; a table inside one (`= {...}`) is data and does not count."""
    opener = re.compile(r"\)\s*(const|noexcept|override|final|->[^;{}]*|:[^;{}]*|\s)*$")
    for path in (p for p in files if p.endswith((".cpp", ".hpp"))):
        text = strip_code("\n".join(lines_of(root, path)))
        stack, start, number, tables = [], 0, 1, 0
        for i, char in enumerate(text):
            if char == "\n":
                number += 1
            elif char == "{":
                head = text[start:i]
                inside = any(kind == "function" for kind, _ in stack)
                scope = re.search(r"\b(namespace|class|struct|union|enum)\b[^()]*$", head)
                is_function = not inside and not scope and opener.search(head.rstrip())
                is_table = inside and stack[-1][0] == "function" and re.search(r"(=|to_array<[^<>]*>\()$", head.rstrip())
                stack.append(("function" if is_function else "table" if is_table else "block", number))
                tables = 0 if is_function else tables
                start = i + 1
            elif char == "}":
                if stack:
                    kind, begin = stack.pop()
                    lines = number - begin + 1
                    tables += lines - 1 if kind == "table" else 0
                    if kind == "function" and lines - tables > MAX_FUNCTION_LINES:
                        report(path, begin, f"function of {lines - tables} lines; at most {MAX_FUNCTION_LINES}")
                start = i + 1
            elif char == ";":
                start = i + 1


def check_words(root, files):
    """Nothing unfinished, nothing of the machine it was written on."""
    unfinished = re.compile(r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))")
    machine = re.compile(r"/(work|home/\w+|Users/\w+)/")
    for path in files:
        if path.startswith("tests/tidy/") or not path.endswith(CODE + (".py", ".md", ".toml", ".txt", ".cmake", ".sh")):
            continue
        for number, line in enumerate(lines_of(root, path), 1):
            if unfinished.search(line) and not path.startswith(("docs/rules", "scenarios/pitfalls", "tests/rules")):
                report(path, number, "unfinished work without an issue's number: TODO(#12)")
            if machine.search(line) and not path.startswith(("scenarios/pitfalls", "tests/rules", "tests/golden")):
                report(path, number, "a path of one machine")


def check_targets(root, files):
    """Every source belongs to a target; every header opens with its purpose."""
    for path in (p for p in files if p.endswith((".cpp", ".c"))):
        folder, name, found = os.path.dirname(path), os.path.basename(path), False
        while True:
            listing = os.path.join(root, folder, "CMakeLists.txt")
            if os.path.exists(listing):
                text = open(listing, encoding="utf-8").read()
                stem = os.path.splitext(name)[0]
                found = name in text or re.search(rf"\b{re.escape(stem)}\b", text)
            if found or not folder:
                break
            folder = os.path.dirname(folder)
        if not found:
            report(path, 1, "no CMakeLists.txt names this source")
    for path in (p for p in files if p.endswith(".hpp")):
        first = lines_of(root, path)[0]
        if not first.startswith(("//", "/*")):
            report(path, 1, "a header opens with a paragraph of purpose")
        if "#pragma once" not in "\n".join(lines_of(root, path)):
            report(path, 1, "no #pragma once")


def check_blobs(root, files):
    """No large files: third-party code and data enter as pinned dependencies."""
    for path in files:
        size = os.path.getsize(os.path.join(root, path))
        if size > MAX_BLOB_BYTES:
            report(path, 1, f"{size} bytes; at most {MAX_BLOB_BYTES}")


def check_docs(root, files):
    """docs/architecture.md names every room, README.md links every page of docs/."""
    rooms = {"/".join(p.split("/")[:-1]) for p in files if p.endswith((".hpp", ".cpp"))}
    text = open(os.path.join(root, "docs/architecture.md"), encoding="utf-8").read()
    for room in sorted(r for r in rooms if r.count("/") <= 1):
        if f"`{room}/`" not in text and not room.startswith("tests"):
            report("docs/architecture.md", 1, f"the room `{room}/` is not on the map")
    readme = open(os.path.join(root, "README.md"), encoding="utf-8").read()
    for path in (p for p in files if re.fullmatch(r"docs/[\w-]+\.md", p)):
        if path not in readme:
            report("README.md", 1, f"{path} is not linked")


CHECKS = {f.__name__[len("check_"):]: f for f in (
    check_layers, check_length, check_functions, check_words, check_targets, check_blobs, check_docs)}


def main():
    root = sys.argv[1]
    wanted = sys.argv[2:] or list(CHECKS)
    files = tracked(root)
    for name in wanted:
        CHECKS[name](root, files)
    print("\n".join(problems) if problems else f"{len(files)} files, nothing to say")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
