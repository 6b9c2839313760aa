"""Whether an audit could have refuted its claim at all.

"Not refuted" is read as "fine". So an audit that could not have refuted anything says so. There are
two reasons:

* **Too few draws.** Even an event with all certification draws of one input and none of the other
  would not refute the claim. That is computed, not simulated.
* **Nothing to count.** No two outputs have anything in common, and nothing was read out of them.

Which sizes are too few follows from the likelihood of such perfect counts. Under a claim, n left
draws all hit an event of probability p and m right draws all miss an event of probability q with
probability p^n·(1 − q)^m. An exact test that spends f cannot reject on these counts if a pair
(p, q) that the claim allows makes them likelier than f. If none does, the certificate of the method
itself is asked.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from epsilometer.arrays import Floats
from epsilometer.auditing.settings import FEWEST, training_size
from epsilometer.bounds import Counts, certified_value
from epsilometer.bounds.betting import place_bets
from epsilometer.bounds.two_counts import epsilon_test
from epsilometer.claims import ZCDP, Claim, RenyiDP
from epsilometer.claims.pure import HockeyStickClaim
from epsilometer.guarantees import GuaranteeKind, parse_guarantee
from epsilometer.inputs import Pair
from epsilometer.methods import Proposal
from epsilometer.methods.base import Candidate, CandidateProposal
from epsilometer.methods.bits import BITS_SHARE, ProposalWithBits
from epsilometer.methods.events import EventProposal
from epsilometer.methods.profile import ProfileProposal
from epsilometer.methods.renyi_bet import MOST_STAKE, ZCDP_ORDERS, BetProposal
from epsilometer.methods.sequential import WEIGHT_OF_TRAINING_DRAW, Stake, guesses, ladder_of
from epsilometer.methods.sequential import Options as SequentialOptions
from epsilometer.outputs import Outputs, concatenate
from epsilometer.outputs.columns import Column, Numbers
from epsilometer.outputs.text_reading import TextReading

# More draws per side than anybody can make: no larger number is tried. The search for the least one
# multiplies by four, so that it has tried a number above a quarter of this one.
_MOST_DRAWS = 10**15
# What has certainly been tried then, as a sentence says it.
_TRIED_DRAWS = "10^14"
# Probabilities q at which the likelihood of perfect counts is computed, evenly spread on the logit
# scale: the likeliest one is missed by less than 0.2 % of its logarithm.
_LOGITS = np.linspace(-40.0, 40.0, 801)
# Of these, one in so many is computed for curves that take long.
_EVERY = 8
# Where perfect counts are so unlikely under the claim, in units of the logarithm of the failure
# probability, the certificate of a curve need not be asked: it loses less to its coarseness.
_CLEARLY = 1.1
# Claims whose curves are kept: a rehearsal asks again and again.
_MOST_CURVES = 64
# How an audit stops early unless it is told otherwise.
_SEQUENTIAL = SequentialOptions()
# e^700 is near the largest float; a larger ε counts as 700.
_MAX_EXPONENT = 700.0
_PAIR = Pair("left", "right")


class LikeliestAllowed(NamedTuple):
    """The probabilities under which a claim makes perfect counts likeliest.

    Attributes:
        p: of the event on the left, whose draws all hit it.
        q: of the event on the right, whose draws all miss it.
        log_likelihood: the logarithm of p^n·(1 − q)^m.
    """

    p: float
    q: float
    log_likelihood: float


class _Curve(NamedTuple):
    """Points of a claim's curve: q, p and their logarithms, shape (points,) each."""

    q: Floats
    p: Floats
    log_p: Floats
    log_miss: Floats


@lru_cache(maxsize=_MOST_CURVES)
def _curve_of(claim: Claim, of_event_alone: bool) -> _Curve:
    logits = _LOGITS
    if isinstance(claim, HockeyStickClaim):
        # Where the line reaches 1 it has a corner, which is the likeliest point.
        least = -math.expm1(-min(claim.epsilon, _MAX_EXPONENT) + math.log1p(-claim.delta))
        if 0.0 < least < 1.0:
            logits = np.append(logits, math.log1p(-least) - math.log(least))
    q = np.asarray(expit(logits), dtype=np.float64)
    if of_event_alone and isinstance(claim, HockeyStickClaim):
        slope = math.exp(min(claim.epsilon, _MAX_EXPONENT))
        p = np.minimum(slope * q + claim.delta, 1.0)
    elif isinstance(claim, RenyiDP | ZCDP):
        # Slow to compute. The curve is concave, so that it lies above its chords.
        known = q[::_EVERY]
        p = np.interp(q, known, np.asarray(claim.max_power(known), dtype=np.float64))
    else:
        p = np.clip(np.asarray(claim.max_power(q), dtype=np.float64), 0.0, 1.0)
    with np.errstate(divide="ignore"):
        # 1 − q loses its digits near 1: it is the same function of the opposite logit.
        return _Curve(q=q, p=p, log_p=np.log(p), log_miss=np.log(expit(-logits)))


def likeliest_allowed(
    claim: Claim, n_left: int, n_right: int, *, of_event_alone: bool = False
) -> LikeliestAllowed:
    """The pair of probabilities, allowed by the claim, under which perfect counts are likeliest.

    All left draws hit the event and no right draw does.

    Args:
        claim: the claim.
        n_left: left draws.
        n_right: right draws.
        of_event_alone: whether an (ε, δ) claim is tested on the event alone, and not on its
            complement too, as by our certificate.

    Guarantee: the likelihood is at most the supremum over all pairs that the claim allows. So an
        exact test that spends less than it cannot refute the claim by any event.
    """
    curve = _curve_of(claim, of_event_alone)
    log_likelihood = n_left * curve.log_p + n_right * curve.log_miss
    best = int(np.argmax(log_likelihood))
    return LikeliestAllowed(
        p=float(curve.p[best]), q=float(curve.q[best]), log_likelihood=float(log_likelihood[best])
    )


def perfect_event_refutes(claim: Claim, n_left: int, n_right: int, failure: float) -> bool:
    """Whether an event with all left draws and none of the right ones refutes a claim.

    Args:
        claim: the claim.
        n_left: left draws of the certificate.
        n_right: right draws of it.
        failure: the failure probability that it spends.
    """
    if n_left < 1 or n_right < 1:
        return False
    likeliest = likeliest_allowed(claim, n_left, n_right, of_event_alone=True)
    if likeliest.log_likelihood > math.log(failure):
        return False
    if likeliest.log_likelihood < _CLEARLY * math.log(failure):
        return True
    always = Counts(n_left, n_left)
    never = Counts(0, n_right)
    if isinstance(claim, HockeyStickClaim) and claim.parameter == "epsilon":
        test = epsilon_test(always, never, failure, claim.delta)
        return test.rejects(claim.epsilon, claim.delta)
    # Of all lines that a curve is tested by, the one through this point is the best.
    expected = (likeliest.p, likeliest.q)
    return certified_value(claim, always, never, failure, expected) > claim.value


def perfect_bet_refutes(claim: RenyiDP | ZCDP, n_left: int, n_right: int, failure: float) -> bool:
    """Whether one bet on a score that separates the sides perfectly refutes a divergence.

    The best score is 0 on the event and so low elsewhere that a right draw costs nothing. A stake
    of λ then multiplies the wealth by 1 + λ·n/m for every right draw, and the greatest divergence
    that can be bet against is ln(1 + m/(n·λ)). A larger score on the event gains on the left draws
    less than it loses there.

    Args:
        claim: the claim.
        n_left: left draws of the certificate.
        n_right: right draws of it.
        failure: the failure probability that it spends.
    """
    order = claim.order if isinstance(claim, RenyiDP) else min(ZCDP_ORDERS)
    growth = order / (order - 1.0)
    needed = -math.log(failure)
    stake = n_right / n_left * math.expm1(needed / n_right)
    most_stake = MOST_STAKE / growth
    if stake <= most_stake:
        divergence = math.log1p(n_right / (n_left * stake))
    else:
        # The left draws must win what the right ones cannot.
        missing = needed - n_right * math.log1p(most_stake * n_left / n_right)
        score = math.log1p(math.expm1(missing / n_left) / (most_stake * growth))
        divergence = math.log1p(n_right / (n_left * most_stake)) - growth * score
    claimed = claim.value if isinstance(claim, RenyiDP) else claim.value * order
    return divergence > claimed


def perfect_bets_refute(
    claim: Claim,
    samples: int,
    failure: float,
    pilot: int | None = None,
    growth: float = _SEQUENTIAL.growth,
) -> bool:
    """Whether a sequential audit refutes a claim if its event always tells the inputs apart."""
    needed = _draws_of_perfect_bets(claim, samples, failure, pilot, growth)
    return needed is not None


def _draws_of_perfect_bets(
    claim: Claim, samples: int, failure: float, pilot: int | None, growth: float
) -> int | None:
    """Draws per side after which perfect bets have refuted a claim; None if that takes more.

    The bets are those of `epsilometer.auditing.sequential` on counts that are known beforehand.

    Args:
        claim: the claim.
        samples: the most draws per side.
        failure: the failure probability.
        pilot: draws per side that choose the event; None for the default.
        growth: each batch is this fraction of all draws so far.
    """
    if likeliest_allowed(claim, samples, samples).log_likelihood > math.log(failure):
        return None
    spent = pilot or _SEQUENTIAL.pilot_size(samples)
    lines = ladder_of(claim).claim_lines()
    candidate = Candidate(
        event=None,  # type: ignore[arg-type]  # nothing is drawn, so nothing is looked up in it
        flipped=False,
        p=(spent + 0.5) / (spent + 1.0),
        q=0.5 / (spent + 1.0),
        predicted=0.0,
    )
    stake = Stake(candidate, weight=WEIGHT_OF_TRAINING_DRAW * spent)
    log_wealth = 0.0
    while spent < samples:
        size = min(max(1, int(growth * spent)), samples - spent)
        (p,), (q,) = guesses([stake], lines)
        bet = place_bets(lines, float(p), float(q), size, size)
        always = Counts(size, size)
        never = Counts(0, size)
        log_wealth += float(bet.log_wealth(always, never)[0])
        stake.left = stake.left + always
        stake.right = stake.right + never
        spent += size
        if log_wealth >= -math.log(failure):
            return spent
    return None


def perfect_counts_refute(
    proposal: Proposal,
    claim: Claim,
    guarantee: str,
    *,
    n_left: int,
    n_right: int,
    failure: float,
    is_auto: bool,
) -> bool | None:
    """Whether a method refutes its claim if its event always tells the inputs apart.

    Args:
        proposal: of the method.
        claim: what it is to refute.
        guarantee: of its bound.
        n_left: left draws of the certificate.
        n_right: right draws of it.
        failure: the failure probability that it spends.
        is_auto: whether the method may also bet, or count an event, if that is better.

    Returns:
        None if that is not known.
    """
    if isinstance(proposal, ProposalWithBits):
        return perfect_counts_refute(
            proposal.values,
            claim,
            guarantee,
            n_left=n_left,
            n_right=n_right,
            failure=failure * (1.0 - BITS_SHARE),
            is_auto=is_auto,
        )
    if parse_guarantee(guarantee).kind is not GuaranteeKind.EXACT:
        return None
    # Either input may be the one that the event happens for.
    for n, m in {(n_left, n_right), (n_right, n_left)}:
        if _refutes_one_way(proposal, claim, n, m, failure, is_auto=is_auto):
            return True
    sizes = (n_left, n_right)
    is_impossible = all(
        likeliest_allowed(claim, n, m).log_likelihood > math.log(failure)
        for n, m in (sizes, sizes[::-1])
    )
    if is_impossible or _is_counted(proposal):
        return False
    return None


def _is_counted(proposal: Proposal) -> bool:
    """Whether perfect counts of the method were tried, instead of a limit for all exact tests."""
    return isinstance(proposal, CandidateProposal | ProfileProposal | BetProposal)


def _refutes_one_way(
    proposal: Proposal, claim: Claim, n: int, m: int, failure: float, *, is_auto: bool
) -> bool:
    """Whether perfect counts of n likelier and m other draws refute the claim."""
    if isinstance(proposal, ProfileProposal):
        return _perfect_band_refutes(proposal, n, m, failure)
    if isinstance(proposal, BetProposal) or (is_auto and isinstance(claim, RenyiDP | ZCDP)):
        if type(proposal) not in (BetProposal, EventProposal):
            return _certifies(proposal, n, m, failure)
        assert isinstance(claim, RenyiDP | ZCDP)
        if perfect_bet_refutes(claim, n, m, failure):
            return True
        if not is_auto:
            return False
        return perfect_event_refutes(claim, n, m, failure)
    if type(proposal) is EventProposal:
        return perfect_event_refutes(claim, n, m, failure)
    return _certifies(proposal, n, m, failure)


def _certifies(proposal: Proposal, n: int, m: int, failure: float) -> bool:
    """Whether the method's own certificate refutes the claim with perfect counts of its event."""
    if not isinstance(proposal, CandidateProposal):
        return False
    expected = replace(proposal.candidate, p=1.0, q=0.0)
    perfect = replace(proposal, candidate=expected)
    above = Counts(n, n)
    below = Counts(0, m)
    left, right = expected.oriented(above, below)
    finding = perfect.certify(left, right, _PAIR, failure)
    return finding.lower_bound > proposal.task.claim.value


def _perfect_band_refutes(proposal: ProfileProposal, n: int, m: int, failure: float) -> bool:
    """Whether a band refutes the claim if all its events hold all likelier draws and no other."""
    above = np.zeros(proposal.n_events + 1, dtype=np.int64)
    below = above.copy()
    above[0] = n
    below[-1] = m
    left, right = (below, above) if proposal.flipped else (above, below)
    band = proposal.band(left, right, failure)
    return band.value(proposal.task.claim) > proposal.task.claim.value


# --- nothing to count ---


def count_unread(left: Outputs, right: Outputs, reading: TextReading | None = None) -> int:
    """How many outputs were looked at, if no two of them have anything in common; 0 otherwise.

    Such outputs are texts of which none occurs twice, and of which no part was read that does. An
    event is a set of values that were seen, so it would hold no fresh draw of either side.

    Args:
        left: training outputs, as they come.
        right: training outputs.
        reading: how the method read them; None if it takes them as they come.
    """
    raw = concatenate([left, right])
    outputs = raw if reading is None else reading.read(raw)
    if len(outputs) < 2 or len(outputs.blocks) != 1 or not raw.blocks[0].columns:
        return 0
    if not all(_never_repeats(column) for column in outputs.blocks[0].columns):
        return 0
    return len(outputs)


def _never_repeats(column: Column) -> bool:
    if isinstance(column, Numbers):
        return False
    return len(np.unique(column.codes)) == len(column)


# --- the sentence ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many draws an audit had.

    Attributes:
        samples: draws per side of the whole audit.
        n_fresh: draws of left and right that certify.
        training: the draws that learned; None if there were none.
    """

    samples: int
    n_fresh: tuple[int, int]
    training: tuple[Outputs, Outputs] | None

    def samples_for(self, n_fresh: int) -> int:
        """Draws per side of an audit like this one that certifies with so many of them."""
        training = self.training or ()
        usual = self.samples - training_size(self.samples, *training)
        if self.training is None or usual != min(self.n_fresh):
            # Pairs were explored, or the method has sizes of its own: the same proportions.
            return max(n_fresh, math.ceil(n_fresh * self.samples / max(min(self.n_fresh), 1)))
        most = 2 * n_fresh + FEWEST
        return bisect_left(
            range(most), True, n_fresh, key=lambda n: n - training_size(n, *training) >= n_fresh
        )


def least_number(is_enough: Callable[[int], bool]) -> int | None:
    """The least whole number from 1 on that is enough; None if none below 10^15 is."""
    high = 1
    while not is_enough(high):
        high = 4 * high
        if high > _MOST_DRAWS:
            return None
    return bisect_left(range(high + 1), True, 1, key=is_enough)


def draws_of_an_audit(claim: Claim, failure: float) -> int | None:
    """Draws per side of an audit in which an event that always tells the inputs apart refutes.

    Training included. None if no number is enough.

    Args:
        claim: the claim.
        failure: the failure probability of the audit.
    """
    n_fresh = least_number(lambda n: perfect_event_refutes(claim, n, n, failure))
    if n_fresh is None:
        return None
    most = 2 * n_fresh + FEWEST
    samples = bisect_left(range(most), True, n_fresh, key=lambda n: n - training_size(n) >= n_fresh)
    return max(samples, FEWEST)


def blind_by_counts(
    proposal: Proposal,
    claim: Claim,
    guarantee: str,
    sizes: Sizes,
    failure: float,
    *,
    is_auto: bool,
) -> str | None:
    """The sentence about an audit with too few draws; None if a perfect event would refute.

    Args:
        proposal: what was certified.
        claim: what it was to refute.
        guarantee: of its bound.
        sizes: how many draws there were.
        failure: the failure probability that was spent.
        is_auto: whether the method may also bet, or count an event, if that is better.
    """

    def refutes(n_left: int, n_right: int) -> bool | None:
        return perfect_counts_refute(
            proposal,
            claim,
            guarantee,
            n_left=n_left,
            n_right=n_right,
            failure=failure,
            is_auto=is_auto,
        )

    if refutes(*sizes.n_fresh) is not False:
        return None
    needed = least_number(lambda n: refutes(n, n) is not False)
    samples = None if needed is None else sizes.samples_for(needed)
    return _too_few(claim, samples, sizes.samples)


def blind_by_bets(
    claim: Claim, samples: int, failure: float, pilot: int, growth: float
) -> str | None:
    """The same about an audit that stops early.

    Args:
        claim: the claim.
        samples: draws per side that were spent.
        failure: the failure probability.
        pilot: how many of these draws chose the event.
        growth: of the batches.
    """
    if perfect_bets_refute(claim, samples, failure, pilot, growth):
        return None
    return _too_few(claim, draws_of_perfect_bets(claim, failure), samples)


def draws_of_perfect_bets(claim: Claim, failure: float) -> int | None:
    """Draws per side after which perfect bets have refuted a claim; None if none are enough."""
    least = least_number(
        lambda n: likeliest_allowed(claim, n, n).log_likelihood <= math.log(failure)
    )
    if least is None:
        return None
    # Bets on an event that is known from the start lose at most some factors to a fixed number of
    # draws, so this ends.
    most = max(100, 100 * least)
    return _draws_of_perfect_bets(claim, most, failure, None, _SEQUENTIAL.growth)


def _too_few(claim: Claim, needed: int | None, samples: int) -> str:
    claimed = claimed_value(claim)
    if needed is None and float(np.asarray(claim.max_power(np.zeros(1)))[0]) >= 1.0:
        return (
            f"no number of draws refutes {claimed}: such a claim allows outputs that tell the "
            "inputs apart always"
        )
    draws = f"more than {_TRIED_DRAWS}" if needed is None else f"{needed:,}"
    return (
        f"even an event that always tells the inputs apart needs {draws} draws per side for "
        f"{claimed}, and this audit had {samples:,}"
    )


# How a sentence introduces the parameters that stay fixed.
_FIXED = {"delta": "δ = ", "epsilon": "ε = ", "order": "order "}


def claimed_value(claim: Claim) -> str:
    """What is claimed, in short: "ε = 8 at δ = 1e-05"."""
    if claim.notion == "tradeoff":
        return "this trade-off curve"
    fixed = [f"{_FIXED.get(name, f'{name} = ')}{value:g}" for name, value in claim.fixed().items()]
    at = f" at {' and '.join(fixed)}" if fixed else ""
    return f"{claim.symbol} = {claim.value:g}{at}"


def blind_by_outputs(
    training: tuple[Outputs, Outputs] | None, reading: TextReading | None = None
) -> str | None:
    """The sentence about outputs of which nothing can be counted; None if something can.

    Args:
        training: the draws that learned; None if there were none.
        reading: how the method read them; None if it takes them as they come.
    """
    n_unread = 0 if training is None else count_unread(*training, reading)
    if not n_unread:
        return None
    return (
        f"no text of {n_unread:,} outputs came twice and nothing was read out of them, so no leak "
        "of any size could show: give features= that read them"
    )
