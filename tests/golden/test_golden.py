"""Results that change only on purpose: `make golden` writes them anew, and the commit says why."""

import json
from pathlib import Path

import golden_cases as cases
import pytest

KEPT = Path(__file__).parent / "results"


@pytest.mark.parametrize("name", cases.CASES)
def test_a_result_stays_what_it_was(name, tmp_path):
    found = list(cases.differences(stored(name), cases.run(name, tmp_path)))
    assert not found, told(name, found)


@pytest.mark.parametrize("name", cases.ON_EVERY_ENGINE)
def test_worker_processes_give_the_same(name, tmp_path):
    found = list(cases.differences(stored(name), cases.run(name, tmp_path, {"jobs": 2})))
    assert not found, told(name, found)


def test_every_stored_result_belongs_to_a_case():
    assert {path.stem for path in KEPT.glob("*.json")} == set(cases.CASES)


def stored(name):
    return json.loads((KEPT / f"{name}.json").read_text(encoding="utf-8"))


def told(name, found):
    return f"{name} changed at {len(found)} places:\n  " + "\n  ".join(sorted(found)[:20])
