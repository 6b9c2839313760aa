"""DP-Sniper's table, with next to no draws."""

import json

import pytest

from epsilometer.errors import InputError
from epsilometer.zoo.sniper import SNIPER_NAMES
from epsilometer_experiments.registry import find, run
from epsilometer_experiments.sniper.table import ORACLE, PUBLISHED, SAME, SAME_ORACLE, TENTH, THEIRS, make_cases


def test_every_mechanism_has_a_published_bound():
    assert set(PUBLISHED) == set(SNIPER_NAMES)
    assert [case.name for case in make_cases({"only": ()})] == list(SNIPER_NAMES)


@pytest.mark.parametrize(
    ("same", "columns"), [("1", [ORACLE, THEIRS, TENTH, SAME_ORACLE, SAME]), ("0", [ORACLE, THEIRS, TENTH])]
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


def test_only_published_mechanisms_have_a_line():
    with pytest.raises(InputError, match="mechanism='laplace' is unknown"):
        find("sniper/table").cases({"only": ("laplace",)})
