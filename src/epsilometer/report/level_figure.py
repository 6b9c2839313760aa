"""The map of data-centric levels as a picture: its numbers as plain arrays, and what draws them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.one_line import one_line
from epsilometer.report import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from epsilometer.methods.published.local.levels import LevelMap

# Inches.
_SIZE = (6.5, 4.0)
_BOUND_COLOUR = "#0b6b69"
_ESTIMATE_COLOUR = "#59616b"
# Of the marks of estimates, large enough to be seen beside a bar, in points.
_MARK_LENGTH = 12.0
_MARK_WIDTH = 2.0
# Characters of a dataset beside its bar.
_LONGEST_LABEL = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelPicture:
    """What the picture shows.

    Attributes:
        kind: "line" over single numbers, "grid" over pairs of numbers, "bars" otherwise.
        coordinates: shape (k,) for a line, increasing; shape (k, 2) for a grid; (k,) for bars.
        lower_bounds: shape (k,).
        estimates: shape (k,).
        labels: of the datasets, for bars.
        confidence: with which all bounds hold together.
    """

    kind: str
    coordinates: Floats
    lower_bounds: Floats
    estimates: Floats
    labels: tuple[str, ...]
    confidence: float

    def as_grid(self) -> tuple[Floats, Floats, Floats]:
        """Returns the distinct coordinates of both axes and the bounds, shape (ys, xs).

        Places without a dataset are NaN.
        """
        xs, columns = np.unique(self.coordinates[:, 0], return_inverse=True)
        ys, rows = np.unique(self.coordinates[:, 1], return_inverse=True)
        bounds = np.full((len(ys), len(xs)), np.nan)
        bounds[rows.ravel(), columns.ravel()] = self.lower_bounds
        return xs, ys, bounds


def level_picture(levels: "LevelMap") -> LevelPicture:
    """Returns the numbers of the picture of a map."""
    datasets = [level.dataset for level in levels.levels]
    lower_bounds = np.array([level.lower_bound for level in levels.levels])
    estimates = np.array([level.estimate for level in levels.levels])
    coordinates = _coordinates(datasets)
    if coordinates is None:
        kind = "bars"
        coordinates = np.arange(len(datasets), dtype=np.float64)
        order = np.arange(len(datasets))
    elif coordinates.ndim == 1:
        kind = "line"
        order = np.argsort(coordinates, kind="stable")
    else:
        kind = "grid"
        order = np.arange(len(datasets))
    return LevelPicture(
        kind=kind,
        coordinates=coordinates[order],
        lower_bounds=lower_bounds[order],
        estimates=estimates[order],
        labels=tuple(_label(datasets[number]) for number in order.tolist()),
        confidence=levels.confidence,
    )


def _label(dataset: Any) -> str:
    """Returns a dataset in at most so many characters that its bar has room."""
    text = one_line(dataset)
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"


def _coordinates(datasets: list[Any]) -> Floats | None:
    """Returns single numbers as shape (k,), pairs of numbers as shape (k, 2), else None."""
    try:
        numbers = np.asarray(datasets, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        return numbers[:, 0]
    is_drawable = numbers.ndim == 1 or (numbers.ndim == 2 and numbers.shape[1] == 2)
    return numbers if is_drawable else None


def draw_levels(picture: LevelPicture) -> "Figure":
    """Draws the picture."""
    from matplotlib.figure import Figure

    with figures.styled():
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.subplots()
        if picture.kind == "grid":
            _draw_grid(figure, axes, picture)
        elif picture.kind == "line":
            _draw_line(axes, picture)
        else:
            _draw_bars(axes, picture)
        # Of the whole figure: long names of datasets leave the axes little room.
        figure.suptitle(
            f"lower bounds on the level of each dataset, together at {picture.confidence:.0%}",
            fontsize="medium",
        )
        if picture.kind != "grid":
            figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


def _draw_line(axes: "Axes", picture: LevelPicture) -> None:
    axes.plot(
        picture.coordinates, picture.lower_bounds, "o-", color=_BOUND_COLOUR, label="lower bound"
    )
    axes.plot(
        picture.coordinates,
        picture.estimates,
        "_",
        color=_ESTIMATE_COLOUR,
        label="estimate",
        markersize=_MARK_LENGTH,
        markeredgewidth=_MARK_WIDTH,
    )
    axes.set_xlabel("dataset x")
    axes.set_ylabel("ε of this dataset, at least")
    axes.set_ylim(bottom=0.0)


def _draw_bars(axes: "Axes", picture: LevelPicture) -> None:
    axes.barh(picture.coordinates, picture.lower_bounds, color=_BOUND_COLOUR, label="lower bound")
    axes.plot(
        picture.estimates,
        picture.coordinates,
        "|",
        color=_ESTIMATE_COLOUR,
        label="estimate",
        markersize=_MARK_LENGTH,
        markeredgewidth=_MARK_WIDTH,
    )
    axes.set_yticks(picture.coordinates, picture.labels)
    axes.invert_yaxis()
    axes.set_xlabel("ε of this dataset, at least")


def _draw_grid(figure: "Figure", axes: "Axes", picture: LevelPicture) -> None:
    xs, ys, bounds = picture.as_grid()
    mesh = axes.pcolormesh(xs, ys, bounds, shading="nearest", cmap="viridis", vmin=0.0)
    figure.colorbar(mesh, ax=axes, label="ε of this dataset, at least")
    axes.set_xlabel("dataset x, first number")
    axes.set_ylabel("second number")
