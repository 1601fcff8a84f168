"""Rewrites of how a library's names are spelt: in full, imported alone, arguments by keyword."""
import ast

from names import BUILTINS, IMPORTS, bindings, bound_by_import, identifiers, imported
from scopes import last_name, load

# Packages that load these parts themselves: `import torch` gives torch.utils.data.
_LOADS_ITS_PARTS = ("torch", "torchvision", "os")
# Modules whose functions may be imported by name.
_MODULES = frozenset((
    "torch", "torch.amp", "torch.autograd", "torch.cuda", "torch.cuda.amp", "torch.distributed",
    "torch.distributed.fsdp", "torch.distributed.optim", "torch.multiprocessing", "torch.nn",
    "torch.nn.functional", "torch.nn.init", "torch.nn.parallel", "torch.nn.utils", "torch.optim",
    "torch.optim.lr_scheduler", "torch.optim.swa_utils", "torch.utils.checkpoint",
    "torch.utils.data", "torch.utils.data.distributed", "horovod.torch", "pytorch_lightning",
    "lightning", "lightning.pytorch", "accelerate"))
_DATA_PARALLEL = ("module", "device_ids", "output_device")
_SAMPLER = ("dataset", "num_replicas", "rank", "shuffle")
# The first parameters of well-known functions, by their full names.
_PARAMETERS = {
    "torch.utils.data.DataLoader": ("dataset", "batch_size", "shuffle", "sampler"),
    "torch.utils.data.DistributedSampler": _SAMPLER,
    "torch.utils.data.distributed.DistributedSampler": _SAMPLER,
    "torch.nn.parallel.DistributedDataParallel": _DATA_PARALLEL,
    "torch.nn.parallel.DataParallel": _DATA_PARALLEL,
    "torch.nn.DataParallel": _DATA_PARALLEL,
    "torch.distributed.init_process_group": ("backend", "init_method"),
    "torch.distributed.all_reduce": ("tensor", "op"),
    "torch.distributed.reduce": ("tensor", "dst"),
    "torch.distributed.broadcast": ("tensor", "src"),
    "torch.distributed.all_gather": ("tensor_list", "tensor"),
    "torch.multiprocessing.spawn": ("fn", "args", "nprocs"),
    "torch.cuda.set_device": ("device",),
    "torch.nn.utils.clip_grad_norm_": ("parameters", "max_norm"),
    "torch.load": ("f", "map_location"),
    "torch.save": ("obj", "f"),
    "os.makedirs": ("name",),
}


def _meanings(tree: ast.Module) -> dict[str, str]:
    """What names stand for that only imports at the left bind: DDP is torch.nn.parallel.Dis..."""
    out: dict[str, str] = {}
    bound = bindings(tree)
    for s in tree.body:
        if isinstance(s, ast.Import):
            out |= {a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0]
                    for a in s.names}
        elif isinstance(s, ast.ImportFrom) and not s.level and s.module != "__future__":
            out |= {a.asname or a.name: f"{s.module}.{a.name}" for a in s.names if a.name != "*"}
    only = imported(tree)
    # `import torch` and `import torch.nn` bind the same name to the same thing.
    return {name: full for name, full in out.items()
            if name in only and (bound.count(name) == 1 or full == name)}


def _full_name(function: ast.expr, meanings: dict[str, str]) -> str:
    """torch.utils.data.DataLoader for what the script spells data.DataLoader; empty if unknown."""
    parts: list[str] = []
    while isinstance(function, ast.Attribute):
        parts.insert(0, function.attr)
        function = function.value
    if not isinstance(function, ast.Name) or function.id not in meanings:
        return ""
    return ".".join([meanings[function.id], *parts])


def _spellable(tree: ast.Module) -> dict[str, str]:
    """The names that can be spelt in full: their package is no other name of the script, and
    importing it surely loads them."""
    meanings, bound = _meanings(tree), set(bindings(tree))
    called = {n.func.id for n in ast.walk(tree)
              if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    out = {}
    for name, full in meanings.items():
        package, _, last = full.rpartition(".")
        root = full.split(".")[0]
        is_free = root not in bound or meanings.get(root) == root
        is_loaded = root in _LOADS_ITS_PARTS or last[0].isupper() or name in called
        if package and is_free and is_loaded:
            out[name] = full
    return out


class _Spell(ast.NodeTransformer):
    """Names become their full spellings."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names, self.count = names, 0

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.names:
            return node
        self.count += 1
        return ast.parse(self.names[node.id], mode="eval").body


def _import_in_full(statement: ast.stmt, spelt: dict[str, str]) -> list[ast.stmt]:
    """The import with the names that are spelt in full taken out, and their packages."""
    if not isinstance(statement, IMPORTS):
        return [statement]
    kept = [a for a in statement.names if (a.asname or a.name.split(".")[0]) not in spelt]
    gone = [a for a in statement.names if a not in kept]
    is_from = isinstance(statement, ast.ImportFrom)
    packages = [statement.module] if is_from and gone else [a.name for a in gone]
    statement.names = kept
    out: list[ast.stmt] = [ast.Import(names=[ast.alias(name=p)]) for p in packages]
    return [*out, statement] if kept else out


def full_names(tree: ast.Module) -> ast.Module | None:
    """Before: from torch.nn.parallel import DistributedDataParallel as DDP, then DDP(net). After:
    import torch.nn.parallel, then torch.nn.parallel.DistributedDataParallel(net)."""
    spelt = _spellable(tree)
    change = _Spell(spelt)
    for statement in tree.body:
        change.visit(statement)
    if not change.count:
        return None
    tree.body = [new for s in tree.body for new in _import_in_full(s, spelt)]
    return tree


def from_names(tree: ast.Module) -> ast.Module | None:
    """Before: torch.cuda.set_device(0). After: from torch.cuda import set_device, behind the import
    of torch, and set_device(0)."""
    meanings, taken = _meanings(tree), identifiers(tree)
    replaced = {n.attr for n in ast.walk(tree)
                if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)}
    sources: dict[str, tuple[str, str]] = {}  # name: its module, and what the script calls that
    for node in [n for n in ast.walk(tree) if isinstance(n, ast.Call)]:
        module, _, name = _full_name(node.func, meanings).rpartition(".")
        if not isinstance(node.func, ast.Attribute) or module not in _MODULES:
            continue
        if name in taken or name in BUILTINS or name in replaced:
            continue
        root = next(n.id for n in ast.walk(node.func) if isinstance(n, ast.Name))
        if sources.setdefault(name, (module, root))[0] == module:
            node.func = load(name)
    body: list[ast.stmt] = []
    for s in tree.body:
        body.append(s)
        for root in bound_by_import(s) if isinstance(s, IMPORTS) else []:
            body += [ast.ImportFrom(module=module, names=[ast.alias(name=name)], level=0)
                     for name, (module, of) in sources.items() if of == root]
            sources = {n: source for n, source in sources.items() if source[1] != root}
    changed, tree.body = len(body) > len(tree.body), body
    return tree if changed else None


def _is_device(value: ast.expr) -> bool:
    """Whether x.to(value) moves, and does not convert: a device, a rank, "cuda:0"."""
    text = ast.unparse(value).lower()
    return any(word in text for word in ("device", "rank", "gpu", "cuda", "'cpu'"))


def _parameters_of(call: ast.Call, meanings: dict[str, str], own: set[str]) -> tuple[str, ...]:
    """The names of a call's first parameters; empty if they are not known."""
    known = _PARAMETERS.get(_full_name(call.func, meanings))
    if known or not isinstance(call.func, ast.Attribute) or last_name(call) in own:
        return known or ()
    if call.func.attr == "set_epoch":
        return ("epoch",)
    is_move = call.func.attr == "to" and len(call.args) == 1 and _is_device(call.args[0])
    return ("device",) if is_move else ()


def to_kw(tree: ast.Module) -> ast.Module | None:
    """Before: DataLoader(data, 32). After: DataLoader(dataset=data, batch_size=32)."""
    meanings, own, changed = _meanings(tree), set(bindings(tree)), False
    for call in [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.args]:
        names = _parameters_of(call, meanings, own)
        if len(call.args) > len(names) or any(isinstance(a, ast.Starred) for a in call.args):
            continue
        given = [ast.keyword(arg=n, value=a) for n, a in zip(names, call.args)]
        call.args, call.keywords, changed = [], given + call.keywords, True
    return tree if changed else None
