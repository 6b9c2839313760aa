"""Statistical tests that state their own false-alarm rate, and how often a bound may be wrong."""

import pickle
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

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

# Draws per side of the enumeration: (n + 1)² certificates, and enough for bounds well above 0 at
# the failure probabilities below.
N_ENUMERATED = 12
# Failure probabilities of the enumeration. A large one reveals a failure probability that is
# multiplied or spent twice, a small one that it is ignored.
FAILURES = (0.3, 0.05, 0.01)
# Failure probabilities of repeated certificates: at smaller ones too few fail to show anything.
REPEATED = (0.3, 0.05)
# Bounds and curves are computed in floats, some by bisection.
_SLACK = 1e-7
# Probabilities of the enumeration: dense at both ends, where the distributions of counts are
# skewed.
_GRID: Floats = np.unique(
    np.concatenate([np.linspace(0.0, 1.0, 41), np.geomspace(1e-3, 0.02, 8), [0.99, 0.999]])
)
# At most this many different bounds of a table are checked, to save time: the curves of some
# notions are slow.
_MAX_BOUNDS_CHECKED = 16
# Repeated certificates are checked after a twentieth, a sixth and half of them, and after all.
_CHECKED_AFTER_ONE_IN = (20, 6, 2, 1)
# A bound beyond this is practically infinite.
_LARGEST_BOUND = 50.0
# Rounding that is allowed between a coin and the claim that it keeps.
_CURVE_SLACK = 1e-12


def assert_rare(
    events: int,
    runs: int,
    rate: float,
    false_alarm: float = 1e-9,
    what: str = "events",
) -> None:
    """Asserts that events in independent runs are compatible with a probability ≤ rate.

    The tail is exactly binomial, without a normal approximation that breaks at small rates.

    Guarantee: exact. If every run has the event with probability ≤ rate, independently of the
        others (or given the others), the assertion fails with probability ≤ false_alarm.

    Args:
        events: how often the event was seen, an integer from 0 to runs.
        runs: number of independent runs, at least 1.
        rate: the promised greatest probability per run, between 0 and 1.
        false_alarm: the assertion fails only if the chance of at least this many events is below
            it.
        what: the name of the events, for the failure message.
    """
    if runs < 1 or not 0 <= events <= runs:
        raise InputError(
            f"events={events!r}, runs={runs!r}: events must be between 0 and runs, "
            "and runs at least 1"
        )
    if not 0 <= rate <= 1:
        raise InputError(f"rate={rate!r}: must be between 0 and 1")
    if not 0 < false_alarm < 1:
        raise InputError(f"false_alarm={false_alarm!r}: must be between 0 and 1, for example 1e-9")
    # P(at least this many events); betainc keeps its digits in the far tail, where bdtrc does not.
    chance = 1.0 if events == 0 else float(betainc(events, runs - events + 1, rate))
    assert chance >= false_alarm, (
        f"{events} {what} in {runs} runs, promised a rate of at most {rate:g}: "
        f"the chance of that many is {chance:.1e}, "
        f"below the false alarm {false_alarm:g} of this test"
    )


class Certificates:
    """The bounds of a proposal, each certified once: equal tallies have equal bounds.

    Only what a finding calls exact counts as a bound here; other findings promise nothing for every
    distribution.

    Args:
        proposal: which certifies.
        pair: of inputs, which findings name.
    """

    def __init__(self, proposal: Proposal, pair: Pair) -> None:
        self.proposal = proposal
        self.pair = pair
        self._known: dict[bytes, float] = {}

    def bound(self, left: Any, right: Any, failure_probability: float) -> float:
        """Returns the bound from two tallies; infinite if it is not a number."""
        try:
            key = pickle.dumps((left, right, failure_probability))
        except Exception:  # a tally of an unsupported type, which another test reports
            return self.certify(left, right, failure_probability)
        if key not in self._known:
            self._known[key] = self.certify(left, right, failure_probability)
        return self._known[key]

    def certify(self, left: Any, right: Any, failure_probability: float) -> float:
        """Returns the same as `bound`, always certified anew."""
        finding = self.proposal.certify(left, right, self.pair, failure_probability)
        if not finding.guarantee.startswith("exact"):
            return 0.0
        if np.isnan(finding.lower_bound):
            return float("inf")
        return float(finding.lower_bound)


def assert_no_excess(proposal: Proposal, claim: Claim, pair: Pair) -> None:
    """Adds up, for every coin, the chance that the bound is above the truth. Nothing is sampled.

    The bounds of all counts of a coin's faces make a table. For every value b in it, the coins
    whose truth is just below b must give a bound of b or more with probability at most the failure
    probability. A proposal whose bound depends on the order of the draws is not a function of the
    counts, and is left to `assert_rarely_above`.
    """
    tables = _bound_tables(proposal, pair)
    if tables is None:
        return
    for failure, table in tables.items():
        for worst in _worst_coins(table, claim):
            assert worst.probability <= failure * (1.0 + _SLACK), (
                f"{N_ENUMERATED} fresh draws of a coin with P = {worst.p:.4g} and "
                f"Q = {worst.q:.4g}, which keeps {claim.notion} "
                f"from {claim.symbol} = {worst.bound:.6g} on, "
                f"give a bound of at least that much with probability {worst.probability:.4g}, "
                f"where failure_probability={failure:g} was to be kept (enumerated, not sampled)"
            )


def _bound_tables(proposal: Proposal, pair: Pair) -> dict[float, Floats] | None:
    """Returns the bounds of all counts, by the failure probability.

    Returns:
        Tables of the shape (n + 1, n + 1), by the hits on the left and on the right; None if the
        bound depends on the order of the draws.
    """
    certificates = Certificates(proposal, pair)
    left = _tallies_by_hits(proposal, side=0, is_shuffled=False)
    right = _tallies_by_hits(proposal, side=1, is_shuffled=False)
    shuffled_left = _tallies_by_hits(proposal, side=0, is_shuffled=True)
    shuffled_right = _tallies_by_hits(proposal, side=1, is_shuffled=True)
    tables = {failure: np.empty((N_ENUMERATED + 1, N_ENUMERATED + 1)) for failure in FAILURES}
    # In a random order, so that a difference is found soon.
    all_hits = list(product(range(N_ENUMERATED + 1), repeat=2))
    for failure, hits in product(FAILURES, np.random.default_rng(0).permutation(all_hits)):
        left_hits, right_hits = hits
        bound = certificates.bound(left[left_hits], right[right_hits], failure)
        shuffled_bound = certificates.bound(
            shuffled_left[left_hits], shuffled_right[right_hits], failure
        )
        if bound != shuffled_bound:
            return None
        tables[failure][left_hits, right_hits] = bound
    return tables


def _tallies_by_hits(proposal: Proposal, side: int, is_shuffled: bool) -> list[Any]:
    """Returns the tallies of one side for 0, 1, …, n hits in n draws."""
    tallies = []
    for n_hits in range(N_ENUMERATED + 1):
        faces = np.arange(N_ENUMERATED) < n_hits
        if is_shuffled:
            faces = np.random.default_rng(n_hits).permutation(faces)
        tallies.append(proposal.tally(read_outputs(faces.tolist()), side))
    return tallies


class _WorstCoin(NamedTuple):
    """The coin that exceeds a bound most often although its truth is below it.

    Attributes:
        probability: of reaching the bound.
        bound: which is just above the coin's truth.
        p: the coin's probability on the left.
        q: the coin's probability on the right.
    """

    probability: float
    bound: float
    p: float
    q: float


def _worst_coins(table: Floats, claim: Claim) -> Iterator[_WorstCoin]:
    """Yields the worst coin for each of some bounds of a table."""
    counts = np.arange(N_ENUMERATED + 1)
    bounds = np.unique(table[table > _SLACK])
    n_checked = min(len(bounds), _MAX_BOUNDS_CHECKED)
    checked = np.unique(np.linspace(0, len(bounds) - 1, n_checked).astype(int))
    for bound in bounds[checked]:
        just_below = min(float(bound), _LARGEST_BOUND) * (1.0 - _SLACK)
        p, q = _coins_within(claim.with_value(just_below))
        left = binom.pmf(counts, N_ENUMERATED, p[:, None])
        right = binom.pmf(counts, N_ENUMERATED, q[:, None])
        is_reached = (table >= bound).astype(np.float64)
        probabilities = np.einsum("ci,ij,cj->c", left, is_reached, right)
        worst = int(np.argmax(probabilities))
        yield _WorstCoin(
            probability=float(probabilities[worst]),
            bound=float(bound),
            p=float(p[worst]),
            q=float(q[worst]),
        )


def _coins_within(claim: Claim) -> tuple[Floats, Floats]:
    """Returns coins that keep the claim.

    These are coins on the claim's curve in both directions, and coins that are equal on both sides.

    Returns:
        Their probabilities on the left and on the right, arrays of one shape.
    """
    curve = claim.max_power(_GRID)
    p = np.concatenate([curve, _GRID, _GRID])
    q = np.concatenate([_GRID, curve, _GRID])
    keeps = np.ones(len(p), dtype=bool)
    for power, level in ((p, q), (q, p), (1.0 - p, 1.0 - q), (1.0 - q, 1.0 - p)):
        # The curve is concave: a chord is below it, so no coin that breaks the claim is let in.
        keeps &= power <= np.interp(level, _GRID, curve) + _CURVE_SLACK
    return p[keeps], q[keeps]


def assert_rarely_above(
    certificates: Sequence[Certificates],
    distribution: Disguise,
    truth: float,
    rng: np.random.Generator,
    *,
    n_fresh: int,
    runs: int,
    false_alarm: float,
) -> None:
    """Asserts that the bounds of proposals are rarely above the truth, by repetition.

    Given the proposal, every bound must hold with its own probability, so a few proposals are
    enough, and the same draws serve all failure probabilities. Several checks along the way share
    the false alarm: gross errors show early.

    Args:
        certificates: of the proposals, which take turns.
        distribution: of the fresh draws.
        truth: the value that no bound may exceed.
        rng: for the fresh draws.
        n_fresh: draws per side of each certificate.
        runs: certificates of each proposal.
        false_alarm: of this assertion.
    """
    n_runs = runs * len(certificates)
    if n_runs == 0:
        return
    checked_runs = {max(n_runs // divisor, 1) for divisor in _CHECKED_AFTER_ONE_IN}
    n_above = dict.fromkeys(REPEATED, 0)
    for run in range(1, n_runs + 1):
        certificate = certificates[run % len(certificates)]
        left = certificate.proposal.tally(distribution.draw(0, n_fresh, rng), 0)
        right = certificate.proposal.tally(distribution.draw(1, n_fresh, rng), 1)
        for failure in REPEATED:
            if certificate.bound(left, right, failure) > truth * (1.0 + _SLACK) + _SLACK:
                n_above[failure] += 1
        if run in checked_runs:
            for failure in REPEATED:
                assert_rare(
                    events=n_above[failure],
                    runs=run,
                    rate=failure,
                    false_alarm=false_alarm / len(_CHECKED_AFTER_ONE_IN),
                    what=(
                        f"bounds above the truth {truth:.4g} "
                        f"at failure_probability={failure:g}, {distribution}"
                    ),
                )
