#!/usr/bin/env python3
"""Follows docs/extending.md to the letter: applies its blocks to a copy of the sources, builds the
copy and runs the new scenario. Usage: extending_test.py ROOT BUILD ENV [--dry-run]

Objects that the examples do not change come from ccache where there is one.
"""
import json
import os
import re
import shutil
import subprocess
import sys

BLOCK = re.compile(r"^```(\w+) (new|path)=(\S+)\n(.*?)^```$", re.M | re.S)


def apply_new(root, path, body):
    target = os.path.join(root, path)
    if os.path.exists(target):
        sys.exit(f"docs/extending.md: {path} is there already, the example must use another name")
    with open(target, "w", encoding="utf-8") as f:
        f.write(body)


def apply_diff(root, path, body):
    lines = body.rstrip("\n").split("\n")
    before = "\n".join(line[1:] for line in lines if line[:1] in " -")
    after = "\n".join(line[1:] for line in lines if line[:1] in " +")
    target = os.path.join(root, path)
    with open(target, encoding="utf-8") as f:
        text = f.read()
    if text.count(before) != 1:
        sys.exit(f"docs/extending.md: the change to {path} fits {text.count(before)} places, not one:\n{before}")
    with open(target, "w", encoding="utf-8") as f:
        f.write(text.replace(before, after))


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
    return done.stdout


def copy_sources(root, copy):
    """A folder of a fixed place under the build, so that a second run finds its objects."""
    shutil.rmtree(copy, ignore_errors=True)
    for path in run("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        source = os.path.join(root, path)
        if not os.path.isfile(source):
            continue
        os.makedirs(os.path.dirname(os.path.join(copy, path)), exist_ok=True)
        shutil.copy2(source, os.path.join(copy, path))


def environment_of(root, copy, env):
    """The environment as the first build names it: by the same path from the sources if it lies in them."""
    inside = os.path.relpath(env, root)
    if inside.startswith(os.pardir):
        return env
    link = os.path.join(copy, inside)
    os.symlink(os.path.abspath(env), link)
    return link


def build_copy(copy, env):
    """Flags and relative paths are those of the first build, so ccache has the objects that the examples
    leave as they are."""
    ccache = {**os.environ, "CCACHE_BASEDIR": copy, "CCACHE_NOHASHDIR": "1"}
    folder = os.path.join(copy, "build")
    run("cmake", "-S", copy, "-B", folder, "-G", "Ninja", "-DBENCH_TESTS=OFF", f"-DBENCH_PYTHON_ENV={env}", env=ccache)
    run("ninja", "-C", folder, "bench", "bench-worker", env=ccache)


def check_run(directory):
    with open(os.path.join(directory, "results.json"), encoding="utf-8") as f:
        results = json.load(f)
    names = {b["name"]: b for b in results["benchmarks"]}
    for strategy, gpus in (("single", 1), ("data_parallel", 2), ("distributed", 2), ("two_halves", 1)):
        name = f"tiny_sweep/model:tiny_cnn/strategy:{strategy}/gpus:{gpus}/batch:16"
        if name not in names:
            sys.exit(f"{name} is not in results.json; there are:\n" + "\n".join(sorted(names)))
        case = names[name]
        if case["verified"] != 1 or not case["step_ms_max"] > 0:
            sys.exit(f"{name}: {json.dumps(case, indent=1)}")


def main():
    root, build, env = sys.argv[1:4]
    copy = os.path.join(build, "extending")
    copy_sources(root, copy)
    with open(os.path.join(copy, "docs/extending.md"), encoding="utf-8") as f:
        blocks = BLOCK.findall(f.read())
    if len(blocks) < 15:
        sys.exit(f"docs/extending.md: only {len(blocks)} blocks understood")
    for _, kind, path, body in blocks:
        (apply_new if kind == "new" else apply_diff)(copy, path, body)
    print(f"{len(blocks)} blocks applied")
    if "--dry-run" in sys.argv:
        return
    out = os.path.join(copy, "out")
    build_copy(copy, environment_of(root, copy, env))
    bench = os.path.join(copy, "build", "bin", "bench")
    text = run(bench, "--scenario", "tiny_sweep", "--gpus", "0,1", "--device", "vgpu", "--out", out, "--strategy",
               "single,dp,ddp,two_halves", env={**os.environ, "OMP_NUM_THREADS": "1"})
    check_run(out)
    print(text)
    # Exit code 0: the new mistake is reproduced, detected and cured.
    print(run(bench, "--scenario", "pitfalls", "--select", "gradients-never-cleared", "--out",
              os.path.join(copy, "pitfalls")))


if __name__ == "__main__":
    main()
