"""The zoo of library bugs: every bug is one, Search finds them, and right twins are not refuted."""

import pytest

import epsilometer as em
from epsilometer_experiments.searching.bug import size_of
from epsilometer_experiments.searching.zoo import BUGS

# A true claim is refuted once in a million million audits.
_FALSE_ALARM = 1e-12


def test_the_zoo_is_large_and_every_family_is_there():
    assert len(BUGS) >= 24
    assert len({bug.family for bug in BUGS.values()}) >= 20
    assert sum(bug.beyond for bug in BUGS.values()) >= 6


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_the_known_counterexample_shows_the_bug(bug):
    broken = em.audit(
        bug.mechanism(), em.Pair(*bug.pair), bug.claim, samples=2_000, confidence=0.99
    )
    assert broken.is_refuted, str(broken)


@pytest.mark.parametrize("name", ["rounded_count", "second_moments"])
def test_it_does_not_refute_the_right_twin(name):
    """Of all other twins, `tests/unit/experiments/searching/test_searching.py` shows it without chance."""
    bug, confidence = BUGS[name], 1 - _FALSE_ALARM
    twin = em.audit(
        bug.mechanism(right=True),
        em.Pair(*bug.pair),
        bug.claim,
        samples=5_000,
        confidence=confidence,
    )
    assert not twin.is_refuted, str(twin)


# One of each kind of input: beyond the domain, empty, many records, a vanishing name, a user, a dtype, a text, a table.
_SEARCHED = (
    *(
        "sum_with_nan",
        "silent_when_empty",
        "exact_when_large",
        "present_names",
        "rows_of_users",
        "magnitudes",
    ),
    *("initials", "state_beside"),
)


@pytest.mark.parametrize("name", _SEARCHED)
def test_search_finds_a_bug_and_a_small_pair(name):
    bug = BUGS[name]
    finder = em.finders.Search(bug.domain, relation=bug.relation, beyond=bug.beyond, seed=0)
    found = em.audit(bug.mechanism(), finder, bug.claim, samples=5_000, confidence=0.999)
    assert found.is_refuted, str(found)
    pair = found.witness.pair
    assert size_of(pair.left, pair.right) <= bug.smallest + 1, pair
    assert pair.note
    assert found.settings["finder"]["relation"] == bug.relation


@pytest.mark.parametrize("name", ["sum_with_nan", "rows_of_users", "present_names"])
def test_search_does_not_refute_the_right_twin(name):
    bug = BUGS[name]
    finder = em.finders.Search(
        bug.domain, relation=bug.relation, beyond=bug.beyond, trials=96, seed=0
    )
    twin = em.audit(
        bug.mechanism(right=True), finder, bug.claim, samples=3_000, confidence=1 - _FALSE_ALARM
    )
    assert not twin.is_refuted, str(twin)
    assert "typical data" in str(twin)
