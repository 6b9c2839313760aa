"""Statistical tests that state their own false-alarm rate, and how often a bound may miss."""

import pickle
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from scipy.special import betainc
from scipy.stats import binom

from epsilometer.arrays import Floats
from epsilometer.claims import Claim
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.methods import Proposal
from epsilometer.outputs import read_outputs
from epsilometer.testing.fakes import Disguise


def assert_rare(events: int, runs: int, rate: float, false_alarm: float = 1e-9, what: str = "events") -> None:
    """Asserts that the number of events in independent runs is compatible with a probability ≤ rate.

    The tail is exactly binomial, without a normal approximation that breaks at small rates.

    Guarantee: exact. If every run has the event with probability ≤ rate, independently of the others (or given
        the others), the assertion fails with probability ≤ false_alarm.

    Args:
        events: how often the event was seen, an integer from 0 to runs.
        runs: number of independent runs, at least 1.
        rate: the promised greatest probability per run, between 0 and 1.
        false_alarm: the assertion fails only if the chance of at least this many events is below it.
        what: the name of the events, for the failure message.
    """
    if runs < 1 or not 0 <= events <= runs:
        raise InputError(f"events={events!r}, runs={runs!r}: events must be between 0 and runs, and runs at least 1")
    if not 0 <= rate <= 1:
        raise InputError(f"rate={rate!r}: must be between 0 and 1")
    if not 0 < false_alarm < 1:
        raise InputError(f"false_alarm={false_alarm!r}: must be between 0 and 1, for example 1e-9")
    # P(at least this many events); betainc keeps its digits in the far tail, where bdtrc does not.
    chance = 1.0 if events == 0 else float(betainc(events, runs - events + 1, rate))
    assert chance >= false_alarm, (
        f"{events} {what} in {runs} runs, promised a rate of at most {rate:g}: the chance of that many is "
        f"{chance:.1e}, below the false alarm {false_alarm:g} of this test"
    )


# Draws per side of the enumeration: (n + 1)² proofs, and enough for bounds well above 0 at the failure probabilities
# below. A large one reveals a failure probability that is multiplied or spent twice, a small one that it is ignored.
N_ENUMERATED = 12
FAILURES = (0.3, 0.05, 0.01)
# Those of repeated proofs: at smaller ones too few fail to show anything.
REPEATED = FAILURES[:2]
# Bounds and curves are computed in floats, some by bisection.
_SLACK = 1e-7
# Probabilities of the enumeration: dense at both ends, where the distributions of counts are skewed.
_GRID: Floats = np.unique(np.concatenate([np.linspace(0.0, 1.0, 41), np.geomspace(1e-3, 0.02, 8), [0.99, 0.999]]))
# At most this many different bounds of a table are checked, to save time: curves of some notions are slow.
_MOST_BOUNDS = 16
# When repeated proofs are checked: after a twentieth, a sixth and half of them, and after all.
_LOOKS = (20, 6, 2, 1)
# A bound beyond this is practically infinite.
_LARGEST = 50.0


class Certificates:
    """The bounds that a proposal gives, each proved once: equal tallies have equal bounds.

    Only what a finding calls exact counts as a bound here; others promise nothing for every distribution.
    """

    def __init__(self, proposal: Proposal, pair: Pair) -> None:
        self.proposal = proposal
        self.pair = pair
        self._known: dict[bytes, float] = {}

    def bound(self, left: Any, right: Any, failure_probability: float) -> float:
        """The bound from two tallies; infinite if it is not a number."""
        try:
            key = pickle.dumps((left, right, failure_probability))
        except Exception:  # a tally of an unsupported kind, which another test reports
            return self.certify(left, right, failure_probability)
        if key not in self._known:
            self._known[key] = self.certify(left, right, failure_probability)
        return self._known[key]

    def certify(self, left: Any, right: Any, failure_probability: float) -> float:
        """The same, always proved anew."""
        finding = self.proposal.certify(left, right, self.pair, failure_probability)
        if not finding.guarantee.startswith("exact"):
            return 0.0
        return float("inf") if np.isnan(finding.lower_bound) else float(finding.lower_bound)


def assert_no_excess(proposal: Proposal, claim: Claim, pair: Pair) -> None:
    """Adds up, for every coin, the chance that the bound is above the truth. Nothing is sampled.

    The bounds of all counts of a coin's faces make a table. For every value b in it, the coins whose truth is just
    below b must give a bound of b or more with probability at most the failure probability. A proposal whose bound
    depends on the order of the draws is not a function of the counts, and is left to `assert_rarely_above`.
    """
    certificates = Certificates(proposal, pair)
    rows, mixed = _tallies(proposal, shuffled=False), _tallies(proposal, shuffled=True)
    cells = list(product(range(N_ENUMERATED + 1), repeat=2))
    tables = {failure: np.empty((N_ENUMERATED + 1, N_ENUMERATED + 1)) for failure in FAILURES}
    # In a random order of the cells, so that a difference is found soon.
    for failure, cell in product(FAILURES, np.random.default_rng(0).permutation(cells)):
        bound, other = (certificates.bound(left[cell[0]], right[cell[1]], failure) for left, right in (rows, mixed))
        if bound != other:
            return
        tables[failure][tuple(cell)] = bound
    for failure in FAILURES:
        for level, bound, p, q in _levels(tables[failure], claim):
            assert level <= failure * (1.0 + _SLACK), (
                f"{N_ENUMERATED} fresh draws of a coin with P = {p:.4g} and Q = {q:.4g}, which keeps {claim.notion} "
                f"from {claim.symbol} = {bound:.6g} on, give a bound of at least that much with probability "
                f"{level:.4g}, where failure_probability={failure:g} was to be kept (enumerated, not sampled)"
            )


def _tallies(proposal: Proposal, shuffled: bool) -> tuple[list[Any], list[Any]]:
    """The tallies of the left and the right side, each by the number of hits."""
    faces = [np.arange(N_ENUMERATED) < hits for hits in range(N_ENUMERATED + 1)]
    if shuffled:
        faces = [np.random.default_rng(hits).permutation(each) for hits, each in enumerate(faces)]
    outputs = [read_outputs(each.tolist()) for each in faces]
    left, right = ([proposal.tally(each, side) for each in outputs] for side in (0, 1))
    return left, right


def _levels(table: Floats, claim: Claim) -> Iterator[tuple[float, float, float, float]]:
    """For each bound of the table, the greatest chance of reaching it among the coins whose truth is below it."""
    counts, bounds = np.arange(N_ENUMERATED + 1), np.unique(table[table > _SLACK])
    for bound in bounds[np.unique(np.linspace(0, len(bounds) - 1, min(len(bounds), _MOST_BOUNDS)).astype(int))]:
        p, q = _coins_within(claim.with_value(min(float(bound), _LARGEST) * (1.0 - _SLACK)))
        left, right = (binom.pmf(counts, N_ENUMERATED, each[:, None]) for each in (p, q))
        levels = np.einsum("ci,ij,cj->c", left, (table >= bound).astype(np.float64), right)
        worst = int(np.argmax(levels))
        yield float(levels[worst]), float(bound), float(p[worst]), float(q[worst])


def _coins_within(claim: Claim) -> tuple[Floats, Floats]:
    """Coins that keep the claim: those on its edge on either side, and those that are equal on both."""
    edge = claim.max_power(_GRID)
    p, q = np.concatenate([edge, _GRID, _GRID]), np.concatenate([_GRID, edge, _GRID])
    keeps = np.ones(len(p), dtype=bool)
    for above, below in ((p, q), (q, p), (1.0 - p, 1.0 - q), (1.0 - q, 1.0 - p)):
        # The curve is concave: a chord is below it, so no coin that breaks the claim is let in.
        keeps &= above <= np.interp(below, _GRID, edge) + 1e-12
    return p[keeps], q[keeps]


def assert_rarely_above(
    certificates: Sequence[Certificates],
    law: Disguise,
    truth: float,
    rng: np.random.Generator,
    *,
    n_fresh: int,
    runs: int,
    false_alarm: float,
) -> None:
    """Repeats the proofs of proposals on fresh draws of a distribution, one after the other.

    Given the proposal, every bound must hold with its own probability, so a few proposals are enough, and the same
    draws serve all failure probabilities. Several checks along the way share the false alarm: gross errors show early.
    """
    total = runs * len(certificates)
    looks = {max(total // part, 1) for part in _LOOKS} if total else set()
    above = dict.fromkeys(REPEATED, 0)
    for run in range(1, total + 1):
        each = certificates[run % len(certificates)]
        left, right = (each.proposal.tally(law.draw(side, n_fresh, rng), side) for side in (0, 1))
        for failure in REPEATED:
            above[failure] += each.bound(left, right, failure) > truth * (1.0 + _SLACK) + _SLACK
        for failure in REPEATED if run in looks else ():
            what = f"bounds above the truth {truth:.4g} at failure_probability={failure:g}, {law}"
            assert_rare(above[failure], run, failure, false_alarm / len(_LOOKS), what)
