"""The method in an audit: a bound from the interval, and refusals before anything is drawn."""

import numpy as np
import pytest

import epsilometer as em
from epsilometer.methods.published.ldp import HistogramMethod

ENTRY = em.zoo.truncated_laplace(1.0)
OPTIONS = em.ldp.Options(ENTRY.domain, ENTRY.lipschitz)


def audit(claim, options=OPTIONS, samples=200_000, mechanism=ENTRY, **keywords):
    return em.audit(
        mechanism,
        claim=claim,
        method="ldp-histogram",
        options=options,
        samples=samples,
        seed=0,
        **keywords,
    )


def test_the_bound_is_the_lower_end_of_the_interval():
    result = audit(em.PureDP(0.0), samples=4_000_000)
    details = result.findings[0].details
    assert (
        result.lower_bound
        == details["interval"][0]
        == max(0.0, details["estimate"] - details["precision"])
    )
    assert details["interval"][1] == details["estimate"] + details["precision"]
    assert details["planned_samples"] <= 4_000_000
    assert result.guarantee == f"conditional: {details['assumption']}"
    assert result.verdict is em.Verdict.REFUTED
    assert result.samples_used == (4_000_000, 4_000_000)
    assert em.AuditResult.from_json(result.to_json()).to_dict() == result.to_dict()


def test_what_would_have_been_seen():
    result = audit(em.PureDP(1.0))
    assert result.verdict is em.Verdict.NOT_REFUTED
    assert result.detectable == 1.0 + 2 * result.findings[0].details["precision"]


def test_a_precision_without_enough_draws_decides_nothing():
    result = audit(em.PureDP(0.2), em.ldp.Options(ENTRY.domain, ENTRY.lipschitz, precision=0.3))
    assert result.guarantee == "none: practical n"
    assert result.lower_bound > 0.2
    assert result.verdict is em.Verdict.INCONCLUSIVE
    assert "Nothing is proved about" in str(result)
    assert "at least" not in str(result)


def test_empty_cells_decide_nothing():
    result = audit(
        em.PureDP(0.2), em.ldp.Options(ENTRY.domain, ENTRY.lipschitz, precision=0.01), samples=2000
    )
    assert result.lower_bound == 0.0
    assert "cells are empty; take more samples or wider cells" in result.guarantee
    assert result.verdict is em.Verdict.INCONCLUSIVE


def test_the_larger_of_both_directions_counts():
    pair = ENTRY.worst_pair
    found = [
        audit(em.PureDP(1.0), inputs=each).findings[0].details["estimate"]
        for each in (pair, (1.0, 0.0))
    ]
    assert found == pytest.approx([1.0, 1.0], abs=0.1)


def test_the_best_of_several_pairs_is_found():
    entry = em.zoo.truncated_laplace(0.5)
    options = em.ldp.Options(entry.domain, entry.lipschitz)
    result = audit(em.PureDP(0.0), options, inputs=[(0.5, 0.6), (0.0, 1.0)], mechanism=entry)
    assert result.findings[0].details["estimate"] == pytest.approx(0.5, abs=0.1)


def test_renyi():
    entry = em.zoo.truncated_laplace(0.1)
    options = em.ldp.Options(entry.domain, entry.lipschitz)
    result = audit(em.RenyiDP(2.0, 1.0), options, samples=1_000_000, mechanism=entry)
    low, high = result.findings[0].details["interval"]
    assert low <= entry.truth(em.RenyiDP, order=2.0) <= high


@pytest.mark.parametrize(
    ("claim", "options", "message"),
    [
        (em.PureDP(1.0), None, r"needs options=epsilometer.ldp.Options\(domain"),
        (em.PureDP(1.0), 3, "must be epsilometer.ldp.Options"),
        (
            em.PureDP(1.0),
            {"domain": (0, 1)},
            "not options of the method ldp-histogram: .*lipschitz",
        ),
        (em.GaussianDP(1.0), OPTIONS, "pure and Rényi"),
        (em.ApproxDP(1.0, 0.1), OPTIONS, "pure and Rényi"),
    ],
)
def test_what_cannot_be_done_is_refused_before_drawing(claim, options, message):
    def never(x, n, rng):
        raise AssertionError("drawn")

    with pytest.raises(em.InputError, match=message):
        audit(claim, options, inputs=(0, 1), mechanism=em.from_batch(never))


def test_too_few_draws_for_any_precision():
    with pytest.raises(em.InputError, match="too few for any precision"):
        audit(em.RenyiDP(5.0, 1.0), samples=1000)


def test_outputs_outside_are_seen_in_the_pilot_draws():
    drawn = []

    def wide(x, n, rng):
        drawn.append(n)
        return rng.normal(0.5, 1.0, n)

    with pytest.raises(em.InputError, match=r"of 2,000 outputs are not numbers of domain"):
        audit(em.PureDP(1.0), inputs=(0, 1), mechanism=em.from_batch(wide))
    assert sum(drawn) == 2000


@pytest.mark.parametrize("options", [((0.0, 1.0), 5.0), ((1.0, 0.0), 0.1), ((0.0, 1.0), 0.1, -1.0)])
def test_senseless_options(options):
    with pytest.raises(em.InputError):
        em.ldp.Options(*options)


def test_it_introduces_itself_without_options():
    method = HistogramMethod()
    assert method.name == "ldp-histogram"
    assert method.guarantee == "conditional: densities are C-Lipschitz on [a, b]"
    assert np.sum(method.fixed_sizes(1, 5000)) == 5000
    assert method.fixed_sizes(3, 5000) is None
