"""Outputs as points of a kernel's space: embedding, bandwidth, and a function learned from training draws."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_positive
from epsilometer.errors import InputError, blamed
from epsilometer.methods.events.cells import blocks_of_both
from epsilometer.outputs import (
    Block,
    BlockPartition,
    Group,
    Labels,
    Line,
    Numbers,
    Outputs,
    Partition,
)
from epsilometer.outputs.columns import Column
from epsilometer.outputs.embedding import Embedding, NameAxis, NumberAxis
from epsilometer.outputs.lines import LabelAtoms
from epsilometer.outputs.scores import KERNELS_OF_POINTS, KernelOfPoints, KernelScore, kernel_matrix

# Names that get their own corner; the rest share one.
_MOST_NAMES = 32
# Draws per side that locate the middle.
_MOST_ROWS = 50_000
# Interquartile range of a normal distribution, in standard deviations.
_QUARTILES = 1.349


def fit_embedding(left: Block, right: Block, columns: Sequence[int]) -> Embedding:
    """Every number in units of its pooled spread, every frequent name a corner.

    Args:
        left: training outputs of one shape from the left.
        right: from the right.
        columns: which columns to read.
    """
    return Embedding(
        tuple(_axis(left.columns[number], right.columns[number], number) for number in columns)
    )


def _axis(left: Column, right: Column, number: int) -> NumberAxis | NameAxis:
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        values = np.concatenate(
            [np.asarray(side.values[:_MOST_ROWS], dtype=np.float64) for side in (left, right)]
        )
        return NumberAxis(number, *_middle_and_spread(values[np.isfinite(values)]))
    counts: Counter[str] = Counter()
    for side in (left, right):
        assert isinstance(side, Labels)  # a column holds either numbers or names
        counts.update(
            dict(
                zip(
                    side.labels,
                    np.bincount(side.codes, minlength=len(side.labels)).tolist(),
                    strict=True,
                )
            )
        )
    return NameAxis(
        number, LabelAtoms(tuple(label for label, _ in counts.most_common(_MOST_NAMES)))
    )


def _middle_and_spread(values: np.ndarray) -> tuple[float, float]:
    """Median and robust spread; a spread of 1 where nothing varies, or too much for a float."""
    if not len(values):
        return 0.0, 1.0
    low, middle, high = (float(each) for each in np.quantile(values, [0.25, 0.5, 0.75]))
    with np.errstate(over="ignore", invalid="ignore"):
        candidates = [(high - low) / _QUARTILES, float(values.std())]
    return middle, next((each for each in candidates if 1e-150 < each < 1e150), 1.0)


# Landmarks over all shapes: the function is a sum of this many kernels.
_LANDMARKS = 64
# Pairs of training points whose median distance is the bandwidth.
_PAIRS = 4096
# Draws per side that fit the function; more change little.
_MOST_FITTED_ROWS = 10_000
# Cells of f: a draw is taken at the end of its cell that helps less.
_CELLS = 2048
# The norm is computed in floating point; this much more than covers its rounding.
_SAFE_NORM = 1.0 + 1e-9


@dataclass(frozen=True, slots=True)
class Shape:
    """The kernel on outputs of one shape.

    Attributes:
        shape: its name.
        embedding: its points; None when outputs of this shape hold nothing.
        bandwidth: of the kernel.
        landmarks: shape (k, dimensions).
        kernel: which one.
    """

    shape: str
    embedding: Embedding | None
    bandwidth: float
    landmarks: Floats
    kernel: KernelOfPoints = "gaussian"

    def kernels(self, block: Block) -> Floats:
        """Kernel of each row with each landmark, shape (n, k)."""
        if self.embedding is None:
            return np.ones((block.size, 1))
        points = self.embedding.points(block.columns)
        return kernel_matrix(self.kernel, points / self.bandwidth, self.landmarks / self.bandwidth)

    def gram(self) -> Floats:
        """Kernel of the landmarks with each other."""
        scaled = self.landmarks / self.bandwidth
        return (
            np.ones((1, 1))
            if self.embedding is None
            else kernel_matrix(self.kernel, scaled, scaled)
        )

    def check(self) -> "Shape":
        """This, unless the caller's own kernel is not one, or leaves [0, 1], as far as the landmarks can tell."""
        with blamed(f"kernel={self.kernel!r:.80} failed on points of shape (n, 1, d)"):
            gram = self.gram()
        size = len(self.landmarks)
        if (
            gram.shape != (size, size)
            or not np.isfinite(gram).all()
            or gram.min() < 0.0
            or gram.max() > _SAFE_NORM
        ):
            raise InputError(
                f"kernel={self.kernel!r:.80} must give one number between 0 and 1 for each pair of points"
            )
        if not np.allclose(gram, gram.T) or np.linalg.eigvalsh(gram).min() < -1e-6 * size:
            raise InputError(
                f"kernel={self.kernel!r:.80} is not symmetric and positive definite on the draws"
            )
        return self


# A bandwidth: None or "median" for the median heuristic, a number, or a function from points of
# shape (n, dimensions).
BandwidthOfPoints = float | str | Callable[[Floats], float] | None


def check_kernel(kernel: object, bandwidth: object) -> None:
    """A known name or a function; a bandwidth that makes sense."""
    if not callable(kernel) and kernel not in KERNELS_OF_POINTS:
        known = ", ".join(KERNELS_OF_POINTS)
        raise InputError(
            f"kernel={kernel!r:.80} must be one of {known}, or a function k(x, y) of points"
        )
    if bandwidth not in (None, "median") and not callable(bandwidth):
        check_positive("bandwidth", bandwidth, hint=", 'median', or a function of points")


def learn_shapes(
    left: Outputs,
    right: Outputs,
    kernel: KernelOfPoints = "gaussian",
    bandwidth: BandwidthOfPoints = None,
    *,
    rng: np.random.Generator,
) -> list[Shape]:
    """A kernel for each shape, with the median distance as bandwidth and landmarks evenly from both sides.

    Args:
        rng: chooses the pairs of training points whose median distance is taken.
    """
    found = []
    for a, b in blocks_of_both(left, right):
        if not a.columns:
            found.append(Shape(a.shape, None, 1.0, np.ones((1, 1))))
            continue
        embedding = fit_embedding(a, b, range(len(a.columns)))
        first = slice(0, _PAIRS)
        points = np.concatenate(
            [embedding.points([c.take(first) for c in side.columns]) for side in (a, b)]
        )
        # Distinct points, evenly along the order of the first coordinate, so that the tails are
        # seen, too.
        landmarks = np.unique(points, axis=0)
        wanted = max(4, round(_LANDMARKS * (a.size + b.size) / (len(left) + len(right))))
        if len(landmarks) > wanted:
            landmarks = landmarks[np.linspace(0, len(landmarks) - 1, wanted).astype(np.int64)]
        shape = Shape(a.shape, embedding, _bandwidth(points, bandwidth, rng), landmarks, kernel)
        found.append(shape.check() if callable(kernel) else shape)
    return found


def _bandwidth(points: Floats, chosen: BandwidthOfPoints, rng: np.random.Generator) -> float:
    if chosen is None or isinstance(chosen, str):
        return _median_distance(points, rng)
    return check_positive("bandwidth", chosen(points) if callable(chosen) else chosen)


def _median_distance(points: Floats, rng: np.random.Generator) -> float:
    """The median distance of random pairs of points that differ; 1 when none do."""
    one, other = points[rng.integers(len(points), size=(2, _PAIRS))]
    distances = np.sqrt(((one - other) ** 2).sum(axis=1))
    distances = distances[distances > 0.0]
    return float(np.median(distances)) if len(distances) else 1.0


# A function as cells: the partition, and its least and greatest value in each cell, shape (cells,).
FunctionCells = tuple[Partition, Floats, Floats]


def landmark_means(shapes: list[Shape], outputs: Outputs) -> tuple[Floats, Floats]:
    """Mean and mean square (of all draws) of the kernel with each landmark, shape (landmarks,) each."""
    first = outputs.take(slice(0, _MOST_FITTED_ROWS))
    blocks = {block.shape: block for block in first}
    means = []
    squares = []
    for shape in shapes:
        kernels = (
            shape.kernels(blocks[shape.shape])
            if shape.shape in blocks
            else np.zeros((0, len(shape.landmarks)))
        )
        means.append(kernels.sum(axis=0) / max(len(first), 1))
        squares.append(kernels.T @ kernels / max(len(first), 1))
    return np.concatenate(means), block_diag(*squares)  # outputs of two shapes have kernel 0


def unit_weights(gram: Floats, difference: Floats, ridge: float) -> Floats:
    """The weights of the function of norm 1 that distinguishes the means best, smoothed by the ridge."""
    weights = np.linalg.solve(gram + ridge * np.eye(len(gram)), difference)
    norm = math.sqrt(max(float(weights @ gram @ weights), 0.0)) * _SAFE_NORM
    return np.asarray(weights / norm, dtype=np.float64) if norm > 1e-12 else np.zeros(len(weights))


def as_function(
    shapes: list[Shape], weights: Floats, left: Outputs, right: Outputs
) -> FunctionCells:
    """The function with these weights, cut into cells that are fine where training draws lie."""
    blocks = []
    lowest = []
    highest = []
    seen = {
        a.shape: (a, b)
        for a, b in blocks_of_both(left.take(slice(0, _PAIRS)), right.take(slice(0, _PAIRS)))
    }
    ends = np.cumsum([len(shape.landmarks) for shape in shapes])[:-1]
    for shape, part in zip(shapes, np.split(weights, ends), strict=True):
        if shape.embedding is None:
            blocks.append(BlockPartition(shape.shape, (), (Group((0,)),)))
            values = np.clip(np.array([part[0], 0.0]), -1.0, 1.0)
            lowest.append(values)
            highest.append(values)
            continue
        score = KernelScore(shape.embedding, shape.bandwidth, shape.landmarks, part, shape.kernel)
        line = _even_line(score, seen.get(shape.shape))
        n_columns = len(shape.embedding.axes)
        blocks.append(
            BlockPartition(
                shape.shape, (None,) * n_columns, (Group((-1,) * n_columns, line, score=score),)
            )
        )
        edges = np.clip(line.edges, -1.0, 1.0)
        # Below the first edge, between edges, above the last; NaN and other signatures do not
        # happen.
        lowest.append(np.concatenate([[-1.0], edges, [-1.0, -1.0]]))
        highest.append(np.concatenate([edges, [1.0, 1.0, 1.0]]))
    # Outputs of unknown shape have kernel 0 with every landmark.
    return (
        Partition(tuple(blocks)),
        np.concatenate([*lowest, [0.0]]),
        np.concatenate([*highest, [0.0]]),
    )


def _even_line(score: KernelScore, seen: tuple[Block, Block] | None) -> Line:
    values = (
        np.concatenate([score.evaluate(block.columns) for block in seen]) if seen else np.zeros(0)
    )
    low = float(values.min(initial=0.0))
    high = float(values.max(initial=0.0))
    room = 0.1 * (high - low) + 1e-9
    return Line(np.unique(np.linspace(max(low - room, -1.0), min(high + room, 1.0), _CELLS)))
