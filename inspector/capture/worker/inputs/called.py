"""A script that runs as `__main__` until the call that is captured."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING, NoReturn

from ...protocol.request import Request, UsageError, split_function
from .first_call import FirstCall, refuse
from .observed_source import called_class, functions_in, names_in
from .resolve import NoProgramError, Resolved, did_you_mean, look_up
from .running import Capture, Runnable, run

if TYPE_CHECKING:
    from .calls import Call
    from .costliest import Costliest


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
        from .calls import module_of, names_of

        module = module_of(call.function)
        around = names_of(call.function)[0] if is_part else dotted
        if is_part:
            channel.tell("warning", f"{dotted} is called while JAX traces {around}: this is the report of {around}")
        found = Resolved(call.function, around, module, module)

        def capture_it() -> None:
            try:
                capture(found, (call.args, dict(call.kwargs)))
            except NoProgramError as error:
                costliest.of_call(call, error.why)

        if not request.go_on:
            costliest.finish(capture_it)
        try:
            capture_it()
        except BaseException as error:
            failed = error
            costliest.finish(lambda: raised(failed))
        channel.enter("script")

    watch = FirstCall(dotted, take)
    watch.watch()
    channel.enter("script")
    run(program, name)
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
    name = dotted.rpartition(".")[2]
    known = names_in(program.text)
    if known is None or name in known:
        return
    functions = functions_in(program.text)
    near = did_you_mean(get_close_matches(name, functions) or get_close_matches(name, sorted(known)))
    raise UsageError(f"{place} has no {name!r}", near or (f"it has {', '.join(functions[:12])}" if functions else None))


def raised(error: BaseException) -> NoReturn:
    """Raise it."""
    raise error
