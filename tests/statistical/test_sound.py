"""A short version of `make sound`, with fixed seeds: benchmarks/sound, and docs/reference/soundness.md.

The false alarm of every test is 1e-9 at most: its rows share it. What takes longer than a second or so per run is left
to `make sound`.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.sound.__main__ import main
from benchmarks.sound.boundaries import BOUNDARIES
from benchmarks.sound.cases import Figure, Rate, Worked, all_cases
from benchmarks.sound.entries import ENTRIES, best_power
from benchmarks.sound.outputs import KINDS
from benchmarks.sound.running import Plan, run_row
from benchmarks.sound.table import FALSE_ALARM, margins

from epsilometer.testing import Coin

CASES = all_cases()
# Where over-fitting pays most: any event is on the boundary.
PLACE = "pure, equal · numbers · 50%"
# Further places for the main entries, which are fast.
MORE_PLACES = ("pure · texts · 80%", "Gaussian · vectors · 50%")
MAIN_ENTRIES = ("audit", "measure", "compare", "replay", "profile, checked")
# It waits for the disk, for a second per run.
SLOW_ENTRIES = ("audit, early stop, resumed",)
# Enumerations of a second or less.
ENUMERATIONS = (
    "Clopper–Pearson",
    "bound at any time",
    "bets against pure",
    "bets against Gaussian",
    "p-value of one run",
)
# Scenarios of a tenth of a second per run or less.
SEAMS = (
    "published hockey-stick, 4574 draws at 80%",
    "Rényi of order 1 + 1e-06",
    "answers lost with status 500, by their value",
    "self/unlucky: mean jumps by 1, a tight claim, n=1000",
    "self/unlucky: 1152921504606847053 with noise of 40, n=1000",
)


def plan_of(rng, n_rows, runs=200):
    return Plan(int(rng.integers(2**40)), runs, FALSE_ALARM / n_rows, most_seconds=math.inf)


@pytest.mark.parametrize("entry", [name for name in ENTRIES if name not in SLOW_ENTRIES])
def test_true_claims_are_rarely_refuted(entry, rng):
    places = (PLACE, *MORE_PLACES) if entry in MAIN_ENTRIES else (PLACE,)
    names = [f"{entry} · {place}" for place in places]
    rows = [CASES[name] for name in names if name in CASES]
    rows = rows or [next(case for name, case in CASES.items() if name.startswith(f"{entry} · "))]
    plan = plan_of(rng, len(rows))
    for case in rows:
        row = run_row(case, plan)
        assert row.state == "clear", row
        assert row.runs > 0


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith(ENUMERATIONS)])
def test_enumerations(name):
    row = run_row(CASES[name], Plan(0, 1, FALSE_ALARM))
    assert row.state == "clear", row


@pytest.mark.parametrize("name", SEAMS)
def test_seams(name, rng):
    row = run_row(CASES[name], plan_of(rng, 1))
    assert row.state in ("clear", "refused"), row


def test_the_table_bites(rng):
    """A procedure that errs in half of the runs instead of a fifth is noticed, one that fails or refuses named."""
    plan = plan_of(rng, 1, runs=2000)
    wrong = Rate("rates", "wrong", 0.2, lambda seed: seed % 2 == 0)
    right = Rate("rates", "right", 0.2, lambda seed: seed % 10 == 0)
    assert run_row(wrong, plan).state == "above"
    assert len(run_row(wrong, plan).seeds) == 3
    assert run_row(right, plan).state == "clear"

    failed = run_row(Rate("rates", "fails", 0.2, lambda seed: 1 // 0), plan)
    assert failed.is_bad
    assert "seed" in failed.note
    assert "ZeroDivisionError" in failed.note
    assert run_row(Rate("rates", "refuses", 0.2, lambda seed: None), plan).state == "refused"
    assert run_row(
        Figure("enumerations", "not a number", lambda seed: Worked(float("nan"), 1.0, "")), plan
    ).is_bad


def test_small_excesses_show_in_the_margins(rng):
    """Each row by itself is called clear; all of them together are not."""
    rows = {
        name: Rate("rates", name, 0.2, lambda seed: seed % 100 < 32, {"entry": "slightly wrong"})
        for name in (f"row {number}" for number in range(200))
    }
    plan = plan_of(rng, len(rows), runs=40)
    done = [run_row(case, plan) for case in rows.values()]
    assert not any(row.is_bad for row in done)
    assert all(margin.is_above for margin in margins(rows, done))


def test_every_entry_claim_and_kind_is_in_the_table():
    pools = [case.pools for case in CASES.values() if isinstance(case, Rate) and case.pools]
    assert {each["entry"] for each in pools} == set(ENTRIES)
    assert {each["claim"] for each in pools} == {boundary.name for boundary in BOUNDARIES}
    assert {each["outputs"] for each in pools} == set(KINDS)


@pytest.mark.parametrize(("p", "q"), [(0.55, 0.5), (0.2, 0.6), (0.9, 0.1), (0.3, 0.3), (0.0, 1.0)])
def test_the_best_attack_on_a_coin(p, q):
    """It is what the best of all randomised tests reaches: heads and tails, each with a share."""
    shares = np.linspace(0.0, 1.0, 201)
    heads, tails = np.meshgrid(shares, shares)
    powers = heads * p + tails * (1.0 - p), heads * q + tails * (1.0 - q)
    for power, false_alarm in (powers, powers[::-1]):
        assert np.all(power <= best_power(Coin(p, q), false_alarm) + 1e-12)
    for limit in (0.1, 0.45, 0.53, 0.7):
        reached = [power[alarm <= limit].max() for power, alarm in (powers, powers[::-1])]
        assert max(reached) > best_power(Coin(p, q), np.array([limit]))[0] - 0.02


@pytest.mark.parametrize(
    "boundary", ["pure", "pure, rare", "approximate, δ = .6", "Rényi, order 2", "Gaussian"]
)
def test_claims_just_hold(boundary):
    """The coin keeps the claim, and a coin whose heads differ a little more does not."""
    found = next(each for each in BOUNDARIES if each.name == boundary)
    assert found.coin.truth(found.claim) == found.claim.value
    assert Coin(found.coin.p + 1e-6, found.coin.q).truth(found.claim) > found.claim.value


def test_the_command_writes_its_table(tmp_path, capfd):
    arguments = [
        "--only",
        "p-value of one run",
        "--seed",
        "1",
        "--jobs",
        "1",
        "--out",
        str(tmp_path),
    ]
    assert main(arguments) == 0
    assert "sound: 3 rows, seed 1" in capfd.readouterr().out
    table = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    assert table["settings"]["seed"] == 1
    assert [row["state"] for row in table["rows"]] == ["clear"] * 3
    assert "p-value of one run, ε = 2" in (tmp_path / "table.md").read_text(encoding="utf-8")


def test_no_time_is_said(tmp_path, capfd):
    """Rows that were not begun are neither right nor wrong."""
    arguments = [
        "--only",
        "p-value of one run",
        "--minutes",
        "0",
        "--jobs",
        "1",
        "--out",
        str(tmp_path),
    ]
    assert main(arguments) == 0
    assert "3 not run" in capfd.readouterr().out


def test_unknown_rows_are_refused(capsys):
    assert main(["--only", "no such row"]) == 2
    assert "--list" in capsys.readouterr().out


def test_a_table_in_two_parts_is_the_one_of_a_longer_run(tmp_path, capfd):
    rows = ["--only", "Clopper", "--only", "p-value of one run", "--jobs", "1"]
    assert main([*rows, "--seed", "3", "--out", str(tmp_path / "whole")]) == 0
    parts = ["--out", str(tmp_path / "parts")]
    assert main(["--only", "Clopper", "--jobs", "1", "--seed", "3", *parts]) == 0
    assert main([*rows, "--resume", *parts]) == 0
    assert "sound: 3 rows, seed 3" in capfd.readouterr().out
    tables = [
        (tmp_path / name / "table.md").read_text(encoding="utf-8") for name in ("whole", "parts")
    ]
    assert tables[0] == tables[1]
