"""Which names are surely bound where: one pass over the statements of a scope, in their order.

Used to hand a name over as an argument only where it has a value, and to see which names a block
takes from before it. Where the order is not clear, a name counts as not bound.
"""
import ast
from collections.abc import Iterable

from names import DEFINITIONS, names_in

Bound = set[str] | None  # None: this place is never reached


def _meet(*ways: Bound) -> Bound:
    """What is bound on every way that arrives."""
    reached = [way for way in ways if way is not None]
    return set.intersection(*reached) if reached else None


def _may_swallow(s: ast.With | ast.AsyncWith) -> bool:
    """A context that ends an exception also ends its block early."""
    return any(isinstance(n, (ast.Name, ast.Attribute))
               and getattr(n, "attr", getattr(n, "id", "")) in ("suppress", "raises")
               for item in s.items for n in ast.walk(item.context_expr))


class Flow:
    """Follows statements from `bound` on. `exposed` are the names that may be read before the
    statements have bound them, `entry` what is bound where each statement begins, `after` what is
    bound behind the last."""

    def __init__(self, statements: list[ast.stmt], bound: Iterable[str] = ()) -> None:
        self.exposed: set[str] = set()
        self._entry: dict[int, set[str]] = {}
        self.after = self._block(statements, set(bound))

    def entry(self, statement: ast.stmt) -> set[str]:
        """The names that are surely bound where the statement begins."""
        return self._entry.get(id(statement), set())

    def _block(self, statements: list[ast.stmt], bound: Bound) -> Bound:
        for statement in statements:
            if bound is None:
                return None
            self._entry[id(statement)] = set(bound)
            bound = self._statement(statement, set(bound))
        return bound

    def _read(self, nodes: Iterable[ast.AST | None], bound: set[str]) -> set[str]:
        """Evaluates expressions; returns what they bind (targets, not `:=`, which may not run)."""
        nodes = [n for n in nodes if n is not None]
        self.exposed |= names_in(nodes).reads - bound
        return {n.id for node in nodes for n in ast.walk(node)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}

    def _statement(self, s: ast.stmt, bound: set[str]) -> Bound:
        if isinstance(s, ast.If):
            self._read([s.test], bound)
            return _meet(self._block(s.body, bound), self._block(s.orelse, bound))
        if isinstance(s, (ast.For, ast.AsyncFor)):
            self._read([s.iter], bound)
            self._block(s.body, bound | self._read([s.target], bound))
            self._block(s.orelse, bound)
            return bound
        if isinstance(s, ast.While):
            self._read([s.test], bound)
            self._block(s.body, bound)
            self._block(s.orelse, bound)
            return bound
        if isinstance(s, (ast.With, ast.AsyncWith)):
            for item in s.items:
                self._read([item.context_expr], bound)
                bound = bound | self._read([item.optional_vars], bound)
            after = self._block(s.body, bound)
            return bound if _may_swallow(s) else after
        if isinstance(s, (ast.Try, ast.TryStar)):
            return self._try(s, bound)
        if isinstance(s, ast.Match):
            self._read([s.subject], bound)
            for case in s.cases:
                inner = bound | names_in([case.pattern]).stored
                self._read([case.guard], inner)
                self._block(case.body, inner)
            return bound
        return self._simple(s, bound)

    def _try(self, s: ast.Try, bound: set[str]) -> Bound:
        through = self._block(s.orelse, self._block(s.body, bound))
        handled = [self._handler(h, bound) for h in s.handlers]
        last = self._block(s.finalbody, bound)
        met = _meet(through, *handled)
        return None if met is None or last is None else met | last

    def _handler(self, handler: ast.ExceptHandler, bound: set[str]) -> Bound:
        self._read([handler.type], bound)
        own = {handler.name} if handler.name else set()  # gone behind the handler
        after = self._block(handler.body, bound | own)
        return None if after is None else after - own

    def _simple(self, s: ast.stmt, bound: set[str]) -> Bound:
        names = names_in([s])
        self.exposed |= names.reads - bound
        if isinstance(s, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
            return None
        walrus = {n.target.id for n in ast.walk(s) if isinstance(n, ast.NamedExpr)}
        surely = names.bound if isinstance(s, DEFINITIONS) else names.bound - walrus
        if isinstance(s, ast.AnnAssign) and s.value is None:
            surely = set()
        return (bound | surely) - names.deleted
