"""Writes the model example of docs/architecture.md as files: extract_examples.py PAGE DIR

A fenced block after `<!-- example: NAME -->` becomes DIR/<last part of NAME>, rows become .inc files.
"""

import pathlib
import re
import sys

FILES = {
    "training/models/lenet.cpp": "lenet.cpp",
    "row of bench/core/model_catalog.cpp": "catalog_row.inc",
    "row of training/models/zoo.cpp": "zoo_row.inc",
}


def main(page, directory):
    blocks = dict(re.findall(r"<!-- example: (.*?) -->\n```cpp\n(.*?)```", page.read_text(), re.DOTALL))
    missing = set(FILES) - set(blocks)
    if missing:
        sys.exit(f"{page}: no example for {', '.join(sorted(missing))}")
    directory.mkdir(parents=True, exist_ok=True)
    for name, file in FILES.items():
        (directory / file).write_text(blocks[name])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
