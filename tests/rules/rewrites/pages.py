"""The cases of the rule pages: what scenarios/pitfalls/*.md show under "Fires" and "Stays silent".

A case is a heading of the third level with fenced blocks: ```python is the script (train.py, unless
the fence names another file), any other named fence a file beside it, ```finding what is expected,
and ```launch and ```gpus are options of the command.
"""
import io
import re
import tokenize
from dataclasses import dataclass, field
from pathlib import Path

SCRIPT = "train.py"
_HEADING = re.compile(r"(?m)^(?=##+ )")
_BLOCK = re.compile(r"(?ms)^```(\S*)([^\n]*)\n(.*?)^```")
# Another file that imports the script sees its names: none of them may go or move.
_IMPORTS_SCRIPT = re.compile(r"(?m)^\s*(from\s+\.?train\b|import\s+train\b|from\s+\.\s+import\b)")


@dataclass
class Case:
    """One case of a page."""

    rule: str
    title: str
    files: dict[str, str] = field(default_factory=dict)
    has_options: bool = False  # a block that becomes options of the command

    @property
    def is_rewritable(self) -> bool:
        """Whether no other file needs the script's names, and no comment says how it is started
        or what to leave out: printing a tree loses them."""
        others = (text for name, text in self.files.items()
                  if name.endswith(".py") and name != SCRIPT)
        return not _has_comment(self.files[SCRIPT]) and not any(
            _IMPORTS_SCRIPT.search(text) for text in others)


def _has_comment(text: str) -> bool:
    try:
        return any(token.type == tokenize.COMMENT
                   for token in tokenize.generate_tokens(io.StringIO(text).readline))
    except (SyntaxError, tokenize.TokenError):
        return True


def _add_block(case: Case, language: str, name: str, body: str) -> None:
    if language in ("launch", "gpus"):
        case.has_options = True
    elif language == "python":
        case.files[name or SCRIPT] = body
    elif language != "finding":
        case.files[name or f"x.{language}"] = body


def cases_of(page: str) -> list[Case]:
    """The cases of one page, in its order."""
    rule = re.match(r"# (\S+)", page).group(1)
    cases, part = [], ""
    for section in _HEADING.split(page):
        heading = section.split("\n", 1)[0]
        if heading.startswith("## "):
            part = heading[3:].strip()
        elif heading.startswith("### ") and part in ("Fires", "Stays silent"):
            case = Case(rule, heading[4:].strip())
            for block in _BLOCK.finditer(section):
                _add_block(case, block.group(1), block.group(2).strip(), block.group(3))
            cases.append(case)
    return cases


def scripts_in(folder: Path) -> list[Case]:
    """The cases of all pages that have a script and no options of the command."""
    cases = [case for page in sorted(folder.glob("*.md"))
             for case in cases_of(page.read_text(encoding="utf-8"))]
    return [case for case in cases if SCRIPT in case.files and not case.has_options]
