"""Conformance suites: what every mechanism, claim, domain and finder must satisfy."""

import copy
import json
import math
import pickle
import random
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, pairwise, product
from typing import Any, ClassVar

import numpy as np
from cloudpickle import dumps  # which also sends mechanisms to workers

from epsilometer.arrays import Floats
from epsilometer.claims import Claim, from_dict
from epsilometer.engine.fingerprints import fingerprint
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.inputs.domains import RELATIONS, Domain
from epsilometer.inputs.finders import Finder
from epsilometer.inputs.finders.rounds import is_screened
from epsilometer.inputs.pairs import is_complete, pair_digest, pair_from_dict, pair_to_dict
from epsilometer.mechanisms import Mechanism
from epsilometer.outputs import Outputs

# Numbers of outputs: one, two, and some that fill no chunk.
_SIZES = (1, 2, 37)
_N_OUTPUTS = 37
# The seed of all draws; any number would do.
_SEED = 20_250_101


class MechanismConformance:
    """Subclass it, name the subclass `Test…`, and give it fixtures `mechanism` and `dataset`."""

    def test_it_introduces_itself(self, mechanism: Mechanism) -> None:
        """A mechanism has a name, and a chunk size, which is part of the seed scheme."""
        assert isinstance(mechanism.name, str), "mechanism.name is not a string"
        assert mechanism.name, "mechanism.name is empty"
        assert isinstance(mechanism.is_seeded, bool), "mechanism.is_seeded is not a bool"
        assert mechanism.chunk_size >= 1, f"mechanism.chunk_size is {mechanism.chunk_size}"

    def test_as_many_outputs_as_asked_for(self, mechanism: Mechanism, dataset: Any) -> None:
        """Every output is in exactly one block."""
        for n in _SIZES:
            outputs = _draw(mechanism, dataset, n)
            assert len(outputs) == n, f"asked for {n} outputs, got {len(outputs)}"
            rows = np.concatenate([block.places() for block in outputs])
            assert np.array_equal(np.sort(rows), np.arange(n)), (
                "the blocks do not cover the outputs"
            )
            for block in outputs:
                assert all(len(column) == block.size for column in block.columns), (
                    f"uneven columns in {block.shape}"
                )

    def test_equal_generators_give_equal_outputs(self, mechanism: Mechanism, dataset: Any) -> None:
        """A seeded mechanism takes all of its randomness from the generator."""
        if mechanism.is_seeded:
            first = fingerprint(_draw(mechanism, dataset, _N_OUTPUTS))
            again = fingerprint(_draw(mechanism, dataset, _N_OUTPUTS))
            assert first == again, "is_seeded, but two equal generators gave different outputs"

    def test_global_random_state_is_left_alone(self, mechanism: Mechanism, dataset: Any) -> None:
        """A seeded mechanism does not draw from generators that the whole process shares."""
        if mechanism.is_seeded:
            before = _shared_random_state()
            _draw(mechanism, dataset, _N_OUTPUTS)
            assert _shared_random_state() == before, (
                "is_seeded, but it draws from the shared generator of random or numpy.random"
            )

    def test_dataset_is_not_changed(self, mechanism: Mechanism, dataset: Any) -> None:
        """A run leaves its input as it is, because every run gets the same object."""
        before = dumps(dataset)
        _draw(mechanism, dataset, _N_OUTPUTS)
        assert dumps(dataset) == before, "a run changed its input"

    def test_it_can_be_sent_to_a_worker(self, mechanism: Mechanism, dataset: Any) -> None:
        """A pickled copy draws the same."""
        worker_copy = pickle.loads(dumps(mechanism))
        outputs = _draw(worker_copy, dataset, _N_OUTPUTS)
        assert len(outputs) == _N_OUTPUTS, "a copy gave another number of outputs"
        if mechanism.is_seeded:
            original_outputs = _draw(mechanism, dataset, _N_OUTPUTS)
            assert fingerprint(outputs) == fingerprint(original_outputs), (
                "a copy gave other outputs"
            )


def _draw(mechanism: Mechanism, dataset: Any, n: int) -> Outputs:
    return mechanism.sample(dataset, n, np.random.default_rng(_SEED))


def _shared_random_state() -> tuple[Any, bytes]:
    """Returns the states of the generators that the whole process shares, of random and numpy."""
    numpy_state = np.random.get_state()  # noqa: NPY002  # the shared generator is meant
    return random.getstate(), pickle.dumps(numpy_state)


# Event probabilities from rare to nearly certain.
_PROBABILITIES: Floats = np.concatenate(
    [[0.0], np.geomspace(1e-6, 0.1, 25), np.linspace(0.12, 1.0, 45)]
)
# Curves are computed in floats, some by bisection: up to these errors, disagreement is rounding.
_SLACK = 1e-9
_RELATIVE_SLACK = 1e-6
# Numbers and arrays are computed in the same way, so they agree up to the last digits.
_LAST_DIGITS = 1e-15
# Beyond this probability of an event, its power is too close to 1 to tell values apart.
_MAX_INVERTED_PROBABILITY = 0.95


class ClaimConformance:
    """Subclass it, name the subclass `Test…`, and give it a fixture `claim` of a positive value.

    ```python
    class TestMyClaim(ClaimConformance):
        @pytest.fixture
        def claim(self):
            return MyClaim(0.5)
    ```
    """

    def test_it_introduces_itself(self, claim: Claim) -> None:
        """A claim has names for files and for people, and a description in one line."""
        assert claim.notion, "claim.notion is empty"
        assert claim.symbol, "claim.symbol is empty"
        assert claim.describe(), "claim.describe() is empty"
        assert "\n" not in claim.describe(), "claim.describe() has several lines"

    def test_power_is_a_probability_that_beats_guessing(self, claim: Claim) -> None:
        """The greatest power is at least q: an event that ignores the input is always allowed."""
        power = claim.max_power(_PROBABILITIES)
        assert np.all(power <= 1.0), f"max_power exceeds 1: {power.max()}"
        too_low = _PROBABILITIES[power < _PROBABILITIES - _SLACK]
        assert not len(too_low), f"max_power(q) < q at q = {too_low[:3]}"

    def test_power_never_falls(self, claim: Claim) -> None:
        """An event that is more likely on one side may be more likely on the other as well."""
        steps = np.diff(claim.max_power(_PROBABILITIES))
        assert np.all(steps >= -_SLACK), f"max_power falls by {-steps.min()}"

    def test_power_is_concave(self, claim: Claim) -> None:
        """Tossing a coin between two events gives an event in between."""
        ends = _PROBABILITIES[::6]
        power = claim.max_power(ends)
        first, second = np.triu_indices(len(ends), 1)
        midpoint = 0.5 * (ends[first] + ends[second])
        power_at_midpoint = claim.max_power(midpoint)
        chord = 0.5 * (power[first] + power[second])
        assert np.all(power_at_midpoint >= chord - _SLACK), (
            f"max_power sags below a chord by {(chord - power_at_midpoint).max()}"
        )

    def test_numbers_and_arrays_agree(self, claim: Claim) -> None:
        """An array gives the same as its numbers one by one; a number gives a plain float."""
        power = claim.max_power(_PROBABILITIES)
        one_by_one = [claim.max_power(float(q)) for q in _PROBABILITIES]
        assert all(type(value) is float for value in one_by_one), "max_power(float) is not a float"
        assert np.allclose(power, one_by_one, rtol=0.0, atol=_LAST_DIGITS), (
            "max_power differs between a number and an array"
        )

    def test_least_value_inverts_max_power(self, claim: Claim) -> None:
        """An event on the curve proves the value of the curve."""
        is_inverted = (_PROBABILITIES > 0.0) & (_PROBABILITIES < _MAX_INVERTED_PROBABILITY)
        for q in _PROBABILITIES[is_inverted]:
            p = float(claim.max_power(float(q)))
            if q < p < 1.0 - _RELATIVE_SLACK:
                value = claim.least_value(p, float(q))
                assert math.isclose(value, claim.value, rel_tol=_RELATIVE_SLACK, abs_tol=_SLACK), (
                    f"least_value(max_power({q})) is {value}, not {claim.value}"
                )

    def test_an_event_below_the_curve_proves_less(self, claim: Claim) -> None:
        """least_value is at most the claimed value for every event that the claim allows."""
        largest = claim.value * (1.0 + _RELATIVE_SLACK) + _SLACK
        for q in _PROBABILITIES[1::3]:
            on_curve = float(claim.max_power(float(q)))
            below_curve = np.linspace(q, on_curve, 7)[:-1]
            for p in below_curve:
                value = claim.least_value(float(p), float(q))
                assert 0.0 <= value <= largest, (
                    f"least_value({p}, {q}) = {value}, "
                    f"but the claim {claim.value} allows this event"
                )

    def test_guessing_proves_nothing(self, claim: Claim) -> None:
        """Equal probabilities are compatible with every value."""
        for q in _PROBABILITIES:
            assert claim.least_value(float(q), float(q)) <= _SLACK, (
                f"least_value({q}, {q}) is not 0"
            )

    def test_a_larger_value_allows_more(self, claim: Claim) -> None:
        """The claim's own parameter orders the claims of a notion from strict to weak."""
        curves = [
            claim.with_value(claim.value * factor).max_power(_PROBABILITIES)
            for factor in (0.0, 0.5, 1.0, 1.5)
        ]
        for strict, weak in pairwise(curves):
            assert np.all(weak >= strict - _SLACK), (
                "a larger value of the own parameter allows less"
            )

    def test_with_value_changes_only_the_value(self, claim: Claim) -> None:
        """The notion and its fixed parameters stay as they are."""
        other = claim.with_value(0.5 * claim.value)
        assert type(other) is type(claim), f"with_value gives a {type(other).__name__}"
        assert other.value == 0.5 * claim.value, f"with_value gives {other.value}"
        assert other.fixed() == claim.fixed(), "with_value changes the fixed parameters"

    def test_plain_data_round_trip(self, claim: Claim) -> None:
        """A claim that was stored is never stricter than before, and the same when stored again."""
        back = from_dict(json.loads(json.dumps(claim.to_dict(), allow_nan=False)))
        assert type(back) is type(claim), f"from_dict(to_dict()) gives a {type(back).__name__}"
        assert back.value == claim.value, f"from_dict(to_dict()) has the value {back.value}"
        power = claim.max_power(_PROBABILITIES)
        power_of_stored = back.max_power(_PROBABILITIES)
        assert np.all(power_of_stored >= power - _LAST_DIGITS), "stored too strictly"
        assert from_dict(back.to_dict()) == back, "the second round trip changes the claim"


# Corners of the unit cube are tried in so many dimensions; the other coordinates are in the middle.
_MAX_CORNER_DIMENSIONS = 6
# The rounding that is allowed in the distance of two datasets, relative to the sensitivity.
_DISTANCE_SLACK = 1e-9


class DomainConformance:
    """Subclass it, name the subclass `Test…`, and give it a fixture `domain`.

    Attributes:
        points: random points of the unit cube that are tried besides its corners.
    """

    points: ClassVar[int] = 300

    def test_it_has_relations_that_exist(self, domain: Domain) -> None:
        """A domain has relations, of which the first one is its default."""
        assert domain.relations, "domain.relations is empty"
        assert set(domain.relations) <= RELATIONS.keys(), f"domain.relations={domain.relations}"

    def test_it_refuses_other_relations(self, domain: Domain) -> None:
        """A relation that a domain does not have is an InputError, never a wrong pair."""
        unknown = {*RELATIONS, "cousins", ""} - set(domain.relations)
        for relation in unknown:
            _expect_refusal(partial(domain.neighbours, relation), f"neighbours({relation!r})")

    def test_pairs_are_neighbours(self, domain: Domain) -> None:
        """A pair is two different datasets that are neighbours by the relation."""
        sensitivity = getattr(domain, "sensitivity", None)
        user = getattr(domain, "user", None)
        for relation, pair in self._pairs(domain):
            assert not pair.has_equal_sides, f"{relation}: the same dataset twice, {pair.left!r}"
            assert are_neighbours(pair, relation, sensitivity, user), f"{relation}: {pair!r}"

    def test_a_point_always_means_the_same_pair(self, domain: Domain) -> None:
        """A repeated search asks for the same inputs."""
        for relation in domain.relations:
            n_coordinates = len(domain.neighbours(relation).coordinates)
            point = np.random.default_rng(1).random(n_coordinates).tolist()
            first = domain.neighbours(relation).pair(point)
            again = domain.neighbours(relation).pair(point)
            assert first.digest == again.digest, (
                f"{relation}: {point} means {first!r} and {again!r}"
            )

    def test_pairs_can_be_stored(self, domain: Domain) -> None:
        """A pair can be written as plain data, so that a result holds its counterexample."""
        for relation, pair in self._pairs(domain):
            stored = json.dumps(pair_to_dict(pair))
            restored = pair_from_dict(json.loads(stored))
            assert is_complete(restored), f"{relation}: {pair!r} is not plain data"
            assert restored.digest == pair.digest, f"{relation}: {pair!r} is not plain data"

    def test_grids_stay_in_the_cube(self, domain: Domain) -> None:
        """Every coordinate offers at least one value, all of them between 0 and 1."""
        for relation in domain.relations:
            for coordinate in domain.neighbours(relation).coordinates:
                for most in (2, 5):
                    grid = coordinate.grid(most)
                    assert len(grid) >= 1, f"{relation}: {coordinate!r} offers nothing"
                    assert np.all((grid >= 0.0) & (grid <= 1.0)), (
                        f"{relation}: {coordinate!r} leaves [0, 1]"
                    )

    def test_it_survives_pickling(self, domain: Domain) -> None:
        """A domain is part of a finder, which may be sent elsewhere."""
        pickled_copy = pickle.loads(pickle.dumps(domain))
        assert repr(pickled_copy) == repr(domain), "a pickled domain differs"

    def _pairs(self, domain: Domain) -> Iterator[tuple[str, Pair]]:
        """Yields pairs at the corners, in the middle, and at random points of the unit cube."""
        for relation in domain.relations:
            neighbours = domain.neighbours(relation)
            n_dimensions = len(neighbours.coordinates)
            n_corner_dimensions = min(n_dimensions, _MAX_CORNER_DIMENSIONS)
            for corner in product((0.0, 1.0), repeat=n_corner_dimensions):
                other_coordinates = [0.5] * (n_dimensions - n_corner_dimensions)
                yield relation, neighbours.pair([*corner, *other_coordinates])
            yield relation, neighbours.pair([0.5] * n_dimensions)
            random_points = np.random.default_rng(0).random((self.points, n_dimensions))
            for point in random_points.tolist():
                yield relation, neighbours.pair(point)


def are_neighbours(
    pair: Pair, relation: str, sensitivity: float | None = None, user: str | None = None
) -> bool:
    """Whether two datasets are neighbours, checked from the datasets alone.

    Args:
        pair: the datasets. Of those with more records, the left one has the additional ones.
        relation: the name of the relation.
        sensitivity: the greatest distance of two numbers; None for any.
        user: the column that names the user, for the relation "user".
    """
    largest_distance = math.inf
    if sensitivity is not None:
        largest_distance = float(sensitivity) * (1.0 + _DISTANCE_SLACK)
    if relation in ("l1", "linf"):
        left_numbers = np.asarray(pair.left)
        right_numbers = np.asarray(pair.right)
        moves = np.abs(np.subtract(left_numbers, right_numbers, dtype=np.float64)).ravel()
        distance = float(moves.sum() if relation == "l1" else moves.max())
        return distance <= largest_distance

    left = _records(pair.left)
    right = _records(pair.right)
    if left is None or right is None:  # single records, which must differ
        return sensitivity is None or bool(abs(pair.left - pair.right) <= largest_distance)
    if relation == "add-remove":
        return any(left[:position] + left[position + 1 :] == right for position in range(len(left)))
    if relation == "user":
        removed_users = {row[user] for row in left} - {row[user] for row in right}
        rows_of_others = [row for row in left if row[user] not in removed_users]
        return len(removed_users) == 1 and rows_of_others == right

    # By their texts, because -0.0 and 0.0 are different records.
    differing = [
        (left_row, right_row)
        for left_row, right_row in zip(left, right, strict=True)
        if repr(left_row) != repr(right_row)
    ]
    if len(differing) != 1:
        return False
    if relation == "substitute-column":
        left_row, right_row = differing[0]
        columns = left_row if isinstance(left_row, dict) else range(len(left_row))
        n_differing = sum(repr(left_row[name]) != repr(right_row[name]) for name in columns)
        return n_differing == 1
    return True


def _records(dataset: Any) -> list[Any] | None:
    """Returns the records of a dataset in any container; None for a single value."""
    if isinstance(dataset, tuple) and all(isinstance(number, float) for number in dataset):
        return None  # a vector, which is one record
    if isinstance(dataset, tuple):  # an array and its labels
        rows, labels = dataset
        return [[*row, label] for row, label in zip(rows.tolist(), labels.tolist(), strict=True)]
    if hasattr(dataset, "to_dicts"):  # a frame of polars
        return list(dataset.to_dicts())
    if hasattr(dataset, "tolist"):  # an array of numpy, or a series
        return list(dataset.tolist())
    if hasattr(dataset, "to_dict"):  # a frame of pandas
        return list(dataset.to_dict("records"))
    return dataset if isinstance(dataset, list) else None


class FinderConformance:
    """Subclass it, name the subclass `Test…`, and give it a fixture `make_finder`.

    The fixture returns a function without arguments that makes a new finder, always with the same
    settings, of at least three trials. Finders that are screened in rounds are also asked for
    rounds and for simpler candidates.
    """

    def test_it_is_a_finder(self, make_finder: Callable[[], Finder]) -> None:
        """A finder has everything that a search needs."""
        finder = make_finder()
        assert isinstance(finder, Finder), (
            f"{finder!r} lacks something of epsilometer.finders.Finder"
        )
        assert finder.trials >= 3, f"trials={finder.trials}"
        assert finder.samples >= 1, f"samples={finder.samples}"
        description = finder.describe()
        assert json.loads(json.dumps(description)) == description, "describe() is not plain data"

    def test_a_pair_stays_until_it_is_told_about(self, make_finder: Callable[[], Finder]) -> None:
        """Asking twice is the same as asking once."""
        finder = make_finder()
        first = _next_pair(finder)
        again = _next_pair(finder)
        assert first.digest == again.digest, "ask() without tell() gave two pairs"

    def test_it_ends(self, make_finder: Callable[[], Finder]) -> None:
        """A finder gives no more pairs than trials, each of two different datasets."""
        finder = make_finder()
        pairs = _search(finder, finder.trials + 1)
        assert 1 <= len(pairs) <= finder.trials, f"{len(pairs)} pairs in {finder.trials} trials"
        assert finder.ask() is None, "ask() gives more pairs after the last trial"
        assert not any(pair.has_equal_sides for pair in pairs), "a pair of equal datasets"

    def test_same_scores_same_pairs(self, make_finder: Callable[[], Finder]) -> None:
        """A search can be repeated."""
        first = make_finder()
        again = make_finder()
        first_pairs = _digests(_search(first, first.trials))
        pairs_again = _digests(_search(again, again.trials))
        assert first_pairs == pairs_again, "two equal searches differ"

    def test_any_number_is_a_score(self, make_finder: Callable[[], Finder]) -> None:
        """0.0 and negative numbers are scores, and None stands for trials without one."""
        for scores in ((None,), (0.0,), (-1.0, None), (0.0, 0.0, 1e6)):
            finder = make_finder()
            for number in range(finder.trials):
                if finder.ask() is None:
                    break
                finder.tell(scores[number % len(scores)])

    def test_what_is_no_number_is_no_score(self, make_finder: Callable[[], Finder]) -> None:
        """NaN and infinities are refused: NaN would win or lose every comparison."""
        for score in (math.nan, math.inf, -math.inf):
            finder = make_finder()
            finder.ask()
            _expect_refusal(partial(finder.tell, score), f"tell({score})")
        _expect_refusal(lambda: make_finder().tell(1.0), "tell() without ask()")

    def test_it_goes_on_from_its_state(self, make_finder: Callable[[], Finder]) -> None:
        """A search that was interrupted asks for what it would have asked for."""
        interrupted = make_finder()
        first_pairs = _search(interrupted, 2)
        interrupted.ask()  # interrupted in a trial
        stored_state = json.dumps(interrupted.state(), allow_nan=False)
        resumed = make_finder()
        resumed.restore(json.loads(stored_state))
        later_pairs = _search(resumed, resumed.trials)
        uninterrupted = make_finder()
        all_pairs = _search(uninterrupted, uninterrupted.trials)
        assert _digests(first_pairs + later_pairs) == _digests(all_pairs), (
            "a restored search takes another path"
        )

    def test_a_state_that_is_none_is_refused(self, make_finder: Callable[[], Finder]) -> None:
        """A state that no finder has written is refused: files are never trusted."""
        states: tuple[dict[str, Any], ...] = ({}, {"told": 3}, {"finder": {}, "told": []})
        for state in states:
            _expect_refusal(partial(make_finder().restore, state), f"restore({state})")

    def test_a_copy_is_independent(self, make_finder: Callable[[], Finder]) -> None:
        """An audit searches with a copy, so that a finder can be used again."""
        finder = make_finder()
        _search(copy.deepcopy(finder), 2)
        pair = _next_pair(finder)
        pair_of_new_finder = _next_pair(make_finder())
        assert pair.digest == pair_of_new_finder.digest, (
            "searching with a copy changed the original"
        )

    def test_rounds_and_single_pairs_are_the_same(self, make_finder: Callable[[], Finder]) -> None:
        """A finder that is screened proposes in rounds what it proposes one by one."""
        finder = make_finder()
        if not is_screened(finder):
            return
        proposed = []
        while candidates := finder.propose_round():
            assert all(candidate.family for candidate in candidates), "a candidate without a family"
            pairs = [candidate.pair for candidate in candidates]
            proposed += [pair.digest for pair in pairs]
            finder.tell_round([_score(pair) for pair in pairs])
        single = make_finder()
        assert proposed == _path(single, single.trials), "propose_round() and ask() differ"

    def test_a_round_gets_a_score_for_each_candidate(
        self, make_finder: Callable[[], Finder]
    ) -> None:
        """A score must not end up at another pair."""
        finder = make_finder()
        if is_screened(finder):
            scores = [0.0] * (len(finder.propose_round()) + 1)
            _expect_refusal(partial(finder.tell_round, scores), "one score too many")

    def test_shrinking_ends(self, make_finder: Callable[[], Finder]) -> None:
        """Every simpler candidate is a pair of different datasets, and simpler ones run out."""
        finder = make_finder()
        if not is_screened(finder):
            return
        for candidate in finder.propose_round()[:_SHRUNK]:
            assert isinstance(finder.describe_candidate(candidate), str), (
                "describe_candidate() is not a text"
            )
            for shrink in (finder.simpler, finder.simpler_fallback):
                simplest = candidate
                for _ in range(_MOST_STEPS):
                    simpler = list(islice(shrink(simplest), _SHRUNK))
                    pairs = [smaller.pair for smaller in simpler]
                    assert not any(pair.has_equal_sides for pair in pairs), (
                        "a pair of equal datasets"
                    )
                    if not simpler:
                        break
                    simplest = simpler[-1]  # the least simple of the first ones
                else:
                    raise AssertionError(
                        f"{shrink.__name__}() still had simpler pairs after {_MOST_STEPS} steps"
                    )


# Candidates that are shrunk, and variants of each that are looked at.
_SHRUNK = 8
# Steps after which a pair must be as simple as it can be.
_MOST_STEPS = 1000


def _score(pair: Pair) -> float:
    """A score from the content of a pair, so that equal searches get equal scores."""
    return zlib.crc32(pair_digest(pair).encode()) / 2**32


def _path(finder: Finder, most: int) -> list[tuple[str, str]]:
    return [pair.digest for pair in _search(finder, most)]


def _search(finder: Finder, most: int) -> list[Pair]:
    """Returns at most so many pairs of a search.

    Each pair is scored by its content, so that equal searches get equal scores.
    """
    pairs: list[Pair] = []
    while len(pairs) < most:
        pair = finder.ask()
        if pair is None:
            break
        pairs.append(pair)
        finder.tell(_score(pair))
    return pairs


def _digests(pairs: list[Pair]) -> list[tuple[str, str]]:
    return [pair.digest for pair in pairs]


def _next_pair(finder: Finder) -> Pair:
    pair = finder.ask()
    assert pair is not None, "ask() gave no pair"
    return pair


def _expect_refusal(action: Callable[[], Any], what: str) -> None:
    """Asserts that an action raises an InputError."""
    try:
        action()
    except InputError:
        return
    raise AssertionError(f"{what} was not refused")
