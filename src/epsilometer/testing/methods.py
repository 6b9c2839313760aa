"""What every method must satisfy."""

import inspect
import json
import math
import pickle
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from epsilometer.claims import Claim
from epsilometer.errors import EpsilometerError, InputError
from epsilometer.inputs import Pair
from epsilometer.methods import Method, Proposal, Task
from epsilometer.methods.registry import restore_proposal
from epsilometer.outputs import Outputs, read_outputs
from epsilometer.result import Finding
from epsilometer.storage.tallies import tally_from_data, tally_to_data
from epsilometer.testing.fakes import Coin, hostile
from epsilometer.testing.rarity import assert_rare
from epsilometer.testing.soundness import (
    Sides,
    SoundnessConformance,
    assert_counts,
    pickled,
    stream_of,
)

# How the text of a guarantee may begin.
_GUARANTEES = ("exact", "asymptotic", "conditional: ", "none: ")
# The failure probability of most tests.
_FAILURE = 0.05
# Outputs of every kind that a mechanism may give: each is handled, or refused with a message.
_STRANGE_OUTPUTS: dict[str, Sequence[Any]] = {
    "names": ["a", "b", "b", "ü", ""],
    "lists of varying length": [[], [1.0], [1.0, 2.0], [0.5, math.nan, math.inf]],
    "no value, names and numbers": [None, "a", 1, 2.5, True, math.nan],
    "names beside numbers": [("a", 1.0), ("b", math.nan), ("a", -math.inf), ("c", 1e308)],
    "one value only": [7],
    "dicts": [{"sum": 1.0, "count": 3}, {"sum": -1.0, "count": 4}, {"error": "too few"}],
}


class MethodConformance(SoundnessConformance):
    """Subclass it, name the subclass `Test…`, and give it a fixture `method`.

    A bound that a finding calls exact must hold on every distribution that the method accepts;
    other bounds must hold on the distribution of `draw`. A correct method fails with probability at
    most 1e-9 per test. A method that refuses draws with an EpsilometerError does not fail.

    Attributes:
        claims: what to certify; those that the method refuses by its `check` are left out.
        coin: a distribution that the method accepts, with its truth. Override `draw` for other
            kinds.
        n_train: draws per side that it learns from.
        n_fresh: draws per side that it certifies with.
        runs: repetitions of the test of coverage.
    """

    coin: ClassVar[Coin] = Coin(0.7, 0.3)
    n_train: ClassVar[int] = 600
    n_fresh: ClassVar[int] = 1400
    runs: ClassVar[int] = 120

    def draw(self, side: int, n: int, rng: np.random.Generator) -> Outputs:
        """Returns n outputs of the left (0) or right (1) side."""
        return self.coin.mechanism.sample(self.coin.worst_pair.side(side), n, rng)

    def truth(self, claim: Claim) -> float:
        """Returns the value that a bound must not exceed."""
        return self.coin.truth(claim)

    def test_it_introduces_itself(self, method: Method) -> None:
        """A method has a name, a line about it, and a guarantee of a known kind."""
        assert method.name, "method.name is empty"
        assert method.summary, "method.summary is empty"
        assert method.guarantee.startswith(_GUARANTEES), (
            f"method.guarantee={method.guarantee!r} is not of a known kind"
        )

    def test_a_finding_says_what_it_is(self, method: Method) -> None:
        """Bounds are finite and at least 0, in the requested parameter, and survive JSON."""
        for claim in self._accepted_claims(method):
            rng = np.random.default_rng(1)
            proposal = self._propose(method, claim, rng)
            fresh = self._draws(self.n_fresh, rng)
            left = proposal.tally(fresh[0], 0)
            right = proposal.tally(fresh[1], 1)
            for failure in (_FAILURE, 0.4, 1e-3, 1e-6):
                finding = proposal.certify(left, right, self.coin.worst_pair, failure)
                _check_finding(finding, claim, failure)
                assert_counts(finding, fresh)

    def test_same_draws_same_answer(self, method: Method) -> None:
        """A method has no randomness but that of its task."""
        for claim in self._accepted_claims(method):
            first = self._audit(method, claim, np.random.default_rng(2))
            again = self._audit(method, claim, np.random.default_rng(2))
            assert first.to_dict() == again.to_dict(), (
                f"two findings from equal draws differ for {claim.describe()}"
            )

    def test_training_draws_are_not_changed(self, method: Method) -> None:
        """Outputs are shared with the health checks."""
        rng = np.random.default_rng(3)
        train = self._draws(self.n_train, rng)
        before = pickle.dumps(train)
        task = self._task(self._accepted_claims(method)[0], rng)
        method.propose(*train, task)
        assert pickle.dumps(train) == before, "propose changed the training draws"

    def test_tallies_of_chunks_add_up(self, method: Method) -> None:
        """Cutting fresh draws into chunks changes nothing."""
        rng = np.random.default_rng(4)
        cuts = [0, 1, 2, 5, self.n_fresh // 3, self.n_fresh - 3, self.n_fresh]
        for claim in self._accepted_claims(method):
            proposal = self._propose(method, claim, rng)
            fresh = self._draws(self.n_fresh, rng)
            left = _tally_in_chunks(proposal, fresh[0], side=0, cuts=cuts)
            right = _tally_in_chunks(proposal, fresh[1], side=1, cuts=cuts)
            from_chunks = proposal.certify(left, right, self.coin.worst_pair, _FAILURE)
            at_once = _certify(proposal, fresh, self.coin.worst_pair)
            assert from_chunks.to_dict() == at_once.to_dict(), (
                f"tallies of chunks do not add up for {claim.describe()}"
            )

    def test_a_proposal_survives_pickling(self, method: Method) -> None:
        """A proposal is sent to the workers that draw."""
        rng = np.random.default_rng(5)
        proposal = self._propose(method, self._accepted_claims(method)[0], rng)
        fresh = self._draws(self.n_fresh, rng)
        finding = _certify(proposal, fresh, self.coin.worst_pair)
        from_copy = _certify(pickled(proposal), fresh, self.coin.worst_pair)
        assert finding.to_dict() == from_copy.to_dict(), (
            "a pickled proposal certifies something else"
        )

    def test_tallies_survive_a_checkpoint(self, method: Method) -> None:
        """A resumed audit adds to tallies that were stored as plain data."""
        rng = np.random.default_rng(13)
        for claim in self._accepted_claims(method):
            train = self._draws(self.n_train, rng)
            proposal = method.propose(*train, self._task(claim, rng))
            fresh = self._draws(self.n_fresh, rng)
            left = _tally_with_a_stop(proposal, fresh[0], side=0, other_outputs=train[0])
            right = _tally_with_a_stop(proposal, fresh[1], side=1, other_outputs=train[1])
            resumed = proposal.certify(left, right, self.coin.worst_pair, _FAILURE)
            uninterrupted = _certify(proposal, fresh, self.coin.worst_pair)
            assert resumed.to_dict() == uninterrupted.to_dict(), (
                f"stored tallies certify something else for {claim.describe()}"
            )

    def test_a_plain_leak_is_found_in_both_directions(self, method: Method) -> None:
        """The coin is far from private, whichever input is called the left one."""
        for claim in self._accepted_claims(method):
            for flip in (False, True):
                rng = np.random.default_rng(6)
                finding = self._audit(method, claim.with_value(0.0), rng, flip)
                assert finding.lower_bound > 0.0, (
                    f"found nothing for {claim.describe()}, sides swapped: {flip}"
                )

    def test_the_truth_is_rarely_exceeded(self, method: Method) -> None:
        """The guarantee holds in repetitions; of the first claim only, for the sake of time."""
        claim = self._accepted_claims(method)[0]
        rng = np.random.default_rng(7)
        truth = self.truth(claim)
        n_above = 0
        for _ in range(self.runs):
            if self._audit(method, claim, rng).lower_bound > truth:
                n_above += 1
        assert_rare(n_above, self.runs, _FAILURE)

    def test_hostile_outputs_are_outcomes(self, method: Method) -> None:
        """NaN, infinities and subnormal numbers are counted like any output, or refused."""
        rng = np.random.default_rng(8)
        mechanism = hostile()
        pair = Pair(1.0, 3.0)
        train_left = mechanism.sample(pair.left, self.n_train, rng)
        train_right = mechanism.sample(pair.right, self.n_train, rng)
        fresh_left = mechanism.sample(pair.left, self.n_fresh, rng)
        fresh_right = mechanism.sample(pair.right, self.n_fresh, rng)
        for claim in self._accepted_claims(method):
            try:
                proposal = method.propose(train_left, train_right, self._task(claim, rng))
                finding = _certify(proposal, (fresh_left, fresh_right), pair)
            except EpsilometerError:  # a distribution that this method does not accept
                continue
            _check_finding(finding, claim)

    def test_equal_laws_are_rarely_told_apart(self, method: Method) -> None:
        """Fresh draws do not confirm what is learned from two samples of one distribution."""
        claim = self._accepted_claims(method)[0].with_value(0.0)
        rng = np.random.default_rng(10)
        runs = self.runs // 2
        n_distinguished = 0
        for _ in range(runs):
            train_left = self.draw(0, self.n_train, rng)
            train_right = self.draw(0, self.n_train, rng)
            proposal = method.propose(train_left, train_right, self._task(claim, rng))
            fresh_left = self.draw(0, self.n_fresh, rng)
            fresh_right = self.draw(0, self.n_fresh, rng)
            finding = _certify(proposal, (fresh_left, fresh_right), self.coin.worst_pair)
            if finding.lower_bound > 0.0:
                n_distinguished += 1
        assert_rare(n_distinguished, runs, _FAILURE)

    def test_outputs_of_every_kind_are_handled_or_refused(self, method: Method) -> None:
        """Names, lists of varying length and dicts give a finding or an EpsilometerError."""
        rng = np.random.default_rng(11)
        claim = self._accepted_claims(method)[0]
        for kind, values in _STRANGE_OUTPUTS.items():
            train_left = _sample_of(values, self.n_train, rng)
            train_right = _sample_of(values, self.n_train, rng)
            fresh_left = _sample_of(values, self.n_train, rng)
            fresh_right = _sample_of(values, self.n_train, rng)
            try:
                proposal = method.propose(train_left, train_right, self._task(claim, rng))
                finding = _certify(proposal, (fresh_left, fresh_right), Pair(0, 1))
            except EpsilometerError as error:
                if not str(error):
                    raise AssertionError(f"{kind}: refused without a word") from error
                continue
            _check_finding(finding, claim)

    def test_a_witness_can_be_proved_again(self, method: Method) -> None:
        """What is stored of a finding is enough for anyone to count it on their own draws."""
        for claim in self._accepted_claims(method):
            rng = np.random.default_rng(12)
            finding = self._audit(method, claim, rng)
            witness = Finding.from_dict(json.loads(json.dumps(finding.to_dict()))).witness
            if witness is None:
                continue
            restored = restore_proposal(witness, self._task(claim, rng), finding.lower_bound)
            fresh = self._draws(self.n_fresh, rng)
            _check_finding(_certify(restored, fresh, self.coin.worst_pair), claim)

    def test_nonsense_options_are_refused(self, method: Method) -> None:
        """Options of another type are never ignored by a method that takes any."""
        if "options" not in inspect.signature(type(method)).parameters:
            return
        make_method: Any = type(method)  # the protocol says nothing about options
        for options in (object(), 3, "fast"):
            try:
                make_method(options=options)
            except (InputError, TypeError):
                continue
            raise AssertionError(f"{method.name} takes options={options!r} without a word")

    def test_outputs_never_seen_in_training(self, method: Method) -> None:
        """Fresh outputs of unknown kinds and values are handled or refused."""
        claim = self._accepted_claims(method)[0]
        proposal = self._propose(method, claim, np.random.default_rng(9))
        strange = read_outputs([None, "a word", 3, (1.0, 2.0), 1e300])
        try:
            finding = _certify(proposal, (strange, strange), Pair(0, 1))
        except EpsilometerError:
            return
        _check_finding(finding, claim)

    def _task(self, claim: Claim, rng: np.random.Generator) -> Task:
        return Task(claim, (self.n_fresh, self.n_fresh), _FAILURE, stream_of(rng))

    def _draws(self, n: int, rng: np.random.Generator, flip: bool = False) -> Sides:
        """Returns n outputs of each side; if flipped, the right side comes first."""
        first = self.draw(int(flip), n, rng)
        second = self.draw(int(not flip), n, rng)
        return first, second

    def _propose(
        self, method: Method, claim: Claim, rng: np.random.Generator, flip: bool = False
    ) -> Proposal:
        """Returns a proposal that is learned from fresh training draws."""
        train = self._draws(self.n_train, rng, flip)
        proposal = method.propose(*train, self._task(claim, rng))
        assert not math.isnan(proposal.predicted), (
            "proposal.predicted is nan: pairs cannot be compared by it"
        )
        return proposal

    def _audit(
        self, method: Method, claim: Claim, rng: np.random.Generator, flip: bool = False
    ) -> Finding:
        """Learns from some draws, and certifies with fresh ones."""
        proposal = self._propose(method, claim, rng, flip)
        fresh = self._draws(self.n_fresh, rng, flip)
        return _certify(proposal, fresh, self.coin.worst_pair)


def _sample_of(values: Sequence[Any], n: int, rng: np.random.Generator) -> Outputs:
    """Returns n outputs, each of them one of the values at random."""
    positions = rng.integers(len(values), size=n)
    return read_outputs([values[position] for position in positions])


def _certify(proposal: Proposal, fresh: Sides, pair: Pair) -> Finding:
    left, right = fresh
    return proposal.certify(proposal.tally(left, 0), proposal.tally(right, 1), pair, _FAILURE)


def _tally_in_chunks(
    proposal: Proposal, outputs: Outputs, *, side: int, cuts: Sequence[int]
) -> Any:
    """Returns the sum of the tallies of chunks.

    Args:
        proposal: which tallies.
        outputs: of one side.
        side: 0 for the left, 1 for the right.
        cuts: where chunks begin and end, from 0 to the number of outputs.
    """
    tallies = []
    for start, end in pairwise(cuts):
        tallies.append(proposal.tally(outputs.take(slice(start, end)), side))
    total = tallies[0]
    for tally in tallies[1:]:
        total = total + tally
    return total


def _tally_with_a_stop(
    proposal: Proposal, outputs: Outputs, *, side: int, other_outputs: Outputs
) -> Any:
    """Tallies a third of the outputs, stores the tally, reads it back, and continues.

    Args:
        proposal: which tallies.
        outputs: of one side.
        side: 0 for the left, 1 for the right.
        other_outputs: whose tally shows of what types a tally is made.
    """
    cut = len(outputs) // 3
    first_tally = proposal.tally(outputs.take(slice(0, cut)), side)
    stored = json.dumps(tally_to_data(first_tally))
    example = proposal.tally(other_outputs, side)
    restored = tally_from_data(json.loads(stored), example)
    return restored + proposal.tally(outputs.take(slice(cut, len(outputs))), side)


def _check_finding(finding: Finding, claim: Claim, failure: float = _FAILURE) -> None:
    """Asserts that a finding is complete, about this claim, and survives JSON."""
    assert isinstance(finding, Finding), (
        f"certify returned a {type(finding).__name__}, not a Finding"
    )
    assert finding.method, "finding.method is empty"
    assert finding.guarantee.startswith(_GUARANTEES), (
        f"finding.guarantee={finding.guarantee!r} is not of a known kind"
    )
    assert math.isfinite(finding.lower_bound), (
        f"finding.lower_bound={finding.lower_bound} is not finite"
    )
    assert finding.lower_bound >= 0.0, f"finding.lower_bound={finding.lower_bound} is below 0"
    assert math.isclose(finding.confidence, 1.0 - failure), (
        f"finding.confidence={finding.confidence} "
        f"where failure_probability={failure:g} was to be spent"
    )
    assert type(finding.claim) is type(claim), (
        f"finding.claim={finding.claim!r} where {claim!r} was asked for"
    )
    stored = json.dumps(finding.to_dict())
    restored = Finding.from_dict(json.loads(stored))
    assert json.dumps(restored.to_dict()) == stored, "the finding does not survive JSON"
