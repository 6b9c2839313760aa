"""The settings of the paper on the local approach are what they claim to be."""

import itertools

import pytest

import epsilometer as em
from epsilometer.zoo.laws.sparse_vector import Scheme, answers_law
from epsilometer.zoo.selection import NoisyMax
from epsilometer_experiments.local.figure5 import TRUTHS
from epsilometer_experiments.local.settings import ALGORITHMS, LEVELS, query_pairs
from epsilometer_experiments.registry import find, run

SCHEMES = {
    "e": lambda level: Scheme(2 / level, 4 / level, 1),
    "f": lambda level: Scheme(7 / level, 7 / (3 * level), 1),
    "h": lambda level: Scheme(2 / level, 2 / level, None),
}


@pytest.mark.parametrize("letter", list(SCHEMES))
@pytest.mark.parametrize("place", range(3))
def test_truths_of_the_sparse_vector_techniques(letter, place):
    scheme = SCHEMES[letter](LEVELS[place])
    losses = [answers_law(scheme, pair.left, pair.right).pure_epsilon() for pair in query_pairs(10)]
    assert max(losses) == pytest.approx(ALGORITHMS[letter].truths[place], abs=1e-5)
    function = ALGORITHMS[letter].make(LEVELS[place]).mechanism.function
    made = function.scheme if hasattr(function, "scheme") else function.keywords["scheme"]
    assert made.query_scale == pytest.approx(scheme.query_scale)


@pytest.mark.parametrize(("letter", "scale"), [("a", 1.0), ("b", 2.0), ("c", 3.0)])
def test_noise_scales(letter, scale):
    function = ALGORITHMS[letter].make(0.7).mechanism.function
    made = function.scale if hasattr(function, "scale") else function.keywords["scale"]
    assert made == pytest.approx(scale / 0.7)


def test_rate_of_the_exponential_mechanism():
    rates = [ALGORITHMS["d"].make(level).mechanism.function.keywords["rate"] for level in LEVELS]
    assert rates == pytest.approx([0.115834, 0.541662, 1.399228], abs=1e-6)


def test_truth_of_the_data_centric_level():
    from epsilometer.zoo.laws.numerics import REACH_IN_SCALES, Panels

    mechanism = NoisyMax("laplace", "index", 2 / 1.5)
    panels = Panels.between({0.0, 1.0}, mechanism.scale, REACH_IN_SCALES * mechanism.scale)

    def law(queries):
        return [
            (density * panels.weights).sum()
            for density in mechanism.winning_densities(panels.nodes, queries)
        ]

    import numpy as np

    zero = np.log(law([0.0] * 6))
    worst = max(
        np.abs(np.log(law(list(bits))) - zero).max()
        for bits in itertools.product((0.0, 1.0), repeat=6)
    )
    assert worst == pytest.approx(TRUTHS["report noisy max at 0^6"], abs=1e-5)


def test_query_pairs_are_neighbours():
    for d in (6, 10):
        pairs = query_pairs(d)
        assert len(pairs) == 10
        assert all(len(p.left) == len(p.right) == d for p in pairs)
        assert all(abs(a - b) <= 1 for p in pairs for a, b in zip(p.left, p.right, strict=True))


def test_small_runs_write_their_figures(tmp_path):
    run("local/figure4", runs=2, out=tmp_path / "4", jobs=1, options={"algorithms": "a"})
    run("local/figure6", runs=2, out=tmp_path / "6", jobs=1, options={"sizes": "1000,2000"})
    run("local/figure3", runs=1, out=tmp_path / "3", jobs=1)
    assert (tmp_path / "4" / "figure4.svg").exists()
    assert (tmp_path / "6" / "figure6.png").exists()
    assert (tmp_path / "3" / "figure3.svg").exists()


@pytest.mark.parametrize("name", ["figure2", "figure3", "figure4", "figure5", "figure6", "table2"])
def test_every_figure_can_be_named(name):
    assert find(f"local/{name}").cases({"algorithms": tuple(ALGORITHMS), "sizes": (1000,)})


def test_one_bound_with_the_papers_settings():
    found = ALGORITHMS["a"].bound(1.5, seed=0)
    assert (found.n, found.N, found.confidence) == (20_000, 50_000, pytest.approx(0.95))
    assert isinstance(found, em.local.MaximumLoss)
