"""Texts that are right, but not as a compiler prints them."""

from __future__ import annotations

from .test_broken import ALL, PRINTED, damaged, names, read

WRITTEN_BY_HAND = """
// What this is about.
/* And more
   of it. */
  HloModule by_hand, origin_recovery_table={
  {"reshape.1"} : {"placeholder.2"},
    "
      ENTRY %recovery (p: f32[192]) -> f32[192] {
        ROOT %p = f32[192]{0} parameter(0)
      }
    "
  }

  add {
    a = f32[] parameter(0)    /* one */ b = f32[] parameter(1)
    ROOT s = f32[] add(a, b)
  }, execution_thread="x"

  ENTRY e (p: f32[2, 3], q: (s32[], f32[2]{0})) -> f32[2]{0} {
    p = f32[2, 3] {1, 0} parameter(0)   // the first
    q = (s32[],     // a counter (
         f32[2]{0}) parameter(1)
    r = f32[2] reduce(p,
          q), dimensions={1},
        to_apply=
        {
          tmp_0 = f32[] parameter(0)
          ROOT tmp_1 = f32[] add(f32[] tmp_0, f32[] tmp_0)
        }
    /* s = f32[] parameter(7) */
    t = add(r, r), backend_config="{
      name = \\"kernel\\",
    }"
    ROOT w = ((), (f32[2])) while(%r), condition=%add, body=add
  }
  f{ROOT c=f32[]constant(nan)}
"""


def test_written_by_hand() -> None:
    module = read(WRITTEN_BY_HAND)
    assert [str(problem) for problem in module.problems] == []
    assert names(module) == {
        "add": ["a", "b", "s"],
        "e": ["p", "q", "r", "t", "w"],
        "_": ["tmp_0", "tmp_1"],
        "f": ["c"],
    }
    assert module.name == "by_hand"
    assert module.entry.name == "e"
    assert module.computation("add").attributes == {"execution_thread": '"x"'}
    types = {each.name: str(each.type) for each in module.entry.instructions}
    assert types == {"p": "f32[2,3]{1,0}", "q": "(s32[], f32[2]{0})", "r": "f32[2]", "t": "", "w": "((), (f32[2]))"}
    reduction = module.entry.instruction("r")
    assert reduction.operands == ("p", "q")
    assert reduction.attributes == {"dimensions": "{1}", "to_apply": "_"}
    assert module.entry.instruction("t").attributes["backend_config"].count("\n") == 2


def test_scans_find_in_it_what_is_there() -> None:
    module = read(WRITTEN_BY_HAND)
    assert len(module.rows()) == 11
    assert [each.name for each in module.with_opcode({"parameter", "while"})] == ["a", "b", "p", "q", "w", "tmp_0"]
    assert module.entry.instruction("w").attributes == {"condition": "%add", "body": "add"}


def test_line_ends_of_windows() -> None:
    module = read(PRINTED.replace("\n", "\r\n"))
    assert names(module) == names(read(PRINTED))
    assert not module.problems


def test_an_instruction_over_two_lines_amid_printed_ones() -> None:
    module = damaged(17, "  %a = f32[8]{0}\n    parameter(0), sharding=\n  {replicated}")
    assert names(module) == ALL
    assert not module.problems
    assert [each.name for each in module.with_opcode({"parameter"})] == ["x", "y", "p", "a"]
    assert module.entry.instruction("a").attributes == {"sharding": "{replicated}"}


def test_an_instruction_with_blanks_of_its_own_amid_printed_ones() -> None:
    module = damaged(17, "  %a = f32[8, 1]{1, 0}  parameter( 0 )")
    assert names(module) == ALL
    assert not module.problems
    assert [each.name for each in module.with_opcode({"parameter"})] == ["x", "y", "p", "a"]
    assert ("a", "f32[8,1]{1,0}", "parameter") in list(module.rows())


def test_instructions_in_place_of_operands_of_one_without_a_type() -> None:
    module = damaged(19, "  ROOT %r = add(f32[] constant(1), negate(%zero))")
    assert names(module) == ALL
    assert not module.problems
    assert list(module.rows())[-1] == ("r", "", "add")
    assert module.entry.instruction("r").operands == ("constant.anon", "negate.anon")
