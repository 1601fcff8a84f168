"""Rewrites that divide a script: its functions and classes move to a second file."""
import ast

from classes import is_quiet
from names import (BUILTINS, DEFINITIONS, FUNCTIONS, bindings, bound_by_import, identifiers,
                   names_in)
from scopes import insert_on_top, is_movable, leading, load

# What starts a program stays in its script.
_STAYS = ("main", "run", "worker")


def _movable(tree: ast.Module) -> list[ast.stmt]:
    """The functions and classes that need only the first imports and each other, and whose names
    nothing else binds."""
    bound = bindings(tree)
    first = tree.body[:leading(tree)]
    at_hand = {name for s in first if not isinstance(s, ast.Expr) for name in bound_by_import(s)}
    own = names_in(tree.body).bound
    moved = [d for d in tree.body if isinstance(d, DEFINITIONS) and bound.count(d.name) == 1
             and is_quiet(d) and _is_portable(d)
             and not (isinstance(d, FUNCTIONS) and d.name in _STAYS)]
    while True:
        names = {d.name for d in moved}
        # What the script does not bind is a builtin, or cannot be found in another file either.
        kept = [d for d in moved
                if names_in([d]).reads - names - at_hand <= BUILTINS - own]
        if len(kept) == len(moved):
            return moved
        moved = kept


def _is_portable(definition: ast.stmt) -> bool:
    """Whether it means the same in another module: no name of its module, no global."""
    if any(isinstance(n, ast.Name) and n.id in ("__name__", "__file__", "__doc__")
           for n in ast.walk(definition)):
        return False
    shared = any(isinstance(n, ast.Global) for n in ast.walk(definition))
    return not shared and (isinstance(definition, ast.ClassDef) or is_movable([definition]))


class _FromModule(ast.NodeTransformer):
    """Names become attributes of the other file's module."""

    def __init__(self, module: str, names: set[str]) -> None:
        self.module, self.names = module, names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.names:
            return node
        return ast.Attribute(value=load(self.module), attr=node.id, ctx=ast.Load())


def _imported_modules(tree: ast.Module) -> set[str]:
    """The outermost packages that the script imports."""
    modules = [n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    modules += [a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names]
    return {module.split(".")[0] for module in modules}


def _split(tree: ast.Module, by_name: bool) -> dict[str, ast.Module] | None:
    if "helpers" in identifiers(tree) or "helpers" in _imported_modules(tree):
        return None
    moved = _movable(tree)
    names = {d.name for d in moved}
    rest = [s for s in tree.body if s not in moved]
    if not names & names_in(rest).reads:
        return None
    first = [s for s in tree.body[:leading(tree)] if not isinstance(s, ast.Expr)]
    helpers = ast.Module(body=[*first, *moved], type_ignores=[])
    script = ast.Module(body=rest, type_ignores=[])
    if by_name:
        aliases = [ast.alias(name=d.name) for d in moved]
        statement: ast.stmt = ast.ImportFrom(module="helpers", names=aliases, level=0)
    else:
        statement = ast.Import(names=[ast.alias(name="helpers")])
        _FromModule("helpers", names).visit(script)
    insert_on_top(script, [statement])
    return {"train.py": script, "helpers.py": helpers}


def split_from(tree: ast.Module) -> dict[str, ast.Module] | None:
    """Before: functions and classes above the training. After: they are in helpers.py, and
    train.py begins with from helpers import Net, evaluate."""
    return _split(tree, True)


def split_mod(tree: ast.Module) -> dict[str, ast.Module] | None:
    """Before: functions and classes above the training. After: they are in helpers.py, and
    train.py says import helpers and helpers.Net()."""
    return _split(tree, False)
