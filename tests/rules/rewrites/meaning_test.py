#!/usr/bin/env python3
"""The rewrites keep the meaning: a script does the same before and after.

Runs the cases of the rule pages with recorders in the place of all libraries, and so each of their
rewrites; calls, their order and values, branches and loops must be the same, and so must be the way
the script ends. Functions that both scripts have are called alone as well.

Usage: meaning_test.py PAGES_DIR [--all] [--only REWRITE]
"""
import argparse
import sys
import zlib
from pathlib import Path

import rewrites
from pages import SCRIPT, scripts_in
from recorder import Run, provided_names

ONE_IN = 5  # of all cases


def _difference(before: Run, after: Run) -> str:
    """The first thing that is not the same; empty if all is."""
    for first, second in zip(before.log, after.log):
        if first != second:
            return f"was {first}, now {second}"
    if len(before.log) != len(after.log):
        return f"{len(before.log)} lines in the log, now {len(after.log)}"
    return f"ends with {before.end}, now {after.end}" if before.end != after.end else ""


def check(name: str, text: str) -> str | None:
    """What a rewrite changes in a script's runs; None where it does not apply."""
    files = rewrites.apply(name, text)
    if files is None:
        return None
    provided, by_name = provided_names(text), name != "to_kw"
    before, after = Run({SCRIPT: text}, provided, by_name), Run(files, provided, by_name)
    found = _difference(before, after)
    for function in sorted(before.functions() & after.functions()) if not found else []:
        before.call(function)
        after.call(function)
        found = found or _difference(before, after)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="rewrites do what the script did")
    parser.add_argument("pages", type=Path)
    parser.add_argument("--all", action="store_true", help="all cases")
    parser.add_argument("--only", choices=rewrites.ALL, help="one rewrite")
    args = parser.parse_args()
    sys.setrecursionlimit(400)
    runs, failures = 0, []
    for case in scripts_in(args.pages):
        text = case.files[SCRIPT]
        is_taken = args.all or zlib.crc32(case.title.encode()) % ONE_IN == 0
        if not is_taken or not case.is_rewritable or not rewrites.is_plain(text):
            continue
        for name in [args.only] if args.only else rewrites.ALL:
            found = check(name, text)
            runs += found is not None
            if found:
                failures.append(f"{name}: {case.rule}: {case.title}: {found}")
    print("\n".join(failures))
    print(f"{runs} rewritten scripts, {len(failures)} do something else")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
