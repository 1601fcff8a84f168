"""Rewrites that put a part of the script into a function: steps, epochs, the rest, builders.

A function of the script is handed what it reads and returns what is read later. Each rewrite leaves
a place alone where a name could be unbound, be rebound behind its back, or be read by code that
runs later and looks for it in its old scope.
"""
import ast
from collections.abc import Callable

from flow import Flow
from names import DEFINITIONS, fresh, identifiers, names_in
from scopes import (LOOPS, Scope, Training, blocks, insert_on_top, is_main_test, is_movable,
                    last_name, make_call, make_function, pack, scopes, trainings)

WRAPPERS = ("DDP", "DistributedDataParallel", "DataParallel", "FSDP", "prepare",
            "DistributedOptimizer")
OPTIMIZERS = ("SGD", "Adam", "AdamW", "GradScaler", "Accelerator", "Trainer", "TrainingArguments",
              "StepLR", "OneCycleLR", "CosineAnnealingLR")
ARGUMENT_PARSING = ("ArgumentParser", "parse_args", "add_argument")


def _leaves(body: list[ast.stmt]) -> bool:
    """Whether control leaves the block for the loop or the function around it."""
    def walk(node: ast.AST, in_loop: bool) -> bool:
        if isinstance(node, (*DEFINITIONS, ast.Lambda)):
            return False
        if isinstance(node, ast.Return):
            return True
        if isinstance(node, (ast.Break, ast.Continue)) and not in_loop:
            return True
        inside = in_loop or isinstance(node, (*LOOPS, ast.AsyncFor))
        return any(walk(child, inside) for child in ast.iter_child_nodes(node))
    return any(walk(statement, False) for statement in body)


def _read_outside(scope: Scope, loop: ast.For | ast.While) -> set[str]:
    """What the scope reads anywhere but in the loop's body."""
    body, loop.body = loop.body, [ast.Pass()]
    reads = names_in(scope.body).reads
    loop.body = body
    return reads


def _interface(scope: Scope, loop: ast.For | ast.While) -> tuple[list[str], list[str]] | None:
    """Parameters and results of a function that runs the loop's body."""
    names = names_in(loop.body)
    # Lambdas, functions and generators of the scope must not miss what the body binds.
    if names.defined or names.bound & (names_in(scope.body).captured | names.captured):
        return None
    targets = names_in([loop.target]).stored if isinstance(loop, ast.For) else set()
    inner = Flow(loop.body, targets)
    if inner.after is None:
        return None
    carried = inner.exposed - targets  # from one turn of the loop to the next
    results = names.bound & (_read_outside(scope, loop) | carried)
    needed = inner.exposed | (targets & names.reads) | (results - inner.after)
    sure = scope.flow().entry(loop.body[0])
    arguments = scope.arguments(needed, sure)
    if arguments is None or names.deleted & (set(arguments) | results) or results & scope.shared:
        return None
    # A name that the body binds is the function's own: it has to come in, if it is read first.
    if (needed & names.bound) - set(arguments):
        return None
    return arguments, sorted(results)


def _take_body(tree: ast.Module, scope: Scope, loop: ast.For | ast.While, base: str) -> bool:
    """Makes a function of the loop's body; false where its meaning could change."""
    if _leaves(loop.body) or not is_movable(loop.body):
        return False
    interface = _interface(scope, loop)
    if interface is None:
        return False
    arguments, results = interface
    name = fresh(base, identifiers(tree))
    call, body = make_call(name, arguments), loop.body
    if results:
        body = [*body, ast.Return(value=pack(results, ast.Load()))]
        loop.body = [ast.Assign(targets=[pack(results, ast.Store())], value=call)]
    else:
        loop.body = [ast.Expr(value=call)]
    insert_on_top(tree, [make_function(name, arguments, body)])
    return True


def _take_bodies(tree: ast.Module, level: int, base: str) -> ast.Module | None:
    """Takes the body of the loop `level` above each innermost training loop."""
    done: set[int] = set()
    changed = False
    for training in trainings(tree):
        if len(training.loops) <= level:
            continue
        loop = training.loops[-1 - level]
        if id(loop) not in done:
            changed |= _take_body(tree, training.scope, loop, base)
        done.add(id(loop))
    return tree if changed else None


def step_fn(tree: ast.Module) -> ast.Module | None:
    """Before: the body of a training loop. After: a function train_step(...) called in the loop,
    which returns what is read later."""
    return _take_bodies(tree, 0, "train_step")


def epoch_fn(tree: ast.Module) -> ast.Module | None:
    """Before: a loop over batches within one over epochs. After: the body of the outer loop is a
    function train_one_epoch(...)."""
    return _take_bodies(tree, 1, "train_one_epoch")


def _rest(training: Training) -> list[ast.stmt] | None:
    """The statements from the training loop on, where a function can run them."""
    part = training.scope.body[training.index:]
    if not training.index or not is_movable(part):
        return None
    if any(isinstance(s, DEFINITIONS) for s in part) or names_in(part).defined:
        return None
    return None if any(is_main_test(n) for s in part for n in ast.walk(s)) else part


def loop_fn(tree: ast.Module) -> ast.Module | None:
    """Before: a script or function with the training loop in it. After: everything from the loop on
    is a function run_training(...)."""
    found = trainings(tree)
    if not found or not (found[0].scope.is_module or found[0].scope.owner in tree.body):
        return None
    scope, part = found[0].scope, _rest(found[0])
    if part is None:
        return None
    names, inner = names_in(part), Flow(part)
    if names.bound & names_in(scope.body[:found[0].index]).captured:
        return None
    arguments = scope.arguments(inner.exposed, scope.flow().entry(part[0]))
    if arguments is None or (inner.exposed & names.bound) - set(arguments):
        return None
    if names.bound & scope.shared or names.deleted & set(arguments):
        return None
    name = fresh("run_training", identifiers(tree))
    call = make_call(name, arguments)
    last = ast.Expr(value=call) if scope.is_module else ast.Return(value=call)
    scope.body[found[0].index:] = [last]
    insert_on_top(tree, [make_function(name, arguments, part)])
    return tree


def handed_over(scope: Scope, value: ast.expr, sure: set[str]) -> list[str] | None:
    """The arguments of a function that returns the value; None where it cannot be taken out."""
    names = names_in([value])
    if not is_movable([value]) or names.captured & (scope.own | scope.outer):
        return None
    return scope.arguments(names.reads, sure)


def _builder(tree: ast.Module, wanted: Callable[[str], bool], base: str) -> ast.Module | None:
    """Makes a function of each wanted call whose result is kept."""
    taken, made = identifiers(tree), []
    for scope in scopes(tree):
        flow = scope.flow()
        for statement in [s for block in blocks(scope.body) for s in block]:
            if not isinstance(statement, ast.Assign) or len(statement.targets) > 1:
                continue
            value = statement.value
            if not isinstance(statement.targets[0], (ast.Name, ast.Attribute)) or not isinstance(
                    value, ast.Call) or not wanted(last_name(value)):
                continue
            arguments = handed_over(scope, value, flow.entry(statement))
            if arguments is None:
                continue
            name = fresh(base + (str(len(made)) if made else ""), taken)
            made.append(make_function(name, arguments, [ast.Return(value=value)]))
            statement.value = make_call(name, arguments)
    insert_on_top(tree, made)
    return tree if made else None


def build_loader(tree: ast.Module) -> ast.Module | None:
    """Before: loader = DataLoader(...). After: loader = build_loader(...), a function."""
    return _builder(tree, lambda name: "oader" in name, "build_loader")


def build_sampler(tree: ast.Module) -> ast.Module | None:
    """Before: sampler = DistributedSampler(...). After: sampler = build_sampler(...)."""
    return _builder(tree, lambda name: "Sampler" in name, "build_sampler")


def build_ddp(tree: ast.Module) -> ast.Module | None:
    """Before: model = DDP(model). After: model = wrap_model(model), a function."""
    return _builder(tree, lambda name: name in WRAPPERS, "wrap_model")


def build_opt(tree: ast.Module) -> ast.Module | None:
    """Before: optimizer = SGD(...) or another helper of training. After: one of build_opt(...)."""
    return _builder(tree, lambda name: name in OPTIMIZERS, "build_opt")


def build_any(tree: ast.Module) -> ast.Module | None:
    """Before: any name = call(...). After: name = make(...), with a function for each call."""
    return _builder(tree, lambda name: name not in ARGUMENT_PARSING, "make")
