"""DP-Sniper's table, with next to no draws."""

import json
import math

import pytest

from epsilometer.errors import InputError
from epsilometer.zoo.sniper import SNIPER_NAMES
from epsilometer_experiments.registry import find, run
from epsilometer_experiments.self.measuring import entry_of
from epsilometer_experiments.sniper import peers
from epsilometer_experiments.sniper.table import (
    ORACLE,
    PUBLISHED,
    SAME,
    SAME_ORACLE,
    TENTH,
    THEIRS,
    make_cases,
)


def test_every_mechanism_has_a_published_bound():
    assert set(PUBLISHED) == set(SNIPER_NAMES)
    assert [case.name for case in make_cases({"only": ()})] == list(SNIPER_NAMES)


@pytest.mark.parametrize(
    ("same", "columns"),
    [("1", [ORACLE, THEIRS, TENTH, SAME_ORACLE, SAME]), ("0", [ORACLE, THEIRS, TENTH])],
)
def test_the_table_has_a_line_per_mechanism(tmp_path, capsys, same, columns):
    options = {"only": "NoisyHist2,SparseVectorTechnique5", "draws": "20_000", "same": same}
    path = run("sniper/table", runs=1, out=tmp_path, jobs=1, options=options)
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert [row["quantity"] for row in rows if row["case"] == "NoisyHist2"] == columns
    found = {(row["case"], row["quantity"]): row["measured"] for row in rows}
    for case in ("NoisyHist2", "SparseVectorTechnique5"):
        assert 0.5 * found[case, ORACLE] < found[case, TENTH] < 1.2 * found[case, ORACLE]
    lines = [line for line in capsys.readouterr().out.splitlines() if "NoisyHist2" in line]
    assert len(lines) == 1
    assert lines[0].count("│") == len(columns) + 2
    assert (tmp_path / "table.md").read_text(encoding="utf-8").splitlines()[
        0
    ] == f"| case | {' | '.join(columns)} |"


def test_only_published_mechanisms_have_a_line():
    with pytest.raises(InputError, match="mechanism='laplace' must be one of 'LaplaceMechanism', "):
        find("sniper/table").cases({"only": ("laplace",)})


@pytest.mark.parametrize("case", peers.make_cases({"only": ()}), ids=lambda case: case.name)
def test_peers_are_compared_on_pairs_with_the_truth_that_they_were_given(case):
    """The zoo's own pair where none is given; no bound of one run is far above the truth."""
    entry = entry_of(case.name)
    if case.parameters["pair"] is None:
        law = entry.distributions
    else:
        law = entry.make_distributions.func(
            entry.make_distributions.args[0], *case.parameters["pair"]
        )
    truth, *theirs = case.parameters["figures"]
    assert law.pure_epsilon() == pytest.approx(truth, abs=1e-3)
    assert all(math.isnan(bound) or bound < truth for bound in theirs)


def test_peers_have_a_column_each(tmp_path, capsys):
    run("sniper/peers", runs=1, out=tmp_path, jobs=1, options={"only": "svt3", "draws": "1000"})
    lines = [line for line in capsys.readouterr().out.splitlines() if "svt3" in line]
    assert len(lines) == 3
