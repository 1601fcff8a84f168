"""Rewrites of tests and loops: how a test of the rank is spelt, what stands around a loop."""
import ast

from functions import handed_over
from names import bindings, fresh, identifiers
from scopes import (LOOPS, Scope, blocks, given, insert_on_top, is_movable, load, make_call,
                    make_function, rewrite_blocks, scopes)

# Calls that give an integer; a rank from anywhere else may be None, which is not 0 either.
_WHOLE_NUMBERS = ("get_rank", "rank", "local_rank", "get_local_rank", "get_node_local_rank", "int")
_WHOLE_ATTRIBUTES = ("process_index", "local_process_index", "global_rank")


def _tests_rank(test: ast.expr) -> bool:
    """rank == 0, dist.get_rank() == 0, args.local_rank == 0."""
    return (isinstance(test, ast.Compare) and len(test.ops) == 1
            and isinstance(test.ops[0], ast.Eq) and isinstance(test.comparators[0], ast.Constant)
            and test.comparators[0].value == 0 and "rank" in ast.unparse(test.left).lower()
            and is_movable([test]))


def _guards(scope: Scope) -> list[ast.If]:
    """The statements of a scope that test the rank."""
    return [s for block in blocks(scope.body) for s in block
            if isinstance(s, ast.If) and _tests_rank(s.test)]


def guard_helper(tree: ast.Module) -> ast.Module | None:
    """Before: if rank == 0. After: if is_main_process(rank), a function."""
    taken, made = identifiers(tree), {}
    for scope in scopes(tree):
        flow = scope.flow()
        for guard in _guards(scope):
            arguments = handed_over(scope, guard.test, flow.entry(guard))
            if arguments is None:
                continue
            key = (ast.unparse(guard.test), *arguments)
            if key not in made:
                name = fresh(f"is_main_process{len(made) or ''}", taken)
                made[key] = make_function(name, arguments, [ast.Return(value=guard.test)])
            guard.test = make_call(made[key].name, arguments)
    insert_on_top(tree, list(made.values()))
    return tree if made else None


def guard_var(tree: ast.Module) -> ast.Module | None:
    """Before: if rank == 0. After: is_master = rank == 0, if is_master."""
    name, changed = fresh("is_master", identifiers(tree)), False

    def rewrite(block: list[ast.stmt]) -> list[ast.stmt]:
        nonlocal changed
        out: list[ast.stmt] = []
        for s in block:
            if isinstance(s, ast.If) and _tests_rank(s.test):
                out.append(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=s.test))
                s.test, changed = load(name), True
            out.append(s)
        return out

    rewrite_blocks(tree, rewrite)
    return tree if changed else None


def _gives_integer(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        f = value.func
        name = f.attr if isinstance(f, ast.Attribute) else f.id if isinstance(f, ast.Name) else ""
        return name in _WHOLE_NUMBERS
    return isinstance(value, ast.Attribute) and value.attr in _WHOLE_ATTRIBUTES


def _spawned(tree: ast.Module) -> set[str]:
    """The first parameters of functions that a spawn(function, ...) starts: ranks."""
    started = {n.args[0].id for n in ast.walk(tree) if isinstance(n, ast.Call) and n.args
               and isinstance(n.args[0], ast.Name)
               and getattr(n.func, "attr", getattr(n.func, "id", "")) == "spawn"}
    return {s.args.args[0].arg for s in tree.body if isinstance(s, ast.FunctionDef)
            and s.name in started and s.args.args}


def _whole_names(tree: ast.Module) -> set[str]:
    """Names that are integers wherever the script binds them."""
    integers = [n.targets[0].id for n in ast.walk(tree) if isinstance(n, ast.Assign)
                and isinstance(n.targets[0], ast.Name) and len(n.targets) == 1
                and _gives_integer(n.value)]
    ranks, bound = _spawned(tree), bindings(tree)
    return {name for name in {*integers, *ranks} - given(tree)
            if bound.count(name) == integers.count(name) + (name in ranks)}


def guard_not(tree: ast.Module) -> ast.Module | None:
    """Before: if rank == 0. After: if not rank, where the rank is surely an integer."""
    whole, changed = _whole_names(tree), False
    for scope in scopes(tree):
        for guard in _guards(scope):
            rank = guard.test.left
            if _gives_integer(rank) or isinstance(rank, ast.Name) and rank.id in whole:
                guard.test, changed = ast.UnaryOp(op=ast.Not(), operand=rank), True
    return tree if changed else None


def guard_else(tree: ast.Module) -> ast.Module | None:
    """Before: if rank == 0: work. After: if rank != 0: pass, else: work."""
    guards = [guard for scope in scopes(tree) for guard in _guards(scope)]
    for guard in guards:
        guard.test.ops = [ast.NotEq()]
        guard.body, guard.orelse = guard.orelse or [ast.Pass()], guard.body
    return tree if guards else None


def nested_if(tree: ast.Module) -> ast.Module | None:
    """Before: if a and b: work. After: if a: if b: work."""
    changed = False
    for s in ast.walk(tree):
        if isinstance(s, ast.If) and isinstance(s.test, ast.BoolOp) and isinstance(
                s.test.op, ast.And) and not s.orelse:
            first, *rest = s.test.values
            test = rest[0] if len(rest) == 1 else ast.BoolOp(op=ast.And(), values=rest)
            s.test, s.body = first, [ast.If(test=test, body=s.body, orelse=[])]
            changed = True
    return tree if changed else None


def try_loop(tree: ast.Module) -> ast.Module | None:
    """Before: a loop. After: the loop in a try, whose handler for KeyboardInterrupt prints a line
    and lets the exception go on."""
    if "print" in bindings(tree):
        return None
    handler = "try:\n    pass\nexcept KeyboardInterrupt:\n    print('interrupted')\n    raise"
    changed = False
    for scope in scopes(tree):
        for k, s in enumerate(scope.body):
            if isinstance(s, LOOPS):
                scope.body[k] = ast.parse(handler).body[0]
                scope.body[k].body = [s]
                changed = True
    return tree if changed else None


def tqdm(tree: ast.Module) -> ast.Module | None:
    """Before: for x in loader. After: for step_index, x in enumerate(tqdm(loader, leave=False))."""
    taken = identifiers(tree)
    if "tqdm" in taken or "enumerate" in bindings(tree):
        return None
    index, changed = fresh("step_index", taken), False
    loops = [s for scope in scopes(tree) for block in blocks(scope.body) for s in block
             if isinstance(s, ast.For) and isinstance(s.iter, (ast.Name, ast.Attribute))]
    for loop in loops:
        bar = ast.Call(func=load("tqdm"), args=[loop.iter],
                       keywords=[ast.keyword(arg="leave", value=ast.Constant(False))])
        loop.iter = ast.Call(func=load("enumerate"), args=[bar], keywords=[])
        loop.target = ast.Tuple(elts=[ast.Name(id=index, ctx=ast.Store()), loop.target],
                                ctx=ast.Store())
        changed = True
    insert_on_top(tree, ast.parse("from tqdm import tqdm").body if changed else [])
    return tree if changed else None
