"""`hockey-stick`: the classifier's event, its directions, its published bound."""

import math

import numpy as np
import pytest

import epsilometer as em
from epsilometer.bounds import Counts
from epsilometer.claims import ApproxDeltaDP
from epsilometer.engine.streams import Stream
from epsilometer.errors import InputError
from epsilometer.methods import Task
from epsilometer.methods.published.auditorium.hockey_stick import (
    HockeyStickMethod,
    Options,
    mixture_size,
    mixtures_of,
    published_excess,
)
from epsilometer.outputs import read_outputs


def quantiles(n, shift):
    """Laplace outputs without chance."""
    u = (np.arange(n) + 0.5) / n
    return shift - np.sign(u - 0.5) * np.log1p(-2.0 * np.abs(u - 0.5))


def interacting(side, n, rng, strength=0.6):
    """Two numbers whose correlation, and nothing else, depends on the side; and two that tell nothing."""
    first, noise, *rest = rng.normal(size=(4, n))
    second = (strength if side else -strength) * first + math.sqrt(1.0 - strength**2) * noise
    return np.stack([first, second, *rest], axis=1)


def proposed(claim, options=None, n=20_000):
    sides = [
        read_outputs(np.random.default_rng(side).permutation(quantiles(n, side))) for side in (0, 1)
    ]
    return HockeyStickMethod(options).propose(*sides, Task(claim, (n, n), 0.05, Stream(0)))


@pytest.mark.parametrize("epsilon", [0.2, 0.5, 0.9])
@pytest.mark.paper("C19", "corrected")
def test_the_event_is_where_the_ratio_exceeds_the_mixture(epsilon):
    """For Laplace noise at 0 and 1 the log-ratio at t is |t − 1| − |t|: above ε for t < (1 − ε)/2."""
    proposal = proposed(ApproxDeltaDP(epsilon, 0.0))
    outputs = np.linspace(-4.0, 5.0, 901)
    inside = proposal.event.contains(outputs)
    edge = (1.0 - epsilon) / 2.0
    expected = outputs > 1.0 - edge if proposal.candidate.flipped else outputs < edge
    assert np.mean(inside != expected) < 0.06


def test_the_claimed_epsilon_weighs_the_mixture():
    assert mixtures_of(em.PureDP(0.7), None).tolist() == [0.7]
    assert mixtures_of(em.ApproxDP(0.7, 0.1), 0.3).tolist() == [0.3]
    assert mixtures_of(ApproxDeltaDP(0.7, 0.0), 0.3).tolist() == [
        0.7
    ]  # δ is asked at this ε and no other
    assert len(mixtures_of(em.PureDP(0.0), None)) > 10


def test_both_directions_are_found():
    rare = np.where(np.arange(10_000) % 50 == 0, 1.0, 0.0)
    none = np.zeros(10_000)
    for left, right in ((rare, none), (none, rare)):
        result = em.compare(left, right, em.ApproxDP, epsilon=0.5, method="hockey-stick", seed=0)
        assert 0.01 < result.lower_bound < 0.02
        assert result.witness.flipped is (left is none)


def test_trees_see_what_columns_together_tell():
    rng = np.random.default_rng(3)
    sides = interacting(0, 20_000, rng), interacting(1, 20_000, rng)
    found = {}
    for classifier in ("cells", "boosting", "auto"):
        options = em.auditorium.hockey_stick.Options(classifier=classifier)
        result = em.compare(
            *sides, em.ApproxDP, epsilon=0.5, method="hockey-stick", options=options, seed=0
        )
        found[classifier] = result.lower_bound
        assert result.guarantee == "exact"
    assert found["cells"] < 0.05 < 0.2 < found["boosting"]
    assert found["auto"] == found["boosting"]


@pytest.mark.paper("C17", "equal")
def test_published_is_the_formula_on_a_mixture(rng):
    """With an event that always tells the sides apart, accuracy is 1 whatever the mixture."""
    bound = published_excess(Counts(10_000, 10_000), Counts(0, 10_000), 0.5, 0.05, rng=rng)
    m, grow = mixture_size(10_000, 10_000, 0.5), math.exp(0.5)
    assert bound == pytest.approx(
        (1.0 + grow) * (1.0 - math.sqrt(math.log(20.0) / (2.0 * m))) - grow
    )
    assert 0.9 * 10_000 * (1.0 + grow) / grow < m < 10_000 * (1.0 + grow) / grow


def test_published_is_looser_than_exact():
    claim, n = ApproxDeltaDP(0.5, 0.0), 20_000
    bounds = {}
    for certificate in ("exact", "published"):
        proposal = proposed(claim, Options(certificate=certificate))
        tallies = [proposal.tally(read_outputs(quantiles(n, side)), side) for side in (0, 1)]
        finding = proposal.certify(*tallies, em.Pair(0, 1), 0.05)
        bounds[certificate] = finding.lower_bound
        assert finding.details["mixture_epsilon"] == 0.5
    assert 0.19 < bounds["published"] < bounds["exact"] < 0.2213


def test_published_without_draws_proves_nothing(rng):
    assert published_excess(Counts(0, 0), Counts(0, 0), 0.5, 0.05, rng=rng) < 0.0
    assert published_excess(Counts(3, 20), Counts(0, 20), 5.0, 0.05, rng=rng) < 0.0


def test_replay_and_report(tmp_path):
    entry = em.zoo.laplace_vector(1.5, dimension=3)
    options = em.auditorium.hockey_stick.Options(classifier="boosting")
    result = em.audit(
        entry, None, em.PureDP(0.5), samples=20_000, seed=1, method="hockey-stick", options=options
    )
    assert result.is_refuted
    stored = em.AuditResult.from_json(result.to_json())
    assert em.replay(stored, entry, samples=20_000, seed=2).is_refuted
    assert result.save_html(tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    "method", ["hockey-stick", "poisson-histogram", "mmd", "renyi-variational"]
)
def test_claims_and_sizes_that_make_no_sense(method):
    with pytest.raises(InputError, match="epsilon=nan"):
        em.audit(em.zoo.laplace(1.0), None, em.PureDP(math.nan), samples=1000, method=method)
    with pytest.raises(InputError, match="at least 20 draws"):
        em.audit(em.zoo.laplace(1.0), None, em.PureDP(0.5), samples=5, method=method)
    few = em.audit(em.zoo.laplace(1.0), None, em.PureDP(0.5), samples=20, seed=0, method=method)
    assert few.verdict is em.Verdict.NOT_REFUTED


@pytest.mark.parametrize("claim", [em.RenyiDP(2.0, 1.0), em.ZCDP(1.0), em.GaussianDP(1.0)])
@pytest.mark.parametrize("method", ["hockey-stick", "poisson-histogram", "mmd"])
def test_other_notions_are_refused_in_words(claim, method):
    with pytest.raises(InputError, match="bounds PureDP and ApproxDP"):
        em.audit(em.zoo.laplace(1.0), None, claim, samples=1000, method=method)


@pytest.mark.parametrize(
    "settings",
    [
        {"classifier": "forest"},
        {"certificate": "none"},
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"epsilon": math.inf},
    ],
)
def test_nonsense_options(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        Options(**settings)
