"""The first call of a function, wherever the user's script makes it.

Where the source names the function and calls it, what is called is taken as it is, with its arguments. A jitted
function that goes by another name there, or that a library calls, is taken before JAX traces it; and a function that
neither happens to when it is entered. Where it is a part of a program, the call of that program is taken: shardings of
values inside are those of the program.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from .. import failures
from ..patches import change_after_import
from .observed_source import CALLED, ENTERED

if TYPE_CHECKING:
    from .calls import Call

TRACING = "jax._src.pjit"
"""The module of `_infer_params`, to which jitted functions hand the arguments that they trace (JAX 0.7 to 0.12)."""


class FirstCall:
    """Waits for the call of a function, by its dotted name, and hands it to `take`, once.

    Or else, and then it says so, the call of the program of which the function is a part.
    """

    def __init__(self, dotted: str, take: Callable[[Call, bool], object]) -> None:
        *self._owners, self.name = dotted.split(".")
        self._take = take
        self._pending: Call | None = None
        self._around: Call | None = None
        self._is_inside = False
        self.is_over = False
        self.is_only_mapped = False

    def watch(self) -> None:
        """Wait from now on."""
        setattr(builtins, CALLED, self._called)
        setattr(builtins, ENTERED, self._entered)
        change_after_import({TRACING: self._watch_tracing})

    def end(self) -> bool:
        """The script has ended: take the call that was part of another program, if there was one."""
        if self._pending is not None and not self.is_over:
            self._hand_on(self._pending)
        return self.is_over

    def _called(self, function: Any, method: str = "") -> Any:
        """Return the function or its method, so that its call is noticed."""
        called = getattr(function, method) if method else function
        if self.is_over or isinstance(function, type) or not self._is_of_owner(function) or _wraps_jit(function):
            return called

        @functools.wraps(called, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            self._reached(function, args, kwargs)
            return called(*args, **kwargs)

        return call

    def _entered(self) -> None:
        if self.is_over or self._pending is not None or "jax" not in sys.modules:
            return
        from .calls import call_of

        call = call_of(sys._getframe(1))
        if call is not None and self._is_of_owner(call.function) and not self._is_getter(call):
            self._reached(*call)

    def _reached(self, function: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        if self.is_over:
            return
        import jax  # noqa: F401 (a script may call it before it imports JAX)

        from .calls import Call

        call = Call(function, args, kwargs)
        if not call.is_traced:
            self._hand_on(call)
        elif self._around is not None:
            self._is_inside = True
        elif call.is_mapped:
            self.is_only_mapped = True
        elif self._pending is None:
            self._pending = call.with_types()

    def _watch_tracing(self, module: ModuleType) -> None:
        from jax._src import core, source_info_util

        source_info_util.register_exclusion(failures.HERE)  # before anything is traced: JAX traces anew after it
        truth = module._infer_params

        @functools.wraps(truth)
        def infer(function: Any, info: Any, args: Any, kwargs: Any) -> Any:
            if self.is_over or self._around is not None:
                return truth(function, info, args, kwargs)
            from .calls import call_being_traced

            call = call_being_traced(function, args, kwargs, sys._getframe(1))
            if call is not None and self._is_named(call.function, function):
                self._reached(*call)
            if self._pending is not None and core.trace_state_clean():
                self._hand_on(self._pending)
            is_outermost = call is not None and not call.is_traced
            self._around, self._is_inside = call if is_outermost else None, False
            try:
                traced = truth(function, info, args, kwargs)
            finally:
                around, self._around = self._around, None
            if around is not None and self._is_inside:
                self._hand_on(around, is_part=True)
            return traced

        module._infer_params = infer  # type: ignore[attr-defined]

    def _hand_on(self, call: Call, *, is_part: bool = False) -> None:
        self.is_over = True
        self._take(call, is_part)

    def _is_named(self, function: Any, inside: Any) -> bool:
        from .calls import is_own_of_jax, names_of

        return not is_own_of_jax(inside) and names_of(function)[0] == self.name and self._is_of_owner(function)

    def _is_getter(self, call: Call) -> bool:
        """Return whether a call is that of a property, which may be a jitted function."""
        owner = getattr(call.function, "__self__", next(iter(call.args), None))
        return isinstance(inspect.getattr_static(type(owner), self.name, None), property | functools.cached_property)

    def _is_of_owner(self, function: Any) -> bool:
        """Return whether a function is one of the object, class or function that the request names, if it names one."""
        if not self._owners:
            return True
        from .calls import names_of

        owner, bound = self._owners[-1], getattr(function, "__self__", None)
        if bound is not None:
            main = vars(sys.modules["__main__"])
            return main.get(owner) is bound or any(owner == kind.__name__ for kind in type(bound).__mro__)
        _, qualified = names_of(function)
        return owner in qualified.split(".")[:-1] or "." not in qualified


def _wraps_jit(function: Any) -> bool:
    if not hasattr(function, "__wrapped__") or "jax" not in sys.modules:
        return False
    from .callables import is_around_jit

    return is_around_jit(function)


def refuse(place: str, name: str, watch: FirstCall) -> NoReturn:
    """Say why there is no call to capture.

    Raises:
        UsageError: always.
    """
    from ...protocol.request import UsageError

    if watch.is_only_mapped:
        raise UsageError(
            f"{place} calls {name} only inside of a shard_map, where each device has its part of the arguments",
            "name the function around it",
        )
    raise UsageError(
        f"{place} ended without a call of {name}",
        f"give its arguments with --arg 'f32[8,16]', one for each, or define {name}_inputs in the script; "
        f"arguments of the script itself come after it: shardscope {place}:{name} --layers 4",
    )
