"""What makes the bounds of a method true.

They rest on fresh draws alone, count all of them, and spend failure probability for every look.
Where a correct method cannot fail, the tests use no chance: bounds for all counts of a coin are
enumerated, and draws without any randomness certify nothing. What cannot be enumerated is repeated,
on distributions where over-fitting pays.
"""

import copy
import json
import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

import epsilometer.testing.rarity as rarity
from epsilometer.claims import ZCDP, ApproxDeltaDP, ApproxDP, Claim, GaussianDP, PureDP, RenyiDP
from epsilometer.engine.streams import Stream
from epsilometer.errors import EpsilometerError
from epsilometer.inputs import Pair
from epsilometer.methods import Method, Proposal, Task
from epsilometer.outputs import Outputs, read_outputs
from epsilometer.result import Finding
from epsilometer.testing.fakes import DISGUISES, Coin, Disguise

# Outputs of the left and of the right side.
Sides = tuple[Outputs, Outputs]

_PAIR = Pair(0, 1)
_FAILURE = rarity.FAILURES[0]
# A plain leak to learn from: predictions are high, and the event is clear.
_LEAKING_COIN = Coin(0.9, 0.1)
# A small leak, whose bound depends on the draws.
_SMALL_LEAK = Coin(0.6, 0.5)
# Draws per side to learn from, from a leaking coin.
_N_TRAIN_COIN = 120
# Draws per side to learn from, on the distributions where over-fitting pays.
_N_TRAIN = 300
# A method that chooses on fresh draws needs many of them to be misled, and is misled nearly every
# time: many draws per side, few certificates of each proposal.
_MANY_DRAWS = 300
_FEW_CERTIFICATES = 20
# A failure probability that is spent twice shows with few draws, whose certificates are cheap, but
# only in many certificates.
_FEW_DRAWS = 40
_MANY_CERTIFICATES = 300
# Proposals per repeated test, each learned from draws of its own.
_N_PROPOSALS = 3
# The probability with which a correct method fails a repeated test.
_FALSE_ALARM = 1e-9
# The numbers with which a method is asked whether it takes a claim: of pairs and of draws.
_CHECK_PAIRS = 1
_CHECK_SAMPLES = 2_000


class SoundnessConformance:
    """The part of `MethodConformance` that checks whether bounds hold.

    Attributes:
        claims: what to certify; those that the method refuses by its `check` are left out.
    """

    claims: ClassVar[Sequence[Claim]] = (
        PureDP(0.5),
        ApproxDP(0.5, 0.01),
        ApproxDeltaDP(0.5, 0.05),
        RenyiDP(2.0, 0.1),
        ZCDP(0.05),
        GaussianDP(0.5),
    )

    def test_draws_without_chance_prove_nothing(self, method: Method) -> None:
        """Fresh outputs that are all equal on both sides come from equal distributions."""
        for claim, proposal in _learned_from_coin(method, self._accepted_claims(method), 100):
            certificates = rarity.Certificates(proposal, _PAIR)
            for value in (True, False, None):
                outputs = read_outputs([value] * 100)
                for failure in (0.5, *rarity.FAILURES):
                    try:
                        tallies = _tally(proposal, (outputs, outputs))
                        bound = certificates.certify(tallies.left, tallies.right, failure)
                    except EpsilometerError:  # outputs that this method refuses
                        continue
                    assert not bound > 0.0, (
                        f"all of 100 fresh outputs are {value} on either side, "
                        f"and the bound for {claim.describe()} is {bound:g} "
                        f"at failure_probability={failure:g}: "
                        "it does not come from the fresh draws"
                    )

    def test_proofs_rest_on_their_tallies_alone(self, method: Method) -> None:
        """Earlier tallies and findings change nothing, in this object or another of its class."""
        rng = np.random.default_rng(14)
        for claim, proposal in _learned_from_coin(method, self._accepted_claims(method), 200):
            outputs = _coin_outputs(_SMALL_LEAK, 200, rng)
            other_outputs = _coin_outputs(_LEAKING_COIN, 200, rng)
            tallies = _tally(proposal, outputs)
            first = _certify(proposal, tallies)
            _certify(proposal, _tally(proposal, other_outputs))
            assert _certify(proposal, tallies) == first, (
                f"a finding for {claim.describe()} depends on findings before it"
            )
            assert _certify(proposal, _tally(pickled(proposal), outputs)) == first, (
                f"tallies of a pickled proposal certify something else for {claim.describe()}: "
                "workers tally with copies"
            )

    def test_a_used_method_is_as_good_as_new(self, method: Method) -> None:
        """A method learns from the draws that it is given, not from those of earlier audits."""
        claim = self._accepted_claims(method)[0]
        try:
            unused = copy.deepcopy(method)
        except Exception:  # an object that cannot be copied may still be correct
            return
        findings = []
        for repeated_method in (method, method, unused):
            rng = np.random.default_rng(15)
            for _, proposal in _learned_from_coin(repeated_method, [claim], 200, rng):
                tallies = _tally(proposal, _coin_outputs(_SMALL_LEAK, 200, rng))
                findings.append(_certify(proposal, tallies))
        assert all(finding == findings[0] for finding in findings), (
            "the second audit of the same draws finds something else"
        )

    def test_every_fresh_draw_is_counted_once(self, method: Method) -> None:
        """The counts of a witness are those of its event on the fresh draws."""
        for claim in self._accepted_claims(method):
            for distribution in DISGUISES:
                rng = np.random.default_rng(16)
                left = distribution.draw(0, _FEW_DRAWS, rng)
                right = distribution.draw(1, _FEW_DRAWS + 7, rng)
                proposals = _learned_from(
                    distribution, method, claim, n_fresh=_FEW_DRAWS, rng=rng, n_proposals=1
                )
                for proposal in proposals:
                    tallies = _tally(proposal, (left, right))
                    finding = proposal.certify(tallies.left, tallies.right, _PAIR, _FAILURE)
                    assert_counts(finding, (left, right))

    def test_tallying_and_proving_change_no_draws(self, method: Method) -> None:
        """Health checks read the same outputs, and recordings keep them."""
        rng = np.random.default_rng(17)
        for _, proposal in _learned_from_coin(method, self._accepted_claims(method), 200):
            fresh = _coin_outputs(_LEAKING_COIN, 200, rng)
            before = pickle.dumps(fresh)
            _certify(proposal, _tally(proposal, fresh))
            assert pickle.dumps(fresh) == before, "tally or certify changed the fresh draws"

    def test_bounds_hold_for_every_coin(self, method: Method) -> None:
        """The chance of a bound above the truth is a finite sum over all counts of few draws."""
        claims = self._accepted_claims(method)
        for claim, proposal in _learned_from_coin(method, claims, rarity.N_ENUMERATED):
            rarity.assert_no_excess(proposal, claim, _PAIR)

    def test_bounds_hold_where_over_fitting_pays(self, method: Method) -> None:
        """Bounds are repeated on discrete, continuous and mixed distributions.

        Each has many equivalent outputs, among which some look like a leak in the training draws.
        """
        claim = self._accepted_claims(method)[0]
        for distribution in DISGUISES:
            self._assert_rarely_above(
                method,
                claim,
                learned=distribution,
                fresh=distribution,
                n_fresh=_MANY_DRAWS,
                runs=_FEW_CERTIFICATES,
            )

    def test_bounds_hold_when_the_laws_change(self, method: Method) -> None:
        """Bounds are repeated where the learned leak is absent from the fresh draws."""
        claim = self._accepted_claims(method)[0]
        for distribution in DISGUISES:
            if distribution.coin.p == distribution.coin.q:
                self._assert_rarely_above(
                    method,
                    claim,
                    learned=replace(distribution, coin=_LEAKING_COIN),
                    fresh=distribution,
                    n_fresh=_FEW_DRAWS,
                    runs=_MANY_CERTIFICATES,
                )

    def _assert_rarely_above(
        self,
        method: Method,
        claim: Claim,
        *,
        learned: Disguise,
        fresh: Disguise,
        n_fresh: int,
        runs: int,
    ) -> None:
        """Asserts that bounds are rarely above the truth of the fresh draws.

        Args:
            method: which learns.
            claim: to certify.
            learned: the distribution of the training draws.
            fresh: the distribution of the fresh draws.
            n_fresh: draws per side of each certificate.
            runs: certificates of each proposal.
        """
        rng = np.random.default_rng([18, runs, DISGUISES.index(fresh)])
        proposals = _learned_from(
            learned, method, claim, n_fresh=n_fresh, rng=rng, n_proposals=_N_PROPOSALS
        )
        rarity.assert_rarely_above(
            [rarity.Certificates(proposal, _PAIR) for proposal in proposals],
            fresh,
            fresh.coin.truth(claim),
            rng,
            n_fresh=n_fresh,
            runs=runs,
            false_alarm=_FALSE_ALARM / (len(DISGUISES) * len(rarity.REPEATED)),
        )

    def _accepted_claims(self, method: Method) -> list[Claim]:
        """Returns the claims of the suite that the method does not refuse; at least one."""
        check = getattr(method, "check", None)
        accepted = []
        for claim in self.claims:
            with suppress(EpsilometerError):
                if check is not None:
                    check(claim, _CHECK_PAIRS, _CHECK_SAMPLES)
                accepted.append(claim)
        assert accepted, (
            f"{method.name} refuses every claim of the suite; set `claims` in the subclass"
        )
        return accepted


def assert_counts(finding: Finding, fresh: Sides) -> None:
    """Asserts that the witness of a finding counts its event on these draws, all of them, once."""
    if finding.witness is None:
        return
    for name, counts, outputs in zip(("left", "right"), finding.witness.counts, fresh, strict=True):
        hits = int(np.count_nonzero(finding.witness.event.contains(outputs)))
        is_right = counts.hits == hits and counts.trials == len(outputs)
        assert is_right, (
            f"the witness has {counts.hits} hits in {counts.trials} draws on the {name}, "
            f"but its event holds {hits} of the {len(outputs)} fresh ones"
        )


def stream_of(rng: Generator) -> Stream:
    """Returns random numbers for a proposal's own use; the generator's draws are not affected."""
    return Stream(int(rng.spawn(1)[0].integers(2**62)))


def pickled(proposal: Proposal) -> Proposal:
    """Returns the proposal as a worker gets it."""
    try:
        return pickle.loads(pickle.dumps(proposal))  # type: ignore[no-any-return]
    except Exception as error:
        raise AssertionError(
            f"the proposal cannot be pickled, so it cannot be sent to workers: {error!r}"
        ) from error


class _Tallies(NamedTuple):
    """The tallies of the left and of the right side."""

    left: Any
    right: Any


def _learned_from_coin(
    method: Method, claims: Sequence[Claim], n_fresh: int, rng: Generator | None = None
) -> Iterator[tuple[Claim, Proposal]]:
    """Yields a proposal for every claim, learned from a coin that leaks.

    There is none where the method refuses coins, or so few draws.

    Args:
        method: which learns.
        claims: to certify.
        n_fresh: draws per side with which the proposals will certify.
        rng: for the draws; None for a fixed one.
    """
    rng = rng or np.random.default_rng(19)
    for claim in claims:
        task = Task(claim, (n_fresh, n_fresh), _FAILURE, stream_of(rng))
        try:
            left, right = _coin_outputs(_LEAKING_COIN, _N_TRAIN_COIN, rng)
            proposal = method.propose(left, right, task)
            _certify(proposal, _tally(proposal, _coin_outputs(_LEAKING_COIN, n_fresh, rng)))
        except EpsilometerError:
            continue
        yield claim, proposal


def _learned_from(
    distribution: Disguise,
    method: Method,
    claim: Claim,
    *,
    n_fresh: int,
    rng: Generator,
    n_proposals: int,
) -> list[Proposal]:
    """Returns proposals, each learned from its own draws; none if the method refuses such draws.

    Args:
        distribution: of the training draws.
        method: which learns.
        claim: to certify.
        n_fresh: draws per side with which the proposals will certify.
        rng: for the draws.
        n_proposals: how many.
    """
    proposals: list[Proposal] = []
    for _ in range(n_proposals):
        task = Task(claim, (n_fresh, n_fresh), _FAILURE, stream_of(rng))
        try:
            left = distribution.draw(0, _N_TRAIN, rng)
            right = distribution.draw(1, _N_TRAIN, rng)
            proposal = method.propose(left, right, task)
            fresh_left = distribution.draw(0, n_fresh, rng)
            fresh_right = distribution.draw(1, n_fresh, rng)
            _certify(proposal, _tally(proposal, (fresh_left, fresh_right)))
        except EpsilometerError:
            return []
        proposals.append(proposal)
    return proposals


def _coin_outputs(coin: Coin, n: int, rng: Generator) -> Sides:
    left = read_outputs(rng.random(n) < coin.p)
    right = read_outputs(rng.random(n) < coin.q)
    return left, right


def _tally(proposal: Proposal, outputs: Sides) -> _Tallies:
    left, right = outputs
    return _Tallies(left=proposal.tally(left, 0), right=proposal.tally(right, 1))


def _certify(proposal: Proposal, tallies: _Tallies) -> str:
    """Returns the finding as a text, for comparison."""
    finding = proposal.certify(tallies.left, tallies.right, _PAIR, _FAILURE)
    return json.dumps(finding.to_dict(), sort_keys=True)
