"""Dataclasses whose methods are made when the first object is: a process that is recorded imports many, and uses few.

The standard library takes half a millisecond for each, most of it to compile the source of the methods.
"""

from __future__ import annotations

import dataclasses
import json
import operator
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool, slots: bool) -> Callable[[type], type]:
        """`dataclasses.dataclass`, for classes without a base."""
        return _slotted


T = TypeVar("T")


def encode(self: Any) -> str:
    """Return the fields of a dataclass as JSON, for the command line or the environment of another process."""
    return json.dumps(dataclasses.asdict(self))


def decode(kind: type[T], text: str) -> T:
    """The dataclass that `encode` wrote; what is a list in JSON is a tuple in it."""
    return kind(
        **{name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(text).items()}
    )


_LOCK = threading.RLock()


def _slotted(plain: type) -> type:
    """The class with slots; `plain` becomes the dataclass that has its `fields`, when somebody wants them."""
    names = tuple(plain.__annotations__)
    own = {name: value for name, value in vars(plain).items() if name not in (*names, "__dict__", "__weakref__")}
    values = operator.attrgetter(*names)

    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        made.__init__ = _init_of(plain, names)
        self.__init__(*args, **kwargs)

    def is_equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def text(self: Any) -> str:
        return f"{plain.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    class Fields:
        def __get__(self, instance: Any, owner: type) -> Any:
            return _dataclass_of(plain).__dataclass_fields__

    added = {
        "__qualname__": plain.__qualname__,
        "__slots__": names,
        "__match_args__": names,
        "__init__": begin,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__eq__": is_equal,
        "__hash__": lambda self: hash(values(self)),
        "__repr__": text,
        "__dataclass_fields__": Fields(),
    }
    made: Any = type(plain.__name__, (), own | added)
    return made  # type: ignore[no-any-return]


def _dataclass_of(plain: type) -> Any:
    with _LOCK:
        if not dataclasses.is_dataclass(plain):
            dataclasses.dataclass(frozen=True)(plain)
    return plain


def _init_of(plain: type, names: tuple[str, ...]) -> Any:
    """The `__init__` that `dataclass` would make, without what it makes around it."""
    defaults = {name: vars(plain)[name] for name in names if name in vars(plain)}
    if any(isinstance(value, dataclasses.Field) for value in defaults.values()) or dataclasses.is_dataclass(plain):
        return _dataclass_of(plain).__init__
    parameters = ", ".join(f"{name}=defaults[{name!r}]" if name in defaults else name for name in names)
    body = "; ".join(f"set_(self, {name!r}, {name})" for name in names)
    scope: dict[str, Any] = {"set_": object.__setattr__, "defaults": defaults}
    code = compile(f"def __init__(self, {parameters}): {body}", "<string>", "exec")
    exec(code, scope)  # of text, it would have Python forget that the script was interrupted, and its exit status
    return scope["__init__"]


def _refuse(self: Any, name: str, *value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")
