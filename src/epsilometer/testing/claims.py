"""What every mechanism and every claim must satisfy."""

from __future__ import annotations

import json
import math
import pickle
import random
from itertools import pairwise
from typing import Any

import numpy as np
from cloudpickle import dumps  # as for workers

from epsilometer.arrays import Floats
from epsilometer.claims import Claim, from_dict
from epsilometer.engine.chunks import fingerprint
from epsilometer.mechanisms import Mechanism
from epsilometer.outputs import Outputs

_SIZES = (1, 2, 37)


class MechanismConformance:
    """Subclass it, name the subclass `Test…`, and give it the fixtures `mechanism` and `dataset`."""

    def test_it_introduces_itself(self, mechanism: Mechanism) -> None:
        """A name for reports, and the size of its chunks, which is part of the seed scheme."""
        assert isinstance(mechanism.name, str), "mechanism.name is not a string"
        assert mechanism.name, "mechanism.name is empty"
        assert isinstance(mechanism.is_seeded, bool), "mechanism.is_seeded is not a bool"
        assert mechanism.chunk_size >= 1, f"mechanism.chunk_size is {mechanism.chunk_size}"

    def test_as_many_outputs_as_asked_for(self, mechanism: Mechanism, dataset: Any) -> None:
        """Every output sits in exactly one block."""
        for n in _SIZES:
            outputs = _draw(mechanism, dataset, n)
            assert len(outputs) == n, f"asked for {n} outputs, got {len(outputs)}"
            rows = [np.arange(block.size) if block.rows is None else block.rows for block in outputs]
            assert np.array_equal(np.sort(np.concatenate(rows)), np.arange(n)), "the blocks do not cover the outputs"
            for block in outputs:
                assert all(len(column) == block.size for column in block.columns), f"uneven columns in {block.shape}"

    def test_equal_generators_give_equal_outputs(self, mechanism: Mechanism, dataset: Any) -> None:
        """What `is_seeded` promises."""
        if mechanism.is_seeded:
            first, again = (fingerprint(_draw(mechanism, dataset, 37)) for _ in range(2))
            assert first == again, "is_seeded, but two equal generators gave different outputs"

    def test_global_random_state_is_left_alone(self, mechanism: Mechanism, dataset: Any) -> None:
        """A seeded mechanism does not draw from generators that the whole process shares."""
        if mechanism.is_seeded:
            before = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002 # the shared one is meant
            _draw(mechanism, dataset, 37)
            after = random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002
            assert before == after, "is_seeded, but it draws from the shared generator of random or numpy.random"

    def test_dataset_is_not_changed(self, mechanism: Mechanism, dataset: Any) -> None:
        """The same object is given to every run."""
        before = dumps(dataset)
        _draw(mechanism, dataset, 37)
        assert dumps(dataset) == before, "a run changed its input"

    def test_it_can_be_sent_to_a_worker(self, mechanism: Mechanism, dataset: Any) -> None:
        """A pickled copy draws the same."""
        sent = pickle.loads(dumps(mechanism))
        outputs = _draw(sent, dataset, 37)
        assert len(outputs) == 37, "a copy gave another number of outputs"
        if mechanism.is_seeded:
            assert fingerprint(outputs) == fingerprint(_draw(mechanism, dataset, 37)), "a copy gave other outputs"


def _draw(mechanism: Mechanism, dataset: Any, n: int) -> Outputs:
    return mechanism.sample(dataset, n, np.random.default_rng(20_250_101))


# Event probabilities from rare to nearly certain.
_PROBABILITIES: Floats = np.concatenate([[0.0], np.geomspace(1e-6, 0.1, 25), np.linspace(0.12, 1.0, 45)])
# Curves are computed in floats, some by bisection: up to this, disagreement is rounding.
_SLACK = 1e-9
_RELATIVE = 1e-6


class ClaimConformance:
    """Subclass it, name the subclass `Test…`, and give it a fixture `claim` (with a positive value).

    ```python
    class TestMyClaim(ClaimConformance):
        @pytest.fixture
        def claim(self):
            return MyClaim(0.5)
    ```
    """

    def test_it_introduces_itself(self, claim: Claim) -> None:
        """Names for files and people, and one line of text."""
        assert claim.notion, "claim.notion is empty"
        assert claim.symbol, "claim.symbol is empty"
        assert claim.describe(), "claim.describe() is empty"
        assert "\n" not in claim.describe(), "claim.describe() has several lines"

    def test_power_is_a_probability_that_beats_guessing(self, claim: Claim) -> None:
        """An event that ignores the input is always allowed, so the greatest power is at least q."""
        power = claim.max_power(_PROBABILITIES)
        assert np.all(power <= 1.0), f"max_power exceeds 1: {power.max()}"
        wrong = _PROBABILITIES[power < _PROBABILITIES - _SLACK]
        assert not len(wrong), f"max_power(q) < q at q = {wrong[:3]}"

    def test_power_never_falls(self, claim: Claim) -> None:
        """A likelier event may also be likelier on the other side."""
        steps = np.diff(claim.max_power(_PROBABILITIES))
        assert np.all(steps >= -_SLACK), f"max_power falls by {-steps.min()}"

    def test_power_is_concave(self, claim: Claim) -> None:
        """Tossing a coin between two events gives an event in between."""
        ends = _PROBABILITIES[::6]
        power = claim.max_power(ends)
        a, b = np.triu_indices(len(ends), 1)
        middle = claim.max_power(0.5 * (ends[a] + ends[b]))
        chord = 0.5 * (power[a] + power[b])
        assert np.all(middle >= chord - _SLACK), f"max_power sags below a chord by {(chord - middle).max()}"

    def test_numbers_and_arrays_agree(self, claim: Claim) -> None:
        """One number at a time or all at once; a number gives a plain float."""
        power = claim.max_power(_PROBABILITIES)
        single = [claim.max_power(float(q)) for q in _PROBABILITIES]
        assert all(type(each) is float for each in single), "max_power(float) is not a float"
        assert np.allclose(power, single, rtol=0.0, atol=1e-15), "max_power differs between a number and an array"

    def test_least_value_inverts_max_power(self, claim: Claim) -> None:
        """An event on the curve proves the value of the curve."""
        for q in _PROBABILITIES[(_PROBABILITIES > 0.0) & (_PROBABILITIES < 0.95)]:
            p = float(claim.max_power(float(q)))
            if q < p < 1.0 - _RELATIVE:
                found = claim.least_value(p, float(q))
                assert math.isclose(found, claim.value, rel_tol=_RELATIVE, abs_tol=_SLACK), (
                    f"least_value(max_power({q})) is {found}, not {claim.value}"
                )

    def test_an_event_below_the_curve_proves_less(self, claim: Claim) -> None:
        """least_value is at most the claimed value for every event that the claim allows."""
        for q in _PROBABILITIES[1::3]:
            top = float(claim.max_power(float(q)))
            for p in np.linspace(q, top, 7)[:-1]:
                found = claim.least_value(float(p), float(q))
                assert 0.0 <= found <= claim.value * (1.0 + _RELATIVE) + _SLACK, (
                    f"least_value({p}, {q}) = {found}, but the claim {claim.value} allows this event"
                )

    def test_guessing_proves_nothing(self, claim: Claim) -> None:
        """Equal probabilities are compatible with every value."""
        for q in _PROBABILITIES:
            assert claim.least_value(float(q), float(q)) <= _SLACK, f"least_value({q}, {q}) is not 0"

    def test_a_larger_value_allows_more(self, claim: Claim) -> None:
        """Its own parameter orders the claims of a notion from strict to weak."""
        curves = [claim.with_value(claim.value * factor).max_power(_PROBABILITIES) for factor in (0.0, 0.5, 1.0, 1.5)]
        for strict, weak in pairwise(curves):
            assert np.all(weak >= strict - _SLACK), "a larger value of the own parameter allows less"

    def test_with_value_changes_only_the_value(self, claim: Claim) -> None:
        """The notion and its fixed parameters stay."""
        other = claim.with_value(0.5 * claim.value)
        assert type(other) is type(claim), f"with_value gives a {type(other).__name__}"
        assert other.value == 0.5 * claim.value, f"with_value gives {other.value}"
        assert other.fixed() == claim.fixed(), "with_value changes the fixed parameters"

    def test_plain_data_round_trip(self, claim: Claim) -> None:
        """Through JSON and back, never stricter than before; exactly the same after that."""
        back = from_dict(json.loads(json.dumps(claim.to_dict(), allow_nan=False)))
        assert type(back) is type(claim), f"from_dict(to_dict()) gives a {type(back).__name__}"
        assert back.value == claim.value, f"from_dict(to_dict()) has the value {back.value}"
        assert np.all(back.max_power(_PROBABILITIES) >= claim.max_power(_PROBABILITIES) - 1e-15), "stored too strictly"
        assert from_dict(back.to_dict()) == back, "the second round trip changes the claim"
