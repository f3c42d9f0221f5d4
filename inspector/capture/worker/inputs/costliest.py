"""The program of a script that matters most: the one that raises, else the one that costs most in all of its calls.

All programs are recorded as for a list (`tracing/recorder.py`), with the call that each was compiled for. That of the
program in question is captured in the same process: when the script ends, or when it only repeats what it has done.
"""

from __future__ import annotations

import functools
import re
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from ...protocol.events import Message, OtherProgram, OtherPrograms, OtherResult, OtherResults
from ...protocol.request import Request, UsageError, split_function
from ...protocol.trace import CompiledProgram, TraceOptions
from .. import waiting
from ..channel import Channel
from ..needed_devices import needed
from ..patches import change_after_import, instead_of
from ..tracing import hooks
from ..tracing.recorder import Recorder
from .resolve import NoProgramError, Resolved
from .running import Capture, Runnable, ends_well, functions_in, run

if TYPE_CHECKING:
    from ..tracing.lowering import Lowering
    from .calls import Call

TRACING, MAPPING = "jax._src.pjit", "jax._src.shard_map"

MIN_CALLS = 3
"""Calls of one program after which a script may only repeat what it has done."""

MIN_ELEMENTS = 1024
"""Elements of a result that other programs may receive otherwise than it was made."""

MIN_FLOPS = 0.01
"""Share of the chosen program's operations from which another one computes, and does not only fill or print."""

MAX_COPIED = 1 << 28
"""Bytes of arguments of all programs that are copied, since a script donates them or lets them go."""

MIN_SECONDS = 2.0
"""Seconds without a new program after which it does; or half of the time until the last, if that is longer."""


@dataclass(frozen=True)
class Context:
    """The mesh of `jax.set_mesh`, and that of `with mesh:`, in force at some time; None for none."""

    chosen: Any = None
    entered: Any = None

    @classmethod
    def current(cls) -> Context:
        """The one in force here, inside of jit too."""
        from ..subject import entered_mesh

        found = [sys.modules["jax._src.mesh"].get_concrete_mesh(), entered_mesh()]
        return cls(*(mesh if getattr(mesh, "axis_names", ()) else None for mesh in found))

    @contextmanager
    def again(self) -> Iterator[None]:
        """Put it in force, outside of jit, in place of what is."""
        from .context import entered, set_mesh

        now = Context.current()
        with ExitStack() as stack:
            if self.entered is not None and self.entered != now.entered:
                stack.enter_context(entered(self.entered))
            if self.chosen != now.chosen:
                stack.enter_context(set_mesh(self.chosen))
            yield


@dataclass
class _Seen:
    program: CompiledProgram
    place: tuple[str, int]
    call: Call | None
    context: Context
    executable: Any
    is_mapped: bool = False
    is_part: bool = False
    sent: int = 0
    flops: float = 0.0
    calls: int = 0
    paths: tuple[str, ...] = ()
    results: tuple[OtherResult, ...] = ()


@dataclass
class _Observer:
    finish: Callable[[_Observer], NoReturn]
    seen: dict[int, _Seen] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    copied: int = 0
    around: Call | None = None
    is_transformed: bool = False
    mapped: Call | None = None
    operation: tuple[Any, Any, Any] = (None, (), {})
    unfinished: Call | None = None
    context: Context = Context()
    running: int = -1
    is_over: bool = False
    started: float = field(default_factory=time.monotonic)
    newest: float = field(default_factory=time.monotonic)
    since: int = 0
    meshes: dict[Any, None] = field(default_factory=dict)

    def watch_tracing(self, module: ModuleType) -> None:
        @instead_of(module, "_infer_params")
        def infer(truth: Any, function: Any, info: Any, args: Any, kwargs: Any) -> Any:
            if not self.is_over:
                from ..tracing.lowering import is_jitted_by_user
                from .calls import call_being_traced, is_own_of_jax, mapped_call, transformed_call

                frame = sys._getframe(1)
                if is_own_of_jax(function) and not is_jitted_by_user(frame, function):
                    call, self.operation = mapped_call(frame), (function, args, kwargs)
                else:
                    call = call_being_traced(function, args, kwargs, frame)
                is_part = call is not None and call.is_traced
                if is_part:
                    call = transformed_call(frame)
                if call is not None and not call.has_tracers:
                    self.around = self.unfinished = call
                    self.is_transformed = is_part
                    self.context = Context.current()
            return truth(function, info, args, kwargs)

    def watch_mapping(self, module: ModuleType) -> None:
        """Observe shard_maps that run outside of jit, one operation after the other."""
        trace = sys.modules["jax._src.core"].EvalTrace
        truth = trace.process_shard_map

        @functools.wraps(truth)
        def process(*args: Any, **kwargs: Any) -> Any:
            if self.is_over:
                return truth(*args, **kwargs)
            from .calls import mapped_call

            call = self.mapped = self.unfinished = mapped_call(sys._getframe(1))
            self.context = Context.current()
            results = truth(*args, **kwargs)
            self.mapped = self.unfinished = None
            if call is not None:
                self.may_only_repeat(results)
            return results

        trace.process_shard_map = process

    def compiled(self, program: CompiledProgram, lowering: Lowering, executable: Any) -> None:
        from ..subject import meshes_in_frames
        from ..tracing.origins import names_of as paths_of
        from .calls import names_of

        self.meshes |= dict.fromkeys(meshes_in_frames())
        self.newest, self.since = time.monotonic(), 0
        call = self.around if self.mapped is None else None
        is_part = self.is_transformed and not program.internal
        if call is not None and not is_part and program.name not in names_of(call.function):
            call = None
        if call is None and program.internal:
            call = self.mapped or self._operation_that_sends(executable)
        call = None if call is None else self._weakly(call)
        place = (program.name, self.counts[program.name])
        self.counts[program.name] += 1
        is_mapped, context = self.mapped is not None, Context.current()
        self.seen[program.number] = _Seen(program, place, call, context, executable, is_mapped, is_part)
        if not program.internal and "closed_jaxpr" in lowering.arguments:
            self.seen[program.number].paths = tuple(paths_of(lowering)[1])

    def calling(self, number: int) -> None:
        self.running = number

    def called(self, number: int, results: Any) -> None:
        self.running = number
        seen = self.seen.get(number)
        if seen is None or self.is_over:
            return
        seen.calls += 1
        if seen.paths:
            seen.results = tuple(_results(seen, results))
            seen.paths = ()
        self.unfinished = self.mapped
        if not seen.program.internal:
            self.may_only_repeat(results)

    def may_only_repeat(self, results: Any) -> None:
        """Finish if the script has called so much, for so long, without a new program."""
        sys.modules["jax"].block_until_ready(results)  # many programs at a time may hang on fake devices
        self.since += 1
        patience = max(MIN_SECONDS, (self.newest - self.started) / 2)
        if self.since >= MIN_CALLS and time.monotonic() - self.newest > patience:
            self.is_over = True
            self.finish(self)

    def _weakly(self, call: Call) -> Call:
        """The call, whose arrays it copies while they are not too many, and does not keep.

        A wrapper wants arrays, of which jit takes types as well: then it is kept as it is.
        """
        import jax

        from .wrappers import is_jitted

        given = (call.args, dict(call.kwargs))
        size = sum(leaf.nbytes for leaf in jax.tree.leaves(given) if _is_array(leaf))
        is_copied = self.copied + size <= MAX_COPIED
        if not is_copied and not is_jitted(call.function):
            return call
        self.copied += size if is_copied else 0
        args, kwargs = jax.tree.map(lambda leaf: _Weak(leaf, is_copied) if _is_array(leaf) else leaf, given)
        return call._replace(args=args, kwargs=kwargs)

    def _operation_that_sends(self, executable: Any) -> Call | None:
        """The call of an operation outside of jit, where devices communicate in it."""
        from .calls import Call, jitted

        function, args, kwargs = self.operation
        found = jitted(function) if _sent(executable) else None
        return None if found is None else Call(found, args, kwargs)

    def ranked(self) -> list[_Seen]:
        """The programs, the costliest first; operations outside of jit only where there is nothing else."""
        users = [each for each in self.seen.values() if not each.program.internal or each.is_mapped]
        own = users or list(self.seen.values())
        for each in own:
            try:
                each.sent = _sent(each.executable)
                analysis = _loaded(each.executable).cost_analysis()
                each.flops = float((analysis[0] if isinstance(analysis, list) else analysis).get("flops", 0.0))
            except Exception:  # not every backend knows
                continue

        def cost(each: _Seen) -> tuple[float, float]:
            return each.sent * max(each.calls, 1), each.flops * max(each.calls, 1)

        return sorted(own, key=cost, reverse=True)


def _results(seen: _Seen, results: Any) -> Iterator[OtherResult]:
    import jax

    from ..program.avals import spec_text, type_text

    given = seen.program.arguments
    is_split = seen.program.devices > 1 or any("'" in (each.spec or "") for each in given)
    leaves = jax.tree.leaves(results)
    if len(leaves) == len(seen.paths):
        for path, leaf in zip(seen.paths, leaves, strict=True):
            if leaf.size >= MIN_ELEMENTS:
                spec = spec_text(leaf.sharding) or ""
                yield OtherResult(
                    seen.program.name, path, type_text(jax.typeof(leaf)), spec, is_aside=bool(given) and not is_split
                )


def _received(seen: _Seen, chosen: _Seen) -> Iterator[OtherResult]:
    """The arguments of an earlier program of the chosen function, or of one that computes on one device."""
    is_before = seen.program.name == chosen.program.name and seen.program.number < chosen.program.number
    computes = seen.program.devices == 1 and seen.flops >= MIN_FLOPS * chosen.flops
    if not seen.program.internal and (is_before or computes):
        for each in seen.program.arguments:
            yield OtherResult(seen.program.name, each.path, each.type, each.spec or "", is_argument=True)


def _is_of_one_call(seen: _Seen, chosen: _Seen) -> bool:
    """Return whether both are programs of one shard_map outside of jit, or of one function that JAX transforms."""
    if seen.is_part and chosen.is_part and seen.call is not None and chosen.call is not None:
        return bool(seen.call.function.__qualname__ == chosen.call.function.__qualname__)
    return seen.is_mapped and chosen.is_mapped


def _loaded(executable: Any) -> Any:
    return getattr(executable, "xla_executable", executable)


def _sent(executable: Any) -> int:
    from ..tracing.costs import sent_bytes

    return sum(sent_bytes(module.to_string()) for module in _loaded(executable).hlo_modules())


class _Weak:
    """An array that the script may let go, its type, and a copy if there is one."""

    def __init__(self, array: Any, is_copied: bool) -> None:
        import jax

        self.array = weakref.ref(array)
        self.copy = jax.device_put(array, may_alias=False) if is_copied else None
        sharding = array.sharding if array.committed else None
        self.type = jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=sharding)

    def value(self) -> Any:
        """The array; where it is gone, its copy, or else its type."""
        array = self.array()
        if array is not None and not array.is_deleted():
            return array
        return self.type if self.copy is None else self.copy


def _is_array(leaf: Any) -> bool:
    return type(leaf).__name__ == "ArrayImpl"


def _revived(call: Call) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    import jax

    return jax.tree.map(  # type: ignore[no-any-return]
        lambda leaf: leaf.value() if isinstance(leaf, _Weak) else leaf, (call.args, dict(call.kwargs))
    )


@dataclass(frozen=True)
class Costliest:
    """Captures the program that matters most of something that is run, and lists the others.

    `finish` captures in the place of all that would follow; `folder` is for what the recorder writes.
    """

    script: Runnable
    request: Request
    channel: Channel
    capture: Capture
    finish: Callable[[Callable[[], object]], NoReturn]
    folder: str

    def of_script(self) -> None:
        """Run the script.

        Raises:
            UsageError: JAX compiles nothing for it. What the script raises passes through, after the capture.
        """
        self._of(lambda: run(self.script, ""))

    def of_call(self, call: Call, why: BaseException) -> None:
        """Run a function that cannot be traced as one program, which is why.

        Raises:
            BaseException: the reason, where it runs no program of the user's; else as `of_script`.
        """
        import jax

        from .callables import is_complete
        from .calls import names_of

        if not is_complete((call.args, dict(call.kwargs))):
            raise why
        jax.clear_caches()  # else there is nothing to compile for what was called before
        name = names_of(call.function)[0] or split_function(self.request.function)[1]
        said = f"{name} cannot be traced as one program ({type(why).__name__})"
        said = why.message.partition(",")[0] if isinstance(why, UsageError) else said
        text = f"{said}: this is the program in it that communicates or computes most"

        def running() -> None:
            with ends_well():
                call.function(*call.args, **call.kwargs)

        try:
            self._of(running, why, text)
        except (UsageError, jax.errors.UnexpectedTracerError) as error:  # what was traced may have left tracers behind
            raise (error if isinstance(error, UsageError) and isinstance(why, UsageError) else why) from None

    def _waits(self, observer: _Observer, runner: int) -> None:
        """Capture the program that is being run and does not end, without running it."""
        observer.is_over = True
        seen = observer.seen.get(observer.running)
        if seen is not None and seen.call is not None:
            with suppress(Exception), seen.context.again():
                self._call(seen.call, _revived(seen.call), observer, waits=True)
        waiting.tell(self.channel, runner, "script")

    def _of(self, running: Callable[[], object], why: BaseException | None = None, text: str = "") -> None:
        def finish(observer: _Observer) -> NoReturn:
            self.finish(lambda: self._program_of(observer, text))

        observer = _Observer(finish)
        recorder = Recorder(self.folder, TraceOptions(target=self.request.target), observer)
        for name, watch in {TRACING: observer.watch_tracing, MAPPING: observer.watch_mapping}.items():
            if name in sys.modules:
                watch(sys.modules[name])
            else:
                change_after_import({name: watch})
        hooks.install(recorder)
        self.channel.enter("script")
        failed: BaseException | None = None
        try:
            with waiting.watched(functools.partial(self._waits, observer)):
                running()
        except BaseException as error:
            if needed(error) is not None or not (observer.seen or observer.unfinished):
                raise
            failed = error
        observer.is_over = True
        if failed is not None and why is not None and type(failed) is type(why):
            raise why  # as it was traced: what it raises itself
        if failed is not None:
            self._program_before(failed, observer, text)
            raise failed
        if why is not None and not any(each.call and not each.program.internal for each in observer.ranked()):
            raise UsageError(f"{why.message}; it calls no jitted function") if isinstance(why, UsageError) else why
        self._program_of(observer, text)

    def _program_before(self, failed: BaseException, observer: _Observer, text: str) -> None:
        """Capture the program that raised, up to the phase in which it does, else what mattered until then."""
        if observer.unfinished is not None:
            try:
                with observer.context.again():
                    self._call(observer.unfinished, observer.unfinished[1:], observer)
            except type(failed):
                return
        else:
            with suppress(UsageError):
                self._program_of(observer, text)
        self.channel.enter("script")

    def _program_of(self, observer: _Observer, text: str) -> None:
        place, _ = split_function(self.request.function)
        ranked = observer.ranked()
        functions = [f"{place}:{name}" for name in functions_in(self.script.text)[:4]]
        if not ranked:
            raise UsageError(f"JAX compiled no program for {place}", self._elsewhere(functions))
        wanted = self.request.program
        chosen = next((each for each in ranked if each.call and wanted in (None, each.place)), None)
        whole = f"name a function to see it whole: {', '.join(functions)}" if functions else "jit what belongs together"
        if chosen is None and wanted is not None:
            raise UsageError(f"{place} no longer compiles {wanted[0]}")
        if chosen is None:
            raise UsageError(f"{place} calls no jitted function, and none of its operations communicates", whole)
        if chosen.program.internal and not chosen.is_mapped:
            text = f"{place} calls no jitted function: of its operations this one sends most; {whole}"
        if text:
            self.channel.send(Message("warning", text, "start"))  # of the capture as a whole
        apart = [each for each in ranked if each is not chosen and not _is_of_one_call(each, chosen)]
        others = tuple(OtherProgram(each.program.name, each.program.call, each.calls, each.sent) for each in apart)
        self.channel.send(OtherPrograms(others, chosen.place))
        made = (value for each in apart for value in (*each.results, *_received(each, chosen)))
        self.channel.send(OtherResults(tuple(dict.fromkeys(made))))
        assert chosen.call is not None
        with chosen.context.again():
            self._call(chosen.call, _revived(chosen.call), observer)

    def _elsewhere(self, functions: list[str]) -> str:
        if re.search(rb"\b(subprocess|multiprocessing|Popen|spawn)\b", self.script.text):
            place, _ = split_function(self.request.function)
            return f"it may start other processes: shardscope trace {place} records them, too"
        return f"to capture one of its functions: {', '.join(functions)}" if functions else "it may not call JAX at all"

    def _call(self, call: Call, arguments: Any, observer: _Observer, **how: bool) -> None:
        from .calls import module_of, names_of

        module = module_of(call.function)
        found = Resolved(call.function, names_of(call.function)[0], module, module, tuple(observer.meshes))
        try:
            self.capture(found, (arguments[0], dict(arguments[1])), **how)
        except NoProgramError as error:
            raise error.why from None
