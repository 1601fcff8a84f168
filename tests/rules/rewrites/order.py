"""The order in which Python evaluates an expression, and what may be evaluated earlier or later."""
import ast
from collections.abc import Iterator

from names import COMPREHENSIONS, names_in


def is_steady(node: ast.expr) -> bool:
    """Whether the value is the same before and after any call: a constant, a name, or a display of
    such. (Rewrites leave names alone that are declared global somewhere.)"""
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return all(is_steady(each) for each in node.elts)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant)
    return isinstance(node, (ast.Constant, ast.Name, ast.Lambda))


def root_of(node: ast.expr) -> str:
    """torch of torch.nn.Linear; empty where it does not begin with a name."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def is_looked_up(function: ast.expr, others: list[ast.expr], modules: set[str]) -> bool:
    """Whether what is called is the same before and after the others are evaluated: a dotted name
    whose object they do not read, where it is no module."""
    root = root_of(function)
    if not root or isinstance(function, ast.Name) or root in modules:
        return bool(root)
    return root not in names_in(others).reads or not any(runs_code(n) for n in others)


def runs_code(node: ast.AST) -> bool:
    """Whether evaluating it calls something, waits, or binds a name."""
    return any(isinstance(n, (ast.Call, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr,
                              *COMPREHENSIONS)) for n in ast.walk(node))


def may_swap(first: list[ast.expr], second: list[ast.expr]) -> bool:
    """Whether the second expressions may be evaluated before the first."""
    if all(is_steady(n) for n in first) or all(is_steady(n) for n in second):
        return True
    return not any(runs_code(n) for n in first + second)


def operands(node: ast.expr) -> list[ast.expr] | None:
    """The operands that are always evaluated, in order; None where some may not be."""
    if isinstance(node, ast.Call):
        return [node.func, *node.args, *(k.value for k in node.keywords)]
    if isinstance(node, (ast.Attribute, ast.Starred)):
        return [node.value]
    if isinstance(node, ast.Subscript):
        return [node.value, node.slice]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return [node.left, *node.comparators]
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return list(node.elts)
    if isinstance(node, ast.Dict) and all(node.keys):
        return [each for pair in zip(node.keys, node.values) for each in pair]
    return None


def read_first(node: ast.expr, name: str) -> bool:
    """Whether the expression reads the name before anything that may run code or change."""
    for each in _until(node, name):
        if each is None:
            return False
        if isinstance(each, ast.Name) and each.id == name:
            return True
    return False  # only in code that runs later


def _until(node: ast.expr, name: str) -> Iterator[ast.expr | None]:
    """The leaves of an expression in order; None where something may have run before."""
    if is_steady(node) and not (isinstance(node, (ast.Tuple, ast.List, ast.Set))
                                and name in {n.id for n in ast.walk(node)
                                             if isinstance(n, ast.Name)}):
        yield node
        return
    parts = operands(node)
    if parts is None:
        yield None
        return
    for k, part in enumerate(parts):
        if k == 0 and isinstance(node, ast.Call) and root_of(part) and not (
                name in {n.id for n in ast.walk(part) if isinstance(n, ast.Name)}):
            continue
        yield from _until(part, name)
    yield None  # what the operands are for: a call, a look-up, an operator
