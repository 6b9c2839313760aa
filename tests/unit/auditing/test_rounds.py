"""An audit that searches a domain: what it finds, how small, what it says, and that it can be repeated."""

import json
import math
import time

import numpy as np
import pytest

import epsilometer as em

NUMBERS = em.domains.Records(em.domains.Number(0, 1), size=(0, 6))
NAMES = em.domains.Records(em.domains.Category(["a", "b", "c"]), size=(0, 4))
ROWS = em.domains.Table(
    {"uid": em.domains.Integer(1, 3), "x": em.domains.Number(0, 1)}, rows=(0, 6), user="uid"
)


def search(
    mechanism, domain=NUMBERS, relation="add-remove", claim=1.0, seed=0, samples=2000, **settings
):
    """With few trials and draws: these are quick tests of large leaks."""
    finder = em.finders.Search(
        domain, relation, trials=settings.pop("trials", 128), samples=500, **settings
    )
    return em.audit(
        mechanism, finder, em.PureDP(claim), samples=samples, seed=seed, confidence=0.99
    )


def plain(result):
    return {
        key: value
        for key, value in result.to_dict().items()
        if key not in ("seconds", "environment", "date")
    }


def clipped(value):
    return min(max(value, 0.0), 1.0) if isinstance(value, float) and value == value else 0.0


def right_sum(data, rng):
    return sum(map(clipped, data)) + rng.laplace()


def empty_is_exact(data, rng):
    return len(data) + rng.laplace() if data else 0.0


def nan_survives(data, rng):
    return sum(value if value != value else clipped(value) for value in data) + rng.laplace()


def one_user_counts_often(data, rng):
    return sum(row["x"] for row in data) + rng.laplace()


def keys_of_the_data(data, rng):
    return {name: data.count(name) + rng.laplace() for name in sorted(set(data))}


def at_the_bound(data, rng):
    return 3 * sum(value == 1.0 for value in data) + rng.laplace()


@pytest.mark.parametrize(
    ("mechanism", "domain", "relation", "beyond", "records", "note"),
    [
        (empty_is_exact, NUMBERS, "add-remove", False, 1, "an empty dataset"),
        (nan_survives, NUMBERS, "add-remove", True, 1, "NaN in one record"),
        (one_user_counts_often, ROWS, "user", False, 2, "one user with 2 rows"),
        (keys_of_the_data, NAMES, "replace", False, 1, "a single record"),
        (at_the_bound, NUMBERS, "replace", False, 1, "a single record"),
    ],
)
def test_a_bug_is_found_and_made_small(mechanism, domain, relation, beyond, records, note):
    result = search(mechanism, domain, relation, beyond=beyond)
    pair = result.witness.pair
    assert result.is_refuted
    assert max(len(pair.left), len(pair.right)) <= records + 1
    assert pair.within is not beyond
    assert pair.note == note
    tried = result.findings[0].details["tried"]
    assert tried["relation"] == relation == result.settings["finder"]["relation"]
    assert tried["looks"] == sum(family["tried"] for family in tried["families"].values())


def test_a_domain_is_enough():
    result = em.audit(empty_is_exact, NUMBERS, em.PureDP(1.0), samples=2000, seed=0)
    assert result.settings["finder"]["name"] == "search"
    assert result.settings["finder"]["relation"] == "replace"


def test_a_right_function_is_not_refuted_and_the_families_are_listed():
    result = search(right_sum, beyond=True)
    tried = result.findings[0].details["tried"]
    assert result.verdict is em.Verdict.NOT_REFUTED
    assert 0.0 < result.lower_bound <= 1.0
    assert {
        "typical data",
        "edges of the range",
        "beyond: NaN",
        "smallest and largest sizes",
    } <= tried["families"].keys()
    assert tried["coupled"] == tried["looks"] == 128
    assert json.loads(json.dumps(tried)) == tried


def test_the_domain_itself_is_looked_at_when_beyond_leaks_more():
    domain = em.domains.Records(em.domains.Boolean(), size=(1, 1))
    for seed in range(6):

        def flip(data, rng):
            return (data[0] is True) ^ (rng.random() < 0.3) if data[0] is not None else 9

        result = search(flip, domain, "replace", trials=32, samples=200, seed=seed)
        assert result.witness.pair.within


def test_a_leak_beyond_the_domain_is_a_remark():
    result = search(nan_survives, trials=320)
    assert result.verdict is em.Verdict.NOT_REFUTED
    assert result.witness.pair.within
    (remark,) = [report for report in result.health if report.name == "beyond-domain"]
    assert "NaN in one record" in remark.message
    assert "audit with beyond=True" in remark.message
    assert "certified with ε ≥" in remark.message
    assert sum(amount for _, amount in result.findings[0].details["paid"]) <= 0.01 + 1e-12


def test_what_is_refused_is_counted_and_one_sided_refusals_are_remarked_on():
    def fussy(data, rng):
        if len(data) > 2:
            raise ValueError("too many records")
        return right_sum(data, rng)

    result = search(fussy)
    names = {report.name: report.message for report in result.health}
    assert "too many records" in names["refused-inputs"]
    assert "on_error='outcome'" in names["one-sided-failure"]
    assert result.findings[0].details["tried"]["families"]["typical data"]["refused"] > 0
    leak = search(em.from_callable(fussy, on_error="outcome"))
    assert leak.is_refuted
    assert sorted(map(len, (leak.witness.pair.left, leak.witness.pair.right))) == [2, 3]


def test_a_function_that_takes_nothing_says_so():
    def refusing(data, rng):
        raise ValueError("never")

    with pytest.raises(em.MechanismError, match=r"failed on all of 128 pairs.*never"):
        search(refusing)


def test_same_seed_same_answer_with_workers_and_after_an_interruption(tmp_path):
    def nan_survives(data, rng):  # one that workers can be sent
        return (
            sum(value if value != value else min(max(value or 0.0, 0.0), 1.0) for value in data)
            + rng.laplace()
        )

    whole = search(nan_survives, beyond=True)
    assert plain(search(nan_survives, beyond=True)) == plain(whole)
    finder = em.finders.Search(NUMBERS, "add-remove", trials=128, samples=500, beyond=True)
    settings = {"samples": 2000, "seed": 0, "confidence": 0.99}
    spread = em.audit(nan_survives, finder, em.PureDP(1.0), jobs=2, **settings)
    assert spread.to_dict()["findings"] == whole.to_dict()["findings"]
    assert spread.samples_used == whole.samples_used
    path = tmp_path / "search.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        em.audit(
            nan_survives,
            finder,
            em.PureDP(1.0),
            checkpoint=path,
            progress=Interrupting(2000),
            **settings,
        )
    resumed = em.audit(nan_survives, finder, em.PureDP(1.0), checkpoint=path, **settings)
    assert resumed.to_dict()["findings"] == whole.to_dict()["findings"]
    assert resumed.samples_used == whole.samples_used


class Interrupting:
    """Ctrl-C after so many draws."""

    def __init__(self, left):
        self.left = left

    def advance(self, n):
        self.left -= n
        if self.left < 0:
            raise KeyboardInterrupt


def test_time_ends_the_looks():
    def slow(data, rng):
        time.sleep(0.0005)
        return right_sum(data, rng)

    result = search(slow, trials=100_000, max_seconds=0.3, samples=200)
    assert result.verdict is em.Verdict.NOT_REFUTED
    assert result.findings[0].details["tried"]["looks"] < 100_000


def test_measuring_finds_the_largest_bound():
    finder = em.finders.Search(NUMBERS, "replace", trials=96, samples=500)
    result = em.measure(
        lambda data, rng: 2.0 * sum(data) + rng.laplace(), finder, em.PureDP, samples=4000, seed=0
    )
    assert result.verdict is None
    assert 1.2 < result.lower_bound <= 2.0


def test_neighbours_of_ones_own_data():
    rows = [{"age": 30, "ill": True}, {"age": 41, "ill": False}, {"age": 55, "ill": True}]
    finder = em.around(rows, relation="replace", trials=64, samples=500)
    leak = em.audit(
        lambda data, rng: max(row["age"] for row in data),
        finder,
        em.PureDP(1.0),
        samples=500,
        seed=0,
    )
    assert leak.is_refuted
    pair = leak.witness.pair
    assert pair.left == rows
    assert sum(one != two for one, two in zip(pair.left, pair.right, strict=True)) == 1
    missing = em.around(np.array([1.0, 2.0, 4.0]), relation="add-remove", trials=64, samples=500)
    leak = em.audit(lambda data, rng: len(data), missing, em.PureDP(1.0), samples=500, seed=0)
    assert leak.is_refuted
    with pytest.raises(em.InputError, match="data is empty"):
        em.around([])
    with pytest.raises(em.InputError, match="must be a list"):
        em.around(3)


def test_strategies_drive_a_search():
    st = pytest.importorskip("hypothesis.strategies")
    domain = em.domains.from_strategy(
        st.lists(st.sampled_from([0.0, 0.5, math.nan]), max_size=4), examples=100, seed=1
    )
    result = search(nan_survives, domain, trials=200)
    assert result.is_refuted
    assert result.witness.pair.within


def test_an_input_that_hangs_does_not_cost_the_certificate_of_others():
    def hanging(data, rng):
        if any(value != value for value in data):
            time.sleep(600)
        return right_sum(data, rng)

    finder = em.finders.Search(NUMBERS, "replace", beyond=True, samples=100, seed=1)
    result = em.audit(hanging, finder, em.PureDP(5.0), samples=100, seed=0, max_seconds=12.0)
    assert result.verdict is em.Verdict.NOT_REFUTED
    (late,) = [report.message for report in result.health if report.name == "out-of-time"]
    assert "nan" in late
