"""Recorded outputs of every kind of file, read in pieces or refused by line."""

import json
import pickle

import numpy as np
import pytest

import epsilometer as em
from epsilometer.mechanisms.recordings import recorded_outputs
from epsilometer.outputs import read_outputs
from epsilometer.storage import recorded_texts

NUMBERS = [0.5, 1.0, -2.25, float("inf"), 3.0]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recorded_texts, "_LINES_PER_PIECE", 2)  # several pieces even of short files
    return tmp_path


def values(outputs):
    (block,) = outputs
    return [
        column.values.tolist() if hasattr(column, "values") else column.labels
        for column in block.columns
    ]


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def read_all(name):
    return [side.outputs() for side in em.from_recording(name).sides]


def test_one_side_of_every_kind():
    np.save("a.npy", NUMBERS)
    np.savez("a.npz", x=NUMBERS)
    np.savez_compressed("b.npz", x=NUMBERS, y=[1.0])
    write("a.csv", "\n".join(map(str, NUMBERS)))
    write("b.csv", "noise\n" + "\n".join(map(str, NUMBERS)) + "\n")
    write("a.jsonl", "\n".join(json.dumps(each) for each in NUMBERS) + "\n\n")
    write("a.json", json.dumps(NUMBERS))
    for place in ("a.npy", "a.npz", "b.npz:x", "a.csv", "b.csv", "a.jsonl", "a.json"):
        assert values(recorded_outputs(place)) == [NUMBERS], place
        assert values(recorded_outputs(em.from_recording(place))) == [NUMBERS], place


def test_parquet(here):
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"x": NUMBERS}), "a.parquet")
    pyarrow.parquet.write_table(
        pyarrow.table({"x": [1, None, 2], "side": ["left", "left", "right"]}), "b.parquet"
    )
    pyarrow.parquet.write_table(pyarrow.table({"left": [1, 2], "right": [3, 4]}), "c.parquet")
    pyarrow.parquet.write_table(pyarrow.table({"x": [1, 2], "y": ["a", "b"]}), "d.parquet")
    assert values(recorded_outputs("a.parquet")) == [NUMBERS]
    both = em.from_recording("b.parquet")
    assert [block.shape for block in both.left.outputs()] == ["float", "None"]
    assert values(both.right.outputs()) == [[2.0]]
    assert values(em.from_recording("c.parquet").right.outputs()) == [[3.0, 4.0]]
    assert recorded_outputs("d.parquet").blocks[0].shape == "{x: float, y: str}"
    write("e.parquet", "no parquet")
    with pytest.raises(em.InputError, match=r"e\.parquet cannot be read as parquet"):
        recorded_outputs("e.parquet")


def test_without_pyarrow_the_command_that_installs_it_is_named(here, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    write("a.parquet", "")
    with pytest.raises(em.MissingExtraError, match=r"pip install pyarrow$"):
        em.from_recording("a.parquet")


def test_two_sides_in_one_file():
    np.savez("a.npz", left=[1, 2, 3], right=[4.0, 5.0])
    write("a.csv", "left,right\n1,4\n2,5\n3,\n")
    write("b.csv", "side,x\nleft,1\nright,4\nleft,2\nright,5\nleft,3\n")
    write(
        "a.jsonl",
        "\n".join(
            json.dumps({"side": s, "output": v})
            for s, v in zip("lrlrl", [1, 4, 2, 5, 3], strict=True)
        )
        .replace('"l"', '"left"')
        .replace('"r"', '"right"'),
    )
    for place in ("a.npz", "a.csv", "b.csv", "a.jsonl"):
        both = em.from_recording(place)
        assert (values(both.left.outputs()), values(both.right.outputs())) == (
            [[1, 2, 3]],
            [[4, 5]],
        ), place


def test_arrays_in_either_order_and_of_any_width():
    matrix = np.arange(12.0).reshape(4, 3)
    np.save("c.npy", matrix)
    np.save("f.npy", np.asfortranarray(matrix))
    np.save("text.npy", np.array(["a", "b"]))
    assert (
        values(recorded_outputs("c.npy")) == values(recorded_outputs("f.npy")) == matrix.T.tolist()
    )
    assert recorded_outputs("text.npy").blocks[0].shape == "str"


def test_mixed_types_are_read():
    write("a.jsonl", '1\n"word"\n[1, 2]\nnull\n2.5\n{"a": 1}\n')
    assert [block.shape for block in recorded_outputs("a.jsonl")] == [
        "float",
        "str",
        "list(2 × float)",
        "None",
        "{a: float}",
    ]
    write("a.csv", "1,x\n2,3\n")
    assert [block.shape for block in recorded_outputs("a.csv")] == [
        "tuple(float, str)",
        "tuple(2 × float)",
    ]


def test_how_a_file_stores_whole_numbers_is_no_leak():
    np.save("int.npy", np.arange(100) % 7)
    np.save("big.npy", np.array([1, 2**60, 2**60 + 1]))
    write("float.jsonl", "\n".join(f"{i % 7}.0" for i in range(100)))
    claim = em.PureDP(0.5)
    assert not em.compare("int.npy", "float.jsonl", claim, seed=0).is_refuted
    assert not em.compare("float.jsonl", np.arange(100) % 7, claim, seed=0).is_refuted
    assert not em.compare([i % 7 for i in range(100)], "float.jsonl", claim, seed=0).is_refuted
    assert [block.shape for block in recorded_outputs("big.npy")] == ["float", "bigint"]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.csv", "1,2\n3,4\n5\n", r"a\.csv, line 3: 1 cells, but the first row has 2"),
        ("b.csv", "side,x\nleft,1\nwrong,2\n", r"b\.csv, line 3: side is 'wrong'"),
        ("a.jsonl", "1\n2\n{oops\n", r"a\.jsonl, line 3: not JSON: '\{oops'"),
        ("b.jsonl", "1\n" + "[" * 10_000, r"b\.jsonl, line 2: not JSON"),
        (
            "c.jsonl",
            '{"side": "left", "output": 1}\n{"side": "up", "output": 1}\n',
            r"c\.jsonl, line 2",
        ),
        ("a.json", "{}", "must hold a JSON list"),
        ("b.json", "[", "is not JSON"),
        ("a.npy", "text", "cannot be read as a plain array"),
        ("a.npz", "text", "cannot be read"),
        ("a.txt", "1", r"recorded outputs are read from \.npy"),
    ],
)
def test_refused_by_line(name, text, reason):
    write(name, text)
    with pytest.raises(em.InputError, match=reason):
        read_all(name)


def test_bytes_that_are_no_text(here):
    (here / "a.jsonl").write_bytes(b"1\n\xff\n")
    with pytest.raises(em.InputError, match=r"a\.jsonl, line 2: not text in UTF-8"):
        recorded_outputs("a.jsonl")


class Bomb:
    def __reduce__(self):
        return (open, ("exploded", "w"))


def test_nothing_is_unpickled(here):
    np.save("a.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    np.savez("a.npz", left=np.array([Bomb()], dtype=object), right=[1.0])
    np.savez("b.npz", about=np.array(Bomb(), dtype=object))
    (here / "c.npy").write_bytes(pickle.dumps(Bomb()))
    for name in ("a.npy", "a.npz", "b.npz", "c.npy"):
        with pytest.raises(em.InputError):
            em.from_recording(name).sides[0].outputs()
    assert not (here / "exploded").exists()


def test_a_file_that_was_cut_off(here):
    np.save("a.npy", np.arange(1000.0))
    whole = (here / "a.npy").read_bytes()
    (here / "a.npy").write_bytes(whole[:-100])
    with pytest.raises(em.InputError, match="promises an array of 8000 bytes"):
        recorded_outputs("a.npy")


def test_which_array_and_which_file():
    np.savez("a.npz", x=[1.0], y=[2.0])
    with pytest.raises(em.InputError, match=r"holds 2 arrays \(x, y\); say which: a\.npz:NAME"):
        em.from_recording("a.npz")
    with pytest.raises(em.InputError, match="no array 'z'"):
        em.from_recording("a.npz:z")
    with pytest.raises(em.InputError, match="missing"):
        em.from_recording("nothing.csv")


def test_as_a_mechanism_draws_come_in_order_and_once():
    np.savez("a.npz", left=np.arange(10.0), right=-np.arange(10.0))
    recording = em.from_recording("a.npz", pair=em.Pair("x", "y"))
    rng = np.random.default_rng(0)
    assert values(recording.sample("x", 4, rng)) == [[0, 1, 2, 3]]
    assert values(recording.sample("y", 2, rng)) == [[0, -1]]
    assert values(recording.sample("x", 6, rng)) == [[4, 5, 6, 7, 8, 9]]
    with pytest.raises(em.MechanismError, match=r"a\.npz:left has only 10 outputs"):
        recording.sample("x", 1, rng)
    with pytest.raises(em.InputError, match="no outputs of the input 'z'"):
        recording.sample("z", 1, rng)


def test_as_a_mechanism_refusals_come_before_the_first_draw():
    np.savez("a.npz", left=np.arange(100.0), right=np.arange(100.0))
    np.save("one.npy", np.arange(100.0))
    both = em.from_recording("a.npz")
    claim = em.PureDP(1.0)
    with pytest.raises(em.InputError, match="only 100 outputs; audit it with samples=100 or fewer"):
        em.audit(both, claim=claim)
    with pytest.raises(em.InputError, match="must differ"):
        em.audit(both, em.Pair(0, 0, equal=True), claim, samples=100)
    with pytest.raises(em.InputError, match="holds one side only"):
        em.audit(em.from_recording("one.npy"), em.Pair(0, 1), claim, samples=100)
    with pytest.raises(em.InputError, match="several sides"):
        em.compare(both, both, claim)
    with pytest.raises(em.InputError, match="use jobs=1"):
        em.audit(both, claim=claim, samples=100, jobs=2)


def test_an_audit_of_a_recording_can_be_repeated_and_names_its_inputs():
    rng = np.random.default_rng(0)
    np.save("l.npy", rng.laplace(0, 0.5, 2000))
    np.save("r.npy", rng.laplace(1, 0.5, 2000))
    recording = em.from_recording("l.npy", "r.npy")
    first, again = (
        em.audit(recording, em.Pair(0, 1), em.PureDP(1.0), samples=2000, seed=5) for _ in range(2)
    )
    assert first.is_refuted
    assert first.lower_bound == again.lower_bound
    assert first.witness.pair == em.Pair(0, 1)
    assert first.settings["seeded_mechanism"] is False


def test_two_files_may_also_be_compared():
    rng = np.random.default_rng(0)
    np.savez("a.npz", left=rng.laplace(0, 0.5, 2000), right=rng.laplace(1, 0.5, 2000))
    both = em.from_recording("a.npz")
    by_side = em.compare(both.left, both.right, em.PureDP(1.0), seed=0)
    with np.load("a.npz") as arrays:
        by_array = em.compare(arrays["left"], arrays["right"], em.PureDP(1.0), seed=0)
    assert by_side.lower_bound == by_array.lower_bound > 1


def test_pieces_give_the_same_as_the_whole():
    mixed = [1.0, "a", None, [1.0], 2.0, "b", 3.0]
    write("a.jsonl", "\n".join(map(json.dumps, mixed)))
    whole, read = read_outputs(mixed), recorded_outputs("a.jsonl")
    assert {block.shape: block.rows.tolist() for block in whole} == {
        block.shape: block.rows.tolist() for block in read
    }


def write_parquet(name, **columns):
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), name)
    return name


@pytest.mark.parametrize("side", ["Right", "RIGHT ", None, "up", ""])
def test_a_row_of_no_side_is_refused(here, side):
    write_parquet("a.parquet", x=[1.0, 2.0, 3.0], side=["left", "right", side])
    with pytest.raises(em.InputError, match=r"a\.parquet, row 3: side is .*, not left or right"):
        read_all("a.parquet")
    write(
        "a.jsonl", "\n".join(json.dumps({"side": s, "output": 1}) for s in ("left", "right", side))
    )
    with pytest.raises(em.InputError, match=r"a\.jsonl, line 3"):
        read_all("a.jsonl")


def test_sides_may_be_a_dictionary_of_arrow(here):
    import pyarrow

    sides = pyarrow.array(["left", "right", "left"]).dictionary_encode()
    both = em.from_recording(write_parquet("a.parquet", x=[1.0, None, 3.0], side=sides))
    assert [side.outputs().size for side in both.sides] == [2, 1]
    assert both.right.outputs().blocks[0].shape == "None"


def test_columns_of_parquet_may_be_of_different_length(here):
    both = em.from_recording(
        write_parquet("a.parquet", left=[1.0, 2.0, 3.0], right=[4.0, None, None])
    )
    assert [side.outputs().size for side in both.sides] == [3, 1]
    gaps = em.from_recording(
        write_parquet("b.parquet", left=[1.0, None, 3.0], right=[4.0, None, 5.0])
    )
    assert [side.outputs().size for side in gaps.sides] == [3, 3]
    with pytest.raises(
        em.InputError, match=r"c\.parquet, row 3: the column right is empty from here on"
    ):
        read_all(write_parquet("c.parquet", left=[1.0, 2.0, 3.0], right=[None, 4.0, None]))


def test_one_name_for_two_things_is_refused(here):
    import pyarrow

    table = pyarrow.table([[1], [2]], names=["x", "x"])
    __import__("pyarrow.parquet").parquet.write_table(table, "a.parquet")
    with pytest.raises(em.InputError, match="two columns of one name"):
        recorded_outputs("a.parquet")
    write("a.jsonl", '{"a": 1}\n{"a": 1, "a": 2}\n')
    with pytest.raises(em.InputError, match=r"a\.jsonl, line 2: the key 'a' occurs twice"):
        recorded_outputs("a.jsonl")


def test_a_blank_line_between_lines_of_json_is_refused():
    write("a.jsonl", "1\n\n2\n\n")
    with pytest.raises(em.InputError, match=r"a\.jsonl, line 2: a blank line is not an output"):
        recorded_outputs("a.jsonl")


def test_an_output_that_cannot_be_read_is_named_with_its_file():
    write("a.jsonl", "1\n2\n3\n" + "[" * 60 + "]" * 60 + "\n")
    with pytest.raises(em.InputError, match=r"a\.jsonl, output 4: it is nested deeper"):
        recorded_outputs("a.jsonl")


def test_how_a_file_stores_long_whole_numbers_is_no_leak():
    rng = np.random.default_rng(0)
    left, right = (2**60 + 256 * rng.integers(0, 40, 2000) for _ in range(2))
    np.save("int.npy", left)
    np.save("float.npy", right.astype(float))
    assert not em.compare("int.npy", "float.npy", em.PureDP(0.5), seed=0).is_refuted
    mixed = em.compare(left, right.astype(float), em.PureDP(0.5), seed=0)
    assert not mixed.is_refuted
    assert "note" in mixed.settings
    assert em.compare(left + 1, right.astype(float), em.PureDP(0.5), seed=0).is_refuted
    # In lists, as in what a mechanism returns, a whole number is no float.
    assert em.compare(
        left.tolist(), right.astype(float).tolist(), em.PureDP(0.5), seed=0
    ).is_refuted


def test_arrays_of_truth_values_are_numbers_beside_numbers_in_files_too():
    rng = np.random.default_rng(0)
    sides = [rng.random(1000) < 0.5 for _ in range(2)]
    np.save("bool.npy", sides[0])
    np.save("int.npy", sides[1].astype(int))
    found = em.compare("bool.npy", "int.npy", em.PureDP(0.5), seed=0)
    assert not found.is_refuted
    assert found.settings["note"] == "left holds bool, right int64; both are compared as float64"
    assert not em.compare(sides[0], sides[1].astype(int), em.PureDP(0.5), seed=0).is_refuted
