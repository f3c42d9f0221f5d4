"""Every function of every sample lowers, compiles, runs, and is right."""

import json

import numpy as np
import pytest
from shardscope.samples.catalogue import samples

from tests.conftest import EVERY_FUNCTION, KEPT_FUNCTIONS
from tests.sweeps import sampled

pytestmark = pytest.mark.once

SAMPLES = samples()
FUNCTIONS = sampled(EVERY_FUNCTION, KEPT_FUNCTIONS)


@pytest.mark.parametrize("key", FUNCTIONS)
def test_result_is_that_of_one_device(result, key):
    for actual, expected in result(key).pairs:
        assert actual.shape == expected.shape
        # Sums in another order, and what dividing by small moments in Adam makes of it, relative to the largest number.
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("key", [key for key in FUNCTIONS if key.values[0] != "unsound_invariance:faulty"])
def test_copies_of_the_same_part_are_equal(result, key):
    assert all(result(key).facts["copies_agree"])


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_catalogue_lists_what_the_module_defines(folder, sample):
    assert json.loads((folder / f"{sample.name}.names.json").read_text()) == list(sample.functions)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_checks_of_the_script_itself_hold(folder, sample):
    assert "False" not in (folder / f"{sample.name}.out").read_text()
