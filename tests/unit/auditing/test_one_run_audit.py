"""What the scores of one run show, and what guesses of one run do."""

import json

import numpy as np
import pytest

import epsilometer as em

pytestmark = pytest.mark.filterwarnings("ignore:exactly half")


def audit_of(mu, m=1000, seed=0, **keywords):
    rng = np.random.default_rng(seed)
    included = rng.random(m) < 0.5
    return em.from_one_run(mu * included + rng.normal(size=m), included, **keywords)


def test_bounds_of_gaussian_scores():
    audit = audit_of(1.666)
    assert 2.4 < audit.epsilon(1e-5) < 3.6
    assert 0.7 < audit.mu < 1.3
    assert 0.0 < audit.epsilon(1e-3) < audit.epsilon(1e-5)
    conditional = audit.epsilon_if_gaussian(1e-5)
    assert conditional == pytest.approx(em.GaussianDP(audit.mu).epsilon(1e-5))
    assert conditional.guarantee == "conditional: if the noise is Gaussian"
    assert "if the noise is Gaussian" in str(conditional)
    assert audit.guarantee == "exact"


@pytest.mark.parametrize(
    ("refuted", "kept"),
    [
        ("eps=1", "eps=8"),
        ("eps=1,delta=1e-5", "eps=8,delta=1e-5"),
        ("eps=.5,delta=1e-3", "eps=6,delta=1e-3"),
        ("mu=.5", "mu=1.7"),
        ("rho=.1", "rho=2"),
        ("eps=.1,order=2", "eps=3,order=2"),
    ],
)
def test_every_notion_is_checked(refuted, kept):
    audit = audit_of(1.666)
    false_claim = audit.check(refuted)
    assert false_claim.is_refuted
    assert false_claim.lower_bound > false_claim.claim.value
    assert audit.p_value(refuted) < 0.05
    assert audit.p_value(kept) > 0.05


def test_a_claim_that_is_kept_is_not_exceeded():
    check = audit_of(1.666).check("mu=1.7")
    assert not check.is_refuted
    assert check.lower_bound <= 1.7


def test_curves_are_checked():
    audit = audit_of(1.666)
    assert audit.check(em.TradeOffDP.from_accountant(em.GaussianDP(0.5).delta)).is_refuted
    assert not audit.check(em.TradeOffDP.from_accountant(em.GaussianDP(1.7).delta)).is_refuted
    by_curve = audit.p_value(em.TradeOffDP.from_accountant(em.GaussianDP(0.7).delta))
    assert by_curve == pytest.approx(audit.p_value("mu=.7"), rel=0.05)


def test_which_formula_is_used_depends_on_the_sizes_only():
    audit = audit_of(1.0, m=1000)
    numbers = [count.r for count in audit.guesses]
    assert numbers == sorted(set(numbers))
    assert [count.r for count in audit_of(0.0, m=1000, seed=5).guesses] == numbers
    assert len(audit.guesses_for("eps=1,delta=1e-5")) == 14
    assert [count.r for count in audit.guesses_for("eps=1,delta=1e-4")] == [10, 30, 100, 300, 1000]
    assert [count.r for count in audit.guesses_for("mu=1")] == [30, 100, 300, 800]
    assert [count.r for count in audit_of(1.0, guess="in").guesses_for("mu=1")] == [
        15,
        50,
        150,
        400,
    ]


def test_the_right_guesses_are_counted():
    scores = np.arange(20.0)
    included = scores > 6.5
    both = em.from_one_run(scores, included)
    assert both.right.tolist() == [2, 4, 6, 8, 10, 12, 14, 15, 16, 17]
    only_in = em.from_one_run(scores, included, guess="in")
    assert only_in.right.tolist() == list(range(1, 11))
    assert only_in.units == 10
    with pytest.raises(em.InputError, match="guess='out'"):
        em.from_one_run(scores, included, guess="out")


def test_the_order_of_equal_scores_tells_nothing():
    """Canaries that were sorted by inclusion, all with one score: pure guessing."""
    included = np.arange(400) < 190
    shares = [
        em.from_one_run(np.zeros(400), included, seed=seed).right[99] / 200 for seed in range(30)
    ]
    assert 0.3 < min(shares) < 0.5 < max(shares) < 0.7
    again = em.from_one_run(np.zeros(400), included[::-1], seed=3)
    first = em.from_one_run(np.zeros(400), included, seed=3)
    assert again.right.tolist() == first.right.tolist()
    assert first.seed == 3


def test_what_would_refute_a_claim():
    audit = audit_of(1.666)
    for claim in ("eps=1,delta=1e-5", "eps=2,delta=1e-3", "mu=.8"):
        reached = any(
            count.v >= needed.v
            for count, needed in zip(audit.guesses_for(claim), audit.needed(claim), strict=True)
        )
        assert reached == audit.check(claim).is_refuted
    assert audit_of(1.0, m=20).needed("eps=40")[0].v > audit_of(1.0, m=20).needed("eps=40")[0].r


def test_text_and_data():
    audit = audit_of(1.0, m=200)
    assert len(str(audit).splitlines()) <= 10
    assert "\n" not in repr(audit)
    data = json.loads(audit.to_json())
    assert data["canaries"] == 200
    assert data["epsilon"]["1e-05"] == audit.epsilon(1e-5)
    assert data["guesses"][0] == {"r": audit.guesses[0].r, "v": audit.guesses[0].v}
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(audit)


def test_the_figure_is_written(tmp_path):
    audit_of(1.0, m=100).plot(tmp_path / "run.svg", claim="mu=.5")
    assert (tmp_path / "run.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_one_run_is_a_number_with_more_to_say():
    bound = em.one_run(m=1000, r=600, v=600, delta=1e-5)
    published = em.one_run(m=1000, r=600, v=600, delta=1e-5, method="steinke")
    assert published == pytest.approx(5.2703994, abs=1e-6)
    assert published < bound < published + 0.1
    assert bound.epsilon == float(bound)
    assert bound.mu > published.mu > 1.0
    assert bound.p_value("eps=5.2,delta=1e-5") < 0.05 < bound.p_value("eps=5.31,delta=1e-5")
    assert bound.p_value("mu=1") < 0.05 < bound.p_value("mu=9")
    assert bound.to_dict()["v"] == 600
    assert published.to_dict()["method"] == "steinke"
    assert em.one_run(1000, 600, 600, 1e-5, confidence=0.99) < bound
    with pytest.raises(em.InputError, match="Steinke's one-run test"):
        published.p_value("mu=1")
    with pytest.raises(em.InputError, match="v=601"):
        em.one_run(1000, 600, 601, 1e-5)
    with pytest.raises(em.InputError, match="method='best'"):
        em.one_run(1000, 600, 600, 1e-5, method="best")


@pytest.mark.parametrize(("m", "greatest"), [(1000, 5.81), (2000, 6.50)])
def test_one_run_says_what_so_many_canaries_can_show_at_all(m, greatest):
    told = em.one_run(m=m, r=m // 2, v=m // 2, delta=1e-5).greatest
    assert told == pytest.approx(greatest, abs=0.02)
    assert told == em.one_run(m=m, r=m, v=m, delta=1e-5).epsilon


def test_a_notebook_shows_an_audit_of_one_run():
    included = np.arange(400) % 2 == 0
    fragment = em.from_one_run(1.0 * included, included)._repr_html_()
    assert "One training run" in fragment
    assert "400, of which 200 were included" in fragment
    assert "<table" in fragment
