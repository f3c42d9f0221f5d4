"""Call stacks of instructions, against the lines of the script that was compiled."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from shardscope.parsers.hlo import HloModule, parse_module
from shardscope.parsers.source import Source

from ..conftest import run_script

SCRIPT = textwrap.dedent("""
    import json, sys
    import jax, jax.numpy as jnp

    def inner(x):
        return jnp.sin(x)  # sine in inner

    def outer(x):
        return jax.lax.fori_loop(0, 3, lambda _, c: inner(c), x) + jnp.cos(x)  # cosine in outer

    def main():
        compiled = jax.jit(outer).lower(1.0).compile()  # call in main
        open(sys.argv[1], "w").write(compiled.as_text())
        print(json.dumps({}))

    main()
""")


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> tuple[HloModule, Path]:
    folder = tmp_path_factory.mktemp("frames")
    script = folder / "script.py"
    script.write_text(SCRIPT)
    run_script(script, folder / "text.hlo")
    return parse_module(Source("text.hlo", (folder / "text.hlo").read_bytes())), script


def line_of(remark: str) -> int:
    (number,) = (number for number, line in enumerate(SCRIPT.splitlines(), 1) if line.endswith(f"# {remark}"))
    return number


@pytest.mark.parametrize(("opcode", "places"), [("cosine", ["outer", "main"]), ("sine", ["inner", "outer", "main"])])
def test_stacks_lead_to_the_lines_of_the_script(module: tuple[HloModule, Path], opcode: str, places: list[str]) -> None:
    text, script = module
    (found, *_) = text.with_opcode({opcode})
    innermost = found.frames[0]
    assert (innermost.file, innermost.line) == (str(script), line_of(f"{opcode} in {places[0]}"))
    if found.metadata is not None and found.metadata.frame is not None:
        # Older texts have the innermost frame only.
        assert found.frames == (innermost,)
        return
    ours = [frame for frame in found.frames if frame.file == str(script)]
    # What runs in a loop has the stack of the loop behind its own.
    functions = dict.fromkeys(frame.function for frame in ours)
    assert [name for name in functions if name in places] == places
    assert ours[-2].line == line_of("call in main")
    assert ours[-1].function == "<module>"
