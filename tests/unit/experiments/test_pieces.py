"""Pieces of the papers that are no table of theirs: examples, anecdotes, canaries, impossibility."""

import math

import numpy as np
import pytest

import epsilometer as em
import epsilometer_experiments as experiments
from epsilometer_experiments.auditorium import anecdotes, canaries, settings, table1
from epsilometer_experiments.ldp.renyi_impossibility import RareOutput, rare_output
from epsilometer_experiments.local import example2, figure1, figure2, figure6
from epsilometer_experiments.options import read_options


def run(name, tmp_path, **options):
    return experiments.run(name, runs=1, out=tmp_path, jobs=1, options=options)


@pytest.mark.parametrize(
    ("name", "options", "figure"),
    [
        ("local/figure1", {"kernels": "gaussian"}, "figure1"),
        ("local/example2", {"samples": 2000, "k": "2,12"}, "example2"),
        ("auditorium/canaries", {"samples": 2000}, "canaries"),
        ("auditorium/anecdotes", {"samples": 4000}, None),
        ("ldp/renyi-impossibility", {"samples": "1e3"}, None),
    ],
)
def test_a_tiny_run_of_each(name, options, figure, tmp_path):
    assert run(name, tmp_path, **options).exists()
    assert figure is None or (tmp_path / f"{figure}.png").exists()


@pytest.mark.parametrize("kernel", figure1.KERNELS)
@pytest.mark.paper("A32", "equal")
def test_figure_1_follows_the_density(kernel):
    _, found = figure1.estimate(kernel, 20_000, 0)
    assert np.abs(found - figure1.density(figure1.PLACES)).max() < 0.1


@pytest.mark.paper("A33", "equal")
def test_figure_2_has_ten_answers_and_the_papers_scales():
    panel = figure2.PANELS["randomized response"]
    answers = np.arange(1, figure2.ANSWERS + 1)
    left, right = (
        np.exp(panel.log_density(answers, side)) for side in (panel.pair.left, panel.pair.right)
    )
    assert left.sum() == pytest.approx(1.0)
    assert left.max() == pytest.approx(0.2, abs=0.01)
    assert (
        np.count_nonzero(np.abs(np.log(left / right)) > 1e-9) == 2
    )  # "only two outputs elicit any privacy leakage"
    drawn = (
        np.bincount(figure2._answer(3, 20_000, np.random.default_rng(0)), minlength=11)[1:] / 20_000
    )
    assert drawn == pytest.approx(left, abs=0.02)


@pytest.mark.paper("A33", "equal")
@pytest.mark.parametrize("name", ["Laplace mechanism", "Gaussian mechanism"])
def test_figure_2_has_the_densities_and_losses_of_its_mechanisms(name):
    """Means 0 and 5; a Laplace density of height .1, whose loss never exceeds 1, and a Gaussian one of height .05."""
    panel = figure2.PANELS[name]
    places = np.linspace(-10.0, 15.0, 26)
    height = 0.1 if name.startswith("Laplace") else 0.05
    assert np.exp(panel.log_density(0.0, 0.0)) == pytest.approx(height, abs=2e-4)
    drawn = panel.sample(5.0, 200_000, np.random.default_rng(0))
    for place in (0.0, 5.0, 9.0):
        share = np.mean(np.abs(drawn - place) < 0.25) / 0.5
        assert share == pytest.approx(np.exp(panel.log_density(place, 5.0)), rel=0.07)
    loss = np.abs(panel.log_density(places, 0.0) - panel.log_density(places, 5.0))
    if name.startswith("Laplace"):
        assert loss.max() == pytest.approx(1.0)
        assert panel.truth == 1.0
    else:
        assert np.diff(loss)[-5:] == pytest.approx(5.0 / 64.0)  # it grows without end
    assert panel.loss(0).estimate == pytest.approx(panel.truth, abs=0.2)


@pytest.mark.paper("A21", "equal")
def test_example_2_keeps_a_delta_but_no_epsilon():
    algorithm = example2.Matches(3)
    assert algorithm(0, 1000, np.random.default_rng(0)).sum() == 0
    share = algorithm(1, 100_000, np.random.default_rng(0)).mean()
    assert share == pytest.approx(math.exp(-3), abs=0.005)


@pytest.mark.paper("A40", "corrected")
def test_brents_method_stops_at_a_maximum_that_is_no_greater():
    make, pair, region, _ = figure6.ALGORITHMS["exponential mechanism"]
    loss = em.local.dpl(make(1.5), pair, n=2000, region=region, floor=1e-3, seed=0).loss
    assert 1.0 < figure6.brent_maximum(loss, region) <= loss.estimate + 1e-9


@pytest.mark.paper("C47", "equal")
def test_an_undivided_budget_has_twice_the_noise_scale():
    rng = np.random.default_rng(0)
    both = [anecdotes.BothNoisyMean(1.0, share)([1.0] * 3, 50_000, rng) for share in (1.0, 0.5)]
    assert both[1].std(axis=0) == pytest.approx(2 * both[0].std(axis=0), rel=0.05)


@pytest.mark.paper("C47", "equal")
@pytest.mark.parametrize("method", anecdotes.METHODS)
def test_svt4_was_thought_to_be_private_and_is_flagged(method):
    """Section 6.7, at ε = 1: by the exact truth, and by an audit of the experiment."""
    assert em.zoo.svt4(1.0).truth() > 1.5
    (case,) = (case for case in anecdotes.make_cases({}) if case.name.startswith("SVT4"))
    settings = read_options("auditorium/anecdotes", anecdotes.EXPERIMENT.options, {})
    assert anecdotes.run_once(case, 0, settings)[anecdotes.FLAGGED.format(method)] == 1.0


def test_canaries_on_the_sphere_have_the_full_norm():
    rng = np.random.default_rng(0)
    assert np.linalg.norm(canaries.on_sphere(rng, 64)) == pytest.approx(1.0)
    norms = [np.linalg.norm(canaries.in_cube(rng, 64)) for _ in range(200)]
    assert np.mean(norms) == pytest.approx(math.sqrt(1 / 3), abs=0.02)


@pytest.mark.parametrize("n", [100, 10**6])
@pytest.mark.parametrize("order", [1.5, 2.0, 5.0])
@pytest.mark.paper("B13", "equal")
def test_the_rare_output_has_its_divergence_and_is_rarely_drawn(n, order):
    mechanism = rare_output(n, order, 10.0, 0.01)
    assert mechanism.divergence(order) == pytest.approx(10.0, abs=1e-6)
    assert 2 * n * max(mechanism.p, mechanism.q) <= 0.01 + 1e-12
    assert RareOutput(0.0, 0.0).divergence(order) == 0.0


@pytest.mark.paper("C20", "equal")
@pytest.mark.parametrize("epsilon", [0.01, 1.0])
def test_published_columns_have_the_papers_testers(epsilon):
    """Algorithms 2, 4, 6 and 8: which estimator, and which threshold it is compared with."""
    pure, gaussian = em.zoo.nondp_laplace1(epsilon), em.zoo.nondp_gaussian1(epsilon)
    for column in settings.PUBLISHED:
        assert settings.is_published(column)
        assert not settings.is_published(settings.tester_of(column))
        thresholds = [
            settings.published_tester(column, settings.claim_for(entry, column)).threshold
            for entry in (pure, gaussian)
        ]
        if settings.tester_of(column) == "renyi-variational":
            assert thresholds == [min(epsilon, 2 * 1.5 * epsilon**2), epsilon]
        else:
            assert thresholds == [0.0, 0.01]
    names = {
        column: type(settings.published_tester(column, pure.claim).estimator).__name__
        for column in settings.PUBLISHED
    }
    assert list(names.values()) == ["Histogram", "HockeyStick", "Renyi", "Mmd"]


@pytest.mark.paper("C26", "equal")
def test_the_published_mmd_column_passes_what_it_cannot_refute():
    """At ε = 1 no discrepancy exceeds the threshold; `em.audit` takes a sharper one there."""
    entry = em.zoo.nondp_laplace1(1.0)
    assert not table1.is_refuted(entry, "mmd/published", 5000, 0)
    allowed = em.auditorium.mmd.greatest_discrepancy(1.0, 0.0)
    assert allowed > em.auditorium.mmd.MOST
    sharper = em.auditorium.mmd.greatest_discrepancy(1.0, 0.0, "total-variation")
    assert sharper < em.auditorium.mmd.MOST
    em.auditorium.mmd.MmdMethod().check(em.PureDP(1.0))


@pytest.mark.paper("C15", "corrected")
def test_the_cells_of_the_histogram_decide_what_it_finds():
    """On [-1, 1] NonDPLaplace1 is hard and NonDPLaplace2 easy, as in Table 1; of equal mass, they make both easy."""
    found = {}
    for name in ("nondp_laplace1", "nondp_laplace2"):
        entry = em.zoo.find(name, epsilon=0.01)
        for cells, more in (
            ("fixed", {"bounds": (-1.0, 1.0), "margin": 0.05}),
            ("of equal mass", {}),
        ):
            options = {"certificate": "published", **more}
            keywords = {
                "samples": 20_000,
                "seed": 0,
                "method": "poisson-histogram",
                "options": options,
            }
            found[name, cells] = (
                em.audit(entry, None, entry.claim, **keywords).findings[0].details["estimate"]
            )
    assert found["nondp_laplace1", "fixed"] < 0.0 < found["nondp_laplace2", "fixed"]
    assert (
        min(found["nondp_laplace1", "of equal mass"], found["nondp_laplace2", "of equal mass"])
        > 0.05
    )


def test_every_experiment_is_in_a_readme(request):
    folder = request.config.rootpath / "experiments"
    for name in experiments.names():
        readme = folder / name.partition("/")[0] / "README.md"
        text = readme.read_text(encoding="utf-8") if readme.exists() else ""
        assert name in (folder / "README.md").read_text(encoding="utf-8") + text, name
