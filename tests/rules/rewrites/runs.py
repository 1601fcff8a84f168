"""Runs `bench diagnose` over many small programs at once.

Each program has a folder of its own, and each folder is a path of its own on the command line. That
keeps them apart: below one common path, the folder above them all is the project of every program
that has no root of its own, so that README files and settings of one were evidence for the others
(12 of 612 programs had another finding than alone). As paths of their own, all 612 had the findings
that they have alone, message by message; the test compares some of its cases again each time.
"""
import json
import subprocess
from collections import defaultdict
from pathlib import Path

Programs = dict[str, dict[str, str]]  # by folder: files by their path in it
Findings = dict[str, list[dict]]


def write_programs(root: Path, programs: Programs) -> None:
    """Makes the folders."""
    for folder, files in programs.items():
        for name, text in files.items():
            path = root / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def diagnose(bench: Path, root: Path, folders: list[str]) -> Findings:
    """The findings in each of the folders; those without one are missing."""
    command = [str(bench), "diagnose", "--format", "json", *folders]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):  # 1: there are findings
        raise RuntimeError(f"bench diagnose ends with {done.returncode}: {done.stderr}")
    found: Findings = defaultdict(list)
    for finding in json.loads(done.stdout)["findings"]:
        found[Path(finding["file"]).parts[0]].append(finding)
    return found


def firing_rules(findings: list[dict]) -> set[str]:
    """The rules that warn; notes are no verdict."""
    return {f["rule"] for f in findings if f["severity"] in ("warning", "error")}
