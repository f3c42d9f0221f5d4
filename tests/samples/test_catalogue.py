"""The catalogue lists every sample and needs none of their imports."""

import ast
import subprocess
import sys

import pytest
from shardscope.samples.catalogue import GROUPS, samples

SAMPLES = samples()


def test_every_file_is_listed_once():
    files = {path.stem for path in SAMPLES[0].path.parent.glob("*.py")} - {"__init__", "catalogue"}
    assert sorted(sample.name for sample in SAMPLES) == sorted(files)


def test_order_is_that_of_the_groups():
    assert [(sample.group, sample.name) for sample in SAMPLES] == [(g, name) for g, names in GROUPS for name in names]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_summary_fits_a_line_and_a_default_exists(sample):
    assert sample.summary.endswith((".", "?"))
    assert len(sample.summary) <= 80
    assert sample.functions
    assert len(set(sample.functions)) == len(sample.functions)


@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.group == "faults"], ids=lambda sample: sample.name)
def test_faults_come_with_their_repair(sample):
    assert sample.functions == ("faulty", "repaired")
    assert sample.summary.startswith("Faulty: ")


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_samples_are_users_programs(sample):
    """They import jax, numpy and the standard library: nothing of shardscope's, and none of each other."""
    allowed = {"jax", "numpy"} | sys.stdlib_module_names
    for node in ast.walk(ast.parse(sample.path.read_bytes())):
        match node:
            case ast.Import(names=names):
                assert {alias.name.partition(".")[0] for alias in names} <= allowed
            case ast.ImportFrom(module=module, level=level):
                assert level == 0
                assert module.partition(".")[0] in allowed


def test_listing_imports_neither_jax_nor_numpy():
    code = (
        "import sys; from shardscope.samples.catalogue import samples; assert samples();"
        "print({'jax', 'numpy'} & set(sys.modules))"
    )
    child = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert child.stdout.strip() == "set()"
