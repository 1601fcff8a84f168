"""Compiles files one by one and tells which of them need another file in front of them."""
import concurrent.futures
import os
import subprocess


def tracked(root, pattern):
    listed = subprocess.run(["git", "-C", root, "ls-files", pattern], capture_output=True, text=True, check=True)
    return listed.stdout.split()


def include_flags(root, directories):
    """`directories`, separated by semicolons, hold the headers of tree-sitter, which are not installed."""
    return ["-I", root, *(word for directory in directories.split(";") for word in ("-isystem", directory))]


def check(kind, files, command_of, root, allow_warnings):
    """`command_of(file)` gives a compiler's command and its standard input. Returns the exit status."""
    def compile_alone(file):
        command, text = command_of(file)
        return file, subprocess.run(command, input=text, capture_output=True, text=True, cwd=root)

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, done in pool.map(compile_alone, files):
            if done.returncode != 0 or (done.stderr and not allow_warnings):
                bad += 1
                print(f"{file}:1: error: does not compile alone\n{done.stderr}")
    print(f"{len(files) - bad} of {len(files)} {kind} compile alone")
    return 1 if bad or not files else 0
