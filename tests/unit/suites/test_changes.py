"""What counts as news."""

import pytest

from epsilometer.result import Verdict
from epsilometer.suites import Entry, find_changes


def change(now, before):
    entries = [Entry("a", {}, "d")]
    return find_changes(entries, {"a": now}, {} if before is None else {"a": before})["a"]


def test_nothing_changed(make_outcome):
    assert change(make_outcome(), make_outcome()).kind == "same"


def test_the_first_run_is_no_news(make_outcome):
    assert not change(make_outcome(), None).is_news


@pytest.mark.parametrize(
    ("now", "before", "kind", "text"),
    [
        ({"verdict": Verdict.REFUTED}, {}, "verdict", "not refuted → refuted"),
        ({}, {"error": "broken"}, "verdict", "error → not refuted"),
        ({"bound": 0.8}, {"bound": 0.9}, "bound", "ε ≥ 0.9 → 0.8"),
        ({"bound": 0.88}, {"bound": 0.9}, "same", ""),
        ({"bound": 0.0}, {"bound": 0.0}, "same", ""),
        ({"claimed": 2.0}, {}, "settings", "claim PureDP(epsilon=1) → PureDP(epsilon=2)"),
        ({"digest": "e"}, {}, "settings", "settings or code changed"),
        ({"error": "x"}, {"error": "y"}, "same", ""),
    ],
)
def test_news(make_outcome, now, before, kind, text):
    found = change(make_outcome(**now), make_outcome(**before))
    assert (found.kind, found.text) == (kind, text)


def test_new_and_gone(make_outcome):
    entries = [Entry("a", {}, "d"), Entry("b", {}, "d")]
    now = {"a": make_outcome("a"), "b": make_outcome("b")}
    changes = find_changes(
        entries, now, {"a": make_outcome("a"), "z": make_outcome("z", Verdict.REFUTED)}
    )
    assert [(each.name, each.kind) for each in changes.values()] == [
        ("a", "same"),
        ("b", "new"),
        ("z", "gone"),
    ]
    assert changes["z"].text == "gone; was refuted"
