"""Random modules, spelled as XLA prints them and in any other way: read as what they were made from."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shardscope.parsers.hlo import HloModule, parse_module
from shardscope.parsers.source import Source

from tests.sweeps import examples

from .agreement import differences
from .conftest import Read
from .test_instructions import NOT_THERE


@dataclass(frozen=True)
class Row:
    """An instruction as it was made; `inside` is what stands in the parentheses, `operands` those in it."""

    name: str
    type_text: str
    opcode: str
    inside: str
    operands: tuple[str, ...]
    attributes: dict[str, str]


words = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.\-]{0,12}", fullmatch=True)
strings = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=12).map(
    lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
)
numbers = st.lists(st.integers(0, 99), min_size=1, max_size=4).map(lambda each: ",".join(map(str, each)))
values = st.recursive(
    words | strings | numbers.map(lambda each: each.partition(",")[0]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda each: "{" + ",".join(each) + "}")
        | st.lists(inner, max_size=3).map(lambda each: "{" + ", ".join(f"k{n}={v}" for n, v in enumerate(each)) + "}")
    ),
    max_leaves=8,
)
arrays = st.builds(
    "{}[{}]{}".format,
    st.sampled_from(["f32", "bf16", "s32", "pred", "f8e4m3fn"]),
    numbers | st.just(""),
    st.sampled_from(["", "{0}", "{1,0:T(8,128)(2,1)S(1)}"]),
)
types = st.recursive(
    arrays, lambda inner: st.lists(inner, max_size=3).map(lambda each: f"({', '.join(each)})"), max_leaves=5
)


@st.composite
def rows(draw: st.DrawFn) -> Row:
    opcode = draw(st.sampled_from(["add", "all-reduce", "custom-call", "parameter", "constant", "brand-new"]))
    if opcode in ("parameter", "constant"):
        inside, operands = draw(st.sampled_from(["0", "{ {1, 2}, {3, 4} }", "(1, -2)", "-inf", "{...}"])), ()
    else:
        operands = tuple(draw(st.lists(words, max_size=4)))
        inside = ", ".join(f"{draw(st.sampled_from(['', f'{draw(arrays)} ']))}%{name}" for name in operands)
    attributes = draw(st.dictionaries(words, values, max_size=4))
    return Row(draw(words), draw(types), opcode, inside, operands, attributes)


bodies = st.lists(rows(), min_size=1, max_size=6, unique_by=lambda row: row.name)
modules = st.dictionaries(words.filter(lambda name: name != "ENTRY"), bodies, min_size=1, max_size=4)


def printed(module: dict[str, list[Row]]) -> str:
    """As XLA prints modules."""
    computations = []
    for name, body in module.items():
        lines = [
            f"  %{row.name} = {row.type_text} {row.opcode}({row.inside})"
            + "".join(f", {key}={value}" for key, value in row.attributes.items())
            for row in body
        ]
        computations.append("\n".join((f"%{name} (p: f32[]) -> f32[] {{", *lines, "}\n")))
    return "\n".join(("HloModule m, is_scheduled=true\n\n", *computations))


def spelled_anyhow(module: dict[str, list[Row]], chance: random.Random) -> str:
    """The same with other blanks and remarks, without percent signs, and some things on a line of their own."""

    def blank() -> str:
        return chance.choice([" ", "  ", "\n      ", " /* a remark */ ", "\t"])

    parts = ["HloModule m,", blank(), "is_scheduled=true\n"]
    for name, body in module.items():
        parts += [chance.choice(["", "ENTRY ", "  "]), name, chance.choice([" ", " () -> f32[]{} ", "\n"]), "{\n"]
        for row in body:
            parts += [
                "   ",
                chance.choice(["", "ROOT "]),
                chance.choice(["", "%"]),
                row.name,
                " =",
                blank(),
                row.type_text,
            ]
            parts += [blank(), row.opcode, "(", row.inside, ")"]
            for key, value in row.attributes.items():
                parts += [",", chance.choice([" ", "\n         "]), key, "=", value]
            parts.append(chance.choice(["\n", "  // the end\n", "\r\n"]))
        parts.append(chance.choice(["}\n", "  }\n\n", "}"]))
        parts.append("\n")
    return "".join(parts)


def read(text: str) -> HloModule:
    return parse_module(Source("made", text.encode()))


def made_of(module: HloModule) -> dict[str, list[Row]]:
    return {
        computation.name: [
            Row(
                each.name,
                each.type_text,
                each.opcode,
                each.call.inside,
                tuple(each.operands),
                dict(each.attributes),
            )
            for each in computation.instructions
        ]
        for computation in module.computations
    }


@pytest.mark.once
@example({"A": [Row("A", "f32[0]", "add", "", (), {"A": '"key = value"'})]})
@given(modules)
def test_printed(made: dict[str, list[Row]]) -> None:
    module = read(printed(made))
    assert made_of(module) == made
    assert {problem.message.rpartition(" '")[0] for problem in module.problems} <= {NOT_THERE}
    for computation in module.computations:  # a text in a row may look like one, and then all are read one by one
        strings = [value for row in made[computation.name] for value in row.attributes.values()]
        assert computation.is_printed or any(" = " in value for value in strings)


@pytest.mark.once
@given(modules, st.randoms(use_true_random=False))
@settings(max_examples=examples(15, 60))
def test_spelled_anyhow(made: dict[str, list[Row]], chance: random.Random) -> None:
    module = read(spelled_anyhow(made, chance))
    assert made_of(module) == made
    assert {problem.message.rpartition(" '")[0] for problem in module.problems} <= {NOT_THERE}


OPCODES = {1: ("negate", "exponential", "copy"), 2: ("add", "multiply", "maximum")}


def valid_module(chance: random.Random) -> str:
    """A module that XLA takes: element by element operations, tuples, calls."""
    computations = []
    for number in range(chance.randrange(1, 5)):
        lines, arrays = [], []
        for place in range(chance.randrange(1, 12)):
            name = f"{chance.choice(['x', 'add', 'long.name', '_y-z'])}.{number}.{place}"
            operands = chance.choices(arrays, k=chance.randrange(1, 3)) if arrays else []
            listed = ", ".join(f"%{operand}" for operand in operands)
            if not operands:
                lines.append(f"%{name} = f32[4,8]{{1,0}} parameter(0)")
            elif chance.random() < 0.2:
                lines.append(f"%{name}.t = ({', '.join(['f32[4,8]{1,0}'] * len(operands))}) tuple({listed})")
                lines.append(f"%{name} = f32[4,8]{{1,0}} get-tuple-element(%{name}.t), index={len(operands) - 1}")
            elif chance.random() < 0.2:
                groups = chance.choice(["{{0,1},{2,3}}", "[2,2]<=[4]", "[2,2]<=[2,2]T(1,0)", "{}", "{{0},{3,1},{2}}"])
                lines.append(
                    f"%{name} = f32[4,8]{{1,0}} all-reduce(%{operands[0]}), replica_groups={groups}, to_apply=%sum, "
                    f'metadata={{op_name="jit(f)/{name}"}}'
                )
            else:
                lines.append(f"%{name} = f32[4,8]{{1,0}} {chance.choice(OPCODES[len(operands)])}({listed})")
            arrays.append(name)
        lines[-1] = f"ROOT {lines[-1]}"
        entry = "ENTRY " if number == 0 else ""
        computations.append(
            "\n".join((f"{entry}%c{number} (p: f32[4,8]) -> f32[4,8] {{", *[f"  {x}" for x in lines], "}\n"))
        )
    total = "%sum (a: f32[], b: f32[]) -> f32[] {\n  %a = f32[] parameter(0)\n  %b = f32[] parameter(1)\n"
    return "\n".join(("HloModule m\n", f"{total}  ROOT %s = f32[] add(%a, %b)\n}}\n", *computations))


def test_random_modules_are_to_xla_what_they_are_to_us(xla: Read, tmp_path: Path) -> None:
    texts = {tmp_path / f"{seed}.hlo": valid_module(random.Random(seed)) for seed in range(100)}
    for path, text in texts.items():
        path.write_text(text)
    answers = xla(texts)
    assert [answer["error"] for answer in answers.values() if "error" in answer] == []
    for path, text in texts.items():
        assert list(differences(read(text), answers[path]["computations"])) == []


@pytest.mark.parametrize("spelling", ["mesh['x'=2,'y'=2] {'y'}", "mesh['x'=2,'y'=2], device_ids=(0,2,1,3) {'y','x'}"])
def test_groups_of_meshes_are_to_xla_what_they_are_to_us(xla: Read, tmp_path: Path, spelling: str) -> None:
    text = next(text for seed in range(99) if "[2,2]<=[4]" in (text := valid_module(random.Random(seed))))
    text = text.replace("[2,2]<=[4]", spelling)
    path = tmp_path / "mesh.hlo"
    path.write_text(text)
    (answer,) = xla([path]).values()
    if "error" in answer:
        pytest.skip("this jaxlib does not know these groups")
    assert list(differences(read(text), answer["computations"])) == []
