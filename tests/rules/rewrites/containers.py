"""Rewrites that keep values in something: a setup function's result, constants, a dictionary."""
import ast
from collections.abc import Callable
from dataclasses import dataclass

from flow import Flow
from names import BUILTINS, fresh, identifiers, names_in
from scopes import (Scope, insert_on_top, is_bound_in, is_movable, last_name, load, make_call,
                    make_function, pack, trainings)

# What these calls are given is their own syntax, not a setting.
_OWN_SYNTAX = ("add_argument", "ArgumentParser", "dict", "TypedDict", "field")


@dataclass
class _Setup:
    """Statements right before a training loop, with what they take and what is read later."""

    scope: Scope
    start: int
    stop: int
    arguments: list[str]
    results: list[str]

    @property
    def later(self) -> list[ast.stmt]:
        """The training loop and what follows."""
        return self.scope.body[self.stop:]


def _find_setup(tree: ast.Module) -> _Setup | None:
    """The longest run of assignments and calls before the first training loop's statement."""
    found = trainings(tree)
    if not found or not (found[0].scope.is_module or found[0].scope.owner in tree.body):
        return None
    scope, stop = found[0].scope, found[0].index
    body, start = scope.body, found[0].index
    while start and isinstance(body[start - 1], (ast.Assign, ast.Expr)) and not isinstance(
            body[start - 1].value, ast.Constant):
        start -= 1
    part = body[start:stop]
    if len(part) < 2 or not is_movable(part):
        return None
    names, inner = names_in(part), Flow(part)
    if names.bound & (names_in(body).captured | scope.shared):
        return None  # functions that look for the names in their old scope
    arguments = scope.arguments(inner.exposed, scope.flow().entry(part[0]))
    if arguments is None or (inner.exposed & names.bound) - set(arguments):
        return None
    results = sorted(names.bound & names_in(body[stop:]).reads)
    return _Setup(scope, start, stop, arguments, results) if results else None


def _put_setup(tree: ast.Module, setup: _Setup, name: str, result: ast.expr,
               target: ast.expr) -> None:
    """target = setup(...), with a function that ends in `return result`."""
    part = setup.scope.body[setup.start:setup.stop]
    call = ast.Assign(targets=[target], value=make_call(name, setup.arguments))
    setup.scope.body[setup.start:setup.stop] = [call]
    insert_on_top(tree, [make_function(name, setup.arguments, [*part, ast.Return(value=result)])])


def setup_tuple(tree: ast.Module) -> ast.Module | None:
    """Before: statements that make model, optimizer, loader. After: a function setup(), whose tuple
    is taken apart: loader, model, optimizer = setup()."""
    setup = _find_setup(tree)
    if setup is None:
        return None
    name = fresh("setup", identifiers(tree))
    _put_setup(tree, setup, name, pack(setup.results, ast.Load()),
               pack(setup.results, ast.Store()))
    return tree


class _ReadFrom(ast.NodeTransformer):
    """Reads of some names become reads of a place that holds them."""

    def __init__(self, names: list[str], place: Callable[[str], ast.expr]) -> None:
        self.names, self.place = set(names), place

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.place(node.id) if node.id in self.names else node


def _setup_state(tree: ast.Module, make: Callable[[list[str]], ast.expr],
                 place: Callable[[str, str], ast.expr]) -> ast.Module | None:
    """state = setup(), whose names are read from the state afterwards."""
    setup = _find_setup(tree)
    if setup is None or is_bound_in(setup.later, set(setup.results)):
        return None
    taken = identifiers(tree)
    name, state = fresh("setup", taken), fresh("state", taken)
    change = _ReadFrom(setup.results, lambda result: place(state, result))
    setup.scope.body[setup.stop:] = [change.visit(s) for s in setup.later]
    _put_setup(tree, setup, name, make(setup.results), ast.Name(id=state, ctx=ast.Store()))
    return tree


def _item(base: str, key: str) -> ast.Subscript:
    return ast.Subscript(value=load(base), slice=ast.Constant(key), ctx=ast.Load())


def _attribute(base: str, name: str) -> ast.Attribute:
    return ast.Attribute(value=load(base), attr=name, ctx=ast.Load())


def setup_dict(tree: ast.Module) -> ast.Module | None:
    """Before: statements that make model and loader. After: a function setup() returns a
    dictionary, and what follows reads state["model"]."""
    return _setup_state(
        tree, lambda names: ast.Dict(keys=[ast.Constant(n) for n in names],
                                     values=[load(n) for n in names]), _item)


def setup_ns(tree: ast.Module) -> ast.Module | None:
    """Before: statements that make model and loader. After: a function setup() returns a
    SimpleNamespace, and what follows reads state.model."""
    if "SimpleNamespace" in identifiers(tree):
        return None
    changed = _setup_state(
        tree, lambda names: ast.Call(
            func=load("SimpleNamespace"), args=[],
            keywords=[ast.keyword(arg=n, value=load(n)) for n in names]), _attribute)
    if changed:
        insert_on_top(tree, ast.parse("from types import SimpleNamespace").body)
    return changed


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
        return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str, bool))


def _is_setting(name: str | None, value: ast.expr) -> bool:
    """A list is made anew for each call; only device_ids is known to be copied by who gets it."""
    if name == "device_ids" and isinstance(value, ast.List) and value.elts:
        return all(_is_literal(each) for each in value.elts)
    return bool(name) and not name.startswith("__") and _is_literal(value)


class _Settings(ast.NodeTransformer):
    """Takes literals out of the calls in bodies; those of defaults and decorators stay."""

    def __init__(self, use: Callable[[str], ast.expr], spell: Callable[[str], str],
                 taken: set[str]) -> None:
        self.use, self.spell, self.taken = use, spell, taken
        self.found: dict[str, ast.expr] = {}

    def _keep(self, name: str, value: ast.expr) -> ast.expr:
        """The place of a setting: equal ones share it, others of the name get a number."""
        candidate, k = self.spell(name), 1
        while candidate in self.taken or candidate in self.found and ast.dump(
                self.found[candidate]) != ast.dump(value):
            k += 1
            candidate = self.spell(name) + str(k)
        self.found[candidate] = value
        return self.use(candidate)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        if last_name(node) in _OWN_SYNTAX:
            return node
        self.generic_visit(node)
        for keyword in node.keywords:
            if _is_setting(keyword.arg, keyword.value):
                keyword.value = self._keep(keyword.arg, keyword.value)
        if (isinstance(node.func, ast.Name) and node.func.id == "range"
                and len(node.args) == 1 and _is_literal(node.args[0])):
            node.args[0] = self._keep("num_epochs", node.args[0])
        return node

    def _body_only(self, node: ast.AST) -> ast.AST:
        node.body = [self.visit(s) for s in node.body]
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _body_only


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value)


def const_upper(tree: ast.Module) -> ast.Module | None:
    """Before: Loader(batch_size=32). After: BATCH_SIZE = 32, Loader(batch_size=BATCH_SIZE)."""
    settings = _Settings(load, str.upper, identifiers(tree) | BUILTINS)
    settings.visit(tree)
    insert_on_top(tree, [_assign(n, v) for n, v in settings.found.items()])
    return tree if settings.found else None


def _const_object(tree: ast.Module, decorate: Callable[[dict[str, ast.expr]], list[ast.stmt]],
                  decorators: list[str]) -> ast.Module | None:
    """Settings as attributes of cfg, an object of a class Config."""
    taken = identifiers(tree)
    config, object_name = fresh("Config", taken), fresh("cfg", taken)
    settings = _Settings(lambda n: _attribute(object_name, n), str, set())
    settings.visit(tree)
    if not settings.found:
        return None
    fields = decorate(settings.found)
    made = ast.ClassDef(name=config, bases=[], keywords=[], body=fields,
                        decorator_list=[load(d) for d in decorators])
    insert_on_top(tree, [made, _assign(object_name, make_call(config, []))])
    return tree


def const_class(tree: ast.Module) -> ast.Module | None:
    """Before: Loader(batch_size=32). After: a class Config with batch_size = 32, an object cfg of
    it, Loader(batch_size=cfg.batch_size)."""
    return _const_object(tree, lambda found: [_assign(n, v) for n, v in found.items()], [])


def _field(name: str, value: ast.expr) -> ast.AnnAssign:
    """name: type = value, with a factory for lists, which a dataclass refuses as defaults."""
    kind = type(ast.literal_eval(value)).__name__
    if isinstance(value, ast.List):
        value = ast.parse(f"field(default_factory=lambda: {ast.unparse(value)})").body[0].value
    return ast.AnnAssign(target=ast.Name(id=name, ctx=ast.Store()), annotation=load(kind),
                         value=value, simple=1)


def const_dataclass(tree: ast.Module) -> ast.Module | None:
    """Before: Loader(batch_size=32). After: a dataclass Config with batch_size: int = 32, an object
    cfg of it, Loader(batch_size=cfg.batch_size)."""
    if identifiers(tree) & {"dataclass", "field"}:
        return None
    changed = _const_object(tree, lambda found: [_field(n, v) for n, v in found.items()],
                            ["dataclass"])
    if changed:
        insert_on_top(tree, ast.parse("from dataclasses import dataclass, field").body)
    return changed


def const_dict(tree: ast.Module) -> ast.Module | None:
    """Before: Loader(batch_size=32). After: CONFIG = {"batch_size": 32},
    Loader(batch_size=CONFIG["batch_size"])."""
    config = fresh("CONFIG", identifiers(tree))
    settings = _Settings(lambda n: _item(config, n), str, set())
    settings.visit(tree)
    if not settings.found:
        return None
    keys = [ast.Constant(n) for n in settings.found]
    insert_on_top(tree, [_assign(config, ast.Dict(keys=keys, values=[*settings.found.values()]))])
    return tree
