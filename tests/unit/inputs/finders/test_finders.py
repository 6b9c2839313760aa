"""What each finder proposes, and what it refuses."""

import builtins
import json
import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import epsilometer as em
from epsilometer import InputError, MissingExtraError, domains, finders

VECTOR = domains.Vector(2)


def pairs_of(finder, score=lambda pair: 0.0):
    pairs = []
    while (pair := finder.ask()) is not None:
        pairs.append(pair)
        finder.tell(score(pair))
    return pairs


@pytest.mark.parametrize("kind", [finders.Random, finders.Grid, finders.Bayesian])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"trials": 0}, "trials=0"),
        ({"trials": -3}, "trials=-3"),
        ({"trials": 2.5}, "trials=2.5"),
        ({"samples": 49}, "samples=49"),
        ({"samples": math.nan}, "samples=nan"),
        ({"seed": -1}, "seed=-1"),
        ({"relation": "cousins"}, "relation='cousins' is unknown"),
    ],
)
def test_nonsense_is_refused(kind, wrong, message):
    with pytest.raises(InputError, match=message):
        kind(VECTOR, **wrong)


def test_a_domain_is_needed():
    with pytest.raises(InputError, match="Vector"):
        finders.Random((0, 1))


def test_the_relation_defaults_to_the_domains_first():
    assert finders.Random(VECTOR).relation == "replace"
    assert finders.Random(domains.Queries(2)).relation == "linf"


def test_random_pairs_differ_between_seeds_and_trials():
    first, other = (pairs_of(finders.Random(VECTOR, trials=20, seed=seed)) for seed in (0, 1))
    assert len({str(pair) for pair in first + other}) == 40


@pytest.mark.paper("C29", "equal")
def test_uniform_search_has_no_side_information():
    """Section 5: every number is uniform on its interval; nothing gathers at the ends."""
    numbers = domains.Vector(3, low=-1.0, high=3.0)
    finder = finders.Random(numbers, "add-remove", uniform=True, trials=3000, seed=2)
    drawn = np.array([pair.left for pair in pairs_of(finder)]).ravel()
    assert scipy.stats.kstest(drawn, scipy.stats.uniform(-1.0, 4.0).cdf).pvalue > 1e-10
    gathered = np.array(
        [pair.left for pair in pairs_of(finders.Random(numbers, "add-remove", trials=500))]
    )
    assert 0.05 < np.mean(gathered == -1.0) < 0.15


@pytest.mark.paper("C29", "equal")
def test_uniform_search_takes_every_integer_and_step_alike():
    finder = finders.Random(domains.Vector(2, low=0, high=4, whole=True), uniform=True, trials=2000)
    counts = np.bincount(np.array([pair.left for pair in pairs_of(finder)]).ravel())
    assert scipy.stats.chisquare(counts).pvalue > 1e-10
    answers = domains.Queries(2, low=-10.0, high=10.0)
    steps = [
        np.subtract(pair.right, pair.left)
        for pair in pairs_of(finders.Random(answers, "linf", uniform=True, trials=2000))
        if min(*pair.left, *pair.right) > -10.0 and max(*pair.left, *pair.right) < 10.0
    ]
    assert scipy.stats.kstest(np.ravel(steps), scipy.stats.uniform(-1.0, 2.0).cdf).pvalue > 1e-10


def test_uniform_is_told_where_it_is_set():
    assert finders.Random(VECTOR, uniform=True).describe()["uniform"] is True
    assert "uniform" not in finders.Random(VECTOR).describe()
    with pytest.raises(InputError, match="another search"):
        finders.Random(VECTOR).restore({**finders.Random(VECTOR).state(), "finder": {}})


@pytest.mark.paper("C30", "equal")
def test_a_grid_visits_every_point_once():
    finder = finders.Grid(VECTOR, relation="add-remove", levels=3, trials=1000)
    assert finder.trials == finder.size == 3 * 3 * 2
    assert len(pairs_of(finder)) == 18
    assert len({tuple(point) for point, _ in finder.state()["told"]}) == 18


@pytest.mark.paper("C30", "equal")
def test_a_grid_in_order_changes_the_last_coordinate_first():
    finder = finders.Grid(domains.Number(0, 1), levels=3, shuffled=False)
    found = [(pair.left, pair.right) for pair in pairs_of(finder)]
    assert found[0] == (0.0, 1.0)  # equal numbers are driven apart
    assert found[2] == (0.0, 1.0)
    assert [left for left, _ in found] == pytest.approx([0.0] * 3 + [0.5] * 3 + [1.0] * 3)


def test_a_grid_takes_as_many_levels_as_fit():
    assert finders.Grid(domains.Number(0, 1), trials=30).levels == 5
    assert finders.Grid(domains.Vector(5), trials=10).levels == 2
    assert finders.Grid(domains.Category(["a", "b"]), trials=100).size == 4


def test_the_first_trials_of_a_mixed_grid_are_spread_out():
    finder = finders.Grid(domains.Vector(3, low=0, high=1), levels=4, trials=16)
    assert sorted({pair.left[0] for pair in pairs_of(finder)}) == pytest.approx(
        [0.0, 1 / 3, 2 / 3, 1.0]
    )


@pytest.mark.paper("A22", "equal")
@pytest.mark.paper("C33", "equal")
def test_statdp_patterns():
    finder = finders.Patterns(5)
    expected = {
        "one above": ([1] * 5, [2, 1, 1, 1, 1]),
        "one below": ([1] * 5, [0, 1, 1, 1, 1]),
        "one above, rest below": ([1] * 5, [2, 0, 0, 0, 0]),
        "one below, rest above": ([1] * 5, [0, 2, 2, 2, 2]),
        "half below, half above": ([1] * 5, [0, 0, 0, 2, 2]),
        "all above": ([1] * 5, [2] * 5),
        "all below": ([1] * 5, [0] * 5),
        "x shape": ([1, 1, 0, 0, 0], [0, 0, 1, 1, 1]),
    }
    found = dict(
        zip(finder.patterns, [(pair.left, pair.right) for pair in pairs_of(finder)], strict=True)
    )
    assert found == expected


def test_patterns_by_l1_move_one_answer():
    assert finders.Patterns(5, "l1").patterns == ["one above", "one below"]


def test_patterns_of_one_query_are_not_repeated():
    assert finders.Patterns(1).patterns == ["one above", "one below", "x shape"]


def test_patterns_at_several_levels():
    queries = domains.Queries(3, low=0, high=100, sensitivity=2, whole=True)
    pairs = pairs_of(finders.Patterns(queries, levels=[2, 50]))
    assert len(pairs) == 16
    assert pairs[8].right == [52, 50, 50]
    assert all(isinstance(answer, int) for pair in pairs for answer in pair.right)


@pytest.mark.parametrize(
    "wrong", [{"levels": [math.nan]}, {"levels": [99]}, {"relation": "replace"}, {"trials": 0}]
)
def test_patterns_refuse_nonsense(wrong):
    with pytest.raises(InputError):
        finders.Patterns(4, **wrong)


def test_a_bayesian_search_climbs():
    def height(pair):
        return -sum((each - 0.3) ** 2 for each in pair.left)

    climbed, stumbled = (
        [
            max(map(height, pairs_of(kind(domains.Vector(4), trials=40, seed=seed), height)))
            for seed in range(4)
        ]
        for kind in (finders.Bayesian, finders.Random)
    )
    assert min(climbed) > -0.03
    assert sum(climbed) > 0.5 * sum(stumbled)  # both below 0


def test_a_bayesian_search_begins_at_random():
    first = [finders.Bayesian(VECTOR, seed=4), finders.Random(VECTOR, seed=4)]
    assert first[0].ask() == first[1].ask()


def test_many_coordinates_leave_trials_for_the_model():
    assert finders.Bayesian(VECTOR, trials=50).first_trials == 4
    assert finders.Bayesian(domains.Vector(100), trials=60).first_trials == 20


def test_equal_scores_teach_nothing_and_harm_nothing():
    assert len(pairs_of(finders.Bayesian(VECTOR, trials=15), lambda pair: 0.0)) == 15
    assert len(pairs_of(finders.Bayesian(VECTOR, trials=15), lambda pair: None)) == 15


def test_unknown_surrogates():
    with pytest.raises(InputError, match="'gaussian-process', 'tree'"):
        finders.Bayesian(VECTOR, surrogate="forest")


def test_trees_without_their_package(monkeypatch):
    monkeypatch.setattr("epsilometer.inputs.finders.bayesian.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install optuna$"):
        finders.Bayesian(VECTOR, surrogate="tree")
    assert len(pairs_of(finders.Bayesian(VECTOR, trials=9), lambda pair: pair.left[0])) == 9


def test_the_gaussian_process_needs_no_optuna(monkeypatch):
    real = builtins.__import__

    def refusing(name, *args, **kwargs):
        assert not name.startswith("optuna")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refusing)
    assert len(pairs_of(finders.Bayesian(VECTOR, trials=6), lambda pair: pair.left[0])) == 6


def test_a_state_belongs_to_its_search():
    finder = finders.Random(VECTOR, trials=5, seed=0)
    finder.ask()
    finder.tell(None)
    state = json.loads(json.dumps(finder.state()))
    longer = finders.Random(VECTOR, trials=9, seed=0)
    longer.restore(state)
    assert len(pairs_of(longer)) == 8
    with pytest.raises(InputError, match="its seed differ"):
        finders.Random(VECTOR, trials=5, seed=1).restore(state)
    with pytest.raises(InputError, match="score=nan must be a number"):
        finder.restore({**state, "told": [[[0.5], math.nan]]})


@pytest.mark.parametrize("point", [[0.5], [0.5, 0.5, 2.0, 0.1], [math.nan] * 4])
def test_strange_points_are_not_restored(point):
    finder = finders.Random(VECTOR, trials=5)
    with pytest.raises(InputError, match="not a point of its search"):
        finder.restore({**finder.state(), "told": [[point, 1.0]]})
    patterns = finders.Patterns(4)
    with pytest.raises(InputError, match="not a point of its search"):
        patterns.restore({**patterns.state(), "told": [[[8.0], 1.0]]})


@pytest.mark.parametrize("score", [math.nan, math.inf, "1", True, [1.0]])
def test_scores_are_numbers(score):
    finder = finders.Random(VECTOR)
    finder.ask()
    with pytest.raises(InputError, match="score="):
        finder.tell(score)


ROWS = [{"uid": "ann", "x": 1.0}, {"uid": "ann", "x": 2.0}, {"uid": "bob", "x": 3.0}]
TABLE = {"uid": em.domains.Category(["ann", "bob"]), "x": em.domains.Number(0, 1)}


@pytest.mark.parametrize(
    "make",
    [
        lambda: em.around(ROWS, user="uid"),
        lambda: em.around(ROWS, "user", user="uid"),
        lambda: em.around(pd.DataFrame(ROWS), user="uid"),
        lambda: em.finders.Search(em.domains.Table(TABLE, user="uid")),
        lambda: em.finders.Random(em.domains.Table(TABLE, user="uid")),
    ],
)
def test_a_user_column_means_the_relation_user(make):
    finder = make()
    assert finder.describe()["relation"] == "user"
    pair = finder.ask()
    left, right = (pd.DataFrame(side) for side in (pair.left, pair.right))
    gone = set(left["uid"]) - set(right["uid"] if len(right) else ())
    assert len(gone) == 1
    assert len(left) - len(right) == (left["uid"] == gone.pop()).sum()


@pytest.mark.parametrize("relation", ["replace", "add-remove", "substitute-column", "l1"])
@pytest.mark.parametrize(
    "make",
    [
        lambda relation: em.around(ROWS, relation, user="uid"),
        lambda relation: em.finders.Search(em.domains.Table(TABLE, user="uid"), relation),
        lambda relation: em.finders.Grid(em.domains.Table(TABLE, user="uid"), relation),
    ],
    ids=["around", "search", "grid"],
)
def test_a_user_column_with_another_relation_is_a_contradiction(make, relation):
    with pytest.raises(InputError, match=f"'{relation}' contradicts user='uid'.*leave out one"):
        make(relation)


@pytest.mark.parametrize("user", [0, "0"])
def test_a_user_column_of_an_array_is_a_number(user):
    finder = em.around(np.array([[1, 5], [1, 6], [2, 7]]), user=user)
    pair = finder.ask()
    gone = set(pair.left[:, 0]) - set(pair.right[:, 0])
    assert len(gone) == 1
    assert len(pair.left) - len(pair.right) == (pair.left[:, 0] == gone.pop()).sum()


def test_the_relation_user_says_what_it_lacks():
    for make in (
        lambda: em.around(ROWS, "user"),
        lambda: em.finders.Search(em.domains.Table(TABLE), "user"),
    ):
        with pytest.raises(InputError, match=r"needs the column .* user='COLUMN'.*--user COLUMN"):
            make()
    with pytest.raises(InputError, match="its columns are 'uid', 'x'"):
        em.around(ROWS, user="name")
    with pytest.raises(InputError, match="its columns are none: its records are single values"):
        em.around([1.0, 2.0], user="uid")


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan])
def test_a_record_that_names_no_user_is_refused(missing):
    """Nobody knows whose it is, and each guess makes other neighbours."""
    rows = [*ROWS, {"uid": missing, "x": 4.0}]
    for data in (rows, pd.DataFrame(rows)):
        with pytest.raises(InputError, match=r"1 of 4 records name no user.*take the others"):
            em.around(data, user="uid")
    em.around(rows)  # that is no mistake where nobody asks for users


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ([{"a": 1}, {"a": 2, "b": 3}], "record 0 of data has no 'b'"),
        ([{"a": 1, "b": 3}, {"a": 2}], "record 1 of data has no 'b'"),
        ([{"a": 1}, 5], "record 1 of data is 5.*as dicts, or none"),
        ([5, {"a": 1}], "record 1 of data is {'a': 1}.*as dicts, or none"),
        ([np.array([1, 2]), np.array([3, 4])], r"numpy\.stack"),
    ],
)
def test_records_that_are_not_alike_are_refused(data, why):
    with pytest.raises(InputError, match=why):
        em.around(data)


@pytest.mark.parametrize(
    ("setting", "hint"), [("users", "did you mean 'user'"), ("trails", "did you mean 'trials'")]
)
def test_a_setting_that_around_does_not_have(setting, hint):
    with pytest.raises(InputError, match=f"has no setting '{setting}'; {hint}"):
        em.around(ROWS, **{setting: "uid"})
