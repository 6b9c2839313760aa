"""The second opinion: against exact fractions, against our own bounds, against changed files."""

import copy
import json
import math
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import epsilometer as em
from epsilometer import checker
from epsilometer.bounds import Counts, refuted_line, two_bounds_value
from epsilometer.bounds.anytime import anytime_lower
from epsilometer.bounds.betting import place_bets
from epsilometer.bounds.supremum import NullLine, evenly_spread, region_probability
from epsilometer.bounds.two_counts import delta_lower, delta_test, epsilon_lower, epsilon_test
from epsilometer.claims import from_dict
from epsilometer.methods.events import line_as_data
from epsilometer.methods.sequential import ladder_of

PAIR = em.Pair(0, 1)
CURVE = ([0.0, 0.1, 0.4, 1.0], [0.8, 0.6, 0.3, 0.0])
CLAIMS = {
    "pure": em.PureDP(1.0),
    "approx": em.ApproxDP(1.0, 1e-3),
    "gaussian": em.GaussianDP(0.5),
    "curve": em.GaussianDP.from_approx(1.0, 1e-3),
    "renyi": em.RenyiDP(2.0, 0.5),
    "zcdp": em.ZCDP(0.2),
    "tradeoff": em.TradeOffDP(lambda error: (1.0 - error) ** 2),
    "points": em.TradeOffDP(CURVE),
}


def laplace(scale=0.4):
    return em.from_batch(lambda x, n, rng: x + rng.laplace(0.0, scale, n))


def answers(x, n, rng):
    return np.where(rng.random(n) < (0.9 if x else 0.3), "a", "b")


def mixed(x, n, rng):
    return [None if rng.random() < 0.2 + 0.5 * x else float(rng.normal()) for _ in range(n)]


def vectors(x, n, rng):
    drawn = rng.laplace(0.0, 0.3, (n, 3))
    drawn[:, 1] += x
    return drawn


def _audit(claim=CLAIMS["pure"], mechanism=None, samples=3000, **keywords):
    return em.audit(mechanism or laplace(), PAIR, claim, samples=samples, seed=3, **keywords)


def _wanted():
    """Every exact method and notion whose proof is a function of what a result stores."""
    wanted = {
        f"events {name}": (lambda claim=claim: _audit(claim)) for name, claim in CLAIMS.items()
    }
    wanted |= {
        f"profile {name}": (lambda claim=CLAIMS[name]: _audit(claim, method="profile"))
        for name in ("pure", "gaussian", "tradeoff")
    }
    wanted |= {
        f"method {name}": (lambda name=name: _audit(em.PureDP(0.5), method=name))
        for name in ("hockey-stick", "poisson-histogram", "renyi-variational", "bits")
    }
    wanted |= {
        "renyi-bet": lambda: _audit(CLAIMS["renyi"], method="renyi-bet"),
        "names": lambda: _audit(mechanism=em.from_batch(answers)),
        "mixed": lambda: _audit(mechanism=em.from_batch(mixed)),
        "vectors": lambda: _audit(mechanism=em.from_batch(vectors)),
        "both views": lambda: _audit(representation="all"),
        "not refuted": lambda: _audit(mechanism=laplace(1.0)),
        "deterministic": lambda: _audit(
            mechanism=em.from_batch(lambda x, n, rng: np.full(n, float(x)))
        ),
        "measured": lambda: em.measure(laplace(), PAIR, em.PureDP, samples=3000, seed=1),
        "measured delta": lambda: em.measure(
            laplace(), PAIR, em.ApproxDP, epsilon=0.5, samples=3000, seed=1
        ),
        "compared": lambda: em.compare(
            np.arange(300.0) + 150, np.arange(400.0), em.PureDP(1.0), seed=0
        ),
        "searched": lambda: em.audit(
            laplace(1.1),
            em.finders.Random(em.domains.Number(0, 1), trials=4, samples=500, seed=0),
            em.PureDP(1.0),
            samples=2000,
            seed=1,
        ),
    }
    return wanted


WANTED = _wanted()


@pytest.fixture(scope="module")
def stored():
    """Results as plain data, made when they are asked for."""
    made = {}

    def get(name):
        if name not in made:
            made[name] = json.loads(WANTED[name]().to_json())
        return copy.deepcopy(made[name])

    return get


# What the arithmetic rests on.


def _tail(n, p, k):
    p = Fraction(p)
    return sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(max(k, 0), n + 1))


@pytest.mark.parametrize("widest", [math.inf, 0.0])
@pytest.mark.parametrize("p", [1e-9, 0.01, 0.3, 0.5, 0.97, 1.0 - 1e-9])
@pytest.mark.parametrize("n", [1, 7, 40])
def test_tails_are_never_below_exact_ones(n, p, widest):
    tail = checker.BinomialTail(n, p, widest)
    for k in range(-1, n + 2):
        exact = _tail(n, p, k)
        assert tail.at_least(k) >= exact
        if widest == math.inf:
            assert tail.at_least(k) <= exact * (1 + Fraction(1, 10**5)) + Fraction(1, 10**20)


@pytest.mark.parametrize(("x", "n", "y", "m"), [(9, 12, 1, 10), (14, 14, 0, 9), (6, 8, 2, 20)])
def test_the_p_value_of_the_ratio_test_is_a_supremum(x, n, y, m):
    """A naive twin in fractions: the same region at many values of q is never more likely than the checker says."""
    failure, epsilon = 0.1, 0.4
    level = failure * 0.98
    z = checker._NORMAL.inv_cdf(1.0 - level)
    score = _score_ratio(x, y, z)
    region = [
        (a, b) for a in range(n + 1) for b in range(m + 1) if _score_ratio(a, b, z) >= score - 1e-9
    ]
    below = checker.HitCounts(y, m)
    ends = checker.lower_limit(below, failure / 100), checker.upper_limit(below, failure / 100)
    grow = Fraction(math.exp(epsilon))
    found = []
    for q in np.linspace(*ends, 25):
        right = Fraction(float(q))
        left = min(grow * right, Fraction(1))
        masses = [
            [math.comb(size, k) * share**k * (1 - share) ** (size - k) for k in range(size + 1)]
            for size, share in ((n, left), (m, right))
        ]
        found.append(float(sum(masses[0][a] * masses[1][b] for a, b in region)))
    line = checker.SupportLine(math.exp(epsilon), 0.0, slope_is_fixed=False)
    needed = checker.failure_to_refute_line(line, checker.HitCounts(x, n), below, failure)
    said = needed - failure / 50
    assert max(found) <= said * (1 + 1e-9)
    assert said <= max(max(found), level) * 1.01


def _score_ratio(x, y, z):
    if x == 0:
        return 0.0
    middle = 2.0 * x * y + z * z * (x + y)
    return 2.0 * x * x / (middle + math.sqrt(max(middle * middle - 4.0 * y * y * x * x, 0.0)))


# Our own bounds.


def _random_counts(rng, most):
    n, m = (int(10 ** rng.uniform(1.0, most)) for _ in range(2))
    q = float(10 ** rng.uniform(-3, -0.2))
    p = min(q * float(np.exp(rng.uniform(0.2, 4.0))), 1.0)
    return (int(rng.binomial(n, p)), n), (int(rng.binomial(m, q)), m)


def _failure_of(claim, bound, above, below, failure):
    """The failure probability at which the counts refute a claim of lines at this bound."""
    return checker.failure_to_refute_line(
        claim.line_at(bound), checker.HitCounts(*above), checker.HitCounts(*below), failure
    )


@pytest.mark.parametrize("number", range(24))
def test_what_our_ratio_test_proves_is_proved_and_no_more(number):
    rng = np.random.default_rng([17, number])
    above, below = _random_counts(rng, 8.0 if number % 10 == 0 else 4.5)
    failure, delta = (
        float(rng.choice([0.05, 0.01, 0.2, 1e-6])),
        float(rng.choice([0.0, 1e-3, 0.05])),
    )
    sides = Counts(*above), Counts(*below)
    epsilon = epsilon_lower(*sides, failure, delta)
    fixed = checker.StatedClaim("approx", 1.0, delta=delta)
    if epsilon > 0.0:
        assert _failure_of(fixed, epsilon, above, below, failure) <= failure * 1.005
        _assert_no_more(epsilon_test(*sides, failure, delta), fixed, epsilon, above, below, failure)
    excess = delta_lower(*sides, failure, 0.3)
    if excess > 0.0:
        fixed = checker.StatedClaim("approx-delta", 0.1, epsilon=0.3)
        assert _failure_of(fixed, excess, above, below, failure) <= failure * 1.005
        _assert_no_more(delta_test(*sides, failure, 0.3), fixed, excess, above, below, failure)


def _assert_no_more(test, claim, bound, above, below, failure):
    """Raised until the probability of the region itself, at single points of q, is clearly above the level."""
    q = evenly_spread(test.q_range, 9)
    for factor in (1.01, 1.02, 1.05) if max(above[1], below[1]) < 50_000 else ():
        line = claim.line_at(bound * factor)
        power = NullLine(line.slope, line.shift).power(q)
        if region_probability(test.region, power, q, 100_000).max() > test.level * 1.02:
            assert _failure_of(claim, bound * factor, above, below, failure) > failure * 1.005


def _read_claim(claim):
    return checker._read_claim(json.loads(json.dumps(claim.to_dict())))


@pytest.mark.parametrize("number", range(12))
def test_what_two_bounds_prove_is_proved_and_no_more(number):
    rng = np.random.default_rng([18, number])
    above, below = _random_counts(rng, 6.0 if number % 5 == 0 else 4.0)
    share = float(rng.uniform(0.1, 0.9))
    for name in ("gaussian", "renyi", "points", *(["zcdp"] if number % 10 == 0 else [])):
        claim = CLAIMS[name]
        bound = two_bounds_value(claim, Counts(*above), Counts(*below), 0.05, share)
        if not 0.05 < bound < math.inf:
            continue
        read = _read_claim(claim)
        sides = checker.HitCounts(*above), checker.HitCounts(*below)
        for factor, proved in ((1.0, True), (1.02, False)):
            finding = checker.StoredFinding("events", bound * factor, "exact", 0.05, read, {})
            needed = checker._failure_of_two_limits(finding, *sides, share)
            assert (needed <= 0.05 * 1.005) is proved, (name, factor)


@pytest.mark.parametrize("number", range(10))
def test_what_a_line_proves_is_proved_and_no_more(number):
    rng = np.random.default_rng([20, number])
    above, below = _random_counts(rng, 3.5)
    if number % 2:  # frequent events: lines of the complement
        above, below = ((n - k, n) for k, n in (below, above))
    for name in ("gaussian", "renyi", "points", "tradeoff", *(["zcdp"] if number % 5 == 0 else [])):
        claim, expected = CLAIMS[name], tuple(hits / trials for hits, trials in (above, below))
        line = refuted_line(claim, Counts(*above), Counts(*below), 0.05, expected)
        bound = line.proves(claim) if line else 0.0
        if not bound > 0.01:
            continue
        details = json.loads(json.dumps(line_as_data(line, claim)))
        read = _read_claim(claim)
        higher = (
            [line.slope, line.shift * 1.2]
            if line.fixed == "slope"
            else [line.slope * 1.2, line.shift]
        )
        wrong = details | {"line": higher}
        for factor, proof, proved in (
            (1.0, details, True),
            (1.05, details, False),
            (1.05, wrong, False),
        ):
            finding = checker.StoredFinding(
                method="events",
                bound=bound * factor,
                guarantee="exact",
                failure=0.05,
                claim=read,
                details=proof,
                above=checker.HitCounts(*above),
                below=checker.HitCounts(*below),
            )
            try:
                holds = checker.prove_by_event(finding).failure <= 0.05 * 1.005
            except checker.DoesNotHold:
                holds = False
            assert holds is proved, (name, factor)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["pure", "approx", "gaussian"])
def test_bets_of_a_sequential_audit(name, seed):
    """Batches as an audit stores them, of one event or of two at a time."""
    rng = np.random.default_rng([19, seed])
    claim, failure = CLAIMS[name], 0.05
    ladder = ladder_of(claim)
    wealth = best = np.zeros(len(ladder.values))
    bets = []
    for number, size in enumerate((20, 20, 30, 40, 50, 60, 80), start=1):
        won = []
        guesses = [(0.7, 0.7, 0.15), (0.3, 0.6, 0.2)] if seed % 2 else [(1.0, 0.7, 0.15)]
        for place, (share, p, q) in enumerate(guesses):
            left, right = (Counts(int(rng.binomial(size, each)), size) for each in (0.7, 0.15))
            won.append(
                np.log(share) + place_bets(ladder.lines, p, q, size, size).log_wealth(left, right)
            )
            bet = checker.Bet(
                batch=number,
                stake=place,
                share=share,
                flipped=False,
                p=p,
                q=q,
                left=checker.HitCounts(left.hits, left.trials),
                right=checker.HitCounts(right.hits, right.trials),
            )
            bets.append(bet)
        wealth = wealth + np.logaddexp.reduce(won)
        best = np.maximum(best, wealth)
    bound = ladder.bound(best, failure)
    assert bound > 0.0
    read = _read_claim(claim)
    batches = checker.check_bets_are_fair(bets)
    rungs = checker._ladder_of(read)

    def prove(bound, batches):
        finding = checker.StoredFinding("sequential", bound, "exact", failure, read, {})
        return checker._prove_on_ladder(finding, batches, rungs).failure

    assert prove(bound, batches) <= failure * 1.0001
    higher = float(ladder.values[np.searchsorted(ladder.values, bound) + 1])
    assert prove(higher, batches) > failure
    lower = float(ladder.values[np.searchsorted(ladder.values, bound) - 1])
    with pytest.raises(checker.DoesNotHold, match="won against"):
        prove(lower, batches)
    with pytest.raises(checker.DoesNotHold, match="bets against"):
        prove(bound * 1.01, batches)
    turned = [[replace(bet, flipped=True) for bet in batch] for batch in batches]
    assert prove(bound, turned) > failure


def _bet(**changes):
    counts = checker.HitCounts(3, 5)
    fair = checker.Bet(
        batch=1, stake=0, share=1.0, flipped=False, p=0.6, q=0.4, left=counts, right=counts
    )
    return replace(fair, **changes)


UNFAIR = {
    "three times the wealth": [
        _bet(share=0.999),
        _bet(share=0.999, stake=1),
        _bet(share=0.999, stake=2),
    ],
    "too little": [_bet(share=0.9)],
    "a share below 0": [_bet(share=1.5), _bet(share=-0.5, stake=1)],
    "a batch is missing": [_bet(), _bet(batch=3)],
    "a batch twice": [_bet(), _bet()],
    "not from the first": [_bet(batch=2)],
    "backwards": [_bet(batch=2), _bet(batch=1)],
    "other draws": [_bet(share=0.5), _bet(share=0.5, stake=1, left=checker.HitCounts(3, 6))],
    "unequal sides": [_bet(left=checker.HitCounts(3, 6))],
    "no draws": [_bet(left=checker.HitCounts(0, 0), right=checker.HitCounts(0, 0))],
    "out of order": [_bet(share=0.5, stake=1), _bet(share=0.5, stake=0)],
}


@pytest.mark.parametrize("name", UNFAIR)
def test_unfair_bets_are_refused(name):
    with pytest.raises(checker.DoesNotHold):
        checker.check_bets_are_fair(UNFAIR[name])
    assert (
        len(checker.check_bets_are_fair([_bet(share=0.5), _bet(share=0.5, stake=1), _bet(batch=2)]))
        == 2
    )


@pytest.mark.parametrize("counts", [(3, 40), (0, 12), (25, 25), (400, 1000)])
def test_limits_at_any_time_are_those_of_the_counts(counts):
    failure = 0.01
    limit = anytime_lower(Counts(*counts), failure)
    checker._check_anytime_limit(limit, checker.HitCounts(*counts), failure)
    for wrong in (limit + 1e-3, limit - 1e-3, 0.999):
        with pytest.raises(checker.DoesNotHold):
            checker._check_anytime_limit(wrong, checker.HitCounts(*counts), failure)


@pytest.mark.parametrize("order", [1.0 + 2e-16, 1.0 + 1e-14, 1.0 + 1e-9, 1.001, 2.0, 50.0, 1e4])
@pytest.mark.parametrize(
    ("p", "q"), [(0.55, 0.5), (0.3, 0.7), (1e-9, 0.5), (0.999, 1e-6), (0.4, 0.4)]
)
def test_divergences_of_coins_by_fractions(p, q, order):
    """Near order 1 the divergence is the relative entropy; elsewhere powers in 60 digits tell."""
    found = checker.CoinDivergence(p, q).at(order)
    with localcontext() as context:
        context.prec = 60
        s = Decimal(order) - 1
        of_hit = Decimal(p) * (s * (Decimal(p) / Decimal(q)).ln()).exp()
        of_miss = (1 - Decimal(p)) * (s * ((1 - Decimal(p)) / (1 - Decimal(q))).ln()).exp()
        exact = float((of_hit + of_miss).ln() / s)
    assert found == pytest.approx(exact, rel=1e-12, abs=1e-14)


# Whole results.


@pytest.mark.parametrize("name", WANTED)
def test_what_exact_methods_store_holds(stored, name):
    check = checker.verify(stored(name))
    assert check.holds is True, check.reason
    assert check.confidence == pytest.approx(0.95, abs=3e-4)
    assert check.confidence <= 0.95


def test_early_stops_hold_if_their_batches_are_stored():
    result = _audit(samples=1000, stop_early=True)
    assert em.verify(result).holds is (True if "batches" in result.findings[0].details else None)


@pytest.mark.parametrize("method", ["local", "renyi-floored"])
def test_what_no_count_proves_is_named(method):
    claim = CLAIMS["renyi"] if method == "renyi-floored" else CLAIMS["pure"]
    check = em.verify(_audit(claim, method=method))
    assert check.holds is None
    assert check.confidence is None
    assert "asymptotic" in check.reason


def test_every_form_of_a_result(tmp_path):
    result = _audit()
    path = result.save_json(tmp_path / "result.json")
    assert em.AuditResult.from_json(path.read_text()).to_dict() == result.to_dict()
    for form in (result, result.to_dict(), result.to_json(), path, str(path)):
        assert em.verify(form).holds is True


# Changed files. A single change contradicts something; a consistent one makes the statement stronger than its proof.

_IRRELEVANT = {
    *(
        "settings",
        "environment",
        "seconds",
        "schema_version",
        "text",
        "densities",
        "search",
        "health",
    ),
    *("outputs", "date", "identity", "tried", "note", "within", "difference", "among", "p_value"),
}


def _leaves(data, path=()):
    if isinstance(data, dict | list):
        for key, value in data.items() if isinstance(data, dict) else enumerate(data):
            if key not in _IRRELEVANT:
                yield from _leaves(value, (*path, key))
    elif data is not None:
        yield path


def _put(data, path, change):
    *way, last = path
    for key in way:
        data = data[key]
    data[last] = change(data[last])


def _changed(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.02 + 1e-4
    return {"left": "right", "right": "left", "refuted": "not refuted", "exact": "asymptotic"}.get(
        value, value + "x"
    )


# Changes that contradict nothing: what could have been found, what was drawn besides, and how the proof was set up, as
# long as it goes through (it then proves the same).
_HARMLESS = {
    "detectable",
    "samples_used",
    "curve_at",
    "curve_near",
    "complement",
    "fixed",
    "stake",
}


@pytest.mark.parametrize(
    "name",
    ["events pure", "events curve", "events points", "renyi-bet", "profile gaussian", "searched"],
)
def test_every_change_of_one_figure_is_noticed(stored, name):
    unnoticed = []
    for path in _leaves(stored(name)):
        if set(path) & _HARMLESS or (
            "paid" in path and path[-1] == 0
        ):  # the latter: what a price was paid for
            continue
        document = stored(name)
        _put(document, path, _changed)
        if checker.verify(document).holds is True:
            unnoticed.append(path)
    # The other findings of a result have no copy: their pair and event are words about what was counted.
    left = [
        path
        for path in unnoticed
        if not (path[0] == "findings" and path[1] and {"pair", "event"} & set(path))
    ]
    assert not left


def _in_both(document, *path, change):
    for place in ((), ("findings", 0)):
        _put(document, (*place, *path), change)


STRONGER = {
    "bound": lambda d: _in_both(d, "lower_bound", change=lambda bound: bound * 1.02),
    "left hits up": lambda d: _in_both(
        d, "witness", "left_counts", 0, change=lambda hits: hits + 1
    ),
    "left hits down": lambda d: _in_both(
        d, "witness", "left_counts", 0, change=lambda hits: hits - 1
    ),
    "right hits": lambda d: _in_both(d, "witness", "right_counts", 0, change=lambda hits: hits + 1),
    "draws": lambda d: _in_both(d, "witness", "right_counts", 1, change=lambda trials: trials - 1),
    "direction": lambda d: _in_both(d, "witness", "likelier_under", change=_changed),
    "guarantee": lambda d: _in_both(d, "guarantee", change=_changed),
    "more hits than draws": lambda d: _in_both(
        d, "witness", "left_counts", 0, change=lambda hits: 10**6
    ),
    "a second finding": lambda d: d["findings"].append(copy.deepcopy(d["findings"][0])),
}


@pytest.mark.parametrize("change", STRONGER)
@pytest.mark.parametrize(
    "name", ["events pure", "events gaussian", "renyi-bet", "profile pure", "names"]
)
def test_consistent_changes_are_noticed(stored, name, change):
    document = stored(name)
    STRONGER[change](document)
    assert checker.verify(document).holds is False


@pytest.mark.parametrize("confidence", [0.9, 0.96, 0.999])
@pytest.mark.parametrize("name", ["events pure", "events gaussian", "profile pure"])
def test_another_confidence_everywhere_is_noticed(stored, name, confidence):
    document = stored(name)
    for part in (document, document["findings"][0], document["settings"]):
        part["confidence"] = confidence
    assert checker.verify(document).holds is False


def test_other_claims_and_verdicts_are_noticed(stored):
    for change in (
        lambda d: d.update(verdict="not refuted"),
        lambda d: d.update(verdict="inconclusive"),
        lambda d: d.update(verdict=None),
        lambda d: _in_both(d, "claim", "epsilon", change=lambda value: 5.0),
        lambda d: _in_both(
            d, "claim", change=lambda claim: {"notion": "renyi", "order": 2.0, "epsilon": 1.0}
        ),
        lambda d: d["health"].append({"name": "drift", "message": "", "untrusted": True}),
        lambda d: d.update(samples_used=[100, 100]),
        lambda d: d.update(detectable=0.2),
        lambda d: d["findings"][0].update(method="local"),
    ):
        document = stored("events pure")
        change(document)
        assert checker.verify(document).holds is not True
    document = stored("events approx")
    _in_both(document, "claim", "delta", change=lambda delta: 0.0)
    _in_both(document, "lower_bound", change=lambda bound: bound * 1.05)
    assert checker.verify(document).holds is False


@pytest.mark.parametrize("name", ["events curve", "both views"])
def test_a_missing_finding_is_noticed(stored, name):
    document = stored(name)
    del document["findings"][1:]
    assert checker.verify(document).holds is False


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"schema_version": 2}',
        '{"schema_version": 1, "findings": []}',
        '{"schema_version": 1, "findings": {}}',
        '{"schema_version": 1, "findings": [1]}',
        '{"schema_version": 1, "findings": [{"lower_bound": NaN}]}',
        '{"schema_version": ' + "9" * 5000 + "}",
    ],
)
def test_hostile_files_cannot_be_checked(tmp_path, text):
    path = tmp_path / "hostile.json"
    path.write_text(text)
    assert checker.verify(path).holds is None


@pytest.mark.parametrize(
    "value", [None, True, "1", [], {}, float("nan"), float("inf"), -1, 10**400, 1e308]
)
def test_hostile_values_never_hold_and_never_raise(stored, value):
    for path in _leaves(stored("events gaussian")):
        document = stored("events gaussian")
        _put(document, path, lambda _: value)
        if document != stored("events gaussian") and not set(path) & {
            "detectable",
            "samples_used",
            "method",
            "complement",
        }:
            assert checker.verify(document).holds is not True, path


# The draws.


@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (laplace(), CLAIMS["pure"]),
        (em.from_batch(answers), CLAIMS["pure"]),
        (em.from_batch(mixed), CLAIMS["pure"]),
        (em.from_batch(vectors), CLAIMS["pure"]),
        (laplace(), CLAIMS["renyi"]),
    ],
    ids=["numbers", "names", "mixed", "vectors", "score"],
)
def test_the_event_is_counted_again(tmp_path, mechanism, claim):
    draws = tmp_path / "draws.jsonl"
    result = _audit(claim, mechanism, record=draws)
    check = em.verify(result, draws)
    assert check.holds is True, check.reason
    assert any("draws" in step for step in check.steps)
    lines = draws.read_text().splitlines()
    half = tmp_path / "half.jsonl"
    half.write_text("\n".join(lines[:-1]) + "\n")
    assert em.verify(result, half).holds is False
    other = tmp_path / "other.jsonl"
    em.audit(mechanism, PAIR, claim, samples=3000, seed=4, record=other)
    assert em.verify(result, other).holds is False


def test_an_event_that_leaves_out_columns_is_counted_again(tmp_path):
    numbers = iter(range(10**9))

    def numbered(dataset, rng):
        return {"value": float(rng.laplace(dataset)), "row": next(numbers)}

    draws = tmp_path / "draws.jsonl"
    mechanism = em.from_callable(numbered)
    result = em.audit(mechanism, em.Pair(0, 4), CLAIMS["pure"], samples=2000, seed=3, record=draws)
    assert "reading" in result.witness.event.to_dict()
    assert em.verify(result, draws).holds is True
    lines = draws.read_text().splitlines()
    draws.write_text("\n".join(lines[:-1]) + "\n")
    assert em.verify(result, draws).holds is False


def test_an_event_inside_of_texts_is_not_counted_again(tmp_path):
    def text(dataset, rng):
        return f"total={rng.laplace(dataset):.3f}"

    draws = tmp_path / "draws.jsonl"
    result = em.audit(text, em.Pair(0, 4), CLAIMS["pure"], samples=2000, seed=3, record=draws)
    assert em.verify(result).holds is True
    check = em.verify(result, draws)
    assert check.holds is None
    assert "texts" in check.reason


def test_recordings_that_cannot_be_read(tmp_path):
    result = _audit()
    nothing = tmp_path / "nothing.jsonl"
    nothing.write_text("1\n2\n")
    for path in (nothing, tmp_path / "missing.jsonl"):
        assert em.verify(result, path).holds is None


# The file itself.


def test_it_is_one_file_that_runs_alone(tmp_path):
    source = Path(checker.__file__)
    alone = tmp_path / "checker.py"
    alone.write_bytes(source.read_bytes())
    path = _audit().save_json(tmp_path / "result.json")

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-I", "-S", str(alone), *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
        )

    good = run(path)
    assert (good.returncode, good.stderr) == (0, "")
    assert "confidence 0.95" in good.stdout
    document = json.loads(path.read_text())
    _in_both(document, "lower_bound", change=lambda bound: bound * 1.5)
    path.write_text(json.dumps(document))
    assert run(path).returncode == 1
    for arguments in ((), (tmp_path / "missing.json",), (path, "--recording")):
        bad = run(*arguments)
        assert (bad.returncode, bad.stderr) == (2, "")


def test_command_line(tmp_path, capsys):
    from epsilometer.cli.application import run_command

    path, draws = tmp_path / "result.json", tmp_path / "draws.jsonl"
    _audit(record=draws).save_json(path)
    assert run_command(["verify", str(path), "--recording", str(draws)]) == 0
    assert "holds" in capsys.readouterr().out
    assert run_command(["verify", str(tmp_path / "missing.json")]) == 2


def test_large_counts_take_seconds():
    claim = checker.StatedClaim("pure", 1.0)
    above, below = (300_000_000, 10**9), (100_000_000, 10**9)
    bound = epsilon_lower(Counts(*above), Counts(*below), 0.05)
    assert _failure_of(claim, bound, above, below, 0.05) <= 0.05 * 1.005
    assert _failure_of(claim, bound * 1.01, above, below, 0.05) > 0.05
    gaussian = from_dict({"notion": "gaussian", "mu": 1.0})
    bound = two_bounds_value(gaussian, Counts(*above), Counts(*below), 0.05)
    finding = checker.StoredFinding(
        "events", bound, "exact", 0.05, checker.StatedClaim("gaussian", 1.0), {}
    )
    sides = checker.HitCounts(*above), checker.HitCounts(*below)
    assert checker._failure_of_two_limits(finding, *sides, 0.5) <= 0.05 * 1.005
