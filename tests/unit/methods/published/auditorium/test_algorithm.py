"""Algorithm 1 as printed: trials, both directions, a threshold, whatever generates and estimates."""

import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer.methods.published.auditorium import estimators

PAIR = em.Pair(0, 1)


def noisy(x, n, rng):
    return x + rng.normal(size=n)


NOISY = em.from_batch(noisy)
# Of datasets that are vectors, or lists of them: the sum of all numbers, with noise.
NOISY_NORM = em.from_batch(lambda x, n, rng: float(np.sum(np.asarray(x))) + rng.normal(size=n))


def difference(p, q, n, failure, rng):
    """An estimator whose directions differ: the mean of P less that of Q."""
    return float(p(n).numbers().mean() - q(n).numbers().mean())


def literal(estimates, threshold, trials):
    """The printed loop on given estimates: the trial that ends it, or None."""
    for t in range(trials):
        first, second = estimates[t]
        if max(first, second) > threshold:
            return t + 1
    return None


@pytest.mark.paper("C4", "equal")
@pytest.mark.parametrize("threshold", [-1.0, 0.15, 0.45, 0.75, 5.0])
def test_it_is_the_printed_loop(threshold):
    """Pairs in turn, both directions of each, and the end at the first estimate above τ."""
    shifts = [0.1, -0.4, 0.3, -0.7, 0.2, 0.9]
    pairs = [em.Pair(0.0, shift) for shift in shifts]
    result = em.auditorium.audit(
        NOISY, pairs, difference, trials=6, samples=4000, threshold=threshold, seed=0
    )
    # With 4000 draws the estimates are within .1 of the shifts, and no threshold is that near.
    ending = literal([(-shift, shift) for shift in shifts], threshold, 6)
    assert result.is_refuted == (ending is not None)
    assert len(result.trials) == (6 if ending is None else ending)
    for trial, shift in zip(result.trials, shifts, strict=False):
        assert trial.backward == pytest.approx(shift, abs=0.1)
        assert trial.forward == pytest.approx(-shift, abs=0.1)
        assert trial.estimate == max(trial.forward, trial.backward)
    assert result.pair == (result.trials[-1].pair if result.is_refuted else None)


@pytest.mark.paper("C4", "equal")
def test_an_estimate_equal_to_the_threshold_is_no_violation():
    result = em.auditorium.audit(
        NOISY, PAIR, lambda *_: 0.5, trials=3, samples=10, threshold=0.5, seed=0
    )
    assert not result.is_refuted
    assert len(result.trials) == 3


def test_every_estimate_has_draws_of_its_own():
    """No two directions, trials or calls of one estimator share a stream."""
    seen = []

    def keep(p, q, n, failure, rng):
        seen.extend(draws(n).numbers() for draws in (p, q, p, q))
        seen.append(rng.normal(size=n))
        return 0.0

    result = em.auditorium.audit(NOISY, PAIR, keep, trials=2, samples=5, threshold=1.0, seed=7)
    assert len(seen) == 2 * 2 * 5
    assert len({tuple(np.round(draws - round(draws.mean()), 12)) for draws in seen}) == len(seen)
    again = em.auditorium.audit(
        NOISY, PAIR, keep, trials=2, samples=5, threshold=1.0, seed=result.seed
    )
    assert np.array_equal(seen[:20], seen[20:])
    assert again == result


def test_large_samples_come_in_chunks_of_their_own():
    sizes = []

    def count(x, n, rng):
        sizes.append(n)
        return rng.normal(size=n)

    mechanism = em.from_batch(count)
    n = 2 * mechanism.chunk_size + 1
    means = em.auditorium.audit(
        mechanism, PAIR, difference, trials=1, samples=n, threshold=1.0, seed=0
    )
    assert sum(sizes) == 4 * n
    assert not means.is_refuted


def test_a_finder_is_told_the_larger_estimate():
    finder = em.finders.Grid(em.domains.Number(0.0, 1.0), levels=3, trials=50, shuffled=False)
    result = em.auditorium.audit(
        NOISY, finder, difference, trials=50, samples=2000, threshold=9.0, seed=1
    )
    assert len(result.trials) == finder.size
    told = [score for _, score in finder.state()["told"]]
    assert told == [trial.estimate for trial in result.trials]


def test_a_function_generates_pairs_from_random_numbers_of_its_own():
    def generator(rng):
        return em.Pair(0.0, float(rng.uniform()))

    def one():
        return em.auditorium.audit(
            NOISY, generator, difference, trials=5, samples=50, threshold=9.0, seed=3
        )

    shifts = [trial.pair.right for trial in one().trials]
    assert len(set(shifts)) == 5
    assert shifts == [trial.pair.right for trial in one().trials]


def test_an_infinite_estimate_is_no_score():
    finder = em.finders.Random(em.domains.Number(0, 1), trials=3)
    result = em.auditorium.audit(
        NOISY, finder, lambda *_: -math.inf, trials=3, samples=50, threshold=0.0, seed=0
    )
    assert not result.is_refuted
    assert [score for _, score in finder.state()["told"]] == [None] * 3


@pytest.mark.paper("C3", "corrected")
def test_the_guarantee_is_the_papers_with_what_holds_of_the_run():
    """β is spent 2T times and reported once; the result says what that amounts to."""
    tester = estimators.HockeyStick(epsilon=0.0)
    result = em.auditorium.audit(
        NOISY, PAIR, tester, trials=4, samples=50, threshold=1.0, failure=0.05, seed=0
    )
    assert result.failure_of_run == pytest.approx(0.4)
    assert "0.05" in result.guarantee
    assert "0.4" in result.guarantee
    assert str(result).startswith("not refuted in 4 trials")


def test_an_estimator_without_a_guarantee_says_so():
    tester = estimators.Renyi(order=2.0)
    result = em.auditorium.audit(NOISY, PAIR, tester, trials=1, samples=500, threshold=9.0, seed=0)
    assert result.guarantee.startswith("none: ")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trials": 0}, "trials=0"),
        ({"samples": 1}, "samples=1"),
        ({"samples": 10**13}, r"samples=1\d+ .*keeps all of them in memory"),
        ({"threshold": "high"}, "threshold='high'"),
        ({"samples": "10k"}, "samples='10k'"),
        ({"threshold": em.PureDP(1.0)}, "threshold=PureDP"),
        ({"failure": 0.0}, "^failure=0.0"),
        ({"failure": 1.0}, "^failure=1.0"),
        ({"failure": ".3"}, "^failure='.3'"),
        ({"seed": -1}, "seed"),
        ({"estimator": "hockey-stick"}, "estimator='hockey-stick'"),
        ({"estimator": lambda *_: math.nan}, "no number"),
    ],
)
def test_nonsense_is_refused(settings, message):
    given = {"estimator": difference, "trials": 1, "samples": 10, "threshold": 0.0, **settings}
    with pytest.raises(em.InputError, match=message):
        em.auditorium.audit(NOISY, PAIR, **given)


def test_any_iterable_of_pairs_generates():
    """A Python generator, an iterator: the trials end with it."""
    shifts = [0.1, 0.3, 0.2]
    for pairs in (((0.0, shift) for shift in shifts), zip([0.0] * 3, shifts, strict=True)):
        result = em.auditorium.audit(
            NOISY, pairs, difference, trials=10, samples=50, threshold=9.0, seed=0
        )
        assert [trial.pair.right for trial in result.trials] == shifts
    endless = iter(lambda: (0.0, 1.0), None)
    result = em.auditorium.audit(
        NOISY, endless, difference, trials=4, samples=50, threshold=9.0, seed=0
    )
    assert len(result.trials) == 4


def test_a_domain_is_searched_as_in_the_paper():
    """Uniform random pairs, without side information."""
    domain = em.domains.Sphere(3)
    given = {"trials": 6, "samples": 50, "threshold": 9.0, "seed": 4}
    of_domain = em.auditorium.audit(NOISY_NORM, domain, difference, **given)
    finder = em.finders.Random(domain, uniform=True, trials=6, seed=4)
    of_finder = em.auditorium.audit(NOISY_NORM, finder, difference, **given)
    assert of_domain == of_finder
    assert len(of_domain.trials) == 6


@pytest.mark.parametrize("samples", [10_000, 1e4, np.int64(10_000)])
def test_sizes_are_read_as_in_an_audit(samples):
    result = em.auditorium.audit(
        NOISY,
        PAIR,
        lambda p, q, n, failure, rng: n / 10_000,
        trials=1,
        samples=samples,
        threshold=0.5,
    )
    assert result.trials[0].estimate == 1.0


@pytest.mark.parametrize(
    ("generator", "message"),
    [
        (None, "generator=None"),
        (3, "generator=3"),
        ("pairs", "generator='pairs'"),
        (em.finders.Random, "is a class"),
        (em.domains.Sphere, "is a class"),
        (lambda: PAIR, r"random generator"),
        (lambda first, second: PAIR, r"random generator"),
        (lambda rng: None, "is not a pair"),
        ([], r"generator=\[\] is empty"),
        (iter([]), "no pair"),
        ([(0, 1), 2], "generator=.*neither"),
        (iter([(0, 1), 2]), "is not a pair"),
    ],
)
def test_a_generator_that_makes_no_pairs_is_told(generator, message):
    with pytest.raises(em.InputError, match=message):
        em.auditorium.audit(
            NOISY, generator, difference, trials=3, samples=50, threshold=9.0, seed=0
        )


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (estimators.HockeyStick, r"is a class.*HockeyStick\("),
        (lambda p, q: 0.0, r"\(p, q, n, failure, rng\)"),
        (lambda: 0.0, r"\(p, q, n, failure, rng\)"),
        (lambda p, q, n, failure, rng: None, "returned None"),
        (lambda p, q, n, failure, rng: "large", "returned 'large'"),
        (lambda p, q, n, failure, rng: np.array([0.1, 0.2]), "one number"),
        (lambda p, q, n, failure, rng: 1j, "one number"),
        (lambda p, q, n, failure, rng: True, "one number"),
        (lambda p, q, n, failure, rng: len(p(0)), "n=0"),
        (lambda p, q, n, failure, rng: len(p(-3)), "n=-3"),
        (lambda p, q, n, failure, rng: len(q(n / 4)), r"n=12\.5"),
        (lambda p, q, n, failure, rng: len(p(n**9)), r"n=19\d+ .*keeps all of them in memory"),
    ],
)
def test_an_estimator_that_estimates_nothing_is_told(estimator, message):
    with pytest.raises(em.InputError, match=message):
        em.auditorium.audit(NOISY, PAIR, estimator, trials=3, samples=50, threshold=9.0, seed=0)


def test_numbers_of_every_kind_are_estimates():
    for estimate in (1, 1.0, np.float32(1.0), np.int64(1), np.array(1.0), np.array([1.0])):
        result = em.auditorium.audit(
            NOISY, PAIR, lambda *_, e=estimate: e, trials=1, samples=50, threshold=9.0
        )
        assert result.trials[0].forward == 1.0


def test_draws_that_are_used_as_an_array_are_explained():
    """A first estimator often says np.mean(p(n)): the error keeps its type and gains a hint."""
    for wrong in (lambda p, n: np.mean(p(n)), lambda p, n: p(n).mean()):
        with pytest.raises((TypeError, AttributeError)) as caught:
            em.auditorium.audit(
                NOISY,
                PAIR,
                lambda p, q, n, failure, rng, wrong=wrong: wrong(p, n),
                trials=1,
                samples=50,
                threshold=9.0,
            )
        assert any("numbers()" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("guarantee", [None, 5, ["exact"]])
def test_an_attribute_that_is_no_guarantee_says_nothing(guarantee):
    """`guarantee` is a common name: only a text under it is a statement about the estimate."""

    class Estimator:
        def __init__(self):
            self.guarantee = guarantee

        def __call__(self, p, q, n, failure, rng):
            return 0.5

    result = em.auditorium.audit(
        NOISY, PAIR, Estimator(), trials=1, samples=10, threshold=0.1, seed=0
    )
    assert "that of the given estimator" in result.guarantee
