"""What every method must satisfy."""

import inspect
import json
import math
import operator
import pickle
from collections.abc import Sequence
from functools import reduce
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
from epsilometer.storage.journal import tally_from_data, tally_to_data
from epsilometer.testing.fakes import Coin, hostile
from epsilometer.testing.rarity import assert_rare
from epsilometer.testing.soundness import SoundnessConformance, assert_counts, pickled, stream_of

_KINDS = ("exact", "asymptotic", "conditional: ", "none: ")
_FAILURE = 0.05
# Outputs of every kind that a mechanism may give: each is handled, or refused with a message.
_STRANGE: dict[str, Sequence[Any]] = {
    "names": ["a", "b", "b", "ü", ""],
    "lists of varying length": [[], [1.0], [1.0, 2.0], [0.5, math.nan, math.inf]],
    "no value, names and numbers": [None, "a", 1, 2.5, True, math.nan],
    "names beside numbers": [("a", 1.0), ("b", math.nan), ("a", -math.inf), ("c", 1e308)],
    "one value only": [7],
    "dicts": [{"sum": 1.0, "count": 3}, {"sum": -1.0, "count": 4}, {"error": "too few"}],
}


class MethodConformance(SoundnessConformance):
    """Subclass it, name the subclass `Test…`, and give it a fixture `method`.

    A bound that a finding calls exact must hold on every distribution that the method accepts; other bounds, on the
    distribution of `draw`. A correct method fails with probability at most 1e-9 per test; a crash does not fail it.

    Attributes:
        claims: what to prove; those that the method refuses by its `check` are left out.
        coin: a distribution that the method accepts, with its truth. Override `draw` for other kinds.
        n_train: draws per side that it learns from.
        n_fresh: draws per side that it proves with.
        runs: repetitions of the test of coverage.
    """

    coin: ClassVar[Coin] = Coin(0.7, 0.3)
    n_train: ClassVar[int] = 600
    n_fresh: ClassVar[int] = 1400
    runs: ClassVar[int] = 120

    def draw(self, side: int, n: int, rng: np.random.Generator) -> Outputs:
        """n outputs of the left (0) or right (1) side."""
        return self.coin.mechanism.sample(self.coin.worst_pair.side(side), n, rng)

    def truth(self, claim: Claim) -> float:
        """The value that a bound must not exceed."""
        return self.coin.truth(claim)

    def test_it_introduces_itself(self, method: Method) -> None:
        """A name, a line about it, and the kind of its guarantee."""
        assert method.name, "method.name is empty"
        assert method.summary, "method.summary is empty"
        assert method.guarantee.startswith(_KINDS), f"method.guarantee={method.guarantee!r} is not of a known kind"

    def test_a_finding_says_what_it_is(self, method: Method) -> None:
        """Bounds are finite and at least 0, in the requested parameter, and survive JSON."""
        for claim in self._provable(method):
            rng = np.random.default_rng(1)
            proposal, fresh = self._propose(method, claim, rng), self._draws(self.n_fresh, rng)
            tallies = [proposal.tally(outputs, side) for side, outputs in enumerate(fresh)]
            for failure in (_FAILURE, 0.4, 1e-3, 1e-6):
                finding = proposal.certify(tallies[0], tallies[1], self.coin.worst_pair, failure)
                _check_finding(finding, claim, failure)
                assert_counts(finding, fresh)

    def test_same_draws_same_answer(self, method: Method) -> None:
        """A method has no randomness but that of its task."""
        for claim in self._provable(method):
            first, again = (self._audit(method, claim, np.random.default_rng(2)) for _ in range(2))
            assert first.to_dict() == again.to_dict(), f"two proofs from equal draws differ for {claim.describe()}"

    def test_training_draws_are_not_changed(self, method: Method) -> None:
        """Outputs are shared with the health checks."""
        rng = np.random.default_rng(3)
        train = self._draws(self.n_train, rng)
        before = pickle.dumps(train)
        method.propose(*train, self._task(self._provable(method)[0], rng))
        assert pickle.dumps(train) == before, "propose changed the training draws"

    def test_tallies_of_chunks_add_up(self, method: Method) -> None:
        """Cutting fresh draws into chunks changes nothing."""
        rng = np.random.default_rng(4)
        for claim in self._provable(method):
            proposal, fresh = self._propose(method, claim, rng), self._draws(self.n_fresh, rng)
            cuts = [0, 1, 2, 5, self.n_fresh // 3, self.n_fresh - 3, self.n_fresh]
            chunks = [[outputs.take(slice(a, b)) for a, b in pairwise(cuts)] for outputs in fresh]
            left, right = (
                reduce(operator.add, [proposal.tally(each, side) for each in chunks[side]]) for side in (0, 1)
            )
            summed = proposal.certify(left, right, self.coin.worst_pair, _FAILURE)
            whole = _certify(proposal, *fresh, self.coin.worst_pair)
            assert summed.to_dict() == whole.to_dict(), f"tallies of chunks do not add up for {claim.describe()}"

    def test_a_proposal_survives_pickling(self, method: Method) -> None:
        """It is sent to the workers that draw."""
        rng = np.random.default_rng(5)
        proposal, fresh = self._propose(method, self._provable(method)[0], rng), self._draws(self.n_fresh, rng)
        found = [_certify(each, *fresh, self.coin.worst_pair).to_dict() for each in (proposal, pickled(proposal))]
        assert found[0] == found[1], "a pickled proposal proves something else"

    def test_tallies_survive_a_checkpoint(self, method: Method) -> None:
        """A resumed audit adds to tallies that were stored as plain data."""
        rng = np.random.default_rng(13)
        for claim in self._provable(method):
            train = self._draws(self.n_train, rng)
            proposal, fresh = method.propose(*train, self._task(claim, rng)), self._draws(self.n_fresh, rng)
            left, right = (_tally_with_a_stop(proposal, fresh[side], side, train[side]) for side in (0, 1))
            resumed = proposal.certify(left, right, self.coin.worst_pair, _FAILURE)
            whole = _certify(proposal, *fresh, self.coin.worst_pair)
            assert resumed.to_dict() == whole.to_dict(), f"stored tallies prove something else for {claim.describe()}"

    def test_a_plain_leak_is_found_in_both_directions(self, method: Method) -> None:
        """The coin is far from private, whichever input is called the left one."""
        for claim in self._provable(method):
            for flip in (False, True):
                finding = self._audit(method, claim.with_value(0.0), np.random.default_rng(6), flip)
                assert finding.lower_bound > 0.0, f"found nothing for {claim.describe()}, sides swapped: {flip}"

    def test_the_truth_is_rarely_exceeded(self, method: Method) -> None:
        """The guarantee, by repetition; the first claim only, for the sake of time."""
        claim, rng = self._provable(method)[0], np.random.default_rng(7)
        truth = self.truth(claim)
        above = sum(self._audit(method, claim, rng).lower_bound > truth for _ in range(self.runs))
        assert_rare(above, self.runs, _FAILURE)

    def test_hostile_outputs_are_outcomes(self, method: Method) -> None:
        """NaN, infinities and subnormal numbers are counted like any other output, or refused with a message."""
        rng, mechanism = np.random.default_rng(8), hostile()
        train = mechanism.sample(1.0, self.n_train, rng), mechanism.sample(3.0, self.n_train, rng)
        fresh = mechanism.sample(1.0, self.n_fresh, rng), mechanism.sample(3.0, self.n_fresh, rng)
        for claim in self._provable(method):
            try:
                finding = _certify(method.propose(*train, self._task(claim, rng)), *fresh, Pair(1.0, 3.0))
            except EpsilometerError:  # a distribution that this method does not accept
                continue
            _check_finding(finding, claim)

    def test_equal_laws_are_rarely_told_apart(self, method: Method) -> None:
        """Whatever the method learns from two samples of one distribution, fresh draws must not confirm it."""
        claim, rng, told = self._provable(method)[0].with_value(0.0), np.random.default_rng(10), 0
        for _ in range(self.runs // 2):
            train = self.draw(0, self.n_train, rng), self.draw(0, self.n_train, rng)
            proposal = method.propose(*train, self._task(claim, rng))
            fresh = self.draw(0, self.n_fresh, rng), self.draw(0, self.n_fresh, rng)
            told += _certify(proposal, *fresh, self.coin.worst_pair).lower_bound > 0.0
        assert_rare(told, self.runs // 2, _FAILURE)

    def test_outputs_of_every_kind_are_handled_or_refused(self, method: Method) -> None:
        """Names, lists of varying length, dicts, nothing at all: a finding, or an EpsilometerError."""
        rng, claim = np.random.default_rng(11), self._provable(method)[0]
        for kind, values in _STRANGE.items():
            sides = [[values[place] for place in rng.integers(len(values), size=self.n_train)] for _ in range(4)]
            read, refusal, finding = [read_outputs(side) for side in sides], "", None
            try:
                finding = _certify(
                    method.propose(read[0], read[1], self._task(claim, rng)), read[2], read[3], Pair(0, 1)
                )
            except EpsilometerError as error:
                refusal = str(error)
            assert finding or refusal, f"{kind}: refused without a word"
            if finding:
                _check_finding(finding, claim)

    def test_a_witness_can_be_proved_again(self, method: Method) -> None:
        """What is stored of a finding is enough for anyone to count it on their own draws."""
        for claim in self._provable(method):
            rng = np.random.default_rng(12)
            finding = self._audit(method, claim, rng)
            witness = Finding.from_dict(json.loads(json.dumps(finding.to_dict()))).witness
            if witness is None:
                continue
            again = restore_proposal(witness, self._task(claim, rng), finding.lower_bound)
            _check_finding(_certify(again, *self._draws(self.n_fresh, rng), self.coin.worst_pair), claim)

    def test_nonsense_options_are_refused(self, method: Method) -> None:
        """Options of another kind are never ignored by a method that takes any."""
        if "options" not in inspect.signature(type(method)).parameters:
            return
        for options in (object(), 3, "fast"):
            try:
                type(method)(options=options)  # type: ignore[call-arg]  # a protocol says nothing about them
            except (InputError, TypeError):
                continue
            raise AssertionError(f"{method.name} takes options={options!r} without a word")

    def test_outputs_never_seen_in_training(self, method: Method) -> None:
        """Fresh outputs of unknown kinds and values must be handled."""
        claim = self._provable(method)[0]
        proposal = self._propose(method, claim, np.random.default_rng(9))
        strange = read_outputs([None, "a word", 3, (1.0, 2.0), 1e300])
        try:
            finding = _certify(proposal, strange, strange, Pair(0, 1))
        except EpsilometerError:
            return
        _check_finding(finding, claim)

    def _task(self, claim: Claim, rng: np.random.Generator) -> Task:
        return Task(claim, (self.n_fresh, self.n_fresh), _FAILURE, stream_of(rng))

    def _draws(self, n: int, rng: np.random.Generator, flip: bool = False) -> tuple[Outputs, Outputs]:
        return self.draw(int(flip), n, rng), self.draw(int(not flip), n, rng)

    def _propose(self, method: Method, claim: Claim, rng: np.random.Generator, flip: bool = False) -> Proposal:
        proposal = method.propose(*self._draws(self.n_train, rng, flip), self._task(claim, rng))
        assert not math.isnan(proposal.predicted), "proposal.predicted is nan: pairs cannot be compared by it"
        return proposal

    def _audit(self, method: Method, claim: Claim, rng: np.random.Generator, flip: bool = False) -> Finding:
        proposal = self._propose(method, claim, rng, flip)
        return _certify(proposal, *self._draws(self.n_fresh, rng, flip), self.coin.worst_pair)


def _certify(proposal: Proposal, left: Outputs, right: Outputs, pair: Pair) -> Finding:
    return proposal.certify(proposal.tally(left, 0), proposal.tally(right, 1), pair, _FAILURE)


def _tally_with_a_stop(proposal: Proposal, outputs: Outputs, side: int, other: Outputs) -> Any:
    """Tallies a third, stores it, reads it back by the example of another tally, and continues."""
    cut = len(outputs) // 3
    stored = json.dumps(tally_to_data(proposal.tally(outputs.take(slice(0, cut)), side)))
    restored = tally_from_data(json.loads(stored), proposal.tally(other, side))
    return restored + proposal.tally(outputs.take(slice(cut, len(outputs))), side)


def _check_finding(finding: Finding, claim: Claim, failure: float = _FAILURE) -> None:
    assert isinstance(finding, Finding), f"certify returned a {type(finding).__name__}, not a Finding"
    assert finding.method, "finding.method is empty"
    assert finding.guarantee.startswith(_KINDS), f"finding.guarantee={finding.guarantee!r} is not of a known kind"
    assert math.isfinite(finding.lower_bound), f"finding.lower_bound={finding.lower_bound} is not finite"
    assert finding.lower_bound >= 0.0, f"finding.lower_bound={finding.lower_bound} is below 0"
    assert math.isclose(finding.confidence, 1.0 - failure), (
        f"finding.confidence={finding.confidence} where failure_probability={failure:g} was to be spent"
    )
    assert type(finding.claim) is type(claim), f"finding.claim={finding.claim!r} where {claim!r} was asked for"
    stored = json.dumps(finding.to_dict())
    assert json.dumps(Finding.from_dict(json.loads(stored)).to_dict()) == stored, "the finding does not survive JSON"
