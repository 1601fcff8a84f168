"""Runs a script without the libraries it imports, and writes down what it does.

Whatever a script imports, and each name it is given from elsewhere, is a recorder: an object that
can be called, read, compared and iterated, and logs it under the path that led to it. Two spellings
of one program leave the same log. A recorder with `rank` in its path is the number 0; any other is
true, and has two elements.
"""
import ast
import builtins
import contextlib
import itertools
import types
from collections.abc import Iterator

from names import BUILTINS
from scopes import given

# Modules that are run as they are: they have no effects.
_REAL = ("types", "dataclasses", "functools", "itertools", "collections", "typing", "math", "abc",
         "contextlib", "enum", "__future__")
_LONGEST_LOG = 3000  # of a loop that would not end
_LONGEST_PATH = 300
_OPERATORS = ("add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow "
              "matmul neg invert and rand or ror xor lt le gt ge iadd isub imul itruediv abs")


class TooLong(BaseException):
    """The script goes on and on; what it did so far is compared."""


class Log(list):
    """What a script did, line by line."""

    def add(self, line: str) -> None:
        """Writes a line, and ends the script where there are too many."""
        self.append(line)
        if len(self) > _LONGEST_LOG:
            raise TooLong


def _text(value: object, depth: int = 0) -> str:
    """A value as the log shows it: the same for the same value, whatever holds it."""
    if isinstance(value, Recorder):
        return value.path_
    if depth > 3:
        return "..."
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_text(v, depth + 1) for v in value[:8])}]"
    if isinstance(value, dict):
        pairs = itertools.islice(value.items(), 12)
        return f"{{{', '.join(f'{_text(k)}: {_text(v, depth + 1)}' for k, v in pairs)}}}"
    if isinstance(value, (int, float, str, type(None))):
        return repr(value)
    return type(value).__name__


class Recorder:
    """Stands for an object of a library."""

    def __init__(self, path: str, log: Log, by_name: bool = True) -> None:
        path = path if len(path) < _LONGEST_PATH else f"{path[:80]}~{hash(path)}"
        vars(self).update(path_=path, log_=log, by_name_=by_name)

    def _next(self, path: str) -> "Recorder":
        return Recorder(path, self.log_, self.by_name_)

    @property
    def _is_rank(self) -> bool:
        return "rank" in self.path_.lower()

    def __getattr__(self, name: str) -> "Recorder":
        if name.startswith("__"):
            raise AttributeError(name)
        return self._next(f"{self.path_}.{name}")

    def __setattr__(self, name: str, value: object) -> None:
        self.log_.add(f"{self.path_}.{name} = {_text(value)}")
        vars(self)[name] = value

    def __call__(self, *args: object, **kwargs: object) -> object:
        named = [f"{k}={_text(v)}" if self.by_name_ else _text(v)
                 for k, v in sorted(kwargs.items())]
        given_ = [*map(_text, args), *named]
        line = f"{self.path_}({', '.join(given_ if self.by_name_ else sorted(given_))})"
        self.log_.add(line)
        if len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, type)):
            return args[0]  # a decorator
        if self.path_.endswith("spawn"):
            self._start(dict(zip(("fn", "args"), args)) | kwargs)
        return self._next(line)

    def _start(self, spawned: dict[str, object]) -> None:
        """Runs the function of a spawn(fn, args) as one of its processes."""
        function, rest = spawned.get("fn"), spawned.get("args", ())
        if isinstance(function, types.FunctionType):
            function(self._next("rank"), *(rest if isinstance(rest, tuple) else ()))

    def __mro_entries__(self, bases: tuple) -> tuple:
        log, by_name = self.log_, self.by_name_

        class Base:
            """What a class of the script inherits from one of a library."""

            def __getattr__(self, name: str) -> Recorder:
                if name.startswith("__"):
                    raise AttributeError(name)
                return Recorder(f"self.{name}", log, by_name)

            def __call__(self, *args: object, **kwargs: object) -> object:
                return self.forward(*args, **kwargs)

        return (Base,)

    def __iter__(self) -> Iterator["Recorder"]:
        self.log_.add(f"iter {self.path_}")
        return iter([self._next(f"{self.path_}#0"), self._next(f"{self.path_}#1")])

    def __getitem__(self, key: object) -> "Recorder":
        return self._next(f"{self.path_}[{_text(key)}]")

    def __setitem__(self, key: object, value: object) -> None:
        self.log_.add(f"{self.path_}[{_text(key)}] = {_text(value)}")

    def __contains__(self, value: object) -> bool:
        self.log_.add(f"{_text(value)} in {self.path_}")
        return True

    def __enter__(self) -> "Recorder":
        self.log_.add(f"enter {self.path_}")
        return self._next(f"{self.path_}.entered")

    def __exit__(self, *_: object) -> None:
        self.log_.add(f"exit {self.path_}")

    def __bool__(self) -> bool:
        if not self._is_rank:
            self.log_.add(f"if {self.path_}")
        return not self._is_rank

    def __eq__(self, other: object) -> object:
        return other == 0 if self._is_rank else self._next(f"eq({self.path_}, {_text(other)})")

    def __ne__(self, other: object) -> object:
        return other != 0 if self._is_rank else self._next(f"ne({self.path_}, {_text(other)})")

    def __hash__(self) -> int:
        return hash(self.path_)

    def __str__(self) -> str:
        return self.path_

    def __format__(self, _: str) -> str:
        return self.path_

    def __len__(self) -> int:
        return 2

    def __index__(self) -> int:
        return 0 if self._is_rank else 1

    __int__ = __index__

    def __float__(self) -> float:
        return float(int(self))

    def __fspath__(self) -> str:
        return self.path_


def _operator(name: str) -> object:
    def operate(self: Recorder, *others: object) -> Recorder:
        return self._next(f"{name}({', '.join(map(_text, (self, *others)))})")
    return operate


for _name in _OPERATORS.split():
    setattr(Recorder, f"__{_name}__", _operator(_name))


class Run:
    """One run of a program: its log, how it ended, and the names of its script."""

    def __init__(self, files: dict[str, str], provided: set[str], by_name: bool = True) -> None:
        self.log, self.by_name, self.files = Log(), by_name, files
        self.provided, self.end = provided, ""
        self.names = self._module("__main__")
        with self._ends():
            exec(compile(files["train.py"], "train.py", "exec"), self.names)

    def _recorder(self, path: str) -> Recorder:
        return Recorder(path, self.log, self.by_name)

    @contextlib.contextmanager
    def _ends(self) -> Iterator[None]:
        """An end by an exception belongs to what is compared."""
        try:
            yield
        except (Exception, SystemExit, TooLong) as error:
            self.end = type(error).__name__

    def _module(self, name: str) -> dict[str, object]:
        own = vars(builtins) | {
            "__import__": self._import, "open": self._recorder("open"),
            "input": self._recorder("input"), "isinstance": lambda *_: False,
            "print": lambda *values, **_: self.log.add(f"print {_text(values)}")}
        return {"__name__": name, "__file__": "x.py", "__builtins__": own,
                **{each: self._recorder(each) for each in self.provided}}

    def _import(self, name: str, space: dict | None = None, local: dict | None = None,
                names: tuple = (), level: int = 0) -> object:
        if name == "helpers" and "helpers.py" in self.files:
            module = self._module(name)
            exec(compile(self.files["helpers.py"], "helpers.py", "exec"), module)
            return types.SimpleNamespace(**module)
        top = name.split(".")[0]
        if top in _REAL and not level:
            return __import__(name, space, local, names, level)
        if top == "tqdm":  # a bar is shown, and nothing else happens
            return types.SimpleNamespace(tqdm=lambda values, **_: values)
        return self._recorder(name if names else top)

    def call(self, name: str) -> None:
        """Calls a function of the script with recorders: nothing in the script may do so."""
        function = self.names[name]
        code = function.__code__
        self.log.append(f"call {name}")
        with self._ends():
            names, count = code.co_varnames, code.co_argcount
            result = function(*map(self._recorder, names[:count]),
                              **{k: self._recorder(k)
                                 for k in names[count:count + code.co_kwonlyargcount]})
            if isinstance(result, types.GeneratorType):
                result = list(itertools.islice(result, 5))
            self.log.append(f"gives {_text(result)}")

    def functions(self) -> set[str]:
        """The functions at the left of the script."""
        return {n for n, v in self.names.items() if isinstance(v, types.FunctionType)
                and n not in self.provided}


def provided_names(text: str) -> set[str]:
    """The names that a script takes from elsewhere."""
    return given(ast.parse(text)) - BUILTINS
