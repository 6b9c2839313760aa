"""The bracket that is halved ends at a value that was rejected."""

import math

import pytest

from epsilometer.bisection import rejected_end


@pytest.mark.parametrize(("rejected", "kept"), [(0.0, 2.0), (2.0, 0.0)])
@pytest.mark.parametrize("halvings", [0, 1, 5, 60])
def test_the_answer_was_rejected_and_is_close(rejected, kept, halvings):
    tried = []

    def rejects(value):
        tried.append(value)
        return (value < math.sqrt(2.0)) == (rejected < kept)

    found = rejected_end(rejects, rejected, kept, halvings)
    assert len(tried) == halvings
    assert found == rejected or (found in tried and rejects(found))
    assert abs(found - math.sqrt(2.0)) <= 2.0 * 0.5**halvings + 1e-15
