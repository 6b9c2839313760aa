"""The zoo of library bugs: every bug is one, and no right twin is refuted where its bug shows."""

import pytest

import epsilometer as em
from epsilometer_experiments.find.zoo import BUGS

# A true claim is refuted once in a million million audits: with 52 twins the false alarm of all is below 1e-9.
_FALSE_ALARM = 1e-12


def test_the_zoo_is_large_and_every_family_is_there():
    assert len(BUGS) >= 24
    assert len({bug.family for bug in BUGS.values()}) >= 20
    assert sum(bug.beyond for bug in BUGS.values()) >= 6


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_the_known_counterexample_shows_the_bug_and_only_the_bug(bug):
    pair = em.Pair(*bug.pair)
    broken = em.audit(bug.mechanism(), pair, bug.claim, samples=2_000, confidence=0.99)
    assert broken.is_refuted, str(broken)
    twin = em.audit(bug.mechanism(right=True), pair, bug.claim, samples=2_000, confidence=1 - _FALSE_ALARM)
    assert not twin.is_refuted, str(twin)
