"""Mixed distributions: point masses beside densities, in loss functions, intervals and audits."""

import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer.methods.published.local.mixtures import find_mixture
from epsilometer.outputs import read_outputs


def laplace_quantiles(centre, n=20_000):
    u = (np.arange(n) + 0.5) / n
    return centre + np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u)))


def clamped(centre):
    return np.clip(laplace_quantiles(centre), -0.5, 1.5)


def test_the_loss_of_clamped_noise_at_its_ends_and_between():
    """At an end the ratio of probabilities, between them the ratio of densities: both are e here and there."""
    left, right = clamped(0.0), clamped(1.0)
    loss = em.local.loss_function(left, right, support=(-0.5, 1.5), floor=1e-3)
    assert loss.kind == "mixed"
    assert loss(-0.5) == pytest.approx(1.0, abs=0.01)
    assert loss(1.5) == pytest.approx(1.0, abs=0.01)
    assert loss(0.5) == pytest.approx(0.0, abs=0.02)
    assert loss(-0.3) == pytest.approx(1.0, abs=0.06)
    assert loss.estimate == pytest.approx(1.0, abs=0.1)
    masses, density = loss.parts
    assert sorted(masses.loss.points) == [-0.5, 1.5]
    # A density beside point masses integrates to what they leave.
    step = density.loss.points[1] - density.loss.points[0]
    between = 1 - math.exp(-0.5) / 2 - math.exp(-1.5) / 2
    assert density.loss.left_density.sum() * step == pytest.approx(between, abs=0.02)
    assert len(loss.points) == len(loss.loss) == len(loss.deviations)
    assert list(loss.points)[loss.best()] == loss.location


def test_a_leak_in_one_atom_is_found_where_it_is():
    left = np.concatenate([laplace_quantiles(0.0, 9000), np.zeros(1000)])
    right = np.concatenate([laplace_quantiles(0.0, 9900), np.zeros(100)])
    loss = em.local.loss_function(left, right, floor=1e-3)
    assert loss.location == 0.0
    assert loss.estimate == pytest.approx(math.log(10))
    assert loss(0.25) == pytest.approx(math.log(9900 / 9000), abs=0.02)


def at_position(position, n, centre):
    return [{"position": position, "value": v} for v in laplace_quantiles(centre, n).tolist()]


def test_slices_by_position_and_shape():
    """A position with a number, or nothing: one density for each position."""
    left = at_position(1, 3000, 0.0) + at_position(2, 3000, 1e-4)
    right = at_position(1, 3000, 2e-4) + at_position(2, 1000, 3e-4)
    left += [None] * 2000
    right += [None] * 4000
    mixture = find_mixture(read_outputs(left), read_outputs(right))
    assert {where.constants for where in mixture.slices} == {(1,), (2,)}
    assert len(mixture.outcomes) == 1
    loss = em.local.loss_function(left, right, floor=1e-4)
    assert loss([1, 0.1]) == pytest.approx(0.0, abs=0.02)
    assert loss([2, 0.1]) == pytest.approx(math.log(3), abs=0.1)
    assert loss.location[0] == 2


def test_draws_of_a_slice_leave_out_what_is_not_its():
    left = read_outputs([(1, 0.25), (1, 0.5), (2, 0.75), (1, math.nan), (1, 7.0)] * 1)
    where = find_mixture(
        read_outputs([(1, v) for v in laplace_quantiles(0.0, 300).tolist()] + [(1, 7.0)] * 9),
        read_outputs([(1, v) for v in laplace_quantiles(1.0, 300).tolist()]),
    ).slices[0]
    assert where.atoms.tolist() == [7.0]
    assert where.rows(left).tolist() == [[0.25], [0.5]]
    assert where.number_of([1, 0.3]) == 0.3
    assert where.number_of([2, 0.3]) is None
    assert where.number_of([1, 7.0]) is None
    assert where.number_of("x") is None


def test_an_interval_takes_a_point_mass_or_a_place():
    left, right = clamped(0.0), clamped(1.0)
    at_end = em.local.interval(left, right, -0.5)
    p, q = math.exp(-0.5) / 2, math.exp(-1.5) / 2
    assert at_end.estimate == pytest.approx(1.0, abs=0.01)
    assert at_end.standard_error == pytest.approx(math.sqrt((1 / p + 1 / q - 2) / 20_000), rel=0.01)
    between = em.local.interval(left, right, 0.0, proof_bandwidth=0.1)
    plain = em.local.interval(
        laplace_quantiles(0.0), laplace_quantiles(1.0), 0.0, proof_bandwidth=0.1
    )
    # The clamp moves mass, not the densities between its ends.
    assert between.left_density == pytest.approx(plain.left_density, rel=0.01)
    assert between.right_density == pytest.approx(plain.right_density, rel=0.01)
    assert between.standard_error == pytest.approx(plain.standard_error, rel=0.01)


@pytest.mark.paper("A19", "corrected")
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("clamped_laplace", 0.9),
        ("propose_test_release", 1.5),
        ("numerical_svt", 0.1),
        ("svt3", 1.0),
    ],
)
def test_mixed_laws_are_bounded(name, least):
    entry = em.zoo.find(name)
    result = em.measure(entry, None, em.PureDP, samples=30_000, method="local", seed=0)
    assert least < result.lower_bound < entry.truth()
    assert result.guarantee == "asymptotic"
    again = em.AuditResult.from_json(result.to_json())
    assert again.lower_bound == result.lower_bound


def test_a_bound_at_a_point_mass_has_a_witness_that_can_be_replayed():
    entry = em.zoo.clamped_laplace()
    result = em.measure(entry, None, em.PureDP, samples=20_000, method="local", seed=0)
    assert result.findings[0].details["location"] in (0.0, 1.0)
    assert result.findings[0].details["kind"] == "mixed"
    assert result.findings[0].details["part"] == "point mass"
    assert em.replay(result, entry, samples=5000, seed=1).lower_bound > 0.8


def test_a_density_on_one_side_only():
    """The left is a point mass in nine of ten draws and a number otherwise, the right never a number."""
    left = np.concatenate([np.zeros(9000), laplace_quantiles(0.0, 1000)])
    right = np.zeros(10_000)
    loss = em.local.loss_function(left, right, floor=1e-3)
    assert loss.kind == "mixed"
    assert loss.estimate > 2.0
    assert loss(0.0) == pytest.approx(-math.log(0.9), abs=1e-9)


def test_chunks_of_a_mixed_tally_add_up_exactly():
    from epsilometer.methods.base import Task
    from epsilometer.methods.published.local import LocalMethod

    left, right = (read_outputs(np.clip(laplace_quantiles(c), -5, 5)) for c in (0.0, 1.0))
    options = em.local.Options(kind="mixed", region=(-1.0, -0.5), select="loss")
    proposal = LocalMethod(options).propose(left, right, Task(em.PureDP(0.0), (5000, 5000), 0.05))
    whole = proposal.tally(left, 0)
    parts = [proposal.tally(left.take(slice(a, a + 617)), 0) for a in range(0, len(left), 617)]
    assert sum(parts[1:], parts[0]) == whole
