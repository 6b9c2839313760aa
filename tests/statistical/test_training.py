"""Audits of DP-SGD with few runs: the right one is rarely refuted, and what needs no fit is found."""

import pytest

import epsilometer as em
from epsilometer.zoo import training


def is_refuted(entry, pair, seed, samples):
    return em.audit(entry, pair, samples=samples, seed=seed).is_refuted


def test_the_right_training_is_rarely_refuted(rarely):
    # Eight columns, so that all summaries are candidates; the record moves the sum by the clip norm.
    right = training.dp_sgd(None, steps=1, rate=1.0)
    pair = training.dp_sgd("no_clipping").worst_pair
    rarely(lambda seed: is_refuted(right, pair, seed, 40), 0.05, 0.35)


@pytest.mark.parametrize(("bug", "steps"), [("no_clipping", 4), ("private_size_floored", 2)])
def test_a_bug_that_needs_no_fit_is_found_in_few_runs(bug, steps, rarely):
    entry = training.dp_sgd(bug, steps=steps)
    rarely(lambda seed: not is_refuted(entry, entry.worst_pair, seed, 80), 0.05, 0.9)
