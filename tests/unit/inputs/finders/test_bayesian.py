"""The Gaussian process against the formulas of the textbook, written out."""

import numpy as np
import pytest
from scipy.stats import norm

from epsilometer.inputs.coordinates import Coordinate, level_of
from epsilometer.inputs.finders import bayesian as gp
from epsilometer.inputs.finders.base import ScoredPoint
from epsilometer.inputs.finders.bayesian import greatest_improvement, remembered, standardised

COORDINATES = (Coordinate(), Coordinate(), Coordinate(3, ordered=False))


def some_scores(rng, n=25):
    points = rng.random((n, 3))
    scores = (
        np.sin(4 * points[:, 0])
        + points[:, 1] ** 2
        + (points[:, 2] > 2 / 3)
        + 0.05 * rng.standard_normal(n)
    )
    return points, standardised(scores)


def matern(one, two, lengths):
    """The kernel of two points, literally."""
    inside = [[min(max((u - 0.1) / 0.8, 0.0), 1.0) for u in point[:2]] for point in (one, two)]
    apart = [
        inside[0][0] - inside[1][0],
        inside[0][1] - inside[1][1],
        float(level_of(one[2], 3) != level_of(two[2], 3)),
    ]
    r = np.sqrt(sum((each / length) ** 2 for each, length in zip(apart, lengths, strict=True)))
    return (1 + np.sqrt(5) * r + 5 * r * r / 3) * np.exp(-np.sqrt(5) * r)


@pytest.mark.paper("C31", "corrected")
def test_predictions_are_those_of_the_textbook(rng):
    points, scores = some_scores(rng)
    process = gp.fit(points, scores, COORDINATES)
    new = rng.random((4, 3))
    kernel = np.array([[matern(a, b, process.lengths) for b in points] for a in points])
    across = np.array([[matern(a, b, process.lengths) for b in points] for a in new])
    noisy = kernel + (process.noise + 1e-6) * np.eye(len(points))
    mean, spread = process.predict(new)
    assert mean == pytest.approx(across @ np.linalg.solve(noisy, scores))
    variance = process.scale * (
        1.0 - np.einsum("ij,ij->i", across, np.linalg.solve(noisy, across.T).T)
    )
    assert spread == pytest.approx(np.sqrt(variance))


def test_the_gradient_is_that_of_the_loss(rng):
    points, scores = some_scores(rng)
    squares = gp._squared_distances(points, points, COORDINATES)
    logs, expected, spread = np.log(rng.uniform(0.2, 1.0, 4)), np.zeros(4), np.ones(4)
    gradient = gp._loss(logs, squares, scores, expected, spread)[1]
    for place, step in enumerate(1e-5 * np.eye(4)):
        up, down = (
            gp._loss(logs + sign * step, squares, scores, expected, spread)[0] for sign in (1, -1)
        )
        assert gradient[place] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-6)


def test_it_learns_which_coordinates_matter(rng):
    points = rng.uniform(0.1, 0.9, (60, 3))
    scores = standardised(np.sin(6 * points[:, 0]))
    process = gp.fit(points, scores, COORDINATES)
    assert process.lengths[0] < 0.5 * min(process.lengths[1:])
    assert process.noise < 0.01


def test_it_recognises_noise(rng):
    points = rng.uniform(0.1, 0.9, (100, 3))
    clean, noisy = (
        gp.fit(
            points, standardised(points[:, 0] + width * rng.standard_normal(100)), COORDINATES
        ).noise
        for width in (0.0, 0.3)
    )
    assert noisy > 0.02 > 10 * clean


def test_expected_improvement_is_the_mean_of_what_exceeds(rng):
    points, scores = some_scores(rng)
    process = gp.fit(points, scores, COORDINATES)
    new = rng.random((3, 3))
    mean, spread = process.predict(new)
    draws = norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    literal = [
        np.maximum(m + s * draws - 0.3, 0.0).mean() for m, s in zip(mean, spread, strict=True)
    ]
    assert gp.expected_improvement(process, new, 0.3) == pytest.approx(literal, rel=1e-3, abs=1e-6)


def test_the_next_point_is_about_the_best_of_many(rng):
    points, scores = some_scores(rng, 40)
    scored = [
        ScoredPoint(tuple(point), float(score))
        for point, score in zip(points.tolist(), scores, strict=True)
    ]
    found = greatest_improvement(scored, COORDINATES, rng)
    process = gp.fit(points, scores, COORDINATES)
    best = float(process.predict(points)[0].max()) + 0.3
    many = gp.expected_improvement(process, rng.random((20_000, 3)), best)
    assert gp.expected_improvement(process, found[None, :], best)[0] >= 0.95 * many.max()


def test_coinciding_points_are_no_accident():
    points = np.full((10, 3), 0.5)
    process = gp.fit(points, standardised(np.arange(10.0)), COORDINATES)
    assert np.isfinite(process.predict(points)[0]).all()


def test_trials_without_score_count_like_the_worst():
    _, scores = remembered(
        [ScoredPoint((0.0,), 2.0), ScoredPoint((0.5,), None), ScoredPoint((1.0,), -1.0)]
    )
    assert scores.tolist() == [2.0, -1.0, -1.0]


def test_of_a_long_search_the_best_and_the_latest_are_remembered():
    scored = [ScoredPoint((float(number),), float(number == 3)) for number in range(500)]
    points, scores = remembered(scored)
    assert len(points) == 120
    assert points[:, 0].tolist() == [*sorted(points[:, 0])]
    assert 3.0 in points[:, 0]
    assert points[-60:, 0].tolist() == [float(number) for number in range(440, 500)]
    assert scores.max() == 1.0
