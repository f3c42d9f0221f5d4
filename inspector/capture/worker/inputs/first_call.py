"""The first call of a function, wherever the user's script makes it, which runs as `__main__` until then.

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
from difflib import get_close_matches
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from ...protocol.events import Message
from ...protocol.request import Request, UsageError, split_function
from .. import failures
from ..patches import change_after_import, instead_of
from ..script_objects import attribute, variable
from .resolve import NoProgramError, Resolved, did_you_mean, look_up
from .running import CALLED, ENTERED, Capture, Runnable, called_class, functions_in, names_in, run

if TYPE_CHECKING:
    from .calls import Call
    from .costliest import Costliest

TRACING = "jax._src.pjit"
"""The module of `_infer_params`, to which jitted functions hand the arguments that they trace (JAX 0.7 to 0.12)."""


class FirstCall:
    """Waits for the call of a function, by its dotted name, and hands it to `take`, once.

    Or else, and then it says so, the call of the program of which the function is a part. If the script `defines` a
    function of that name, no library's is meant.
    """

    def __init__(self, dotted: str, take: Callable[[Call, bool], object], *, defines: bool) -> None:
        *self._owners, self.name = dotted.split(".")
        self._defines = defines
        self._take = take
        self._jitted: Any = None
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

    def _called(self, function: Any, method: str, has_owner: bool) -> Any:
        """Return the function or its method, so that its call is noticed; `has_owner` if the source names its owner."""
        called = getattr(function, method) if method else function
        if self.is_over or isinstance(function, type) or not (has_owner or self._is_of_owner(function)):
            return called
        if (jitted := _wrapped_jit(function)) is not None:
            self._jitted = jitted
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

        @instead_of(module, "_infer_params")
        def infer(truth: Any, function: Any, info: Any, args: Any, kwargs: Any) -> Any:
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

    def _hand_on(self, call: Call, *, is_part: bool = False) -> None:
        self.is_over = True
        self._take(call, is_part)

    def _is_named(self, function: Any, inside: Any) -> bool:
        from .calls import is_own_of_jax, names_of

        if is_own_of_jax(inside):
            return False
        is_held = function is self._jitted or self._is_held(function)
        return is_held or (names_of(function)[0] == self.name and self._is_of_owner(function))

    def _is_held(self, function: Any) -> bool:
        held: object = sys.modules["__main__"]
        for name in (*self._owners, self.name):
            held = variable(held, name)
        return function is not None and function is held

    def _is_getter(self, call: Call) -> bool:
        owner = getattr(call.function, "__self__", next(iter(call.args), None))
        return isinstance(inspect.getattr_static(type(owner), self.name, None), property | functools.cached_property)

    def _is_of_owner(self, function: Any) -> bool:
        """Return whether a function is one of the object, class or function that the request names, if it names one."""
        if not self._owners or self._is_held(function):
            return not self._defines or self._is_held(function) or _is_of_script(function)
        from .calls import names_of

        owner, bound = self._owners[-1], getattr(function, "__self__", None)
        if bound is not None:
            main = vars(sys.modules["__main__"])
            return main.get(owner) is bound or any(owner == kind.__name__ for kind in type(bound).__mro__)
        _, qualified = names_of(function)
        held = variable(sys.modules["__main__"], owner)
        may_have_it = held is None or attribute(held, self.name) is not None
        return owner in qualified.split(".")[:-1] or (may_have_it and "." not in qualified)


def _is_of_script(function: Any) -> bool:
    return "__main__" in (getattr(each, "__module__", None) for each in (function, inspect.unwrap(function)))


def _wrapped_jit(function: Any) -> Any:
    """The jitted function that a function without a jit of its own wraps; None where there is none."""
    if not hasattr(function, "__wrapped__") or "jax" not in sys.modules:
        return None
    from .callables import jit_inside

    return jit_inside(function)


def refuse(place: str, name: str, watch: FirstCall) -> NoReturn:
    """Say why there is no call to capture.

    Raises:
        UsageError: always.
    """
    if watch.is_only_mapped:
        raise UsageError(
            f"{place} calls {name} only inside of a shard_map, where each device has its part of the arguments",
            "name the function around it",
        )
    raise UsageError(
        f"{place} ended without a call of {name}",
        f"give its arguments with --arg 'f32[8,16]', one for each, or define {name.rpartition('.')[2]}_inputs in the "
        f"script; arguments of the script itself come after it: shardscope {place}:{name} --layers 4",
    )


def capture_call(costliest: Costliest) -> None:
    """Run a script, and capture its first call of the function; `finish` does so in the place of all that follows.

    Of a function that is no program of its own, such as a loop of steps, it is the costliest program.

    Raises:
        UsageError: the script makes no such call. What it raises passes through.
    """
    program, request, channel, capture = costliest.script, costliest.request, costliest.channel, costliest.capture
    place, dotted = split_function(request.function)
    _refuse_unknown(program, place, dotted)
    name = dotted.rpartition(".")[2]
    if (is_callable := called_class(program.text, name)) is not None:
        if not is_callable:
            methods = [each for each in functions_in(program.text) if each.startswith(f"{name}.")][:6]
            hint = f"name a method: {', '.join(f'{place}:{each}' for each in methods)}" if methods else None
            raise UsageError(f"{dotted} is a class, whose objects cannot be called", hint)
        dotted, name = f"{dotted}.__call__", "__call__"

    def take(call: Call, is_part: bool) -> None:
        from jax._src import xla_bridge

        from .calls import is_own_of_jax, module_of, names_of

        module, has_backends = module_of(call.function), xla_bridge.backends_are_initialized()
        around = names_of(call.function)[0] if is_part and not is_own_of_jax(call.function) else dotted
        is_lambda = around == "<lambda>"
        if around != dotted:
            which = ("a lambda", "the lambda") if is_lambda else (around, around)
            text = "{} is called while JAX traces {}: this is the report of {}".format(dotted, *which)
            channel.send(Message("warning", text, "start"))
        found = Resolved(call.function, dotted if is_lambda else around, module, module)

        def capture_it() -> None:
            try:
                capture(found, (call.args, dict(call.kwargs)))
                return
            except NoProgramError as error:
                why = error.why
            if not has_backends:  # what may only run before them may run again
                xla_bridge.backends_are_initialized = lambda: False
            costliest.of_call(call, why)

        if not request.go_on:
            costliest.finish(capture_it)
        try:
            capture_it()
        except BaseException as error:
            failed = error
            costliest.finish(lambda: raised(failed))
        channel.enter("script")

    watch = FirstCall(dotted, take, defines=dotted in functions_in(program.text))
    watch.watch()
    channel.enter("script")
    run(program, dotted)
    if not watch.end():
        _capture_uncalled(request, capture, watch)


def _capture_uncalled(request: Request, capture: Capture, watch: FirstCall) -> None:
    """Capture a function that the script defines and does not call, if its arguments are known without."""
    from .arguments import find_arguments

    place, dotted = split_function(request.function)
    main = sys.modules["__main__"]
    if not hasattr(main, dotted.partition(".")[0]):
        refuse(place, dotted, watch)
    found = look_up(main, place, dotted)
    try:
        find_arguments(request, found)
    except UsageError:
        refuse(place, dotted, watch)
    capture(found, None)


def _refuse_unknown(program: Runnable, place: str, dotted: str) -> None:
    known = names_in(program.text)
    name = next((each for each in reversed(dotted.split(".")) if known is not None and each not in known), None)
    if known is None or name is None:
        return
    functions = functions_in(program.text)
    near = did_you_mean(get_close_matches(name, functions) or get_close_matches(name, sorted(known)))
    raise UsageError(f"{place} has no {name!r}", near or (f"it has {', '.join(functions[:12])}" if functions else None))


def raised(error: BaseException) -> NoReturn:
    """Raise it."""
    raise error
