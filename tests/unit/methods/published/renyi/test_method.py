"""`renyi-floored` inside an audit."""

import numpy as np
import pytest

import epsilometer as em
from epsilometer.errors import InputError


def measured(entry, order=2.0, samples=20_000, **keywords):
    return em.measure(
        entry,
        None,
        em.RenyiDP,
        order=order,
        samples=samples,
        seed=1,
        method="renyi-floored",
        **keywords,
    )


def test_it_bounds_densities_and_says_that_it_is_asymptotic():
    result = measured(em.zoo.gaussian(sigma=1.0))
    assert result.guarantee == "asymptotic"
    assert 0.6 < result.lower_bound < 1.0
    assert result.findings[0].details["warnings"] == []


def test_it_bounds_discrete_outputs():
    result = measured(em.zoo.randomized_responses(1.0, users=3))
    assert 0.4 < result.lower_bound < em.zoo.randomized_responses(1.0).truth(em.RenyiDP, order=2.0)


def test_it_bounds_two_numbers():
    entry = em.zoo.laplace_vector(3.0, dimension=2)
    assert 0.5 < measured(entry).lower_bound < entry.truth(em.RenyiDP, order=2.0)


def test_options_reach_the_bound():
    result = measured(
        em.zoo.randomized_responses(1.0, users=3), options=em.renyi.Options(floor=1e-5)
    )
    details = result.findings[0].details
    assert details["floor"] == 1e-5
    assert "n·floor" in details["warnings"][0]


def test_zero_concentrated_claims_get_an_order():
    result = em.measure(
        em.zoo.gaussian(sigma=1.0), None, em.ZCDP, samples=20_000, seed=1, method="renyi-floored"
    )
    assert 0.3 < result.lower_bound < 0.5


@pytest.mark.paper("D29", "corrected")
@pytest.mark.parametrize(
    ("name", "least"), [("clamped_laplace", 0.55), ("propose_test_release", 0.6), ("svt3", 0.05)]
)
def test_point_masses_beside_a_density_are_bounded(name, least):
    entry = em.zoo.find(name)
    result = measured(entry)
    assert least < result.lower_bound < entry.truth(em.RenyiDP, order=2.0)
    assert result.guarantee == "asymptotic"


def test_mixed_laws_are_sent_to_auto():
    """Two continuous columns with point masses: mass on a line has no density."""

    def clamped(x, n, rng):
        return np.clip(x + rng.laplace(size=(n, 2)), -0.5, 0.5)

    with pytest.raises(InputError, match="method='auto'"):
        em.measure(
            em.from_batch(clamped),
            (0.0, 0.5),
            em.RenyiDP,
            order=2.0,
            samples=5000,
            seed=1,
            method="renyi-floored",
        )


@pytest.mark.parametrize("method", ["renyi-floored", "renyi-bet"])
def test_other_notions_are_refused_before_sampling(method):
    def never(dataset, n, rng):
        raise AssertionError("sampled")

    with pytest.raises(InputError, match="RenyiDP and ZCDP, not PureDP"):
        em.audit(em.from_batch(never), (0, 1), em.PureDP(1.0), method=method)


@pytest.mark.parametrize(
    ("options", "message"), [(3, "Options"), ({"flor": 1}, "did you mean 'floor'")]
)
def test_foreign_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        measured(em.zoo.gaussian(sigma=1.0), options=options)


@pytest.mark.parametrize("keywords", [{"floor": 0.0}, {"sharpness": -1.0}, {"undersmoothing": 0.5}])
def test_senseless_options_are_refused(keywords):
    with pytest.raises(InputError, match=next(iter(keywords))):
        em.renyi.Options(**keywords)


def test_outputs_off_the_grid_only_lower_the_bound():
    rng = np.random.default_rng(3)
    left, right = rng.normal(0, 1, 4000), rng.normal(1, 1, 4000)
    whole = em.compare(
        left, right, em.RenyiDP, order=2.0, seed=1, method="renyi-floored"
    ).lower_bound
    left[::10] = right[::10] = np.nan
    assert (
        0.0
        < em.compare(left, right, em.RenyiDP, order=2.0, seed=1, method="renyi-floored").lower_bound
        < whole
    )
