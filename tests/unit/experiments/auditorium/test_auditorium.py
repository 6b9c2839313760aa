"""DP-Auditorium's experiments: the grid is the paper's, what must be reached stands in the cases, and tiny runs run."""

import json
import math

import pytest

import epsilometer as em
import epsilometer_experiments as experiments
from epsilometer.errors import InputError
from epsilometer_experiments.auditorium import (
    figure1,
    figure2,
    figure3,
    published,
    settings,
    table1,
    table2,
)
from epsilometer_experiments.auditorium.draws_needed import draws_needed
from epsilometer_experiments.options import read_options
from epsilometer_experiments.registry import find


def settings_of(experiment, **given):
    return read_options(experiment.name, experiment.options, given)


# --- the paper's numbers --------------------------------------------------------------------------------------------


def test_the_paper_has_a_number_for_every_cell_of_table_1():
    for mechanism in (*settings.MEANS, *settings.SPARSE_VECTORS):
        for epsilon in settings.EPSILONS:
            for samples in settings.SIZES:
                rates = [
                    published.detection_rate(mechanism.title, epsilon, t, samples)
                    for t in settings.TESTERS
                ]
                assert (rates[0] is None) == mechanism.answers  # no histogram of vectors
                assert all(0 <= rate <= 1 for rate in rates[1:])


def test_some_cells_of_the_paper():
    assert published.detection_rate("NonDPLaplace1", 0.01, "hockey-stick", 100_000) == 0.8
    assert published.detection_rate("NonDPLaplace2", 0.01, "renyi-variational", 500_000) == 0.5
    assert published.detection_rate("NonDPGaussian1", 0.01, "mmd", 100_000) == 0.4
    assert published.detection_rate("SVT4", 0.01, "mmd", 100_000) == 0.2
    assert published.detection_rate("SVT6", 1.0, "hockey-stick", 50_000) == 1.0
    assert published.detection_rate("SVT6", 1.0, "hockey-stick", 1234) is None
    assert published.mean_trials("NonDPGaussian2", "Bayesian", "hockey-stick") == 19.1
    assert published.mean_trials("SVT3", "Grid", "mmd") == 50.0
    assert published.mean_trials("SVT3", "Grid", "poisson-histogram") is None


def test_the_papers_best_of_table_2():
    best = {
        mechanism.title: published.fewest_trials(mechanism.title) for mechanism in settings.MEANS
    }
    assert best == {
        "NonDPLaplace1": 1.0,
        "NonDPLaplace2": 1.5,
        "NonDPGaussian1": 1.0,
        "NonDPGaussian2": 1.2,
    }


# --- draws that a violation needs -----------------------------------------------------------------------------------


def test_a_claim_that_holds_cannot_be_refuted_by_any_number_of_draws():
    assert draws_needed(em.zoo.laplace(1.0), 0.95) is None
    assert draws_needed(em.zoo.dp_laplace(1.0), 0.95) is None
    assert draws_needed(em.zoo.gaussian(epsilon=1.0, delta=1e-3), 0.95) is None
    assert draws_needed(em.zoo.scaled_gd(), 0.95) is None  # a Rényi claim: not planned here


def test_more_power_and_smaller_leaks_need_more_draws():
    small, large = (
        draws_needed(em.zoo.dp_mean(1.0, scale_error=error), 0.95) for error in (0.9, 0.5)
    )
    assert small > 5 * large
    assert draws_needed(em.zoo.svt4(), 0.95, power=0.5) < draws_needed(
        em.zoo.svt4(), 0.95, power=0.99
    )


def test_the_best_event_of_laplace_noise_is_not_far_from_the_half_line():
    """Twice the claimed loss: P = 1/2 against e^-2/2 on the half-line; a little beyond it lies a better event."""
    plan = em.plan(claim=em.PureDP(1.0), truth=2.0, power=0.9, event_probability=0.5)
    needed = draws_needed(em.zoo.dp_mean(1.0), 0.95, power=0.9)
    assert 0.8 * plan.samples <= needed <= plan.samples


def test_an_impossible_event_needs_few_draws():
    assert draws_needed(em.zoo.svt5(1.0), 0.95) < 200


# --- table 1 --------------------------------------------------------------------------------------------------------


@pytest.mark.paper("C34", "equal")
def test_the_experiments_have_the_papers_settings():
    """Section 6: β = 1/3, α = 1.5, δ = .01 with Gaussian noise and 0 else, 100 cells, ten runs."""
    assert pytest.approx(1 / 3) == settings.PAPER_LEVEL
    assert settings.EPSILONS == (0.01, 1.0)
    assert settings.SIZES == (50_000, 100_000, 500_000)
    for mechanism in settings.MEANS:
        claim = mechanism.entry(1.0).claim
        assert claim.epsilon == 1.0
        assert claim.delta == (0.01 if "Gaussian" in mechanism.title else 0.0)
        testers = {
            column: settings.published_tester(
                column, settings.claim_for(mechanism.entry(1.0), column)
            )
            for column in settings.PUBLISHED
        }
        assert testers["renyi-variational/published"].estimator.order == 1.5
        assert testers["poisson-histogram/published"].estimator.cells == 100
    for name in ("table1", "table2", "figure2"):
        assert find(f"auditorium/{name}").runs == 10


@pytest.mark.paper("C34", "equal")
def test_table_1_has_the_papers_grid():
    cases = table1.make_cases(
        settings_of(table1.EXPERIMENT, samples="5e4,1e5,5e5", method="hockey-stick")
    )
    names = {case.name for case in cases}
    for mechanism in settings.MECHANISMS:
        assert {
            f"{mechanism} ε={epsilon:g} n={n}" for epsilon in (0.01, 1.0) for n in settings.SIZES
        } <= names


def test_every_violation_that_can_be_shown_must_be():
    cases = table1.make_cases(settings_of(table1.EXPERIMENT, method="auto"))
    expected = {
        case.name.removesuffix(" n=50000"): case.expected.get("detected by auto, 95 %")
        for case in cases
    }
    means = [mechanism.title for mechanism in (*settings.MEANS, *settings.RELEASED)]
    must = [f"{title} ε={epsilon:g}" for title in means for epsilon in settings.EPSILONS]
    must += [f"SVT{number} ε=1" for number in (3, 4, 5, 6)] + ["SVT5 ε=0.01"]
    assert {name for name, target in expected.items() if target and target.relation == "≥"} == set(
        must
    )
    assert all(expected[name].value == 1.0 for name in must)
    assert all(expected[f"SVT{number} ε=0.01"] is None for number in (3, 4, 6))


def test_private_mechanisms_may_be_detected_as_often_as_the_level_allows():
    cases = table1.make_cases(settings_of(table1.EXPERIMENT, mechanism="DPLaplace,SVT1"))
    for case in cases:
        assert case.expected["detected by auto, 95 %"].value == pytest.approx(0.05)
        assert case.expected["detected by mmd"].value == pytest.approx(1 / 3)


def test_a_tester_that_refuses_a_claim_detects_nothing():
    assert not table1.is_refuted(em.zoo.nondp_laplace1(1.0), "mmd", 2_000, 0)
    assert table1.is_refuted(em.zoo.nondp_laplace1(1.0), "auto", 5_000, 0)


def test_an_unknown_mechanism_is_told():
    with pytest.raises(InputError, match="NonDPLaplace3"):
        table1.make_cases(settings_of(table1.EXPERIMENT, mechanism="NonDPLaplace3"))


def test_gaussian_noise_meets_the_renyi_tester_at_its_order():
    entry = em.zoo.nondp_gaussian1(0.5)
    assert settings.claim_for(entry, "renyi-variational") == em.RenyiDP(1.5, 0.5)
    assert settings.claim_for(entry, "hockey-stick") == em.ApproxDP(0.5, 0.01)
    assert settings.claim_for(em.zoo.svt1(0.5), "renyi-variational") == em.PureDP(0.5)


# --- table 2 and the figures ----------------------------------------------------------------------------------------


def test_table_2_must_beat_the_papers_best():
    cases = table2.make_cases(settings_of(table2.EXPERIMENT))
    assert len(cases) == 12
    for case in cases:
        target = case.expected["trials with auto, 2/3"]
        assert target.value == published.fewest_trials(case.parameters["mechanism"].title)
        assert target.relation == ("≈" if case.parameters["finder"] == "Grid" else "≤")


def test_a_search_that_finds_nothing_takes_all_its_trials():
    chosen = {"samples": 4_000, "trials": 3}
    assert table2.search(settings.MECHANISMS["DPLaplace"], "Random", "auto", 0.95, 5, chosen) == 3
    assert (
        table2.search(settings.MECHANISMS["NonDPLaplace1"], "Random", "auto", 0.95, 5, chosen) == 1
    )


def test_inputs_of_the_searches_are_neighbours():
    domain, relation = table2.domain_of(settings.MECHANISMS["NonDPLaplace1"])
    pair = em.finders.Random(domain, relation, seed=3).ask()
    assert {len(pair.left), len(pair.right)} == {1, 2}
    domain, relation = table2.domain_of(settings.MECHANISMS["SVT4"])
    pair = em.finders.Random(domain, relation, seed=3).ask()
    assert max(abs(a - b) for a, b in zip(pair.left, pair.right, strict=True)) <= 1 + 1e-12


@pytest.mark.paper("C42", "differs")
def test_figure_1_asks_for_a_fifth_of_the_released_time():
    cases = {case.name: case for case in figure1.make_cases(settings_of(figure1.EXPERIMENT))}
    assert cases["n=50000"].expected["CPU seconds of hockey-stick"].value == pytest.approx(1.9)
    assert cases["n=50000"].expected["CPU seconds of mmd"].value == pytest.approx(0.32)
    assert not cases["n=100000"].expected


def test_figure_2_has_the_true_divergences():
    cases = figure2.make_cases(settings_of(figure2.EXPERIMENT))
    for case in cases:
        scale = case.parameters["scale"]
        assert case.expected["bound by auto"].value == pytest.approx(0.75 / scale**2)
        assert ("caught by auto" in case.expected) == (scale <= 0.6 or math.isclose(scale, 1.0))


def test_figure_3_has_the_true_divergences():
    cases = figure3.make_cases(settings_of(figure3.EXPERIMENT, samples="5000"))
    truths = [case.expected[figure3.DIVERGENCE].value for case in cases]
    assert truths == pytest.approx([0.02344, 0.14252], abs=1e-4)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (
            "table1",
            {
                "samples": 2_000,
                "mechanism": "NonDPLaplace1,SVT5,NoisyMax",
                "method": "auto,poisson-histogram",
            },
        ),
        (
            "table2",
            {"samples": 4_000, "trials": 3, "mechanism": "NonDPGaussian1", "method": "auto"},
        ),
        ("figure1", {"samples": 2_000, "method": "auto,mmd"}),
        ("figure2", {"samples": 2_000, "method": "auto", "scale": ".5,1"}),
        ("figure3", {"samples": "2000,4000", "trials": 3, "mechanism": "NonDPGaussian1"}),
    ],
)
def test_a_tiny_run_of_each_writes_results_and_figures(name, options, tmp_path):
    path = experiments.run(f"auditorium/{name}", runs=2, out=tmp_path, jobs=1, options=options)
    rows = json.loads(path.read_text())["rows"]
    assert rows
    assert all(row["runs"] == 2 and math.isfinite(row["measured"]) for row in rows)
    assert (tmp_path / f"{name}.svg").is_file()
