"""What made JAX compile functions again, in a script that does so for one reason each; and what ends that script."""

from __future__ import annotations

import functools
import signal
from types import SimpleNamespace

import jax
import pytest
from shardscope.inspector.capture.protocol.trace import TraceOptions
from shardscope.inspector.capture.worker.program.avals import spec_text
from shardscope.inspector.capture.worker.tracing.origins import jit_options
from shardscope.inspector.capture.worker.tracing.wrapped import place_of
from shardscope.inspector.traces.retracing import retraced

from tests.sweeps import sampled

from .conftest import HERE, Recorded


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("trace"), str(HERE / "retraced.py"), options=TraceOptions(target="cpu"))


@pytest.fixture(scope="module")
def reasons(recorded: Recorded) -> dict[str, tuple[str, ...]]:
    assert not recorded.trace.processes[0].messages
    found = retraced(recorded.trace)
    assert all(len(each.programs) == 2 for each in found)
    return {f"{each.name}:{each.programs[0].compiled.source.line}": each.reasons[0] for each in found}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "reason"),
    sampled(
        [
            ("by_closure", "bound to rate=0.1 → rate=0.2"),
            ("scale", "bound to bias=1.0 → bias=2.0"),
            ("setting", "option default jax_default_matmul_precision → jax_default_matmul_precision='highest'"),
            ("placed", "device 0 → device 1"),
            ("meshed", "x: P('a', 'b') on mesh a=2,b=1 → P('a', 'b') on mesh a=1,b=2"),
            ("structured", "structure of the arguments: (((*, *),), {}) → (([*, *],), {})"),
            ("cleared", "jax.clear_caches() was called"),
        ],
        7,
        3,
    ),
)
def test_what_differs(reasons: dict[str, tuple[str, ...]], name: str, reason: str) -> None:
    assert [why for function, why in reasons.items() if function.startswith(f"{name}:")] == [(reason,)]


def test_functions_without_a_name(reasons: dict[str, tuple[str, ...]]) -> None:
    found = [why for function, why in reasons.items() if function.startswith("<lambda>:")]
    anew = "another function object with the same arguments: it is created and jitted again for each"
    assert sorted(found) == sorted([("static power=2 → power=3",), (anew,)])


def test_an_object_is_defined_where_its_class_says(recorded: Recorded) -> None:
    [program] = [
        each for each in recorded.trace.programs if "unnamed" in each.compiled.name and not each.compiled.internal
    ]
    source, lines = program.compiled.source, (HERE / "retraced.py").read_text().splitlines()
    assert source is not None
    assert lines[source.line - 1].strip() == "def __call__(self, x):"
    assert (program.calls, program.is_helper) == (2, False)


def test_functions_of_jax_are_listed_where_the_script_jits_them(recorded: Recorded) -> None:
    lines = (HERE / "retraced.py").read_text().splitlines()
    called = {each.compiled.name: each.compiled.call for each in recorded.trace.programs if not each.compiled.internal}
    assert {name: lines[called[name].line - 1] for name in ("sum", "relu") if called[name] is not None} == {  # type: ignore[union-attr]
        "sum": "jax.jit(jnp.sum)(x)",
        "relu": "jax.jit(jax.nn.relu)(x)",
    }
    assert not called.keys() & {"norm", "softmax", "_softmax"}


def test_a_function_is_found_in_what_is_around_it() -> None:
    def inner() -> None:
        pass

    @functools.wraps(inner)
    def around() -> None:
        inner()

    class Callable:
        def __init__(self) -> None:
            pass

        def __call__(self) -> None:
            pass

    def line(function: object) -> int:
        place = place_of(function)
        assert place is not None
        assert place.file == __file__
        return place.line

    assert line(functools.partial(around)) == line(around) == line(inner) == inner.__code__.co_firstlineno
    assert line(functools.partial(functools.partial(Callable()))) == Callable.__call__.__code__.co_firstlineno
    assert line(Callable) == Callable.__init__.__code__.co_firstlineno
    around.__wrapped__ = around  # type: ignore[attr-defined]
    assert place_of(around) is None


def test_what_a_transformation_makes_of_a_function_is_marked(recorded: Recorded) -> None:
    """What shard_map does outside of jit is none: JAX compiles each operation in it."""
    lines = (HERE / "retraced.py").read_text().splitlines()
    marked = {each.compiled.call for each in recorded.trace.programs if each.compiled.transformed}
    assert {lines[call.line - 1].partition("(")[0] for call in marked if call is not None} == {"jax.grad"}


def test_a_program_that_was_compiled_earlier_is_recorded_when_it_is_called(recorded: Recorded) -> None:
    found = [each for each in recorded.trace.programs if each.compiled.earlier]
    assert [(each.compiled.name, each.calls, each.collectives) for each in found] == [
        ("<lambda>", 3, {"all-reduce": 1})
    ]


def test_python_ends_as_it_would_without_us(recorded: Recorded) -> None:
    """It kills itself, so that a shell stops the loop that it is in."""
    assert recorded.trace.status == -signal.SIGINT
    assert recorded.trace.processes[0].failure is not None


def test_options_that_no_argument_shows() -> None:
    """Shardings of results that are not given are an option, too, beside others."""
    mesh = jax.sharding.AbstractMesh((2,), ("x",))
    info, given = SimpleNamespace(inline=True, backend=None), jax.sharding.NamedSharding(mesh, jax.P("x"))
    assert jit_options(info, {"out_shardings": (given, None, given)}) == (
        "inline=True",
        f"out_shardings={spec_text(given)}, unspecified",
    )
    assert jit_options(info, {"out_shardings": (None,)}) == ("inline=True",)
