import numpy as np
import pytest

from epsilometer.outputs import Line
from epsilometer.outputs.number_words import describe_intervals
from epsilometer.outputs.placing import maybe_repeated


def atom(value):
    return [value, np.nextafter(value, np.inf)]


def chosen(line, *cells):
    mask = np.zeros(line.n_cells, dtype=bool)
    mask[list(cells)] = True
    return mask


def words(line, *cells):
    return describe_intervals(line.intervals(chosen(line, *cells)), "output")


def test_cells_are_closed_on_the_left():
    line = Line(np.array([1.0, 2.0]))
    assert line.index(np.array([0.0, 1.0, 1.5, 2.0, 9.0, np.nan, np.inf, -np.inf])).tolist() == [
        0,
        1,
        1,
        2,
        2,
        3,
        2,
        0,
    ]
    assert line.n_cells == 4


def test_no_edges_is_one_cell_and_nan():
    line = Line(np.empty(0))
    assert line.index(np.array([3.0, np.nan])).tolist() == [0, 1]
    assert np.bincount(
        line.index(np.array([3.0, np.nan, 4.0])), minlength=line.n_cells
    ).tolist() == [2, 1]
    assert np.bincount(line.index(np.empty(0)), minlength=line.n_cells).tolist() == [0, 0]


def test_both_zeros_are_one_value():
    line = Line(np.array(atom(0.0)))
    assert line.index(np.array([0.0, -0.0, 5e-324, -5e-324])).tolist() == [1, 1, 2, 0]


def test_booleans_and_integers_are_numbers():
    line = Line(np.array([1.0]))
    assert line.index(np.array([True, False])).tolist() == [1, 0]
    many = Line(np.array([-1.0, 0.0, np.nextafter(0.0, 1.0), 0.5, 1.0, 2.0]))
    bits = np.array([[True, False], [False, True], [True, True]])[
        :, 0
    ]  # a column of a table, not contiguous
    assert many.index(bits).tolist() == many.index(bits.astype(float)).tolist()
    assert np.bincount(line.index(np.array([0, 1, 1, 5])), minlength=line.n_cells).tolist() == [
        1,
        3,
        0,
    ]


def test_intervals_join_neighbours():
    line = Line(np.array([0.0, 1.0, 2.0, 3.0]))
    assert line.intervals(chosen(line, 1, 2, 4)) == [(0.0, 2.0), (3.0, np.inf)]
    assert line.intervals(chosen(line, 0, 5)) == [(-np.inf, 0.0)]
    assert line.intervals(chosen(line)) == []


def test_merged_keeps_only_the_ends():
    line = Line(np.array([0.0, 1.0, 2.0, 3.0]))
    merged, kept = line.merged(chosen(line, 1, 2, 5))
    assert merged.edges.tolist() == [0.0, 2.0]
    assert kept.tolist() == [False, True, False, True]


class TestWords:
    LINE = Line(np.array([*atom(-1.0), 0.25, *atom(3.0), 7.0]))

    @pytest.mark.parametrize(
        ("cells", "text"),
        [
            ([1], "output = -1"),
            ([4], "output = 3"),
            ([0], "output < -1"),
            ([0, 1], "output ≤ -1"),
            ([6], "output ≥ 7"),
            ([5, 6], "output > 3"),
            ([2], "output > -1 and < 0.25"),
            ([3, 4], "output between 0.25 and 3"),
            ([1, 4], "output is one of -1, 3"),
            ([0, 1, 2, 3, 4, 5, 6], "any output"),
            ([], "no output"),
            ([0, 2, 3, 4, 5, 6], "output is not -1"),
            ([0, 6], "output < -1 or ≥ 7"),
        ],
    )
    def test_typical_cases(self, cells, text):
        assert words(self.LINE, *cells) == text

    def test_infinite_atoms(self):
        line = Line(np.unique([-np.inf, *atom(-np.inf), 0.0, np.inf]))
        assert words(line, 1) == "output = -inf"
        assert words(line, line.n_cells - 2) == "output = inf"


@pytest.mark.parametrize("times", [2, 5])
def test_values_that_occur_often_are_among_the_crowded(times):
    rng = np.random.default_rng(0)
    numbers = np.concatenate(
        [
            rng.normal(size=50_000),
            [-0.0] * times,
            [0.0] * (times - 1),
            [3.5] * times,
            [-1e300] * times,
        ]
    )
    numbers = rng.permutation(numbers)
    values, counts = np.unique(numbers, return_counts=True)
    found = maybe_repeated(numbers, times)
    assert set(values[counts >= times]) <= set(found)
    assert np.all(np.isin(found, numbers))
    assert len(found) < (0.5 if times == 2 else 0.05) * len(numbers)
    assert len(maybe_repeated(numbers[:0], times)) == 0
