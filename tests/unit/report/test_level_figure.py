"""The map of data-centric levels as a picture: the numbers, and that they are drawn."""

import numpy as np
import pytest

from epsilometer.methods.published.local.levels import DatasetLevel, LevelMap
from epsilometer.report.level_figure import draw_levels, level_picture


def a_map(datasets):
    levels = [
        DatasetLevel(
            dataset, lower_bound=0.1 * k, estimate=0.1 * k + 0.05, neighbour=None, location=0
        )
        for k, dataset in enumerate(datasets)
    ]
    return LevelMap(tuple(levels), confidence=0.95, seed=0)


def test_single_numbers_are_a_line_in_their_order():
    picture = level_picture(a_map([3.0, 1.0, 2.0]))
    assert picture.kind == "line"
    assert picture.coordinates.tolist() == [1.0, 2.0, 3.0]
    assert picture.lower_bounds == pytest.approx([0.1, 0.2, 0.0])
    assert picture.estimates == pytest.approx([0.15, 0.25, 0.05])
    assert level_picture(a_map([[3.0], [1.0]])).kind == "line"


def test_pairs_of_numbers_are_a_grid_with_holes():
    picture = level_picture(a_map([[0, 0], [1, 0], [0, 2]]))
    assert picture.kind == "grid"
    xs, ys, bounds = picture.as_grid()
    assert (xs.tolist(), ys.tolist()) == ([0.0, 1.0], [0.0, 2.0])
    assert bounds[0] == pytest.approx([0.0, 0.1])
    assert bounds[1, 0] == pytest.approx(0.2)
    assert np.isnan(bounds[1, 1])


@pytest.mark.parametrize("datasets", [["a", "b"], [[1, 2, 3], [3, 2, 1]], [[1], [1, 2]]])
def test_anything_else_is_bars(datasets):
    picture = level_picture(a_map(datasets))
    assert picture.kind == "bars"
    assert len(picture.labels) == 2


@pytest.mark.parametrize("datasets", [[0.0, 1.0], [[0, 0], [1, 0], [0, 1], [1, 1]], ["a", "b"]])
def test_every_kind_is_drawn(datasets):
    found = a_map(datasets)
    figure = draw_levels(level_picture(found))
    figure.canvas.draw()
    assert "95%" in figure.get_suptitle()
    assert found.plot().axes


@pytest.mark.parametrize(
    "datasets", [[0.0, 1.0], ["a", "a rather long name of one dataset, cut off"]]
)
def test_nothing_covers_what_is_drawn(datasets):
    """The title within the figure, the legend beside the axes, also where names leave little room."""
    figure = draw_levels(level_picture(a_map(datasets)))
    figure.canvas.draw()
    drawn = figure.axes[0].get_window_extent()
    (legend,) = figure.legends
    assert not legend.get_window_extent().overlaps(drawn)
    (title,) = (text for text in figure.texts if "95%" in text.get_text())
    assert title.get_window_extent().x0 > 0
    assert title.get_window_extent().x1 < figure.bbox.x1


def test_long_names_are_cut_off_visibly():
    picture = level_picture(a_map(["short", "a rather long name of one dataset"]))
    assert "short" in picture.labels[0]
    assert picture.labels[1].endswith("…")
    assert len(picture.labels[1]) == 30
