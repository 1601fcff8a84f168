"""The places of a script: its scopes, blocks and training loops, and what may move between them."""
import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from flow import Flow
from names import (DEFINITIONS, FUNCTIONS, IMPORTS, Names, bindings, names_in, parameters,
                   shared_names)

LOOPS = (ast.For, ast.While)
# Calls that see the names around them: nothing near them may be moved or renamed.
_LOOKS_AROUND = ("exec", "eval", "globals", "locals", "vars", "dir")


@dataclass
class Scope:
    """The module or a function, with the names that code taken out of it would miss."""

    owner: ast.AST
    body: list[ast.stmt]
    names: Names
    own: set[str]  # what its code finds in no other function and not as a definition
    outer: set[str]  # names of the functions around it
    fixed: set[str]  # definitions and imports of this and outer functions
    shared: set[str]

    @property
    def is_module(self) -> bool:
        """Whether it is the script itself; its names are visible in every function."""
        return isinstance(self.owner, ast.Module)

    def flow(self) -> Flow:
        """What is bound at each of its statements."""
        given = () if self.is_module else (*parameters(self.owner), *self.outer)
        return Flow(self.body, given)

    def arguments(self, needed: set[str], sure: set[str]) -> list[str] | None:
        """The arguments that hand `needed` names over to a function of the script; None where one
        may not have a value yet, or can change while the function runs. Names of the module that
        may be unbound are left to the function, which sees them."""
        needed = needed & (self.own | self.outer | self.fixed)
        if self.is_module:
            needed &= sure
        if not needed <= sure or needed & (self.shared | self.fixed):
            return None
        return sorted(needed)


def scopes(tree: ast.Module) -> list[Scope]:
    """The module and all its functions and methods, outer ones first."""
    shared = shared_names(tree)
    names = names_in(tree.body)
    out = [Scope(tree, tree.body, names, set(names.stored), set(), set(), shared)]

    def inside(node: ast.AST, outer: set[str], fixed: set[str]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                names = names_in(child.body)
                own = (set(parameters(child)) | names.bound) - names.shared
                mine = (fixed - own) | (names.defined - names.shared)
                out.append(Scope(child, child.body, names, own, outer, mine, shared))
                inside(child, outer | own, mine)
            elif not isinstance(child, ast.AsyncFunctionDef):
                inside(child, outer, fixed)

    inside(tree, set(), set())
    return out


def leading(tree: ast.Module) -> int:
    """The index behind the docstring and the imports that the script begins with."""
    k = 0
    if tree.body and isinstance(tree.body[0], ast.Expr) and isinstance(
            tree.body[0].value, ast.Constant):
        k = 1
    while k < len(tree.body) and isinstance(tree.body[k], IMPORTS):
        k += 1
    return k


def insert_on_top(tree: ast.Module, statements: list[ast.stmt]) -> None:
    """Puts statements behind the first imports, above everything that uses them."""
    k = leading(tree)
    tree.body[k:k] = statements


def statement_lists(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks directly below a statement."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(statement, field, None)
        if isinstance(block, list) and block:
            yield block
    for each in getattr(statement, "handlers", []) + getattr(statement, "cases", []):
        yield each.body


def blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """A scope's own blocks: its body and those of its loops, branches and so on, inner ones first.
    The bodies of functions and classes in it are not its own."""
    for statement in list(body):
        if not isinstance(statement, DEFINITIONS):
            for block in statement_lists(statement):
                yield from blocks(block)
    yield body


def rewrite_blocks(tree: ast.Module,
                   rewrite: Callable[[list[ast.stmt]], list[ast.stmt]]) -> None:
    """Replaces each block of the module and of all functions. The body of a class is left as it is:
    a new name there would be an attribute."""
    for scope in scopes(tree):
        for block in blocks(scope.body):
            block[:] = rewrite(block)


def _is_place_bound(node: ast.AST) -> bool:
    if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr, ast.Global,
                         ast.Nonlocal)):
        return True
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    if name.startswith("__") and not name.endswith("__"):
        return True  # a private name, whose spelling depends on the class
    return isinstance(node, ast.Name) and name in ("super", "__class__", *_LOOKS_AROUND)


def is_movable(nodes: list[ast.AST]) -> bool:
    """Whether the code means the same in another function, given its names."""
    return not any(_is_place_bound(n) for node in nodes for n in ast.walk(node))


def looks_around(tree: ast.Module) -> bool:
    """Whether the script asks for its names as text, so that any change could be seen."""
    return any(isinstance(n, ast.Name) and n.id in _LOOKS_AROUND for n in ast.walk(tree))


def given(tree: ast.Module) -> set[str]:
    """Names that a script reads without having bound them: something else provides them."""
    names = names_in(tree.body)
    at_once = [s for s in tree.body if not isinstance(s, DEFINITIONS)]
    return (names.reads - names.bound) | Flow(at_once).exposed


def is_main_test(statement: ast.stmt) -> bool:
    """if __name__ == "__main__":"""
    return isinstance(statement, ast.If) and "__name__" in {
        n.id for n in ast.walk(statement.test) if isinstance(n, ast.Name)}


def has_backward(node: ast.AST) -> bool:
    """Whether a backward pass is called in it."""
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
               and n.func.attr in ("backward", "manual_backward") for n in ast.walk(node))


@dataclass
class Training:
    """A training loop: the innermost one with a backward pass, below those around it."""

    scope: Scope
    loops: list[ast.For | ast.While]  # outermost first

    @property
    def index(self) -> int:
        """The statement of the scope that the loop stands in."""
        return next(k for k, s in enumerate(self.scope.body)
                    if any(n is self.loops[-1] for n in ast.walk(s)))


def trainings(tree: ast.Module) -> list[Training]:
    """The training loops of a script, in its order."""
    out: list[Training] = []
    places = {id(scope.owner): scope for scope in scopes(tree)}

    def inside(node: ast.AST, scope: Scope, chain: list[ast.stmt]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, FUNCTIONS):
                if id(child) in places:
                    inside(child, places[id(child)], [])
            elif isinstance(child, LOOPS):
                own = [*chain, child]
                deeper = (n for n in ast.walk(child) if n is not child and isinstance(n, LOOPS))
                if has_backward(child) and not any(has_backward(n) for n in deeper):
                    out.append(Training(scope, own))
                inside(child, scope, own)
            elif not isinstance(child, ast.ClassDef):
                inside(child, scope, chain)
            else:  # methods only: loops in the body of a class are not looked at
                for each in child.body:
                    if id(each) in places:
                        inside(each, places[id(each)], [])

    inside(tree, places[id(tree)], [])
    return out


def last_name(call: ast.Call) -> str:
    """DataLoader of torch.utils.data.DataLoader(...)."""
    f = call.func
    return f.attr if isinstance(f, ast.Attribute) else f.id if isinstance(f, ast.Name) else ""


def is_bound_in(nodes: list[ast.AST], wanted: set[str]) -> bool:
    """Whether any scope in the nodes binds one of the names."""
    return any(name in wanted for node in nodes for name in bindings(node))


def make_function(name: str, parameter_names: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
    """def name(parameters): body"""
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg(arg=p) for p in parameter_names],
                              kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.FunctionDef(name=name, args=arguments, body=body, decorator_list=[])


def load(name: str) -> ast.Name:
    """The name, read."""
    return ast.Name(id=name, ctx=ast.Load())


def make_call(name: str, argument_names: list[str]) -> ast.Call:
    """name(arguments)"""
    return ast.Call(func=load(name), args=[load(a) for a in argument_names], keywords=[])


def pack(names: list[str], context: ast.expr_context) -> ast.expr:
    """A name alone, or a tuple of several, to return or to assign to."""
    elements = [ast.Name(id=name, ctx=context) for name in names]
    return elements[0] if len(elements) == 1 else ast.Tuple(elts=elements, ctx=context)
