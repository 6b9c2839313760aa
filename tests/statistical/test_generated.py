"""The log-likelihood ratios of generated mechanisms are exact, and audits of them stay true.

The side of each output is tossed by a fair coin. Given its log-ratio l, it is then left with probability 1/(1 + exp(−l)),
independently of all others; Bernstein's inequality bounds how far counts may be off. False alarm ≤ 1e-9 per test.
"""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.generated import LEAKS, generated
from benchmarks.generated.families import FAMILIES, family_member
from benchmarks.generated.oracle import find_oracle

import epsilometer as em

FALSE_ALARM = 1e-9
OUTPUTS = 20_000
BINS = 12
# Mechanisms per production.
MEMBERS = 3


def allowance(variance, false_alarm, largest=1.0):
    """By how much a sum of independent terms within ±largest may be off, on either side (Bernstein)."""
    log = math.log(2.0 / false_alarm)
    return math.sqrt(2.0 * variance * log + (largest * log / 3.0) ** 2) + largest * log / 3.0


def ratios_of_both_sides(mechanism, n, rng):
    """Log-ratios of n outputs, as the mechanism returns them, of sides by fair coins; and which are left."""
    n_left = int(rng.binomial(n, 0.5))
    function = mechanism.mechanism.function
    ratios = [
        mechanism.log_ratio(function(side, size, rng))
        for side, size in ((0, n_left), (1, n - n_left))
    ]
    return np.concatenate(ratios), np.arange(n) < n_left


def worst_bin(ratios, is_left, false_alarm):
    """The deviation of the count of left outputs over what is allowed, in the worst of the bins by log-ratio."""
    assert not np.isnan(ratios).any()
    chances = expit(ratios)
    order = np.argsort(ratios, kind="stable")
    edges = np.unique(ratios[order[:: len(order) // BINS]])
    places = np.searchsorted(edges, ratios, side="right")
    worst = 0.0
    # All outputs together are the last bin.
    for here in (*(places == place for place in np.unique(places)), np.full(len(ratios), True)):
        off = abs(float((is_left[here] - chances[here]).sum()))
        variance = float((chances[here] * (1.0 - chances[here])).sum())
        worst = max(worst, off / allowance(variance, false_alarm / (BINS + 3)))
    return worst


@pytest.mark.parametrize("leak", LEAKS)
def test_the_ratio_tells_how_often_an_output_is_left(leak, rng):
    for seed in range(100, 100 + MEMBERS):
        mechanism = generated(seed, leaks=[leak])
        ratios, is_left = ratios_of_both_sides(mechanism, OUTPUTS, rng)
        assert worst_bin(ratios, is_left, FALSE_ALARM / MEMBERS) <= 1.0, mechanism.description


def test_the_ratios_of_random_mechanisms_are_exact_in_every_layout(rng):
    mechanisms = {}
    for seed in range(400):
        mechanism = generated(seed)
        mechanisms.setdefault((mechanism.layout.name, len(mechanism.leaks)), mechanism)
    assert len(mechanisms) > 20
    for mechanism in mechanisms.values():
        ratios, is_left = ratios_of_both_sides(mechanism, OUTPUTS, rng)
        worst = worst_bin(ratios, is_left, FALSE_ALARM / len(mechanisms))
        assert worst <= 1.0, mechanism.description


@pytest.mark.parametrize("place", range(len(FAMILIES)))
def test_the_ratios_of_the_families_outside_the_grammar_are_exact(place, rng):
    for seed in (place, place + len(FAMILIES)):
        member = family_member(seed)
        n_left = int(rng.binomial(OUTPUTS, 0.5))
        sizes = n_left, OUTPUTS - n_left
        ratios = [
            member.log_ratio(member.mechanism.function(side, n, rng))
            for side, n in enumerate(sizes)
        ]
        worst = worst_bin(np.concatenate(ratios), np.arange(OUTPUTS) < n_left, FALSE_ALARM / 2)
        assert worst <= 1.0, member.description


@pytest.mark.parametrize(("factor", "shift"), [(1.0, 0.0), (1.3, 0.0), (-1.0, 0.0), (1.0, 0.2)])
def test_wrong_ratios_are_noticed(factor, shift, rng):
    """Normal noise around 0 and 1 has the log-ratio 1/2 − x."""
    is_left = rng.random(OUTPUTS) < 0.5
    ratios = 0.5 - (rng.normal(size=OUTPUTS) + ~is_left)
    is_noticed = worst_bin(factor * ratios + shift, is_left, FALSE_ALARM) > 1.0
    assert is_noticed == ((factor, shift) != (1.0, 0.0))


@pytest.mark.parametrize("leak", LEAKS)
def test_likelihood_ratios_change_one_side_into_the_other(leak, rng):
    """E_right[exp(l); l ≤ c] = P_left(l ≤ c), and the other way round; for c = 1 both are means of bounded terms."""
    mechanism = generated(7, leaks=[leak])
    function = mechanism.mechanism.function
    left, right = (mechanism.log_ratio(function(side, OUTPUTS, rng)) for side in (0, 1))
    for ours, theirs in ((left, right), (-right, -left)):
        shares = ours <= 1.0
        weights = np.where(theirs <= 1.0, np.exp(np.minimum(theirs, 1.0)), 0.0)
        off = abs(float(shares.sum() - weights.sum()))
        # Each share has a variance of at most 1/4; each weight, of mean ≤ 1 and within [0, e], of at most e − 1.
        variance = OUTPUTS * (0.25 + math.e - 1.0)
        assert off <= allowance(variance, FALSE_ALARM / 2.0, math.e), mechanism.description


@pytest.mark.parametrize("seed", range(12))
def test_true_claims_about_generated_mechanisms_are_not_refuted(seed, rng):
    """The claim is true but for 5e-10: δ(ε) is a mean of terms within [0, 1], with Hoeffding's margin."""
    mechanism = generated(seed)
    draws = 50_000
    left, right = (mechanism.draw_log_ratios(side, draws, rng) for side in (0, 1))
    deltas = [np.maximum(-np.expm1(0.5 - ratios), 0.0).mean() for ratios in (left, -right)]
    margin = math.sqrt(math.log(4.0 / FALSE_ALARM) / (2.0 * draws))
    claim = em.ApproxDP(0.5, min(1.0, max(deltas) + margin))
    result = em.audit(
        mechanism.mechanism,
        mechanism.pair,
        claim,
        samples=3000,
        confidence=1.0 - 0.25 * FALSE_ALARM,
        seed=int(rng.integers(2**31)),
    )
    assert result.verdict is not em.Verdict.REFUTED, mechanism.description


@pytest.mark.parametrize("seed", range(6))
def test_the_oracle_event_is_as_likely_as_it_says(seed, rng):
    """On fresh outputs, by the ratios that are read from them. The oracle's own luck is that of 400 000 draws."""
    mechanism = generated(seed)
    oracle = find_oracle(mechanism, 10_000, 400_000)
    sign = 1.0 if oracle.direction == "left" else -1.0
    function = mechanism.mechanism.function
    for side, chance in ((0, oracle.p), (1, oracle.q)):
        shown = side if oracle.direction == "left" else 1 - side
        ratios = sign * mechanism.log_ratio(function(shown, OUTPUTS, rng))
        hits = int((np.clip(ratios, -1000.0, 1000.0) >= oracle.threshold - 1e-8).sum())
        off = abs(hits - OUTPUTS * chance)
        # A twentieth more variance for the oracle's draws, and a hit for its thinned thresholds.
        assert off <= allowance(1.05 * OUTPUTS * chance * (1.0 - chance), FALSE_ALARM) + 1.0
