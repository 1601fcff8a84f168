"""Which names a piece of Python reads and binds, by the scoping rules of the language.

Comprehensions, lambdas, functions and classes have names of their own: only those that they take
from outside count as read by what holds them.
"""
import ast
import builtins
from collections.abc import Iterable
from dataclasses import dataclass, field

BUILTINS = frozenset(dir(builtins))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass
class Names:
    """What some statements or expressions do to the names of the scope they stand in."""

    reads: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)  # by assignments, loops, with, except
    defined: set[str] = field(default_factory=set)  # by def, class, import
    deleted: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)  # declared global or nonlocal here
    captured: set[str] = field(default_factory=set)  # read by code that runs later

    @property
    def bound(self) -> set[str]:
        """All names that are bound, in whatever way."""
        return self.stored | self.defined


def parameters(function: ast.AST) -> list[str]:
    """The names of a function's or lambda's parameters, in order."""
    a = function.args
    ordered = a.posonlyargs + a.args + ([a.vararg] if a.vararg else []) + a.kwonlyargs
    return [each.arg for each in ordered + ([a.kwarg] if a.kwarg else [])]


def bound_by_import(statement: ast.Import | ast.ImportFrom) -> list[str]:
    """The names an import statement binds; a star names none."""
    return [a.asname or a.name.split(".")[0] for a in statement.names if a.name != "*"]


class _Collector(ast.NodeVisitor):
    """Walks one scope and adds up its names."""

    def __init__(self) -> None:
        self.names = Names()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.names.reads.add(node.id)
        elif isinstance(node.ctx, ast.Store):
            self.names.stored.add(node.id)
        else:
            self.names.reads.add(node.id)
            self.names.deleted.add(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.names.reads.add(node.target.id)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.names.stored.add(node.name)
        self.generic_visit(node)

    def _capture(self, node: ast.AST) -> None:
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self.names.stored.add(name)
        self.generic_visit(node)

    visit_MatchAs = visit_MatchStar = visit_MatchMapping = _capture

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.names.defined.update(bound_by_import(node))

    visit_Import = visit_ImportFrom = _import

    def _share(self, node: ast.Global | ast.Nonlocal) -> None:
        self.names.shared.update(node.names)
        self.names.reads.update(node.names)

    visit_Global = visit_Nonlocal = _share

    def _later(self, names: set[str]) -> None:
        self.names.reads |= names
        self.names.captured |= names

    def _function(self, node: ast.AST) -> None:
        body = node.body if isinstance(node.body, list) else [node.body]
        inner = names_in(body)
        own = (set(parameters(node)) | inner.bound) - inner.shared
        self._later((inner.reads - own) | inner.shared)
        if isinstance(node, FUNCTIONS):
            self.names.defined.add(node.name)
            for each in node.decorator_list + ([node.returns] if node.returns else []):
                self.visit(each)
        self.visit(node.args)  # defaults and annotations belong to the outer scope

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.names.defined.add(node.name)
        for each in [*node.decorator_list, *node.bases, *node.keywords]:
            self.visit(each)
        bound: set[str] = set()
        for statement in node.body:
            inner = names_in([statement])
            # Methods do not see the names of their class, other statements do.
            self.names.reads |= (inner.reads - inner.captured - bound) | inner.captured
            self.names.captured |= inner.captured
            bound |= inner.bound

    def _comprehension(self, node: ast.AST) -> None:
        self.visit(node.generators[0].iter)
        inner = _Collector()
        for k, generator in enumerate(node.generators):
            for each in [generator.target, *generator.ifs, *([generator.iter] if k else [])]:
                inner.visit(each)
        for part in ("key", "value") if isinstance(node, ast.DictComp) else ("elt",):
            inner.visit(getattr(node, part))
        own = {n.id for g in node.generators for n in ast.walk(g.target)
               if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self.names.reads |= inner.names.reads - own
        self.names.stored |= inner.names.stored - own
        self.names.captured |= inner.names.captured - own
        if isinstance(node, ast.GeneratorExp):
            self.names.captured |= inner.names.reads - own

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension


def names_in(nodes: Iterable[ast.AST]) -> Names:
    """The names that these nodes read and bind in the scope they stand in."""
    collector = _Collector()
    for node in nodes:
        collector.visit(node)
    return collector.names


def bindings(node: ast.AST) -> list[str]:
    """Every name that is bound anywhere in it, inner scopes included, once for each binding."""
    out: list[str] = []
    for n in ast.walk(node):
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
            out.append(n.id)
        elif isinstance(n, ast.arg):
            out.append(n.arg)
        elif isinstance(n, (*DEFINITIONS, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
            out += [n.name] if n.name else []
        elif isinstance(n, ast.MatchMapping):
            out += [n.rest] if n.rest else []
        elif isinstance(n, IMPORTS):
            out += bound_by_import(n)
    return out


def shared_names(tree: ast.AST) -> set[str]:
    """The names of all global and nonlocal declarations."""
    return {name for n in ast.walk(tree) if isinstance(n, (ast.Global, ast.Nonlocal))
            for name in n.names}


def imported(tree: ast.AST) -> set[str]:
    """The names that import statements bind, wherever they stand, and that nothing else binds."""
    out = [name for n in ast.walk(tree) if isinstance(n, IMPORTS) for name in bound_by_import(n)]
    bound = bindings(tree)
    return {name for name in out if bound.count(name) == out.count(name)}


def identifiers(tree: ast.AST) -> set[str]:
    """All names that stand in it, bound or read."""
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    return used | set(bindings(tree)) | shared_names(tree)


def fresh(base: str, taken: set[str]) -> str:
    """A name that is not taken, which is taken from now on."""
    while base in taken or base in BUILTINS:
        base += "_"
    taken.add(base)
    return base
