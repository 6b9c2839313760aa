"""What makes the bounds of a method true: they rest on fresh draws alone, count all of them, and pay for every look.

Where a correct method cannot fail, the tests use no chance: bounds for all counts of a coin are enumerated, and draws
without any randomness prove nothing. What cannot be enumerated is repeated, on distributions where over-fitting pays.
"""

import copy
import json
import pickle
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

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

Sides = tuple[Outputs, Outputs]
_PAIR = Pair(0, 1)
# A plain leak to learn from: predictions are high, and the event is clear.
_LEAK = (0.9, 0.1)
_N_LEARN = 120
# Draws per side to learn from, on the distributions where over-fitting pays.
_N_TRAIN = 300
# Fresh draws per side of a proof, and proofs of each proposal. A method that chooses on fresh draws needs many of them
# to be misled, and is misled nearly every time. A failure probability that is spent twice shows with few draws, whose
# proofs are cheap, but only in many proofs.
_MANY_DRAWS, _FEW_PROOFS = 300, 20
_FEW_DRAWS, _MANY_PROOFS = 40, 300
_PROPOSALS = 3
_FALSE_ALARM = 1e-9


class SoundnessConformance:
    """The part of `MethodConformance` that checks whether bounds hold.

    Attributes:
        claims: what to prove; those that the method refuses by its `check` are left out.
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
        """Fresh outputs that are all the same on both sides come from equal distributions, whatever was learned."""
        for claim, proposal in _taught(method, self._provable(method), 100):
            for value in (True, False, None):
                outputs, proofs = read_outputs([value] * 100), rarity.Certificates(proposal, _PAIR)
                for failure in (0.5, *rarity.FAILURES):
                    try:
                        bound = proofs.certify(*_tally(proposal, (outputs, outputs)), failure)
                    except EpsilometerError:  # outputs that this method refuses
                        continue
                    assert not bound > 0.0, (
                        f"all of 100 fresh outputs are {value} on either side, and the bound for {claim.describe()} is "
                        f"{bound:g} at failure_probability={failure:g}: it does not come from the fresh draws"
                    )

    def test_proofs_rest_on_their_tallies_alone(self, method: Method) -> None:
        """Not on earlier tallies or proofs, in this object or another of its class."""
        rng = np.random.default_rng(14)
        for claim, proposal in _taught(method, self._provable(method), 200):
            near, far = (_coins(each, 200, rng) for each in ((0.6, 0.5), _LEAK))
            tallies = _tally(proposal, near)
            first = _prove(proposal, tallies)
            _prove(proposal, _tally(proposal, far))
            assert _prove(proposal, tallies) == first, f"a proof for {claim.describe()} depends on proofs before it"
            assert _prove(proposal, _tally(pickled(proposal), near)) == first, (
                f"tallies of a pickled proposal prove something else for {claim.describe()}: workers tally with copies"
            )

    def test_a_used_method_is_as_good_as_new(self, method: Method) -> None:
        """It learns from the draws that it is given, not from those of earlier audits."""
        claim = self._provable(method)[0]
        try:
            unused = copy.deepcopy(method)
        except Exception:  # an object that cannot be copied may still be correct
            return
        found = []
        for each in (method, method, unused):
            rng = np.random.default_rng(15)
            for _, proposal in _taught(each, [claim], 200, rng):
                found.append(_prove(proposal, _tally(proposal, _coins((0.6, 0.5), 200, rng))))
        assert all(each == found[0] for each in found), "the second audit of the same draws finds something else"

    def test_every_fresh_draw_is_counted_once(self, method: Method) -> None:
        """The counts of a witness are those of its event on the fresh draws."""
        for claim in self._provable(method):
            for law in DISGUISES:
                rng = np.random.default_rng(16)
                fresh = law.draw(0, _FEW_DRAWS, rng), law.draw(1, _FEW_DRAWS + 7, rng)
                for proposal in _proposals(method, claim, law, _FEW_DRAWS, rng, 1):
                    assert_counts(proposal.certify(*_tally(proposal, fresh), _PAIR, rarity.FAILURES[0]), fresh)

    def test_tallying_and_proving_change_no_draws(self, method: Method) -> None:
        """Health checks read the same outputs, and recordings keep them."""
        rng = np.random.default_rng(17)
        for _, proposal in _taught(method, self._provable(method), 200):
            fresh = _coins(_LEAK, 200, rng)
            before = pickle.dumps(fresh)
            _prove(proposal, _tally(proposal, fresh))
            assert pickle.dumps(fresh) == before, "tally or certify changed the fresh draws"

    def test_bounds_hold_for_every_coin(self, method: Method) -> None:
        """All counts of few draws, for all coins: the chance of a bound above the truth is a finite sum."""
        for claim, proposal in _taught(method, self._provable(method), rarity.N_ENUMERATED):
            rarity.assert_no_excess(proposal, claim, _PAIR)

    def test_bounds_hold_where_over_fitting_pays(self, method: Method) -> None:
        """By repetition, on discrete, continuous and mixed distributions with many equivalent outputs."""
        claim = self._provable(method)[0]
        for law in DISGUISES:
            self._repeat(method, claim, law, law, _MANY_DRAWS, _FEW_PROOFS)

    def test_bounds_hold_when_the_laws_change(self, method: Method) -> None:
        """The same where the learned leak is absent from the fresh draws."""
        claim = self._provable(method)[0]
        for law in DISGUISES:
            if law.coin.p == law.coin.q:
                self._repeat(method, claim, replace(law, coin=Coin(*_LEAK)), law, _FEW_DRAWS, _MANY_PROOFS)

    def _repeat(self, method: Method, claim: Claim, learned: Disguise, law: Disguise, n: int, runs: int) -> None:
        rng = np.random.default_rng([18, runs, DISGUISES.index(law)])
        proposals = _proposals(method, claim, learned, n, rng, _PROPOSALS)
        proofs, truth = [rarity.Certificates(proposal, _PAIR) for proposal in proposals], law.coin.truth(claim)
        false_alarm = _FALSE_ALARM / (len(DISGUISES) * len(rarity.REPEATED))
        rarity.assert_rarely_above(proofs, law, truth, rng, n_fresh=n, runs=runs, false_alarm=false_alarm)

    def _provable(self, method: Method) -> list[Claim]:
        found = []
        for claim in self.claims:
            with suppress(EpsilometerError):
                getattr(method, "check", lambda *ignored: None)(claim, 1, 2_000)
                found.append(claim)
        assert found, f"{method.name} refuses every claim of the suite; set `claims` in the subclass"
        return found


def assert_counts(finding: Finding, fresh: Sides) -> None:
    """Asserts that the witness of a finding counts its event on these draws, all of them, once."""
    if finding.witness is None:
        return
    for name, counts, outputs in zip(("left", "right"), finding.witness.counts, fresh, strict=True):
        hits = int(np.count_nonzero(finding.witness.event.contains(outputs)))
        assert (counts.hits, counts.trials) == (hits, len(outputs)), (
            f"the witness has {counts.hits} hits in {counts.trials} draws on the {name}, "
            f"but its event holds {hits} of the {len(outputs)} fresh ones"
        )


def stream_of(rng: Generator) -> Stream:
    """Random numbers for a proposal's own use; the generator's draws stay what they are."""
    return Stream(int(rng.spawn(1)[0].integers(2**62)))


def pickled(proposal: Proposal) -> Proposal:
    """The proposal as a worker gets it."""
    try:
        return pickle.loads(pickle.dumps(proposal))  # type: ignore[no-any-return]
    except Exception as error:
        raise AssertionError(f"the proposal cannot be pickled, so it cannot be sent to workers: {error!r}") from error


def _taught(
    method: Method, claims: Sequence[Claim], n_fresh: int, rng: Generator | None = None
) -> Iterator[tuple[Claim, Proposal]]:
    """A proposal for every claim, learned from a coin that leaks; none where the method refuses coins, or few draws."""
    rng = rng or np.random.default_rng(19)
    for claim in claims:
        task = Task(claim, (n_fresh, n_fresh), rarity.FAILURES[0], stream_of(rng))
        try:
            proposal = method.propose(*_coins(_LEAK, _N_LEARN, rng), task)
            _prove(proposal, _tally(proposal, _coins(_LEAK, n_fresh, rng)))
        except EpsilometerError:
            continue
        yield claim, proposal


def _proposals(method: Method, claim: Claim, law: Disguise, n_fresh: int, rng: Generator, n: int) -> list[Proposal]:
    """n proposals, each learned from its own draws; none where the method refuses the distribution."""
    found: list[Proposal] = []
    for _ in range(n):
        task = Task(claim, (n_fresh, n_fresh), rarity.FAILURES[0], stream_of(rng))
        try:
            proposal = method.propose(law.draw(0, _N_TRAIN, rng), law.draw(1, _N_TRAIN, rng), task)
            _prove(proposal, _tally(proposal, (law.draw(0, n_fresh, rng), law.draw(1, n_fresh, rng))))
        except EpsilometerError:
            return []
        found.append(proposal)
    return found


def _coins(probabilities: tuple[float, float], n: int, rng: Generator) -> Sides:
    left, right = (read_outputs(rng.random(n) < each) for each in probabilities)
    return left, right


def _tally(proposal: Proposal, outputs: Sides) -> tuple[Any, Any]:
    return proposal.tally(outputs[0], 0), proposal.tally(outputs[1], 1)


def _prove(proposal: Proposal, tallies: tuple[Any, Any]) -> str:
    return json.dumps(proposal.certify(*tallies, _PAIR, rarity.FAILURES[0]).to_dict(), sort_keys=True)
