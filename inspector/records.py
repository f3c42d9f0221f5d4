"""Dataclasses whose methods are made when the first object is: a process that is recorded imports many, and uses few.

The standard library takes half a millisecond for each, most of it to compile the source of the methods.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool, slots: bool) -> Callable[[type], type]:
        """`dataclasses.dataclass`, for classes without a base."""
        return _slotted


_COMPLETING = threading.RLock()


def _slotted(plain: type) -> type:
    """The class with slots; its methods come from `plain`, which `dataclass` gives them when they are wanted."""
    names = tuple(plain.__annotations__)
    own = {name: value for name, value in vars(plain).items() if name not in (*names, "__dict__", "__weakref__")}

    def complete() -> None:
        with _COMPLETING:
            if made.__init__ is begin:
                for name, value in vars(dataclasses.dataclass(frozen=True)(plain)).items():
                    if name not in (*own, *names, "__dict__", "__weakref__"):
                        setattr(made, name, value)

    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        complete()
        self.__init__(*args, **kwargs)

    class Fields:
        def __get__(self, instance: Any, owner: type) -> Any:
            complete()
            return owner.__dataclass_fields__  # type: ignore[attr-defined]

    added = {
        "__qualname__": plain.__qualname__,
        "__slots__": names,
        "__match_args__": names,
        "__init__": begin,
        "__dataclass_fields__": Fields(),
    }
    made: Any = type(plain.__name__, (), own | added)
    return made  # type: ignore[no-any-return]
