"""Contracts change only on purpose: `make golden` writes them anew, and the commit says why."""

import json

import contract_cases as cases
import pytest

# Places that a failure shows.
MOST_PLACES = 20


@pytest.mark.parametrize("name", cases.CASES)
def test_a_contract_is_kept(name, tmp_path):
    stored = json.loads((cases.STORED / f"{name}.json").read_text(encoding="utf-8"))
    found = cases.run(cases.CASES[name], tmp_path)
    assert_equal(name, cases.differences(stored, found))


@pytest.mark.parametrize("name", cases.ON_WORKERS)
def test_worker_processes_give_the_same_figures(name, tmp_path):
    for folder in ("here", "workers"):
        (tmp_path / folder).mkdir()
    here = cases.run(cases.ON_WORKERS[name], tmp_path / "here")
    on_workers = cases.run(cases.ON_WORKERS[name], tmp_path / "workers", {"jobs": 2})
    assert_equal(name, cases.differences(here, on_workers))


def test_every_stored_contract_belongs_to_a_case():
    assert {path.stem for path in cases.STORED.glob("*.json")} == set(cases.CASES)


def test_every_change_is_seen():
    known = {"a": [1, {"b": "x"}], "c": 0.5}
    for other in (
        {"a": [1, {"b": "y"}], "c": 0.5},
        {"a": [1, {"b": "x"}, 2], "c": 0.5},
        {"a": [1.0, {"b": "x"}], "c": 0.5},
        {"a": [1, {"b": "x"}], "c": 0.5 + 1e-8},
        {"a": [1, {"b": "x"}]},
        {"a": [1, {"b": "x"}], "c": 0.5, "d": None},
    ):
        assert len(cases.differences(known, other)) == 1
    assert cases.differences(known, {"c": 0.5 + 1e-12, "a": [1, {"b": "x"}]}) == []


def assert_equal(name, places):
    shown = "\n  ".join(places[:MOST_PLACES])
    assert not places, f"{name} changed at {len(places)} places, before -> after:\n  {shown}"
