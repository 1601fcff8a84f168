"""Every header that an object was compiled with comes from the distribution or from a pinned wheel.

A CUDA toolkit or a library under /usr/local may be on the developer's machine and must not be needed: a header found
there is one that a machine which has never seen the project lacks.

Usage: headers_from.py BUILD_DIR
"""
import pathlib
import subprocess
import sys

FOREIGN = ("/usr/local/", "/opt/")


def foreign_headers(deps: str, root: pathlib.Path) -> list[str]:
    """`deps` is what `ninja -t deps` prints: an object, then its headers, indented."""
    found, target = [], ""
    for line in deps.splitlines():
        if line.startswith(" "):
            header = line.strip()
            if header.startswith(FOREIGN) and not pathlib.Path(header).is_relative_to(root):
                found.append(f"{target}: {header}")
        elif line:
            target = line.split(":")[0]
    return found


def check_itself() -> None:
    deps = "a.o: #deps 2\n    /usr/include/stdio.h\n    /usr/local/include/crt/host_config.h\n"
    expected = ["a.o: /usr/local/include/crt/host_config.h"]
    assert foreign_headers(deps, pathlib.Path("/src")) == expected
    assert foreign_headers(deps, pathlib.Path("/usr/local")) == []  # a checkout may lie there


def main() -> int:
    check_itself()
    build = pathlib.Path(sys.argv[1]).resolve()
    deps = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], check=True, capture_output=True, text=True).stdout
    if ".o:" not in deps:
        print(f"{build} has no compiled objects to check")
        return 1
    found = foreign_headers(deps, build.parent)
    for line in found:
        print(f"{line}\n  is in no package of scripts/packages.txt and no wheel of scripts/requirements.txt")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
