"""Scores that arrive in batches."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import epsilometer as em


def batches(rng, n, mu=2.5, size=4):
    return [(rng.normal(mu, 1.0, size), rng.normal(0.0, 1.0, size)) for _ in range(n)]


def gaussian_curve(error):
    return float(ndtr(-ndtri(error) - 0.5)) if 0.0 < error < 1.0 else float(error <= 0.0)


@pytest.mark.parametrize(
    "claim", ["mu=.5", "eps=.5", "eps=.5,delta=1e-3", "rho=.05", em.TradeOffDP(gaussian_curve)]
)
def test_any_claim_is_refuted_by_large_differences(claim, rng):
    audit = em.ScoreStream(claim)
    for inside, outside in batches(rng, 20):
        state = audit.add(inside, outside)
    assert state.is_refuted
    assert state.wealth > 20.0
    assert state.p_value < 0.05
    assert (state.samples, state.batches) == ((80, 80), 20)
    assert "refuted" in repr(audit)


def test_scores_that_point_the_wrong_way_are_bet_on_as_well(rng):
    audit = em.ScoreStream("mu=.5")
    for inside, outside in batches(rng, 20):
        state = audit.add(-inside, -outside)
    assert state.is_refuted


def test_the_first_batch_chooses_only(rng):
    audit = em.ScoreStream("mu=.1")
    assert audit.add(*batches(rng, 1, size=200)[0]).wealth == 1.0
    assert not audit.state.is_refuted


def test_a_batch_is_bet_on_by_what_came_before_it(rng):
    """What a batch wins depends on its counts alone: its order says nothing."""
    first, second = batches(rng, 2, size=30)
    audits = [em.ScoreStream("mu=1"), em.ScoreStream("mu=1")]
    for audit in audits:
        audit.add(*first)
    shuffled = [np.sort(side)[::-1] for side in second]
    assert audits[0].add(*second).wealth == audits[1].add(*shuffled).wealth


def test_sides_of_unequal_number_and_empty_batches(rng):
    audit = em.ScoreStream("mu=.5")
    audit.add([], [])
    for _ in range(30):
        audit.add(rng.normal(2.5, 1.0, 2), [])
        audit.add([], rng.normal(0.0, 1.0, 5))
    assert audit.state.samples == (60, 150)
    assert audit.state.is_refuted


def test_a_side_that_waits_is_joined_to_the_next_batch(rng):
    first, second = batches(rng, 2)
    together, apart = em.ScoreStream("mu=1"), em.ScoreStream("mu=1")
    for inside, outside in (first, second):
        together.add(inside, outside)
        apart.add([], outside)
        assert apart.state.wealth != together.state.wealth or together.state.wealth == 1.0
        apart.add(inside, [])
    assert apart.state.wealth == together.state.wealth


def test_infinite_scores_survive_the_file(tmp_path):
    path = tmp_path / "stream.json"
    em.ScoreStream("eps=1", path=path).add([np.inf, 1.0], [-np.inf, 0.0])
    resumed = em.ScoreStream("eps=1", path=path)
    straight = em.ScoreStream("eps=1")
    straight.add([np.inf, 1.0], [-np.inf, 0.0])
    more = ([np.inf, 3.0], [0.5, -np.inf])
    assert resumed.add(*more).wealth == straight.add(*more).wealth


def test_an_interruption_after_any_batch_changes_nothing(rng, tmp_path):
    arriving = batches(rng, 8, mu=1.5)
    arriving[3] = (arriving[3][0], np.empty(0))
    straight = em.ScoreStream("mu=1")
    expected = [straight.add(*batch) for batch in arriving]
    path = tmp_path / "stream.json"
    for batch, state in zip(arriving, expected, strict=True):
        interrupted = em.ScoreStream("mu=1", path=path)
        assert interrupted.add(*batch) == state
    assert em.ScoreStream("mu=1", path=path).state == expected[-1]


def test_a_curve_is_recognised_when_it_resumes(tmp_path):
    path = tmp_path / "stream.json"
    em.ScoreStream(em.TradeOffDP(gaussian_curve), path=path)
    em.ScoreStream(em.TradeOffDP(gaussian_curve), path=path)


def test_another_claim_or_confidence_is_refused(tmp_path):
    path = tmp_path / "stream.json"
    em.ScoreStream("mu=1", path=path)
    with pytest.raises(em.InputError, match="another claim"):
        em.ScoreStream("mu=2", path=path)
    with pytest.raises(em.InputError, match="confidence"):
        em.ScoreStream("mu=1", confidence=0.99, path=path)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"kind": "profile"}', '{"kind": 1}', "[" * 100_000]
)
def test_a_file_of_something_else_is_refused(content, tmp_path):
    path = tmp_path / "stream.json"
    path.write_text(content)
    with pytest.raises(em.InputError, match="no score stream"):
        em.ScoreStream("mu=1", path=path)
    assert path.read_text() == content


def test_a_refused_batch_leaves_everything_as_it_was(tmp_path, rng):
    path = tmp_path / "stream.json"
    audit = em.ScoreStream("mu=1", path=path)
    audit.add(*batches(rng, 1)[0])
    before = audit.state, path.read_text()
    with pytest.raises(em.InputError, match="1 NaN"):
        audit.add([1.0, float("nan")], [0.0])
    assert (audit.state, path.read_text()) == before
    assert json.loads(before[1])["batches"] == 1


def test_a_path_that_cannot_be_written_is_reported_at_once(tmp_path):
    with pytest.raises(OSError, match="missing"):
        em.ScoreStream("mu=1", path=tmp_path / "missing" / "stream.json")


def test_two_streams_of_one_file_do_not_overwrite_each_other(tmp_path, rng):
    path = tmp_path / "stream.json"
    first, second = em.ScoreStream("mu=1", path=path), em.ScoreStream("mu=1", path=path)
    state = first.add(*batches(rng, 1)[0])
    with pytest.raises(em.InputError, match="another stream"):
        second.add(*batches(rng, 1)[0])
    assert second.state.batches == 0
    assert em.ScoreStream("mu=1", path=path).state == state
    assert first.add(*batches(rng, 1)[0]).batches == 2


def test_a_file_that_vanished_is_written_anew(tmp_path, rng):
    path = tmp_path / "stream.json"
    audit = em.ScoreStream("mu=1", path=path)
    audit.add(*batches(rng, 1)[0])
    path.unlink()
    state = audit.add(*batches(rng, 1)[0])
    assert em.ScoreStream("mu=1", path=path).state == state


def test_threads_may_add_to_one_stream(tmp_path):
    audit = em.ScoreStream("mu=1", path=tmp_path / "stream.json")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: audit.add([1.0], [0.0]), range(40)))
    assert (audit.state.batches, audit.state.samples) == (40, (40, 40))
    assert em.ScoreStream("mu=1", path=tmp_path / "stream.json").state == audit.state


def test_a_number_beyond_all_floats_is_refused(tmp_path):
    path = tmp_path / "stream.json"
    em.ScoreStream("mu=1", path=path)
    path.write_text(path.read_text().replace('"batches": 0', '"batches": 1e400'))
    with pytest.raises(em.InputError, match="no score stream"):
        em.ScoreStream("mu=1", path=path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("log_wealth", float("nan")),
        ("log_wealth", float("inf")),
        ("greatest_log_wealth", float("inf")),
        ("greatest_log_wealth", -0.5),
        ("log_wealth", 1e6),
        ("samples", [-1, 2]),
        ("samples", [4]),
        ("samples", [4, 4, 4]),
        ("batches", -1),
        ("learned", {"held_in": [1.0], "held_out": []}),
        ("waiting", {"held_in": [1.0], "held_out": [1.0]}),
        ("learned", {"held_in": ["nan"], "held_out": [1.0]}),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(key, value, tmp_path, rng):
    path = tmp_path / "stream.json"
    em.ScoreStream("mu=1", path=path).add(*batches(rng, 1)[0])
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(em.InputError, match="no score stream"):
        em.ScoreStream("mu=1", path=path)


@pytest.mark.parametrize("claim", ["eps=8,delta=1e-5", "eps=60", "rho=60", "mu=9"])
def test_so_few_scores_could_not_have_refuted_yet(claim, rng):
    stream = em.ScoreStream(claim)
    for _ in range(4):
        state = stream.add(rng.normal(9.0, 1.0, 5), rng.normal(0.0, 1.0, 5))
    assert state.blind.startswith("20 held-in and 20 held-out scores could not have refuted")
    assert "not refuted, and could not have been" in repr(state)


def test_a_stream_that_can_refute_is_never_blind(rng):
    """Perfectly separated scores are refuted after the last state that was blind."""
    stream = em.ScoreStream("eps=1")
    blind = []
    while not stream.state.is_refuted:
        blind.append(stream.add(rng.normal(99.0, 1.0, 4), rng.normal(0.0, 1.0, 4)).blind)
    assert blind[0] is not None
    assert blind[-1] is None
    assert stream.state.blind is None
