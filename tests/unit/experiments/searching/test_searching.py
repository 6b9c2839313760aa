"""The right twins of the zoo of bugs keep their claims: not by sampling, but by what they add noise to."""

import datetime
import json
import math

import pytest

import epsilometer as em
from epsilometer_experiments import registry as experiments
from epsilometer_experiments.searching.zoo import BUGS

# Values that a record may hold although no domain declares them.
_STRANGE = [
    *(
        math.nan,
        math.inf,
        -math.inf,
        -0.0,
        None,
        1e308,
        -1e308,
        5e-324,
        2**53 + 1,
        2**70,
        -(2**70),
        1.5,
        -0.5,
        True,
    ),
    *("", "zz", "a" * 999, "NaN", datetime.date.min, datetime.date.max),
]
# Twins whose noise is not Laplace, with the reason of their docstring.
_OTHER_NOISE = {"whole_count", "second_moments_right"}
_TWINS = {name: bug for name, bug in BUGS.items() if bug.right.__name__ not in _OTHER_NOISE}


class _Noise:
    """Stands for Laplace noise: remembers what it was added to."""

    __array_ufunc__ = None

    def __init__(self, scale, log):
        self.scale, self.log = scale, log

    def __radd__(self, statistic):
        self.log.append((float(statistic), float(self.scale)))
        return float(statistic)


class _Recorder:
    """A generator whose noise is 0."""

    def __init__(self):
        self.log = []

    def laplace(self, loc=0.0, scale=1.0):
        assert loc == 0.0
        return _Noise(scale, self.log)


def _cost(function, left, right):
    """The ε that Laplace noise pays for two datasets: how far each statistic moves, in scales of its noise."""
    logs = []
    for data in (left, right):
        recorder = _Recorder()
        function(data, recorder)
        logs.append(recorder.log)
    assert [scale for _, scale in logs[0]] == [scale for _, scale in logs[1]], (left, right)
    return sum(abs(one - other) / scale for (one, scale), (other, _) in zip(*logs, strict=True))


def _pairs(bug, rng, count=150):
    finder = em.finders.Random(bug.domain, relation=bug.relation, trials=count, seed=1)
    for _ in range(count):
        pair = finder.ask()
        finder.tell(None)
        yield pair.left, pair.right
        if (
            bug.beyond
        ):  # the left dataset, with strange values in some records and in the one that differs
            strange = [
                _STRANGE[number] for number in rng.integers(len(_STRANGE), size=len(pair.left) + 2)
            ]
            one, other, *rest = strange
            base = [
                new if rng.random() < 0.3 else old for old, new in zip(pair.left, rest, strict=True)
            ]
            yield (
                ([*base, one], base)
                if bug.relation == "add-remove"
                else ([*base, one], [*base, other])
            )


@pytest.mark.parametrize("bug", _TWINS.values(), ids=_TWINS)
def test_no_neighbours_cost_a_right_twin_more_than_it_claims(bug, rng):
    assert isinstance(bug.claim, em.PureDP)
    for left, right in _pairs(bug, rng):
        assert _cost(bug.right, left, right) <= bug.claim.value + 1e-9, (left, right)


def test_the_measure_of_the_cost_sees_a_bug():
    bug = BUGS["trusting_sum"]
    assert _cost(bug.broken, *bug.pair) == 9.0
    assert _cost(bug.right, *bug.pair) == 1.0


def test_the_experiments_run_and_say_what_was_found(tmp_path, capsys):
    bug = {"bugs": "silent_when_empty", "samples": 5000, "pairs": 64}
    wanted = {**bug, "finders": "search,random", "trials": 5}
    rows = json.loads(
        experiments.run("find/bugs", 1, tmp_path, jobs=1, options=wanted).read_text()
    )["rows"]
    found = {row["quantity"]: row["measured"] for row in rows}
    assert found["search: found"] == 1.0
    assert found["search: records too many"] == 0.0
    assert found["search: draws"] > 10_000
    assert "random: found" in found
    rows = json.loads(experiments.run("find/twins", 1, tmp_path, jobs=1, options=bug).read_text())[
        "rows"
    ]
    assert {row["quantity"]: row["measured"] for row in rows}["refuted"] == 0.0
    wanted = {"functions": "pure-ldp DEClient", "where": "beyond", "pairs": 64, "samples": 2000}
    rows = json.loads(
        experiments.run("find/libraries", 1, tmp_path, jobs=1, options=wanted).read_text()
    )["rows"]
    assert {row["quantity"]: row["measured"] for row in rows}["audited"] == 1.0
    assert "empty data: silent_when_empty" in capsys.readouterr().out


def test_a_search_by_user_leaves_no_row_of_the_user_behind():
    bug = BUGS["places_of_users"]
    for seed in range(5):
        finder = em.finders.Search(bug.domain, relation="user", trials=200, seed=seed)
        while (pair := finder.ask()) is not None:
            finder.tell(float(len(pair.left)))
            gone = {row["uid"] for row in pair.left if pair.left.count(row) > pair.right.count(row)}
            assert not gone & {row["uid"] for row in pair.right}, pair
