"""The table of all rewrites, and how one is applied to the text of a script.

A rewrite gets the tree of a script, which is its own to change, and returns it, or the trees of
several files by their names. It returns nothing where it has nothing to do, or where it cannot keep
the meaning: what runs, in which order, with which values.
"""
import ast
from collections.abc import Callable

import classes
import containers
import files
import functions
import guards
import imports
import spelling
from names import DEFINITIONS
from pages import SCRIPT
from scopes import looks_around

Result = ast.Module | dict[str, ast.Module] | None
Rewrite = Callable[[ast.Module], Result]

ALL: dict[str, Rewrite] = {
    "unparse": spelling.unparse,
    "step_fn": functions.step_fn,
    "epoch_fn": functions.epoch_fn,
    "loop_fn": functions.loop_fn,
    "build_loader": functions.build_loader,
    "build_sampler": functions.build_sampler,
    "build_ddp": functions.build_ddp,
    "build_opt": functions.build_opt,
    "build_any": functions.build_any,
    "setup_tuple": containers.setup_tuple,
    "setup_dict": containers.setup_dict,
    "setup_ns": containers.setup_ns,
    "const_upper": containers.const_upper,
    "const_class": containers.const_class,
    "const_dataclass": containers.const_dataclass,
    "const_dict": containers.const_dict,
    "kwargs_dict": spelling.kwargs_dict,
    "classify": classes.classify,
    "mainify": classes.mainify,
    "full_names": imports.full_names,
    "from_names": imports.from_names,
    "to_kw": imports.to_kw,
    "rename": spelling.rename,
    "temps": spelling.temps,
    "inline": spelling.inline,
    "annot": spelling.annot,
    "tuple_assign": spelling.tuple_assign,
    "guard_helper": guards.guard_helper,
    "guard_var": guards.guard_var,
    "guard_not": guards.guard_not,
    "guard_else": guards.guard_else,
    "nested_if": guards.nested_if,
    "try": guards.try_loop,
    "tqdm": guards.tqdm,
    "split_from": files.split_from,
    "split_mod": files.split_mod,
}


def _has_star(tree: ast.Module) -> bool:
    """Whether names come from somewhere without being named: one could be what a rewrite makes."""
    return any(isinstance(n, ast.ImportFrom) and any(a.name == "*" for a in n.names)
               for n in ast.walk(tree))


def _has_free_text(tree: ast.Module) -> bool:
    """Whether a string stands alone below the first line: a comment that is printed otherwise."""
    strings = [n for n in ast.walk(tree) if isinstance(n, ast.Expr)
               and isinstance(n.value, ast.Constant) and isinstance(n.value.value, str)]
    with_docstring = [n for n in ast.walk(tree) if isinstance(n, (ast.Module, *DEFINITIONS))
                      and ast.get_docstring(n) is not None]
    return len(strings) > len(with_docstring)


def is_plain(text: str) -> bool:
    """Whether a script can be rewritten: it parses, and its names and words are all to be seen."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return not (looks_around(tree) or _has_star(tree) or _has_free_text(tree))


def _print(tree: ast.Module) -> str:
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def apply(name: str, text: str) -> dict[str, str] | None:
    """The files that the script becomes; None where the rewrite leaves it as it is. The text is
    that of a script that is_plain()."""
    result = ALL[name](ast.parse(text))
    if result is None:
        return None
    trees = result if isinstance(result, dict) else {SCRIPT: result}
    try:
        texts = {file: _print(tree) for file, tree in trees.items()}
    except ValueError:  # quotes in an f-string for which this Python knows no spelling
        return None
    for file, each in texts.items():
        compile(each, file, "exec")  # a rewrite that writes something else is wrong
    return texts
