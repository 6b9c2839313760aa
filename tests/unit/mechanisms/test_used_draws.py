"""Draws that chose never prove: a result knows which recorded draws it used, and a replay leaves them out."""

import json
import shutil

import numpy as np
import pytest

import epsilometer as em
from epsilometer.cli import main
from epsilometer.mechanisms.used_draws import EarlierDraws, UsedDraws
from epsilometer.outputs import read_outputs

PAIR = em.Pair(0, 1)
CLAIM = em.PureDP(0.1)
USED = 200
MORE = 60


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shifted(rng, n):
    return rng.normal(size=n), 1.0 + rng.normal(size=n)


def tossed(rng, n):
    return (rng.random(n) < 0.3).astype(int), (rng.random(n) < 0.6).astype(int)


def rare(rng, n):
    return (rng.random(n) < 0.02).astype(int), (rng.random(n) < 0.06).astype(int)


def named(rng, n):
    names = np.array(["yes", "no", "perhaps"])
    return rng.choice(names, n, p=[0.2, 0.5, 0.3]), rng.choice(names, n, p=[0.5, 0.2, 0.3])


KINDS = [shifted, tossed, rare, named]


def write(kind, left, right, name="draws"):
    """Two sides in one file of this kind."""
    path = f"{name}.{kind}"
    sides = (("left", left), ("right", right))
    if kind == "npz":
        np.savez(path, left=left, right=right)
    elif kind == "jsonl":
        rows = [{"side": side, "output": each} for side, some in sides for each in some.tolist()]
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    elif kind == "csv":
        with open(path, "w", encoding="utf-8") as file:
            file.write("side,value\n")
            file.writelines(f"{side},{each}\n" for side, some in sides for each in some.tolist())
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table({"left": left, "right": right}), path)
    return path


def audited(path, **more):
    return em.audit(em.from_recording(path, pair=PAIR), claim=CLAIM, samples=USED, seed=0, **more)


def replayed(result, path, **more):
    how = {"samples": MORE, "seed": 1, **more}
    return em.replay(
        em.AuditResult.from_json(result.to_json()), em.from_recording(path, pair=PAIR), **how
    )


def proved(result):
    """The rows that proved, of the left and of the right input."""
    entries = {each["input"]: each for each in result.settings["recording"]["draws"]}
    return [[tuple(rows) for rows in entries[side]["proved"]] for side in ("left", "right")]


def test_a_result_says_which_rows_chose_and_which_proved(rng):
    result = audited(write("npz", *shifted(rng, 400)))
    for entry in result.settings["recording"]["draws"]:
        assert (entry["chose"], entry["proved"], entry["rows"]) == (
            [[0, 60]],
            [[60, 200]],
            [[0, 200]],
        )
    again = em.AuditResult.from_json(result.to_json())
    assert again.settings["recording"] == json.loads(json.dumps(result.settings["recording"]))


def test_no_value_is_noted(rng):
    left, right = 1000.0 + rng.integers(0, 9, 400), 2000.0 + rng.integers(0, 9, 400)
    noted = json.dumps(audited(write("npz", left, right)).settings["recording"])
    assert not any(f"{value:.1f}" in noted for value in np.unique([left, right]))


def test_a_replay_counts_the_rows_behind(rng):
    left, right = shifted(rng, 400)
    path = write("npz", left, right)
    again = replayed(audited(path), path)
    assert proved(again) == [[(200, 260)]] * 2
    hits = [
        int(again.witness.event.contains(read_outputs(some[200:260])).sum())
        for some in (left, right)
    ]
    assert [counts.hits for counts in again.witness.counts] == hits


@pytest.mark.parametrize("draw", KINDS)
@pytest.mark.parametrize(
    ("first", "then"), [("npz", "csv"), ("csv", "jsonl"), ("jsonl", "parquet"), ("parquet", "npz")]
)
def test_in_another_format(draw, first, then, rng):
    sides = draw(rng, 400)
    result = audited(write(first, *sides))
    assert proved(replayed(result, write(then, *sides, name="other"))) == [[(200, 260)]] * 2


@pytest.mark.parametrize(
    ("draw", "kind"),
    [
        *((draw, "jsonl") for draw in KINDS),
        *((draw, "npz") for draw in KINDS if draw is not named),
    ],  # no words
)
def test_what_an_audit_recorded_is_recognised(draw, kind, rng):
    def mechanism(x, n, rng):
        return draw(rng, n)[x]

    result = em.audit(
        em.from_batch(mechanism), PAIR, CLAIM, samples=USED, seed=0, record=f"kept.{kind}"
    )
    with pytest.raises(
        em.InputError, match=r"200 of which the audit has used, so that 0 are left; samples=60"
    ):
        replayed(result, f"kept.{kind}")
    # As another program would write them.
    sides = [em.from_recording(f"kept.{kind}").sides[side].outputs() for side in (0, 1)]
    values = [some.blocks[0].columns[0] for some in sides]
    if draw is not named:
        plain = [
            np.concatenate([column.values, draw(rng, MORE)[side]])
            for side, column in enumerate(values)
        ]
        assert proved(replayed(result, write("csv", *plain))) == [[(200, 260)]] * 2


def test_a_copy_and_an_appended_file(rng):
    left, right = shifted(rng, 400)
    result = audited(write("csv", left[:USED], right[:USED]))
    shutil.copy("draws.csv", "copy.csv")
    with pytest.raises(em.InputError, match="so that 0 are left"):
        replayed(result, "copy.csv")
    with open("copy.csv", "a", encoding="utf-8") as file:
        file.writelines(
            f"left,{a}\nright,{b}\n" for a, b in zip(left[200:], right[200:], strict=True)
        )
    assert proved(replayed(result, "copy.csv")) == [[(200, 260)]] * 2


def test_exchanged_sides(rng):
    left, right = shifted(rng, 400)
    result = audited(write("npz", left, right))
    assert proved(replayed(result, write("csv", right, left))) == [[(200, 260)]] * 2


def test_parts_of_what_was_used(rng):
    left, right = shifted(rng, 400)
    fresh = shifted(rng, 100)
    result = audited(write("npz", left, right))
    with pytest.raises(
        em.InputError, match="has 150 outputs of the left input, 150 of which the audit has used"
    ):
        replayed(result, write("csv", left[:150], right[:150]))
    # Whoever skips the rows that chose has still those that proved.
    assert proved(replayed(result, write("csv", left[60:], right[60:]))) == [[(140, 200)]] * 2
    # Fresh rows in front, and a second file behind.
    both = [
        np.concatenate([new, old[:USED], new[:20]])
        for new, old in zip(fresh, (left, right), strict=True)
    ]
    again = replayed(result, write("csv", *both), samples=120)
    assert proved(again) == [[(0, 100), (300, 320)]] * 2


@pytest.mark.parametrize(
    "change",
    [
        lambda side, rng: rng.permutation(side),
        lambda side, rng: np.sort(side),
        lambda side, rng: side[::-1],
        lambda side, rng: side[::2],
        lambda side, rng: side.astype(np.float32),
        lambda side, rng: rng.permutation(np.append(side, rng.normal(size=200))),
    ],
    ids=["shuffled", "sorted", "backwards", "every second", "float32", "among others"],
)
def test_in_another_order_or_rounded(change, rng):
    left, right = shifted(rng, USED)
    result = audited(write("npz", left, right))
    path = write("npz", change(left, rng), change(right, rng), name="changed")
    with pytest.raises(em.InputError, match="has used, in another order or rounded"):
        replayed(result, path)


def test_with_columns_in_another_order(rng):
    sides = rng.normal(size=(2, USED, 3))
    result = audited(write("npz", *sides))
    path = write("npz", *sides[:, :, [1, 2, 0]], name="moved")
    with pytest.raises(em.InputError, match="has used, in another order or rounded"):
        replayed(result, path)


def test_only_one_side_was_used(rng):
    left, right = shifted(rng, 400)
    result = audited(write("npz", left, right))
    again = replayed(result, write("npz", left, shifted(rng, 400)[1], name="half"))
    assert proved(again) == [[(200, 260)], [(0, 60)]]


@pytest.mark.parametrize("draw", [shifted, tossed, named])
def test_fresh_recordings_are_taken_from_their_beginning(draw, rng):
    result = audited(write("npz", *draw(rng, 400)))
    assert proved(replayed(result, write("npz", *draw(rng, MORE), name="fresh"))) == [[(0, 60)]] * 2


def test_outputs_that_are_all_alike(rng):
    """They cannot be recognised, so that they count as used; unless they are known to come from another seed."""
    sides = np.zeros(400), np.append(np.ones(399), 0)
    result = audited(write("npz", *sides))
    with pytest.raises(em.InputError, match="has used, so that 0 are left"):
        replayed(result, write("csv", *sides))

    def constant(x, n, rng):
        return np.full(n, x)

    for seed in (1, 2):
        result = em.audit(
            em.from_batch(constant), PAIR, CLAIM, samples=USED, seed=seed, record=f"{seed}.jsonl"
        )
    assert proved(replayed(result, "1.jsonl")) == [[(0, 60)]] * 2
    with pytest.raises(em.InputError, match="so that 0 are left"):
        replayed(result, "2.jsonl")


def test_replays_of_replays(rng):
    path = write("npz", *shifted(rng, 400))
    result = audited(path)
    for start in (200, 260, 320):
        result = replayed(result, path)
        assert proved(result) == [[(start, start + 60)]] * 2
    with pytest.raises(em.InputError, match=r"so that 20 are left; .*give samples=20 or"):
        replayed(result, path)
    live = em.replay(
        result, em.from_batch(lambda x, n, rng: rng.normal(x, size=n)), samples=USED, seed=5
    )
    assert "draws" not in live.settings["recording"]
    with pytest.raises(em.InputError, match="so that 20 are left"):
        replayed(live, path)


def test_several_pairs(rng):
    def mechanism(x, n, rng):
        return rng.normal(x, size=n)

    pairs = [em.Pair(0, 1), em.Pair(0, 2)]
    result = em.audit(
        em.from_batch(mechanism), pairs, CLAIM, samples=2000, seed=0, record="kept.jsonl"
    )
    assert len(result.settings["recording"]["draws"]) == 3
    with pytest.raises(em.InputError, match="so that 0 are left"):
        em.replay(result, em.from_recording("kept.jsonl"), samples=MORE, seed=1)


def test_a_recording_with_the_seed_of_an_audit_that_recorded_nothing():
    def mechanism(x, n, rng):
        return rng.normal(x, size=n)

    source = em.from_batch(mechanism)
    for samples, seed in ((USED, 0), (500, 3)):
        em.audit(source, PAIR, CLAIM, samples=samples, seed=seed, record=f"{seed}.jsonl")
    result = em.audit(source, PAIR, CLAIM, samples=USED, seed=3)
    assert "recording" not in result.settings
    once = em.replay(result, source, samples=USED, seed=8)
    for some in (result, once, em.replay(once, source, samples=USED, seed=9)):
        with pytest.raises(
            em.InputError,
            match=r"was drawn with seed=3, with which the audit has used the same draws",
        ):
            replayed(some, "3.jsonl")
        assert proved(replayed(some, "0.jsonl")) == [[(0, 60)]] * 2


def test_a_mechanism_without_seed_draws_afresh(rng):
    def mechanism(x, n):
        return rng.normal(x, size=n)

    for name in ("first", "second"):
        result = em.audit(
            em.from_batch(mechanism), PAIR, CLAIM, samples=USED, seed=0, record=f"{name}.jsonl"
        )
    assert proved(replayed(result, "first.jsonl")) == [[(0, 60)]] * 2
    with pytest.raises(em.InputError, match="so that 0 are left"):
        replayed(result, "second.jsonl")


def test_what_was_compared(rng):
    left, right = shifted(rng, 400)
    result = em.compare(left[:USED].tolist(), right[:USED], CLAIM, seed=0)
    entry = result.settings["recording"]["draws"][0]
    assert (entry["rows"], entry["chose"], entry["proved"], entry["shuffled"]) == (
        [[0, 200]],
        [[0, 60]],
        [[60, 200]],
        True,
    )
    path = write("csv", left, right)
    assert proved(replayed(result, path, pair=PAIR)) == [[(200, 260)]] * 2
    recording = em.from_recording(path, pair=PAIR)
    with pytest.raises(em.InputError, match="so that 0 are left"):
        replayed(em.compare(recording.left, recording.right, CLAIM, seed=0), path, pair=PAIR)


def test_stopping_early(rng):
    path = write("npz", *shifted(rng, 1000))
    result = audited(path, stop_early=True)
    (used, _) = result.samples_used
    # What was bet on may choose the events of later bets.
    ((start, stop),) = result.settings["recording"]["draws"][0]["chose"]
    assert (start, result.settings["recording"]["draws"][0]["rows"]) == (0, [[0, used]])
    assert result.findings[0].details["pilot"] <= stop < used
    assert proved(replayed(result, path)) == [[(used, used + 60)]] * 2


def test_features_do_not_matter(rng):
    path = write("npz", *shifted(rng, 400))

    def positive(output):
        return output > 0.5

    result = em.audit(
        em.from_recording(path, pair=PAIR, features=positive), claim=CLAIM, samples=USED, seed=0
    )
    other = em.audit(em.from_recording(path, pair=PAIR), claim=CLAIM, samples=USED, seed=0)
    keys = ("digest", "marks")
    both = [
        [[each[key] for key in keys] for each in some.settings["recording"]["draws"]]
        for some in (result, other)
    ]
    assert both[0] == both[1]
    again = em.replay(
        result, em.from_recording(path, pair=PAIR, features=positive), samples=MORE, seed=1
    )
    assert proved(again) == [[(200, 260)]] * 2


def test_several_runs_as_one_output(rng):
    path = write("npz", *shifted(rng, 400))
    twice = em.repeated(em.from_recording(path, pair=PAIR), 2)
    result = em.audit(twice, PAIR, CLAIM, samples=100, seed=0)
    assert [each["rows"] for each in result.settings["recording"]["draws"]] == [[[0, 200]]] * 2
    again = em.replay(
        result, em.repeated(em.from_recording(path, pair=PAIR), 2), samples=50, seed=1
    )
    assert proved(again) == [[(200, 300)]] * 2
    with pytest.raises(em.InputError, match="200 are left; samples=202"):
        em.replay(result, twice, samples=101, seed=1)
    with pytest.raises(em.InputError, match="checkpoint= cannot be combined with a recording"):
        em.audit(twice, PAIR, CLAIM, samples=100, seed=0, checkpoint="c.sqlite")


def test_a_recording_of_a_recording(rng):
    path = write("npz", *shifted(rng, 400))
    result = audited(path, record="again.jsonl")
    assert result.settings["recording"]["draws"][0]["rows"] == [[0, 200]]
    with pytest.raises(em.InputError, match="so that 0 are left"):
        replayed(result, "again.jsonl")
    assert proved(replayed(result, path)) == [[(200, 260)]] * 2


def test_profiles_and_measurements_note_them_too(rng):
    path = write("npz", *shifted(rng, 400))
    recording = em.from_recording(path, pair=PAIR)
    for result in (
        em.profile(recording, samples=USED, seed=0),
        em.measure(recording, samples=USED, seed=0),
    ):
        assert [each["rows"] for each in result.settings["recording"]["draws"]] == [[[0, 200]]] * 2


def test_results_of_earlier_versions(rng):
    left, right = shifted(rng, 400)
    path = write("npz", left, right)
    stored = em.compare(left, right, CLAIM, seed=0).to_dict()
    del stored["settings"]["recording"]
    with pytest.raises(em.InputError, match="does not say which of them it used"):
        em.replay(
            em.AuditResult.from_dict(stored),
            em.from_recording(path, pair=PAIR),
            pair=PAIR,
            samples=MORE,
        )
    live = em.from_batch(lambda x, n, rng: rng.normal(x, size=n))
    em.replay(em.AuditResult.from_dict(stored), live, pair=PAIR, samples=MORE, seed=0)


@pytest.mark.parametrize(
    "noted",
    [
        3,
        {"draws": 3},
        {"draws": [3]},
        {"draws": [{"rows": [[0, 9]], "mark_rows": 0, "marks": {}}]},
        {"draws": [{"rows": [[9, 0]], "mark_rows": 2, "marks": {"0": "ff"}}]},
        {"draws": [{"rows": [[0, 9]], "mark_rows": 2, "marks": {"0": "xyz"}}]},
        {"draws": [{"rows": [[0, 9]], "mark_rows": 2, "marks": {"0": "f" * 40}}]},
        {"earlier": {"rows": 2}},
        {"seeds": 4},
    ],
)
def test_what_nobody_could_have_noted(noted):
    with pytest.raises(em.InputError, match="notes about its recorded draws cannot be read"):
        EarlierDraws.of({"recording": noted})


def test_draws_in_pieces_have_the_marks_of_the_whole(rng):
    rows = rng.normal(size=1000)
    whole, pieces = UsedDraws(), UsedDraws()
    whole.add("x", read_outputs(rows))
    for some in np.split(rows, [1, 7, 300, 301, 650]):
        pieces.add("x", read_outputs(some))
    assert whole.facts() == pieces.facts()


def test_on_the_command_line(rng, capsys):
    write("npz", *shifted(rng, 400))
    assert (
        main(
            [
                "audit",
                "recording:draws.npz",
                "--epsilon",
                "0.1",
                "--samples",
                "200",
                "--seed",
                "0",
                "--json",
                "r.json",
            ]
        )
        == 1
    )
    with open("r.json", encoding="utf-8") as file:
        stored = json.load(file)
    stored["witness"]["pair"] = stored["findings"][0]["witness"]["pair"] = (
        em.inputs.pairs.pair_to_dict(PAIR)
    )
    with open("r.json", "w", encoding="utf-8") as file:
        json.dump(stored, file)
    capsys.readouterr()
    assert main(["replay", "r.json", "recording:draws.npz", "--samples", "300", "--seed", "1"]) == 2
    assert "so that 200 are left; samples=300 were asked for" in capsys.readouterr().err
    assert main(["replay", "r.json", "recording:draws.npz"]) == 2
    assert "so that 200 are left; samples=100000 were asked for" in capsys.readouterr().err
    assert main(["replay", "r.json", "recording:draws.npz", "--samples", "200", "--seed", "1"]) == 1
