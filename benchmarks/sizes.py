"""How much of its failure probability each test uses: the size, the probability that it refutes a true claim.

A size above the failure probability is a mistake, one far below is power given away. Exact sizes are sums over all
pairs of counts; where there are too many ways a run can go, audits of a coin that just keeps its claim are counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

import epsilometer as em
from epsilometer.bounds import Counts, certified_value
from epsilometer.claims import ApproxDeltaDP, Claim
from epsilometer.methods.base import Task
from epsilometer.methods.profile import ProfileMethod
from epsilometer.outputs import read_outputs

# Draws per side of the exact sizes, and the failure probabilities at which they are told.
EXACT_DRAWS = 20
FAILURES = (0.05, 0.5)
# Draws per side and runs of the simulated ones, at the larger failure probability, where slack shows most.
SIMULATED_DRAWS = 300
RUNS = 40
SIMULATED_FAILURE = 0.5
# Q(E) of the coin; P(E) is all that the claim allows.
RIGHT_SHARE = 0.3


@dataclass(frozen=True)
class Case:
    """A notion with a typical claim."""

    name: str
    claim: Claim

    @property
    def coin(self) -> tuple[float, float]:
        """Two probabilities that the claim just allows."""
        return float(self.claim.max_power(RIGHT_SHARE)), RIGHT_SHARE


CURVE = ([0.0, 0.3, 1.0], [1.0, 0.3, 0.0])
CASES = (
    Case("pure", em.PureDP(0.5)),
    Case("approx", em.ApproxDP(0.5, 0.01)),
    Case("approx, large δ", em.ApproxDP(0.2, 0.5)),
    Case("approx in δ", ApproxDeltaDP(0.5, 0.1)),
    Case("gaussian", em.GaussianDP(0.8)),
    Case("renyi", em.RenyiDP(2.0, 0.3)),
    Case("zcdp", em.ZCDP(0.2)),
    Case("trade-off", em.TradeOffDP(CURVE)),
)


def exact_size(case: Case, failure: float, n: int = EXACT_DRAWS) -> float:
    """The greatest probability over all coins that the claim just allows, with n draws of each side."""
    refuted = np.zeros((n + 1, n + 1))
    for y in range(n + 1):
        # More hits on the left are more evidence: the least count that refutes is found by halving.
        low, high = y, n + 1
        while low < high:
            x = (low + high) // 2
            bound = certified_value(case.claim, Counts(x, n), Counts(y, n), failure, case.coin)
            if bound > case.claim.value:
                high = x
            else:
                low = x + 1
        refuted[low:, y] = 1.0
    q = np.linspace(0.0, 1.0, 201)
    p = np.asarray(case.claim.max_power(q))
    counts = np.arange(n + 1)[:, None]
    sizes = np.einsum("xk,xy,yk->k", binom.pmf(counts, n, p), refuted, binom.pmf(counts, n, q))
    return float(sizes.max())


def exact_sizes() -> dict[str, dict[str, float]]:
    """Of the joint test of one event, for every notion and failure probability."""
    return {
        case.name: {f"{failure:g}": exact_size(case, failure) for failure in FAILURES}
        for case in CASES
    }


def simulated_sizes(runs: int = RUNS) -> dict[str, dict[str, float]]:
    """The share of audits of a coin at its claim that refute it, or bound it too high, for every notion and way in."""
    return {case.name: _simulated(case, runs) for case in CASES}


def _simulated(case: Case, runs: int) -> dict[str, float]:
    p, q = case.coin

    def coin(x: int, n: int, rng: np.random.Generator) -> Any:
        return (rng.random(n) < (p if x == 0 else q)).astype(int)

    mechanism, pair, n = em.from_batch(coin), em.Pair(0, 1), SIMULATED_DRAWS
    confidence = 1.0 - SIMULATED_FAILURE
    found: dict[str, list[bool]] = {}
    for seed in range(runs):
        common: dict[str, Any] = {"samples": n, "seed": seed, "confidence": confidence}
        rng = np.random.default_rng((seed, 1))
        audited = em.audit(mechanism, pair, case.claim, **common)
        refuted = {"audit": audited.is_refuted}
        again = {**common, "seed": seed + runs}
        refuted["replay"] = em.replay(audited, mechanism, samples=n, seed=seed + runs).is_refuted
        outputs = coin(0, n, rng), coin(1, n, rng)
        compared = em.compare(*outputs, claim=case.claim, seed=seed, confidence=confidence)
        refuted["compare"] = compared.is_refuted
        early = em.audit(mechanism, pair, case.claim, stop_early=True, **again)
        refuted["stop early"] = early.is_refuted
        if not isinstance(case.claim, em.TradeOffDP):
            measured = em.measure(
                mechanism, pair, notion=type(case.claim), **again, **case.claim.fixed()
            )
            refuted["measure"] = measured.lower_bound > case.claim.value
        if isinstance(case.claim, em.RenyiDP | em.ZCDP):
            bet = em.audit(mechanism, pair, case.claim, method="renyi-bet", **again)
            refuted["audit, renyi-bet"] = bet.is_refuted
        refuted["profile, this claim"] = em.audit(
            mechanism, pair, case.claim, method="profile", **again
        ).is_refuted
        refuted["profile, whole band"] = band_fails(case, coin, rng)
        for name, is_wrong in refuted.items():
            found.setdefault(name, []).append(is_wrong)
    return {name: sum(each) / len(each) for name, each in found.items()}


def band_fails(case: Case, coin: Any, rng: np.random.Generator) -> bool:
    """Whether any of the band's bounds on probabilities is wrong: what its failure probability is spent on."""
    n_train = SIMULATED_DRAWS // 3
    n_fresh = SIMULATED_DRAWS - n_train
    task = Task(case.claim, (n_fresh, n_fresh), SIMULATED_FAILURE)
    training = [read_outputs(coin(x, n_train, rng)) for x in (0, 1)]
    proposal = ProfileMethod().propose(training[0], training[1], task)
    tallies = [proposal.tally(read_outputs(coin(x, n_fresh, rng)), x) for x in (0, 1)]
    band = proposal.band(tallies[0], tallies[1], SIMULATED_FAILURE)
    # Which of the two outcomes each event has gives its true probabilities.
    shares = case.coin[::-1] if proposal.flipped else case.coin
    outcomes = read_outputs(np.array([0, 1]))
    for number, (p_lower, q_upper) in enumerate(zip(band.p_lower, band.q_upper, strict=True)):
        has = proposal.event_at(number).contains(outcomes)
        p, q = (math.fsum(([1.0 - share, share] * has).tolist()) for share in shares)
        if p_lower > p * (1.0 + 1e-12) or q_upper < q * (1.0 - 1e-12):
            return True
    return False
