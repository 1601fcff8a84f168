#!/usr/bin/env python3
"""A rewrite that keeps a script's meaning keeps its findings.

The cases of the rule pages are written in every way that rewrites.py knows, and each must go on
saying what it says: a rule that warned of its own case warns of the rewritten one, a silent one
stays silent. KEPT_CSV holds how many of them do; the test fails where the share of either kind is
below the file's.

Not looked at: cases with a launch or gpus block, which are options of the command; scripts that do
not parse, import all of a module or ask for their names as text; those with comments, which may be
evidence (a launch line) and which the printer of trees loses; those that other files import. The
test takes every second case, chosen by its title, so that new cases leave the choice as it is;
--all takes all of them, and compares with nothing.

Usage: rewrites_test.py BENCH PAGES_DIR KEPT_CSV [--update] [--list] [--all] [--only REWRITE]
"""
import argparse
import csv
import sys
import tempfile
import zlib
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from pathlib import Path

import rewrites
from pages import SCRIPT, Case, scripts_in
from runs import Findings, Programs, diagnose, firing_rules, write_programs

ONE_IN = 2  # of all cases: what keeps the test below a minute of one core
ALONE_ONE_IN = 20  # of those: run once more alone


@dataclass
class Count:
    """What became of the cases to which one rewrite applies."""

    rewrite: str
    firing: int = 0
    kept: int = 0
    silent: int = 0
    still_silent: int = 0

    def is_worse_than(self, before: "Count") -> bool:
        """A lower share of kept findings, or of silent cases that stay silent."""
        return (_share(self.kept, self.firing) < _share(before.kept, before.firing)
                or _share(self.still_silent, self.silent)
                < _share(before.still_silent, before.silent))


_NUMBERS = [f.name for f in fields(Count)][1:]


def _share(part: int, whole: int) -> Fraction:
    """Exact; of nothing, all is kept."""
    return Fraction(part, whole) if whole else Fraction(1)


def _is_taken(case: Case) -> bool:
    return zlib.crc32(f"{case.rule} {case.title}".encode()) % ONE_IN == 0


def _cases(folder: Path, take_all: bool) -> dict[str, Case]:
    """The cases to rewrite, by the names of their folders."""
    cases = [c for c in scripts_in(folder) if take_all or _is_taken(c)]
    return {f"case{k:04}": case for k, case in enumerate(cases)
            if case.is_rewritable and rewrites.is_plain(case.files[SCRIPT])}


def _rewritten(name: str, cases: dict[str, Case], printed: dict[str, str]) -> Programs:
    """The programs that the rewrite makes of the cases to which it applies."""
    out: Programs = {}
    for folder, case in cases.items():
        files = rewrites.apply(name, case.files[SCRIPT])
        if files is None or any(f in case.files for f in files if f != SCRIPT):
            continue
        if name == "unparse":
            printed[folder] = files[SCRIPT]
        elif files == {SCRIPT: printed.get(folder)}:
            continue
        out[folder] = case.files | files
    return out


def _differs_alone(bench: Path, root: Path, found: Findings, folders: list[str]) -> list[str]:
    """Some of the folders, where a run of their own finds something else."""
    return [folder for folder in folders[::ALONE_ONE_IN]
            if diagnose(bench, root, [folder]).get(folder, []) != found.get(folder, [])]


class Trial:
    """Runs the command over the cases as they are and as rewrites make them."""

    def __init__(self, bench: Path, root: Path, cases: dict[str, Case]) -> None:
        self.bench, self.root, self.cases = bench, root, cases
        self.changed: list[str] = []
        self.failures: list[str] = []
        self.printed: dict[str, str] = {}
        programs = {folder: case.files for folder, case in cases.items()}
        self.before = self._findings("original", programs)

    def _findings(self, name: str, programs: Programs) -> Findings:
        place = self.root / name
        write_programs(place, programs)
        found = diagnose(self.bench, place, list(programs)) if programs else {}
        if name == "original":
            self.failures += [f"{folder} has other findings alone than beside the others"
                              for folder in _differs_alone(self.bench, place, found,
                                                           list(programs))]
        return found

    def count(self, name: str) -> Count:
        """Applies one rewrite to all cases."""
        programs = _rewritten(name, self.cases, self.printed)
        after, count = self._findings(name, programs), Count(name)
        for folder in programs:
            case = self.cases[folder]
            fired = case.rule in firing_rules(self.before.get(folder, []))
            fires = case.rule in firing_rules(after.get(folder, []))
            if fired:
                count.firing, count.kept = count.firing + 1, count.kept + fires
            else:
                count.silent, count.still_silent = (count.silent + 1,
                                                    count.still_silent + (not fires))
            if fired != fires:
                what = "new" if fires else "lost"
                self.changed.append(f"{name}: {what}: {case.rule}: {case.title}")
        return count


def _read(path: Path) -> dict[str, Count]:
    with open(path, encoding="utf-8", newline="") as file:
        return {row["rewrite"]: Count(row["rewrite"], *(int(row[name]) for name in _NUMBERS))
                for row in csv.DictReader(file)}


def _write(path: Path, counts: list[Count]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["rewrite", *_NUMBERS], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(count) for count in counts)


def _print_table(counts: list[Count]) -> None:
    print(f"{'rewrite':16} {'firing':>7} {'kept':>6} {'share':>7} {'silent':>7} {'still':>6}"
          f" {'share':>7}")
    total = Count("all", *(sum(getattr(c, name) for c in counts) for name in _NUMBERS))
    for c in [*counts, total]:
        print(f"{c.rewrite:16} {c.firing:7} {c.kept:6} {float(_share(c.kept, c.firing)):7.4f}"
              f" {c.silent:7} {c.still_silent:6}"
              f" {float(_share(c.still_silent, c.silent)):7.4f}")


def _compare(counts: list[Count], path: Path, names: list[str]) -> list[str]:
    """What is worse than the file says, or not in it."""
    kept = _read(path)
    out = [f"{c.rewrite} is not in {path.name}: run with --update" for c in counts
           if c.rewrite not in kept]
    out += [f"{name} of {path.name} is no rewrite" for name in kept if name not in names]
    for c in counts:
        before = kept.get(c.rewrite)
        if before and c.is_worse_than(before):
            out.append(f"{c.rewrite} keeps {c.kept} of {c.firing} findings and the silence of "
                       f"{c.still_silent} of {c.silent} cases; it was {before.kept} of "
                       f"{before.firing} and {before.still_silent} of {before.silent} "
                       f"(--list says which change)")
    return out


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="rewrites of the rule pages keep their findings")
    parser.add_argument("bench", type=Path)
    parser.add_argument("pages", type=Path)
    parser.add_argument("kept", type=Path)
    parser.add_argument("--update", action="store_true", help="write the counts to the file")
    parser.add_argument("--list", action="store_true", help="name the cases that change")
    parser.add_argument("--all", action="store_true", help="all cases, compared with nothing")
    parser.add_argument("--only", choices=rewrites.ALL, help="one rewrite")
    args = parser.parse_args()
    if args.update and (args.all or args.only):
        parser.error("--update writes what the test counts: not with --all or --only")
    return args


def main() -> int:
    args = _arguments()
    names = list(rewrites.ALL)
    wanted = [name for name in names if args.only in (None, name) or name == "unparse"]
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(args.bench.resolve(), Path(folder), _cases(args.pages, args.all))
        counts = [trial.count(name) for name in wanted]
    _print_table(counts)
    print(f"of {len(trial.cases)} cases")
    failures = trial.failures
    if args.update:
        _write(args.kept, counts)
    elif not args.all:
        failures += _compare(counts, args.kept, names)
    if args.list:
        print("\n".join(trial.changed))
    for failure in failures:
        print(f"FAILED: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
