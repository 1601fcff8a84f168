"""Rewrites of a script's outer shape: training as a class, the script as a function main()."""
import ast
import copy

from flow import Flow
from names import (BUILTINS, DEFINITIONS, IMPORTS, bindings, fresh, identifiers, names_in,
                   parameters)
from scopes import (Training, is_bound_in, is_main_test, is_movable, leading, load, make_call,
                    make_function, trainings)

# Processes that are started anew import the script: what stands outside of functions runs there.
_STARTS_PROCESSES = ("spawn", "Process", "Pool", "start_processes", "set_start_method")
_HARMLESS_DECORATORS = ("no_grad", "inference_mode", "enable_grad", "dataclass", "field")


def is_quiet(definition: ast.AST) -> bool:
    """Whether a function or class can be defined earlier or elsewhere: its defaults, decorators,
    bases and class body call nothing."""
    if isinstance(definition, ast.ClassDef):
        parts = [*definition.decorator_list, *definition.bases, *definition.keywords]
        return _calls_nothing(parts) and all(
            is_quiet(s) if isinstance(s, DEFINITIONS) else _calls_nothing([s])
            for s in definition.body)
    return _calls_nothing([*definition.decorator_list, definition.args])


def _calls_nothing(nodes: list[ast.AST]) -> bool:
    calls = (n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Call))
    return all(getattr(c.func, "attr", getattr(c.func, "id", "")) in _HARMLESS_DECORATORS
               for c in calls)


def _statements(tree: ast.Module) -> list[ast.stmt] | None:
    """What a script runs, without definitions and imports, where it may stand behind all of them
    and in a function: then no definition reads its names."""
    body = [s for s in tree.body[leading(tree):] if not isinstance(s, (*DEFINITIONS, *IMPORTS))]
    if not body or not is_movable(body) or any(is_main_test(s) for s in body):
        return None
    first = tree.body.index(body[0])
    for statement in tree.body[first:]:
        if isinstance(statement, IMPORTS):
            return None  # what runs before an import may matter to it
        if isinstance(statement, DEFINITIONS) and not is_quiet(statement):
            return None
    definitions = names_in(s for s in tree.body if s not in body)
    names = names_in(body)
    if names.bound & (definitions.reads | definitions.shared | definitions.bound | BUILTINS):
        return None
    if any(getattr(n, "attr", getattr(n, "id", "")) in _STARTS_PROCESSES
           for s in body for n in ast.walk(s)):
        return None
    # A name that is given from elsewhere and bound here would have no value in a function.
    return None if Flow(body).exposed & names.bound else body


def _run_as_program(tree: ast.Module, body: list[ast.stmt], made: ast.stmt, start: str) -> None:
    """Definitions, the one that was made, and its start below the usual test."""
    tree.body = [s for s in tree.body if s not in body] + [made]
    tree.body += ast.parse(f'if __name__ == "__main__":\n    {start}').body


def mainify(tree: ast.Module) -> ast.Module | None:
    """Before: a script whose statements stand at the left. After: they are a function main(), below
    the definitions, which `if __name__ == "__main__"` calls."""
    body = _statements(tree)
    if body is None:
        return None
    name = fresh("main", identifiers(tree))
    _run_as_program(tree, body, make_function(name, [], body), f"{name}()")
    return tree


class _OnSelf(ast.NodeTransformer):
    """Names become attributes of self."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.names:
            return node
        return ast.Attribute(value=load("self"), attr=node.id, ctx=node.ctx)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        self.generic_visit(node)
        node.simple = int(isinstance(node.target, ast.Name))
        return node


def _may_be_class(tree: ast.Module, body: list[ast.stmt], attributes: set[str]) -> bool:
    """Whether the names can be attributes wherever the body uses them."""
    inner = [n for s in body for n in ast.walk(s)
             if isinstance(n, (*DEFINITIONS, ast.Lambda, ast.comprehension, ast.ExceptHandler,
                               *IMPORTS, ast.Match))]
    taken = identifiers(tree)
    private = any(getattr(n, "id", getattr(n, "attr", "")).startswith("__") for s in body
                  for n in ast.walk(s))
    if "train" in attributes:
        return False  # an attribute would hide the method
    if private or "self" in taken or any(isinstance(n, (*DEFINITIONS, ast.Lambda)) for n in inner):
        return False
    targets = [n.target if isinstance(n, ast.comprehension) else n for n in inner
               if not isinstance(n, ast.ExceptHandler)]
    handled = {n.name for n in inner if isinstance(n, ast.ExceptHandler)}
    return not is_bound_in(targets, attributes) and not handled & attributes


def _make_class(name: str, body: list[ast.stmt], split: int, attributes: set[str],
                arguments: ast.arguments | None) -> ast.ClassDef:
    """The statements before `split` make the object, those from there on are its method train."""
    change = _OnSelf(attributes)
    init, train = ([change.visit(s) for s in part] for part in (body[:split], body[split:]))
    make, run = make_function("__init__", ["self"], init), make_function("train", ["self"], train)
    if arguments is not None:
        kept = [p for p in parameters(ast.Lambda(args=arguments, body=None)) if p in attributes]
        make.body = [*ast.parse("\n".join(f"self.{p} = {p}" for p in kept)).body, *init]
        own = copy.deepcopy(arguments)
        (own.posonlyargs or own.args).insert(0, ast.arg(arg="self"))
        make.args = own
    return ast.ClassDef(name=name, bases=[], keywords=[], body=[make, run], decorator_list=[])


def _classify_module(tree: ast.Module, training: Training) -> ast.Module | None:
    body = _statements(tree)
    if body is None:
        return None
    loop = tree.body[training.index]
    split = body.index(loop) if loop in body else 0
    if not split:
        return None
    later = names_in(body[split:])
    attributes = names_in(body[:split]).bound & (later.reads | later.bound)
    if not _may_be_class(tree, body, attributes):
        return None
    name = fresh("Runner", identifiers(tree))
    made = _make_class(name, body, split, attributes, None)
    _run_as_program(tree, body, made, f"{name}().train()")
    return tree


class _CallRunner(ast.NodeTransformer):
    """function(...) becomes Runner(...).train()."""

    def __init__(self, function: str, runner: str) -> None:
        self.function, self.runner = function, runner

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id != self.function:
            return node
        node.func = load(self.runner)
        method = ast.Attribute(value=node, attr="train", ctx=ast.Load())
        return ast.Call(func=method, args=[], keywords=[])


def _is_only_called(tree: ast.Module, function: str) -> bool:
    """Whether each use of the function is a call of it."""
    called = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call)
              and isinstance(n.func, ast.Name) and n.func.id == function]
    uses = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == function]
    return bool(called) and len(called) == len(uses)


def _may_be_method(function: ast.FunctionDef, split: int) -> bool:
    """The part that makes the object returns nothing, all arguments have names, and their defaults
    may be made twice."""
    if function.decorator_list or function.args.vararg or function.args.kwarg:
        return False
    if not _calls_nothing([function.args]):
        return False
    return is_movable(function.body) and not any(
        isinstance(n, ast.Return) for s in function.body[:split] for n in ast.walk(s))


def _classify_function(tree: ast.Module, training: Training) -> ast.Module | None:
    function, split = training.scope.owner, training.index
    if function not in tree.body or not split or not _may_be_method(function, split):
        return None
    if bindings(tree).count(function.name) > 1:
        return None
    body, given = function.body, set(parameters(function))
    later = names_in(body[split:])
    attributes = (names_in(body[:split]).bound | given) & (later.reads | later.bound)
    if not _may_be_class(tree, body, attributes) or later.defined or given & {"self"}:
        return None
    name = fresh("Runner", identifiers(tree))
    made = _make_class(name, body, split, attributes, function.args)
    place = tree.body.index(function)
    if _is_only_called(tree, function.name):
        tree.body[place] = made
        _CallRunner(function.name, name).visit(tree)
    else:  # handed on as a value, or called from elsewhere: a function of the old name starts it
        call = make_call(name, [a.arg for a in function.args.posonlyargs + function.args.args])
        call.keywords = [ast.keyword(arg=a.arg, value=load(a.arg))
                         for a in function.args.kwonlyargs]
        method = ast.Attribute(value=call, attr="train", ctx=ast.Load())
        function.body = [ast.Return(value=ast.Call(func=method, args=[], keywords=[]))]
        tree.body.insert(place, made)
    return tree


def classify(tree: ast.Module) -> ast.Module | None:
    """Before: a script or function with the training loop. After: a class Runner, whose __init__
    does what stands before the loop and whose method train runs the loop; names that both need are
    attributes."""
    found = trainings(tree)
    if not found:
        return None
    if found[0].scope.is_module:
        return _classify_module(tree, found[0])
    return _classify_function(tree, found[0])
