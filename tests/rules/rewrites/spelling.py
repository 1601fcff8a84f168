"""Rewrites of single statements: the same values under other names, in more or fewer statements."""
import ast
from collections import Counter

from names import BUILTINS, bindings, fresh, identifiers, imported, names_in, shared_names
from order import is_looked_up, is_steady, may_swap, read_first, root_of
from scopes import blocks, given, is_movable, last_name, load, rewrite_blocks, scopes

# Names that say what they are by custom, beyond what they are bound to.
_KEPT_NAMES = ("args", "opt", "self")


def unparse(tree: ast.Module) -> ast.Module | None:
    """Before: any layout. After: the layout of Python's own printer, without comments."""
    return tree


def _renamable(tree: ast.Module) -> set[str]:
    """Variables of modules and functions that nothing sees under their name from outside."""
    stored = {name for scope in scopes(tree) for name in scope.names.stored}
    bound, plain = Counter(bindings(tree)), Counter(
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load))
    other = {n for n in bound if bound[n] > plain[n]}  # also a parameter, an import, a function ...
    attributes = {name for n in ast.walk(tree) if isinstance(n, ast.ClassDef)
                  for name in names_in(n.body).bound}
    out = stored - other - attributes - given(tree) - shared_names(tree) - BUILTINS
    taken = identifiers(tree)
    return {n for n in out if n not in _KEPT_NAMES and not n.isupper()
            and not n.startswith("_") and f"my_{n}" not in taken}


def rename(tree: ast.Module) -> ast.Module | None:
    """Before: model = Net(). After: my_model = Net(), and so for all variables."""
    names = _renamable(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in names:
            node.id = f"my_{node.id}"
    return tree if names else None


class _Temporaries:
    """Takes the calls among a call's arguments out, in the order in which they run."""

    def __init__(self, taken: set[str], modules: set[str]) -> None:
        self.taken, self.modules, self.count = taken, modules, 0
        self.made: list[ast.stmt] = []

    def _keep(self, call: ast.Call) -> ast.Name:
        name = fresh(f"tmp{self.count}", self.taken)
        self.count += 1
        self.made.append(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=call))
        return load(name)

    def _take_from(self, value: ast.expr) -> ast.expr | None:
        """What stands for an argument; None where nothing behind it may run before it."""
        if isinstance(value, ast.Call):
            self.take(value)
            return self._keep(value)
        return value if is_steady(value) else None

    def take(self, call: ast.Call) -> None:
        """Takes calls out up to the first operand that stays and is not steady."""
        values = [*call.args, *(k.value for k in call.keywords)]
        if not is_looked_up(call.func, values, self.modules):
            self._take_from_receiver(call.func)
            return
        for k, value in enumerate(call.args):
            kept = self._take_from(value)
            if kept is None:
                return
            call.args[k] = kept
        for keyword in call.keywords:
            kept = self._take_from(keyword.value)
            if kept is None:
                return
            keyword.value = kept

    def _take_from_receiver(self, function: ast.expr) -> None:
        """Net(layers()).to(...): the receiver's arguments come first; it stays where it is."""
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call):
            self.take(function.value)


def temps(tree: ast.Module) -> ast.Module | None:
    """Before: model = DDP(Net().to(device)). After: tmp0 = Net().to(device), model = DDP(tmp0)."""
    if shared_names(tree):
        return None
    state = _Temporaries(identifiers(tree), imported(tree))

    def rewrite(block: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in block:
            state.made = []
            if isinstance(s, (ast.Assign, ast.Expr, ast.Return)) or (
                    isinstance(s, ast.AugAssign) and isinstance(s.target, ast.Name)):
                if isinstance(s.value, ast.Call):
                    state.take(s.value)
            out += [*state.made, s]
        return out

    rewrite_blocks(tree, rewrite)
    return tree if state.count else None


class _Replace(ast.NodeTransformer):
    """Puts an expression in the place of a name."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == self.name else node


def _may_inline(first: ast.stmt, second: ast.stmt, once: set[str],
                modules: set[str]) -> bool:
    """name = value; then a statement that reads the name, once, before anything else can run."""
    if not isinstance(first, ast.Assign) or len(first.targets) > 1:
        return False
    target = first.targets[0]
    if not isinstance(target, ast.Name) or target.id not in once or not is_movable([first]):
        return False
    if not isinstance(second, (ast.Assign, ast.Expr, ast.Return)) or second.value is None:
        return False
    called = [n.func for n in ast.walk(second.value) if isinstance(n, ast.Call)]
    return read_first(second.value, target.id) and all(
        is_looked_up(function, [first.value], modules) for function in called
        if root_of(function) not in ("", target.id))


def inline(tree: ast.Module) -> ast.Module | None:
    """Before: net = Net(), then model = DDP(net). After: model = DDP(Net())."""
    if shared_names(tree):
        return None
    changed, modules = False, imported(tree)
    used = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)]
    plain = {n.id for n in ast.walk(tree)
             if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    once = {n for n in plain if bindings(tree).count(n) == 1 and used.count(n) == 2}

    def rewrite(block: list[ast.stmt]) -> list[ast.stmt]:
        nonlocal changed
        out: list[ast.stmt] = []
        for s in block:
            if out and _may_inline(out[-1], s, once, modules):
                first = out.pop()
                s.value = _Replace(first.targets[0].id, first.value).visit(s.value)
                changed = True
            out.append(s)
        return out

    rewrite_blocks(tree, rewrite)
    return tree if changed else None


def annot(tree: ast.Module) -> ast.Module | None:
    """Before: model = Net(). After: model: object = Net()."""
    if shared_names(tree) or "object" in identifiers(tree):
        return None
    changed = False

    def rewrite(block: list[ast.stmt]) -> list[ast.stmt]:
        nonlocal changed
        for k, s in enumerate(block):
            if isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(
                    s.targets[0], (ast.Name, ast.Attribute)):
                simple = int(isinstance(s.targets[0], ast.Name))
                block[k] = ast.AnnAssign(target=s.targets[0], annotation=load("object"),
                                         value=s.value, simple=simple)
                changed = True
        return block

    rewrite_blocks(tree, rewrite)
    return tree if changed else None


def kwargs_dict(tree: ast.Module) -> ast.Module | None:
    """Before: loader = Loader(data, shuffle=True). After: kwargs = dict(shuffle=True),
    loader = Loader(data, **kwargs)."""
    taken, count = identifiers(tree), 0
    modules = imported(tree)
    if shared_names(tree) or "dict" in bindings(tree):
        return None

    def rewrite(block: list[ast.stmt]) -> list[ast.stmt]:
        nonlocal count
        out: list[ast.stmt] = []
        for s in block:
            if isinstance(s, (ast.Assign, ast.Expr)) and _keywords_first(s.value, modules):
                name = fresh(f"kwargs{count or ''}", taken)
                count += 1
                call = ast.Call(func=load("dict"), args=[], keywords=s.value.keywords)
                out.append(ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=call))
                s.value.keywords = [ast.keyword(arg=None, value=load(name))]
            out.append(s)
        return out

    rewrite_blocks(tree, rewrite)
    return tree if count else None


def _keywords_first(value: ast.expr, modules: set[str]) -> bool:
    """Whether a call's keyword arguments may be evaluated before what else it evaluates."""
    if not isinstance(value, ast.Call) or not value.keywords:
        return False
    if last_name(value) in ("add_argument", "ArgumentParser", "dict") or not all(
            k.arg for k in value.keywords):
        return False
    later = [k.value for k in value.keywords]
    is_fixed = is_looked_up(value.func, later, modules)
    return may_swap(value.args if is_fixed else [value.func, *value.args], later)


def _is_pair(first: ast.stmt, second: ast.stmt) -> bool:
    """Two plain assignments, each to a name or an attribute."""
    return is_movable([first, second]) and all(
        isinstance(s, ast.Assign) and len(s.targets) == 1
        and isinstance(s.targets[0], (ast.Name, ast.Attribute)) for s in (first, second))


def _is_apart(first: ast.Assign, second: ast.Assign, captured: set[str],
              modules: set[str]) -> bool:
    """Whether the second value is the same before the first target is assigned."""
    target, names = first.targets[0], names_in([second])
    if isinstance(target, ast.Name):
        return target.id not in names.reads | names.bound | captured
    # An attribute may be read through other names; calls of what is imported do not know it.
    called = [n.func for n in ast.walk(second.value) if isinstance(n, ast.Call)]
    return (root_of(target) == "self" and "self" not in names_in([second.value]).reads
            and all(root_of(function) in modules for function in called))


def tuple_assign(tree: ast.Module) -> ast.Module | None:
    """Before: model = Net(), then loader = Loader(). After: (model, loader) = (Net(), Loader())."""
    if shared_names(tree):
        return None
    changed, modules = False, imported(tree)
    for scope in scopes(tree):
        captured = names_in(tree.body).captured | scope.names.captured
        for block in blocks(scope.body):
            k = 0
            while k + 1 < len(block):
                pair = block[k:k + 2]
                if _is_pair(*pair) and _is_apart(*pair, captured, modules):
                    targets = ast.Tuple(elts=[s.targets[0] for s in pair], ctx=ast.Store())
                    values = ast.Tuple(elts=[s.value for s in pair], ctx=ast.Load())
                    block[k:k + 2] = [ast.Assign(targets=[targets], value=values)]
                    changed = True
                k += 1
    return tree if changed else None
