"""What every mechanism, claim, domain and finder must satisfy."""

import copy
import json
import math
import pickle
import random
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np
from cloudpickle import dumps  # as for workers

from epsilometer.arrays import Floats
from epsilometer.claims import Claim, from_dict
from epsilometer.engine.chunks import fingerprint
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.inputs.domains import RELATIONS, Domain
from epsilometer.inputs.finders import Finder
from epsilometer.inputs.pairs import is_complete, pair_digest, pair_from_dict, pair_to_dict
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
            rows = [block.places() for block in outputs]
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
        outputs = _draw(pickle.loads(dumps(mechanism)), dataset, 37)
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
        middle, chord = claim.max_power(0.5 * (ends[a] + ends[b])), 0.5 * (power[a] + power[b])
        assert np.all(middle >= chord - _SLACK), f"max_power sags below a chord by {(chord - middle).max()}"

    def test_numbers_and_arrays_agree(self, claim: Claim) -> None:
        """One number at a time or all at once; a number gives a plain float."""
        power, single = claim.max_power(_PROBABILITIES), [claim.max_power(float(q)) for q in _PROBABILITIES]
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
            for p in np.linspace(q, float(claim.max_power(float(q))), 7)[:-1]:
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


class DomainConformance:
    """Subclass it, name the subclass `Test…`, and give it a fixture `domain`.

    Attributes:
        points: random points of the unit cube that are tried besides its corners.
    """

    points: ClassVar[int] = 300

    def test_it_has_relations_that_exist(self, domain: Domain) -> None:
        """The first one is its default."""
        assert domain.relations, "domain.relations is empty"
        assert set(domain.relations) <= RELATIONS.keys(), f"domain.relations={domain.relations}"

    def test_it_refuses_other_relations(self, domain: Domain) -> None:
        """With an InputError, never with a wrong pair."""
        for relation in ({*RELATIONS, "cousins"} - set(domain.relations)) | {""}:
            _expect_refusal(partial(domain.neighbours, relation), f"neighbours({relation!r})")

    def test_pairs_are_neighbours(self, domain: Domain) -> None:
        """Two different datasets, as near as the relation says."""
        for relation, pair in self._pairs(domain):
            assert not pair.has_equal_sides, f"{relation}: the same dataset twice, {pair.left!r}"
            reach, user = getattr(domain, "sensitivity", None), getattr(domain, "user", None)
            assert are_neighbours(pair, relation, reach, user), f"{relation}: {pair!r}"

    def test_a_point_always_means_the_same_pair(self, domain: Domain) -> None:
        """A repeated search asks for the same inputs."""
        for relation in domain.relations:
            point = np.random.default_rng(1).random(len(domain.neighbours(relation).coordinates)).tolist()
            first, again = (domain.neighbours(relation).pair(point) for _ in range(2))
            assert first.digest == again.digest, f"{relation}: {point} means {first!r} and {again!r}"

    def test_pairs_can_be_stored(self, domain: Domain) -> None:
        """Plain data, so that a result holds its counterexample."""
        for relation, pair in self._pairs(domain):
            again = pair_from_dict(json.loads(json.dumps(pair_to_dict(pair))))
            assert is_complete(again), f"{relation}: {pair!r} is not plain data"
            assert again.digest == pair.digest, f"{relation}: {pair!r} is not plain data"

    def test_grids_stay_in_the_cube(self, domain: Domain) -> None:
        """Every coordinate offers at least one value, and more if it is asked for more."""
        for relation in domain.relations:
            for coordinate in domain.neighbours(relation).coordinates:
                for most in (2, 5):
                    grid = coordinate.grid(most)
                    assert len(grid) >= 1, f"{relation}: {coordinate!r} offers nothing"
                    assert np.all((grid >= 0.0) & (grid <= 1.0)), f"{relation}: {coordinate!r} leaves [0, 1]"

    def test_it_survives_pickling(self, domain: Domain) -> None:
        """It is part of a finder, which may be sent elsewhere."""
        assert repr(pickle.loads(pickle.dumps(domain))) == repr(domain), "a pickled domain differs"

    def _pairs(self, domain: Domain) -> Iterator[tuple[str, Pair]]:
        for relation in domain.relations:
            neighbours = domain.neighbours(relation)
            dimensions = len(neighbours.coordinates)
            corners = product((0.0, 1.0), repeat=min(dimensions, 6))
            points = [[*corner, *[0.5] * (dimensions - len(corner))] for corner in (*corners, ())]
            for point in points + np.random.default_rng(0).random((self.points, dimensions)).tolist():
                yield relation, neighbours.pair(point)


def are_neighbours(pair: Pair, relation: str, sensitivity: float | None = None, user: str | None = None) -> bool:
    """Whether two datasets are neighbours, checked from the datasets alone."""
    if relation in ("l1", "linf"):
        moves = np.abs(np.subtract(np.asarray(pair.left), np.asarray(pair.right), dtype=np.float64)).ravel()
        moved = float(moves.sum() if relation == "l1" else moves.max())
        return moved <= float(math.inf if sensitivity is None else sensitivity) * (1.0 + 1e-9)
    left, right = _listed(pair.left), _listed(pair.right)
    if left is None or right is None:  # single records, which must differ
        return sensitivity is None or bool(abs(pair.left - pair.right) <= sensitivity * (1.0 + 1e-9))
    if relation == "add-remove":
        return any(left[:place] + left[place + 1 :] == right for place in range(len(left)))
    if relation == "user":
        gone = {row[user] for row in left} - {row[user] for row in right}
        return len(gone) == 1 and [row for row in left if row[user] not in gone] == right
    differing = [(one, two) for one, two in zip(left, right, strict=True) if repr(one) != repr(two)]  # -0.0 is another
    if relation == "substitute-column" and len(differing) == 1:
        one, two = differing[0]
        names = one if isinstance(one, dict) else range(len(one))
        return sum(repr(one[name]) != repr(two[name]) for name in names) == 1
    return len(differing) == 1


def _listed(dataset: Any) -> list[Any] | None:
    """The records of a dataset in any container; None for a single value."""
    if isinstance(dataset, tuple):  # an array and its labels
        return [[*row, label] for row, label in zip(*(part.tolist() for part in dataset), strict=True)]
    for method in ("to_dicts", "tolist"):  # of polars, of numpy and of a series
        if hasattr(dataset, method):
            return list(getattr(dataset, method)())
    if hasattr(dataset, "to_dict"):
        return list(dataset.to_dict("records"))
    return dataset if isinstance(dataset, list) else None


class FinderConformance:
    """Subclass it, name the subclass `Test…`, and give it a fixture `make_finder`.

    The fixture returns a function without arguments that makes a new finder, always with the same settings, of at
    least three trials.
    """

    def test_it_is_a_finder(self, make_finder: Callable[[], Finder]) -> None:
        """It has everything that a search needs."""
        finder = make_finder()
        assert isinstance(finder, Finder), f"{finder!r} lacks something of epsilometer.finders.Finder"
        assert finder.trials >= 3, f"trials={finder.trials}"
        assert finder.samples >= 1, f"samples={finder.samples}"
        assert json.loads(json.dumps(finder.describe())) == finder.describe(), "describe() is not plain data"

    def test_a_pair_stays_until_it_is_told_about(self, make_finder: Callable[[], Finder]) -> None:
        """Asking twice is the same as asking once."""
        finder = make_finder()
        assert _asked(finder).digest == _asked(finder).digest, "ask() without tell() gave two pairs"

    def test_it_ends(self, make_finder: Callable[[], Finder]) -> None:
        """No more pairs than trials, all of them two different datasets."""
        finder = make_finder()
        pairs = _search(finder, finder.trials + 1)
        assert 1 <= len(pairs) <= finder.trials, f"{len(pairs)} pairs in {finder.trials} trials"
        assert finder.ask() is None, "ask() gives more pairs after the last trial"
        assert not any(pair.has_equal_sides for pair in pairs), "a pair of equal datasets"

    def test_same_scores_same_pairs(self, make_finder: Callable[[], Finder]) -> None:
        """A search can be repeated."""
        first, again = make_finder(), make_finder()
        assert _path(first, first.trials) == _path(again, again.trials), "two equal searches differ"

    def test_any_number_is_a_score(self, make_finder: Callable[[], Finder]) -> None:
        """0.0 and negative numbers are scores, and None stands for trials without one."""
        for scores in ((None,), (0.0,), (-1.0, None), (0.0, 0.0, 1e6)):
            finder = make_finder()
            for number in range(finder.trials):
                if finder.ask() is None:
                    break
                finder.tell(scores[number % len(scores)])

    def test_what_is_no_number_is_no_score(self, make_finder: Callable[[], Finder]) -> None:
        """NaN would win or lose every comparison."""
        for score in (math.nan, math.inf, -math.inf):
            finder = make_finder()
            finder.ask()
            _expect_refusal(partial(finder.tell, score), f"tell({score})")
        _expect_refusal(lambda: make_finder().tell(1.0), "tell() without ask()")

    def test_it_goes_on_from_its_state(self, make_finder: Callable[[], Finder]) -> None:
        """A search that was interrupted asks for what it would have asked for."""
        whole, first, later = make_finder(), make_finder(), make_finder()
        begun = _path(first, 2)
        first.ask()  # interrupted in a trial
        later.restore(json.loads(json.dumps(first.state(), allow_nan=False)))
        assert begun + _path(later, later.trials) == _path(whole, whole.trials), "a restored search takes another path"

    def test_a_state_that_is_none_is_refused(self, make_finder: Callable[[], Finder]) -> None:
        """Files are never trusted."""
        states: tuple[dict[str, Any], ...] = ({}, {"told": 3}, {"finder": {}, "told": []})
        for state in states:
            _expect_refusal(partial(make_finder().restore, state), f"restore({state})")

    def test_a_copy_is_independent(self, make_finder: Callable[[], Finder]) -> None:
        """An audit searches with a copy, so that a finder can be used again."""
        finder = make_finder()
        _search(copy.deepcopy(finder), 2)
        assert _asked(finder).digest == _asked(make_finder()).digest, "searching with a copy changed the original"


def _path(finder: Finder, most: int) -> list[tuple[str, str]]:
    return [pair.digest for pair in _search(finder, most)]


def _search(finder: Finder, most: int) -> list[Pair]:
    """Scores each pair by its own content, so that equal searches get equal scores."""
    pairs: list[Pair] = []
    while len(pairs) < most and (pair := finder.ask()) is not None:
        pairs.append(pair)
        finder.tell(zlib.crc32(pair_digest(pair).encode()) / 2**32)
    return pairs


def _asked(finder: Finder) -> Pair:
    pair = finder.ask()
    assert pair is not None, "ask() gave no pair"
    return pair


def _expect_refusal(action: Callable[[], Any], what: str) -> None:
    try:
        action()
    except InputError:
        return
    raise AssertionError(f"{what} was not refused")
