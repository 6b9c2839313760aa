"""`mmd`: thresholds, the learned function, disjoint pairs, and the claims it cannot refute."""

import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer.claims import ApproxDeltaDP
from epsilometer.engine.streams import Purpose, Stream
from epsilometer.errors import InputError
from epsilometer.methods import Task
from epsilometer.methods.published.auditorium.kernel_space import learn_shapes
from epsilometer.methods.published.auditorium.mmd import (
    MmdMethod,
    Options,
    greatest_discrepancy,
    pair_terms,
    points_of,
    value_of_discrepancy,
)
from epsilometer.outputs import read_outputs
from epsilometer.outputs.scores import KERNELS_OF_POINTS, kernel_matrix

MIXED = [None, "a", "b", 1.0, 2.0, (1.0, "x"), (math.nan, "y"), math.inf]


def discrepancy(p, q, gram):
    """MMD of two laws on finitely many points."""
    return math.sqrt(max((p - q) @ gram @ (p - q), 0.0))


@pytest.mark.parametrize("threshold", ["published", "total-variation"])
@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.paper("C21", "equal")
def test_no_private_pair_exceeds_its_threshold(threshold, delta, rng):
    """Random pairs of laws on points, with the least ε at which each keeps δ."""
    for _ in range(300):
        points = rng.normal(size=(5, 1)) * rng.uniform(0.1, 20.0)
        p, q = rng.dirichlet(np.full(5, 0.5), size=2)
        if (min(p.min(), q.min()) <= 0.0) and not delta:
            continue
        epsilon = _least_epsilon(p, q, delta)
        found = discrepancy(p, q, kernel_matrix("gaussian", points, points))
        assert found <= greatest_discrepancy(epsilon, delta, threshold) + 1e-9


def _least_epsilon(p, q, delta):
    def keeps(epsilon):
        grow = math.exp(epsilon)
        return max(np.maximum(p - grow * q, 0).sum(), np.maximum(q - grow * p, 0).sum()) <= delta

    low, high = 0.0, 100.0
    if keeps(low):
        return low
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return high


@pytest.mark.parametrize("threshold", ["published", "total-variation"])
@pytest.mark.parametrize("delta", [0.0, 0.02])
@pytest.mark.paper("C25", "corrected")
def test_values_are_inverses(threshold, delta):
    for epsilon in (0.05, 0.5, 0.85):
        there = greatest_discrepancy(epsilon, delta, threshold)
        claim = em.ApproxDP(0.0, delta)
        assert value_of_discrepancy(claim, there, threshold) == pytest.approx(epsilon, abs=1e-9)
        assert value_of_discrepancy(ApproxDeltaDP(epsilon, 0.0), there, threshold) == pytest.approx(
            delta, abs=1e-9
        )


def test_total_variation_is_always_sharper():
    for epsilon in (0.01, 0.5, 2.0, 10.0):
        for delta in (0.0, 0.1):
            tight = greatest_discrepancy(epsilon, delta, "total-variation")
            assert tight <= greatest_discrepancy(epsilon, delta, "published")


@pytest.mark.parametrize(
    ("claim", "refused"),
    [
        (em.PureDP(0.88), False),
        (em.PureDP(0.89), True),
        (em.PureDP(5.0), True),
        (em.ApproxDP(0.8, 0.05), False),
        (em.ApproxDP(0.8, 0.2), True),
        (ApproxDeltaDP(1.0, 0.0), True),
    ],
)
def test_claims_that_cannot_be_refuted_are_refused(claim, refused):
    method = MmdMethod(Options(threshold="published"))
    if not refused:
        method.check(claim)
        return
    with pytest.raises(
        InputError, match=r"cannot refute .* by construction.*0\.88.*total-variation"
    ):
        method.check(claim)
    MmdMethod(Options(threshold="total-variation")).check(claim)
    MmdMethod().check(claim)  # takes that one by itself


def test_refused_before_anything_is_drawn():
    def never(dataset):
        raise AssertionError("drawn")

    with pytest.raises(InputError, match="by construction"):
        em.audit(
            never,
            (0, 1),
            em.PureDP(1.0),
            method="mmd",
            samples=1000,
            options={"threshold": "published"},
        )
    with pytest.raises(InputError, match="by construction"):
        em.compare(
            np.zeros(100),
            np.ones(100),
            em.PureDP(1.0),
            method="mmd",
            options={"threshold": "published"},
        )


def test_a_claim_beyond_the_published_threshold():
    noisy = em.from_batch(lambda x, n, rng: 3.0 * x + rng.normal(size=n))
    result = em.audit(noisy, em.Pair(0, 1), em.PureDP(1.0), method="mmd", samples=4000, seed=0)
    assert result.is_refuted
    assert result.findings[0].details["threshold"] == "total-variation"


def test_the_function_has_norm_one_and_its_cells_hold_it(rng):
    sides = [read_outputs(rng.normal(side, 1.0, (2000, 2))) for side in (0, 1)]
    proposal = MmdMethod().propose(*sides, Task(em.PureDP(0.1), (2000, 2000), 0.05, Stream(0)))
    score = proposal.cells.partition.blocks[0].groups[0].score
    scaled = score.landmarks / score.bandwidth
    assert score.weights @ kernel_matrix(
        "gaussian", scaled, scaled
    ) @ score.weights == pytest.approx(1.0, abs=1e-6)
    values = score.evaluate(sides[0].blocks[0].columns)
    cells = proposal.cells.partition.index(sides[0])
    assert np.abs(values).max() <= 1.0
    assert (proposal.bet.lowest[cells] <= values).all()
    assert (values <= proposal.bet.highest[cells]).all()


def test_every_kind_of_output_has_a_point(rng):
    outputs = read_outputs([MIXED[place] for place in rng.integers(len(MIXED), size=400)])
    shapes = learn_shapes(outputs, outputs, rng=rng)
    rows = points_of(outputs, shapes)
    assert np.isfinite(rows).all()
    unknown = points_of(read_outputs([[1.0, 2.0, 3.0], {"a": 1}]), shapes)
    assert np.isfinite(unknown).all()


def test_pairs_estimate_the_squared_discrepancy(rng):
    """N(0,1) against N(1,1) with a Gaussian kernel of width 1: MMD² = 2·(1 − e^(−1/6))/√3."""
    left, right = (_of_one_shape(rng.normal(side, 1.0, (200_000, 1))) for side in (0, 1))
    terms = pair_terms(left, right)
    assert len(terms) == 100_000
    assert np.abs(terms).max() <= 2.0
    # Six standard errors of the mean.
    assert terms.mean() == pytest.approx(
        2.0 * (1.0 - math.exp(-1 / 6)) / math.sqrt(3), abs=6 * terms.std() / 316
    )


def _of_one_shape(points):
    return np.concatenate([np.ones((len(points), 1)), points], axis=1)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "polynomial"])
@pytest.mark.paper("C22", "equal")
def test_the_terms_are_the_papers_h(kernel, rng):
    """h(x, x', y, y') = k(x, x') − 2·k(x, y) + k(y, y'), one pair after the other (Theorem 4.14, Algorithm 7)."""
    left, right = rng.normal(size=(6, 2)), rng.normal(1.0, 1.0, (6, 2))

    def k(x, y):
        if kernel == "gaussian":
            return math.exp(-0.5 * sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))
        if kernel == "laplace":
            return math.exp(-math.dist(x, y))
        return (1 + x @ y) ** 2 / ((1 + x @ x) * (1 + y @ y))

    expected = [
        k(left[i], left[i + 1]) - 2 * k(left[i], right[i]) + k(right[i], right[i + 1])
        for i in range(0, 6, 2)
    ]
    assert pair_terms(_of_one_shape(left), _of_one_shape(right), kernel) == pytest.approx(expected)


def test_points_of_different_shapes_have_no_kernel():
    one, other = np.array([[1.0, 0.5], [1.0, 0.5]]), np.array([[2.0, 0.5], [2.0, 0.5]])
    assert pair_terms(one, other, "polynomial") == pytest.approx([2.0])


@pytest.mark.parametrize("kernel", list(KERNELS_OF_POINTS))
@pytest.mark.paper("C27", "corrected")
def test_kernels_are_positive_definite_and_lie_between_0_and_1(kernel, rng):
    points = rng.normal(size=(40, 3)) * 3.0
    gram = kernel_matrix(kernel, points, points)
    assert gram.diagonal() == pytest.approx(1.0)
    assert gram.min() >= 0.0
    assert np.linalg.eigvalsh(gram).min() > -1e-9


def cauchy(x, y):
    return 1.0 / (1.0 + ((x - y) ** 2).sum(axis=-1))


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "polynomial", cauchy])
@pytest.mark.parametrize("certificate", ["exact", "published"])
def test_any_kernel_finds_a_large_leak(kernel, certificate, rng):
    sides = rng.normal(0.0, 1.0, (8000, 2)), rng.normal(2.0, 1.0, (8000, 2))
    options = Options(kernel=kernel, certificate=certificate)
    result = em.compare(*sides, em.PureDP(0.1), method="mmd", options=options, seed=0)
    assert result.is_refuted
    assert result.guarantee.startswith("conditional: the kernel" if callable(kernel) else "exact")
    again = em.AuditResult.from_json(result.to_json())
    assert again.lower_bound == result.lower_bound
    if certificate == "exact" and not callable(kernel):
        mechanism = em.from_batch(lambda side, n, rng: rng.normal(side, 1.0, (n, 2)))
        assert em.replay(again, mechanism, samples=4000, seed=1, pair=em.Pair(0.0, 2.0)).is_refuted


def test_the_bandwidth_is_an_input(rng):
    outputs = read_outputs(rng.normal(size=(500, 2)))

    def bandwidth(**settings):
        return learn_shapes(outputs, outputs, rng=Stream(0).rng(Purpose.LEARN), **settings)[
            0
        ].bandwidth

    assert bandwidth(bandwidth=0.25) == 0.25
    assert bandwidth(bandwidth="median") == bandwidth()
    assert bandwidth(bandwidth=lambda points: points.ndim + 1.0) == 3.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kernel": "boxcar"}, "kernel='boxcar'"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"bandwidth": "mean"}, "bandwidth='mean'"),
        ({"kernel": lambda x, y: ((x - y) ** 2).sum(axis=-1)}, "between 0 and 1"),
        ({"kernel": lambda x, y: (np.abs(x - y).sum(axis=-1) < 1.0) * 1.0}, "positive definite"),
        ({"kernel": lambda x, y: x.nothing}, "failed"),
        ({"bandwidth": lambda points: -1.0}, "bandwidth"),
    ],
)
def test_kernels_that_are_none(wrong, message, rng):
    with pytest.raises(InputError, match=message):
        em.compare(
            rng.normal(size=2000),
            rng.normal(size=2000),
            em.PureDP,
            method="mmd",
            options=Options(**wrong),
        )


def test_the_exact_certificate_sees_smaller_leaks(rng):
    sides = rng.laplace(0.0, 1.0, 20_000), rng.laplace(0.15, 1.0, 20_000)
    found = {
        certificate: em.compare(
            *sides, em.PureDP, method="mmd", options=Options(certificate=certificate), seed=0
        )
        for certificate in ("exact", "published")
    }
    assert found["exact"].lower_bound > 0.02
    assert found["published"].lower_bound == 0.0
    assert {each.guarantee for each in found.values()} == {"exact"}


def test_the_event_is_shown_and_replayed():
    entry = em.zoo.laplace(1.0)
    result = em.audit(entry, None, em.PureDP(0.2), samples=20_000, seed=0, method="mmd")
    assert result.is_refuted
    again = em.replay(em.AuditResult.from_json(result.to_json()), entry, samples=20_000, seed=1)
    assert again.is_refuted


def test_nonsense_options():
    with pytest.raises(InputError, match="threshold"):
        Options(threshold="loose")
    with pytest.raises(InputError, match="certificate"):
        Options(certificate="asymptotic")
