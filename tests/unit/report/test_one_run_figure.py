"""The numbers behind the picture of one run."""

import numpy as np

import epsilometer as em
from epsilometer.claims import ApproxDP
from epsilometer.report.one_run_figure import draw_one_run, one_run_curves


def audit(guess="both"):
    return em.from_one_run(np.arange(40.0), np.arange(40) >= 19, guess=guess)


def test_shares_over_numbers():
    curves = one_run_curves(audit())
    assert curves.numbers.tolist() == list(range(2, 41, 2))
    assert curves.right_shares[0] == 1.0
    assert curves.right_shares[-1] == 39 / 40
    assert one_run_curves(audit("in")).numbers[-1] == 20


def test_shares_that_would_refute():
    curves = one_run_curves(audit(), ApproxDP(0.5, 1e-4))
    assert len(curves.decisive_numbers) == len(curves.needed_shares)
    assert np.nanmax(curves.needed_shares) <= 1.0
    # Two guesses are too few for any confidence.
    assert np.isnan(one_run_curves(audit(), ApproxDP(9.0, 0.0)).needed_shares).all()


def test_the_legend_names_the_claim():
    axes = draw_one_run(audit(), ApproxDP(0.5, 1e-4)).axes[0]
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["observed", "would refute ApproxDP(epsilon=0.5, delta=0.0001)"]
