"""How training draws are cut into cells, on quantile-spaced samples."""

import numpy as np
import pytest

from epsilometer.methods.partitions import learn_partitions
from epsilometer.methods.scores.cells import (
    FEWEST_REPEATS,
    blocks_of_both,
    cut_columns,
    learn_atoms,
    learn_groups,
    learn_line,
)
from epsilometer.outputs import Labels, Numbers, read_outputs


def spaced(n, low=0.0, high=1.0):
    return np.linspace(low, high, n, endpoint=False) + (high - low) / (2 * n)


def cell_is_single(line, value):
    cell = line.index(np.array([value]))[0]
    beside = np.array([np.nextafter(value, -np.inf), np.nextafter(value, np.inf)])
    return line.index(beside).tolist() == [cell - 1, cell + 1]


class TestLine:
    def test_bins_have_equal_mass(self):
        left, right = spaced(6000), spaced(6000, 0.5, 1.5)
        line = learn_line(left, right)
        counts = np.bincount(line.index(np.concatenate([left, right])), minlength=line.n_cells)[:-1]
        assert 32 <= len(counts) <= 512
        assert counts.min() > 0.9 * counts.max()

    def test_repeated_values_are_atoms(self):
        left = np.concatenate([spaced(2000), np.zeros(300), np.ones(FEWEST_REPEATS)])
        right = np.concatenate([spaced(2000, 2.0, 3.0), np.full(40, 2.5)])
        line = learn_line(left, right)
        assert all(cell_is_single(line, value) for value in (0.0, 1.0, 2.5))
        rare = learn_line(np.append(spaced(2000), [5.0] * (FEWEST_REPEATS - 1)), spaced(2000))
        assert not cell_is_single(rare, 5.0)

    def test_only_atoms(self):
        line = learn_line(np.repeat([0.0, 1.0, 7.0], 50), np.repeat([1.0, 7.0], 50))
        assert all(cell_is_single(line, value) for value in (0.0, 1.0, 7.0))

    def test_infinities_and_nan(self):
        left = np.concatenate([spaced(2000), [np.inf] * 20, [-np.inf] * 20, [np.nan] * 20])
        line = learn_line(left, spaced(2000))
        assert (
            np.bincount(
                line.index(np.array([np.inf, -np.inf, np.nan, 1e308, -1e308])),
                minlength=line.n_cells,
            ).max()
            == 1
        )
        assert np.all(np.isfinite(line.edges) | np.isinf(line.edges))

    def test_a_single_infinity_among_distinct_values(self):
        line = learn_line(np.append(spaced(2000), np.inf), spaced(2001))
        assert np.bincount(line.index(np.array([np.inf, 1e308])), minlength=line.n_cells).max() == 1

    def test_the_largest_float_is_an_atom_like_any_other(self):
        largest = np.finfo(float).max
        line = learn_line(np.full(20, largest), np.full(20, -largest))
        assert line.index(np.array([largest])) != line.index(np.array([0.0]))

    @pytest.mark.parametrize(
        "values", [np.empty(0), np.array([1.0]), np.array([np.nan] * 10), spaced(30)]
    )
    def test_too_little_to_cut(self, values):
        line = learn_line(values, np.empty(0))
        assert len(line.edges) <= 1
        assert np.bincount(line.index(values), minlength=line.n_cells).sum() == len(values)

    def test_edges_increase_strictly(self):
        line = learn_line(
            np.concatenate([spaced(3000), np.repeat([-0.0, 0.0, 0.5], 30)]), spaced(3000, -1, 0)
        )
        assert np.all(np.diff(line.edges) > 0)

    def test_integers_and_booleans(self):
        line = learn_line(np.repeat(np.arange(5), 10), np.repeat([True, False], 10))
        assert np.bincount(line.index(np.arange(5)), minlength=line.n_cells).max() == 1


class TestAtoms:
    def test_numbers(self):
        found = learn_atoms(
            Numbers(np.array([1.0] * 9 + [2.0])), Numbers(np.array([np.nan, 3.0] * 5))
        )
        assert found.values[:-1].tolist() == [1.0, 3.0]
        assert np.isnan(found.values[-1])
        assert learn_atoms(Numbers(spaced(50)), Numbers(spaced(50) + 0.001)) is None

    def test_booleans_are_always_atoms(self):
        found = learn_atoms(Numbers(np.array([True])), Numbers(np.array([True])))
        assert found.values.tolist() == [0.0, 1.0]

    def test_labels(self):
        left = Labels(np.array([0, 0, 0, 1], dtype=np.int32), ("a", "b"))
        right = Labels(np.array([0, 0, 1, 1], dtype=np.int32), ("a", "c"))
        assert learn_atoms(left, right).labels == ("a",)


class TestGroups:
    def test_signatures(self):
        left = read_outputs([(True, "x", 0.1 * step) for step in range(40)])
        right = read_outputs([(False, "x", 0.3 * step + 0.01) for step in range(40)])
        partition, varying = learn_groups(left.blocks[0], right.blocks[0])
        assert {group.signature for group in partition.groups} == {(1, 0, -1), (0, 0, -1)}
        assert sorted((len(a), len(b)) for _, a, b in varying) == [(0, 40), (40, 0)]

    def test_every_shape_of_either_side(self):
        both = blocks_of_both(read_outputs([1.0, None]), read_outputs([None, "a"]))
        assert {(a.shape, a.size, b.size) for a, b in both} == {
            ("float", 1, 0),
            ("None", 1, 1),
            ("str", 0, 1),
        }


class TestPartitions:
    def test_numbers_need_no_score(self):
        assert len(learn_partitions(read_outputs(spaced(500)), read_outputs(spaced(500)))) == 1

    def test_vectors_get_a_score(self, rng):
        left, right = (read_outputs(rng.normal(shift, 1, (2000, 3))) for shift in (0.0, 1.0))
        ways = learn_partitions(left, right)
        assert len(ways) > 1
        assert any(
            group.score for way in ways for block in way.partition.blocks for group in block.groups
        )

    def test_all_draws_have_a_cell(self, rng):
        mixed = [1.0, None, "a", (1, 2.0), (1, 3.0), [], {"k": True}] * 30 + rng.random(
            300
        ).tolist()
        left, right = read_outputs(mixed), read_outputs(mixed[::-1])
        for way in learn_partitions(left, right):
            assert way.partition.count(left).sum() == len(left)


def test_what_is_rare_and_far_off_has_a_cell_of_its_own(rng):
    """One draw in fifty lies far out on the right: with bins of equal mass it would be lost among ordinary draws."""
    left, right = rng.laplace(size=(600, 3)), rng.laplace(size=(600, 3))
    right[::50, 2] = 50.0 + rng.random(12)
    blocks = [read_outputs(side).blocks[0] for side in (left, right)]
    cut = cut_columns(*blocks, [(2, None)])[0]
    cells = cut.index(blocks[1].columns)
    assert np.bincount(cells)[cells[0]] <= 20


def test_no_cell_spans_the_gap_between_two_clusters(rng):
    """As where a permanent answer is reported many times: the median lies in the upper cluster, and cells are wide."""
    draws = [
        np.where(rng.random((3000, 4)) < 0.47, 20.0, 70.0) + rng.normal(size=(3000, 4))
        for _ in range(2)
    ]
    blocks = [read_outputs(side).blocks[0] for side in draws]
    for column, cut in enumerate(cut_columns(*blocks, [(number, None) for number in range(4)])):
        cells = cut.index(blocks[0].columns)
        is_high = draws[0][:, column] > 45.0
        assert not set(cells[is_high].tolist()) & set(cells[~is_high].tolist())


def test_whole_numbers_and_outliers_are_no_clusters(rng):
    for values in (rng.poisson(30.0, size=(3000, 1)), rng.standard_cauchy(size=(3000, 1))):
        left, right = (
            read_outputs(side.astype(float)).blocks[0] for side in (values[:1500], values[1500:])
        )
        assert cut_columns(left, right, [(0, None)])[0].size <= 28
