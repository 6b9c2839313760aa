"""The tail of a score that is worth proving."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

import epsilometer as em
from epsilometer.bounds import Counts, epsilon_lower
from epsilometer.methods.base import Task
from epsilometer.methods.events import EventsMethod
from epsilometer.methods.scores import learn_scores
from epsilometer.methods.scores.learned import ContinuousScore, ShapeScore
from epsilometer.methods.tail import best_tail, estimate_tails, slice_score
from epsilometer.outputs import BlockPartition, Group, read_outputs

TASK = Task(em.PureDP(1.0), (7000, 7000), 0.05)
# Single numbers are one group, and nothing is added to their score.
NUMBERS = [ShapeScore(BlockPartition("float", (None,), (Group((-1,)),)), offsets=np.zeros(1))]


def number_score(left, right):
    return ContinuousScore(
        name="number",
        left=left,
        right=right,
        ordered=np.sort(np.concatenate([left, right])),
        is_line=True,
        is_fitted=False,
        shapes=NUMBERS,
    )


def normal_scores(rng, n=3000, shift=1.0):
    return number_score(shift + rng.normal(size=n), rng.normal(size=n))


def choose_tail(score, task):
    tails = estimate_tails(score, slice_score(score))
    return best_tail(tails, task, score.n_tails) if tails else None


def score_named(name, left, right):
    (score,) = (score for score in learn_scores(left, right) if score.name == name)
    return score


def worth(p, q, n=7000):
    return epsilon_lower(Counts(round(p * n), n), Counts(round(q * n), n), 0.05)


def test_the_tail_of_normal_noise_is_nearly_the_best_one(rng):
    best = max(worth(ndtr(-t + 1.0), ndtr(-t)) for t in np.linspace(-1.0, 4.0, 60))
    found = []
    for _ in range(5):
        scored = normal_scores(rng)
        tail = choose_tail(scored, TASK)
        (threshold,) = tail.event().partition.blocks[0].groups[0].line.edges
        upper = not tail.flipped
        p, q = (
            (ndtr(-threshold + 1.0), ndtr(-threshold))
            if upper
            else (ndtr(threshold), ndtr(threshold - 1.0))
        )
        found.append(worth(p, q))
    assert np.mean(found) > 0.85 * best


def test_equal_scores_are_inside_or_outside_together(rng):
    scores = [rng.integers(0, 4, 2000).astype(float) + s for s in (0.0, 0.0)]
    scores[0][:600] = 3.0
    tail = choose_tail(number_score(*scores), TASK)
    inside = tail.event().contains(read_outputs(np.concatenate(scores)))
    assert inside.mean() == pytest.approx((tail.p + tail.q) / 2, abs=1e-9)


@pytest.mark.parametrize("upper", [True, False])
def test_a_threshold_lies_well_between_sums_of_weights(rng, upper):
    """Summed in another order, a score differs in its last digits; it must not leave the event by that."""
    sides = [read_outputs(rng.binomial(1, chance, size=(2000, 6)), 2000) for chance in (0.5, 0.6)]
    scored = score_named("additive", *sides)
    for mass in np.linspace(0.01, 0.99, 60):
        (block,) = scored.tail_event(mass, upper).partition.blocks
        threshold = block.groups[0].line.edges[0] + scored.shapes[0].offsets[0]
        inside = (scored.ordered >= threshold).mean()
        assert inside in (0.0, 1.0) or np.abs(scored.ordered - threshold).min() > 1e-11


def test_scores_that_do_not_vary():
    assert choose_tail(number_score(np.zeros(500), np.zeros(500)), TASK) is None


@pytest.mark.parametrize(
    "claim", [em.RenyiDP(2.0, 1.0), em.GaussianDP(1.0), em.ApproxDP(0.5, 0.01)], ids=str
)
def test_every_notion(rng, claim):
    tail = choose_tail(normal_scores(rng), Task(claim, (7000, 7000), 0.05))
    assert 0.0 < tail.q < tail.p <= 1.0
    assert tail.predicted > 0.0


def test_columns_that_add_up_are_taken_apart(rng):
    """Prefix sums: what each column adds to the one before it tells all."""
    left, right = (
        np.cumsum(s + rng.laplace(scale=5.0, size=(20_000, 10)), axis=1) for s in (0.0, 1.0)
    )
    left, right = read_outputs(left), read_outputs(right)
    raw = score_named("additive", left, right)
    mixed = score_named("decorrelated", left, right)
    assert choose_tail(mixed, TASK).predicted > choose_tail(raw, TASK).predicted
    for term in mixed.shapes[0].partition.groups[0].score.terms:
        shares = term.mix / np.abs(term.mix).max()
        assert shares[term.column] == pytest.approx(1.0, abs=0.1)
        if term.column:
            assert shares[term.column - 1] == pytest.approx(-1.0, abs=0.1)


def test_a_rare_shape_is_found():
    """A second item in 2 % of the right outputs only."""

    def some(x, n, rng):
        return [[v, 1.0] if x and rng.random() < 0.02 else [v] for v in rng.laplace(size=n)]

    for seed in range(4):
        result = em.audit(
            em.from_batch(some), em.Pair(0, 1), em.PureDP(1.0), samples=8000, seed=seed
        )
        assert result.is_refuted, seed


def test_a_mixed_score_is_counted_again_by_the_checker(tmp_path):
    def prefix(x, n, rng):
        return np.cumsum(x + rng.laplace(scale=2.0, size=(n, 5)), axis=1)

    record = tmp_path / "draws.jsonl"
    result = em.audit(
        em.from_batch(prefix),
        em.Pair(0.0, 1.0),
        em.PureDP(0.5),
        samples=6000,
        seed=0,
        method="events",
        record=record,
    )
    assert result.witness.event.partition.blocks[0].groups[0].score is not None
    check = em.verify(result, record)
    assert check.holds, check.reason


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_infinity_is_at_an_end_and_what_is_no_number_in_none(rng, sign):
    left, right = (
        np.append(sign * rng.normal(shift, 1.0, size=1000), [math.nan] * 40) for shift in (0.5, 0.0)
    )
    scored = score_named(
        "number", read_outputs(np.append(left, [sign * math.inf] * 60)), read_outputs(right)
    )
    tail = choose_tail(scored, TASK)
    inside = tail.event().contains(np.array([sign * math.inf, -sign * math.inf, math.nan]))
    assert inside.tolist() == [not tail.flipped, tail.flipped, False]


def test_what_is_no_number_is_an_outcome(rng):
    missing = read_outputs(np.full(1000, math.nan))
    tail = choose_tail(score_named("values", missing, read_outputs(rng.normal(size=1000))), TASK)
    inside = tail.event().contains(np.array([math.nan, 0.0]))
    assert inside.tolist() == [not tail.flipped, tail.flipped]


def test_a_column_may_mean_the_opposite_beside_one_value_of_another(rng):
    """As in sparse vectors, where the last query falls while all others rise."""

    def draw(shift):
        key = rng.integers(0, 5, 20_000)
        value = rng.laplace(size=len(key)) + np.where(key == 3, -shift, shift)
        return read_outputs(np.stack([key, value], axis=1).astype(float))

    tail = choose_tail(score_named("additive", draw(0.4), draw(0.0)), TASK)
    probe = np.array([[key, value] for key in range(5) for value in (-3.0, 3.0)], dtype=float)
    inside = tail.event().contains(read_outputs(probe)).reshape(5, 2)
    is_high = (np.arange(5) == 3) == tail.flipped
    assert (inside[:, 1] == is_high).all()
    assert (inside[:, 0] == ~is_high).all()


def test_of_a_few_values_one_in_the_middle_may_be_the_leak(rng):
    shares = np.array([0.4, 0.3, 0.15, 0.1, 0.03, 0.02])
    left = np.where(np.arange(6) == 4, 3.0, 1.0) * shares
    draws = [read_outputs(rng.choice(6, 20_000, p=each / each.sum())) for each in (left, shares)]
    best = EventsMethod().propose(*draws, TASK)
    assert best.event.contains(read_outputs(np.arange(6))).tolist() == [False] * 4 + [True, False]
