"""Outputs as points of a kernel's space: embedding, bandwidth, and a function learned from draws.

Outputs of each shape are embedded into a Euclidean space with a kernel of their own; outputs of two
shapes have kernel 0. A function of this space is a weighted sum of kernels at landmarks.

Reference: Kong, Muñoz Medina, Ribero, Syed (2023), "DP-Auditorium: a Large Scale Library for
    Auditing Differential Privacy", (13).
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_positive
from epsilometer.errors import InputError, blamed
from epsilometer.methods.scores.cells import blocks_of_both
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
from epsilometer.outputs.atoms import LabelAtoms
from epsilometer.outputs.columns import Column
from epsilometer.outputs.embedding import Embedding, NameAxis, NumberAxis
from epsilometer.outputs.scores import KERNELS_OF_POINTS, KernelOfPoints, KernelScore, kernel_matrix

# A bandwidth: None or "median" for the median heuristic, a number, or a function from points of
# shape (n, dimensions).
BandwidthOfPoints = float | str | Callable[[Floats], float] | None

# Categories of a column that get a corner of their own; the rest share one.
_MAX_CATEGORIES = 32
# Draws per side that determine the centre and the scale of a column.
_EMBEDDING_ROWS = 50_000
# Interquartile range of a normal distribution, in standard deviations.
_NORMAL_QUARTILE_RANGE = 1.349
# Scales outside of these are no use: their squares leave the range of floats.
_SMALLEST_SCALE = 1e-150
_LARGEST_SCALE = 1e150
# Landmarks over all shapes: the function is a sum of this many kernels.
_LANDMARKS = 64
# Every shape has at least this many landmarks, however rare it is.
_FEWEST_LANDMARKS = 4
# Pairs of training points whose median distance is the bandwidth; also the training draws per side
# that place landmarks and cells.
_PAIRS = 4096
# Draws per side that fit the function; more change little.
_MOST_FITTED_ROWS = 10_000
# Cells of the function: a draw is taken at the end of its cell that helps less.
_CELLS = 2048
# The norm is computed in floating point; this much more than covers its rounding.
_SAFE_NORM = 1.0 + 1e-9
# A kernel's matrix may have eigenvalues this much below 0 per landmark by rounding.
_EIGENVALUE_TOLERANCE = 1e-6
# Functions of a smaller norm are 0: there is no difference to scale up.
_SMALLEST_NORM = 1e-12


# --- embedding --------------------------------------------------------------------------------


def fit_embedding(left: Block, right: Block, columns: Sequence[int]) -> Embedding:
    """Scales every column of numbers by its pooled scale, and gives frequent categories corners.

    Args:
        left: training outputs of one shape from the left.
        right: training outputs of the same shape from the right.
        columns: which columns to read.
    """
    axes = [_axis(left.columns[number], right.columns[number], number) for number in columns]
    return Embedding(tuple(axes))


def _axis(left: Column, right: Column, number: int) -> NumberAxis | NameAxis:
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        left_values = np.asarray(left.values[:_EMBEDDING_ROWS], dtype=np.float64)
        right_values = np.asarray(right.values[:_EMBEDDING_ROWS], dtype=np.float64)
        values = np.concatenate([left_values, right_values])
        finite = values[np.isfinite(values)]
        if not len(finite):
            return NumberAxis(number, 0.0, 1.0)
        low, median, high = np.quantile(finite, [0.25, 0.5, 0.75]).tolist()
        return NumberAxis(number, median, _robust_scale(finite, high - low))
    counts: Counter[str] = Counter()
    for side in (left, right):
        assert isinstance(side, Labels)  # a column holds either numbers or names
        label_counts = np.bincount(side.codes, minlength=len(side.labels)).tolist()
        counts.update(dict(zip(side.labels, label_counts, strict=True)))
    frequent = tuple(label for label, _ in counts.most_common(_MAX_CATEGORIES))
    return NameAxis(number, LabelAtoms(frequent))


def _robust_scale(values: Floats, quartile_range: float) -> float:
    """Returns a scale of finite values; 1 where nothing varies, or too much for a float.

    It is the interquartile range in standard deviations of a normal distribution, or else the
    standard deviation itself.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        standard_deviation = float(values.std())
    for scale in (quartile_range / _NORMAL_QUARTILE_RANGE, standard_deviation):
        if _SMALLEST_SCALE < scale < _LARGEST_SCALE:
            return scale
    return 1.0


# --- the kernel of each shape -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShapeKernel:
    """The kernel on outputs of one shape.

    Attributes:
        shape: the name of the shape.
        embedding: turns outputs into points; None when outputs of this shape hold no values.
        bandwidth: of the kernel.
        landmarks: shape (k, dimensions).
        kernel: a name, or the caller's own function.
    """

    shape: str
    embedding: Embedding | None
    bandwidth: float
    landmarks: Floats
    kernel: KernelOfPoints = "gaussian"

    def kernels(self, block: Block) -> Floats:
        """Returns the kernel of each row with each landmark, shape (n, k)."""
        if self.embedding is None:
            return np.ones((block.size, 1))
        points = self.embedding.points(block.columns)
        return kernel_matrix(self.kernel, points / self.bandwidth, self.landmarks / self.bandwidth)

    def gram(self) -> Floats:
        """Returns the kernel of the landmarks with each other, shape (k, k)."""
        if self.embedding is None:
            return np.ones((1, 1))
        scaled = self.landmarks / self.bandwidth
        return kernel_matrix(self.kernel, scaled, scaled)

    def check(self) -> None:
        """Refuses a function that is not a kernel with values in [0, 1] on the landmarks."""
        with blamed(f"kernel={self.kernel!r:.80} failed on points of shape (n, 1, d)"):
            gram = self.gram()
        size = len(self.landmarks)
        has_shape = gram.shape == (size, size)
        if (
            not has_shape
            or not np.isfinite(gram).all()
            or gram.min() < 0.0
            or gram.max() > _SAFE_NORM
        ):
            raise InputError(
                f"kernel={self.kernel!r:.80} must give one number between 0 and 1 for each pair "
                "of points"
            )
        is_symmetric = np.allclose(gram, gram.T)
        smallest_allowed = -_EIGENVALUE_TOLERANCE * size
        if not is_symmetric or np.linalg.eigvalsh(gram).min() < smallest_allowed:
            raise InputError(
                f"kernel={self.kernel!r:.80} is not symmetric and positive definite on the draws"
            )


def check_kernel(kernel: object, bandwidth: object) -> None:
    """Checks that a kernel is a known name or a function, and that a bandwidth is allowed."""
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
) -> list[ShapeKernel]:
    """Learns a kernel for each shape, with landmarks from both sides.

    Args:
        left: training outputs of the left.
        right: training outputs of the right.
        kernel: a name or a function.
        bandwidth: by default the median distance of training points.
        rng: chooses the pairs of training points whose median distance is taken.
    """
    shapes: list[ShapeKernel] = []
    for left_block, right_block in blocks_of_both(left, right):
        if not left_block.columns:
            shapes.append(
                ShapeKernel(
                    shape=left_block.shape,
                    embedding=None,
                    bandwidth=1.0,
                    landmarks=np.ones((1, 1)),
                )
            )
            continue
        embedding = fit_embedding(left_block, right_block, range(len(left_block.columns)))
        first = slice(0, _PAIRS)
        left_points = embedding.points([column.take(first) for column in left_block.columns])
        right_points = embedding.points([column.take(first) for column in right_block.columns])
        points = np.concatenate([left_points, right_points])
        fraction = (left_block.size + right_block.size) / (len(left) + len(right))
        shape = ShapeKernel(
            shape=left_block.shape,
            embedding=embedding,
            bandwidth=_bandwidth(points, bandwidth, rng),
            landmarks=_landmarks(points, fraction),
            kernel=kernel,
        )
        if callable(kernel):
            shape.check()
        shapes.append(shape)
    return shapes


def _landmarks(points: Floats, fraction: float) -> Floats:
    """Returns distinct points, evenly along the first coordinate, so that the tails are covered.

    Args:
        points: shape (n, dimensions).
        fraction: of all draws that have this shape; it gets as large a fraction of the landmarks.
    """
    distinct = np.unique(points, axis=0)
    wanted = max(_FEWEST_LANDMARKS, round(_LANDMARKS * fraction))
    if len(distinct) <= wanted:
        return distinct
    return distinct[np.linspace(0, len(distinct) - 1, wanted).astype(np.int64)]


def _bandwidth(points: Floats, chosen: BandwidthOfPoints, rng: np.random.Generator) -> float:
    if chosen is None or isinstance(chosen, str):
        return _median_distance(points, rng)
    if callable(chosen):
        return check_positive("bandwidth", chosen(points))
    return check_positive("bandwidth", chosen)


def _median_distance(points: Floats, rng: np.random.Generator) -> float:
    """Returns the median distance of random pairs of points that differ; 1 when none do."""
    pairs = rng.integers(len(points), size=(2, _PAIRS))
    differences = points[pairs[0]] - points[pairs[1]]
    distances = np.sqrt((differences**2).sum(axis=1))
    positive = distances[distances > 0.0]
    return float(np.median(positive)) if len(positive) else 1.0


# --- the learned function ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LandmarkMoments:
    """Moments of the kernel with each landmark, over the draws of one side.

    Attributes:
        mean: shape (landmarks,).
        second: shape (landmarks, landmarks), means of products.
    """

    mean: Floats
    second: Floats


@dataclass(frozen=True, slots=True)
class FunctionCells:
    """A function on outputs as cells with bounds on its values.

    Attributes:
        partition: the cells.
        lowest: shape (cells,), the least value of the function in each cell.
        highest: shape (cells,), the greatest value.
    """

    partition: Partition
    lowest: Floats
    highest: Floats


def landmark_moments(shapes: list[ShapeKernel], outputs: Outputs) -> LandmarkMoments:
    """Returns the moments of the kernel with each landmark, over the first draws of one side."""
    first = outputs.take(slice(0, _MOST_FITTED_ROWS))
    blocks = {block.shape: block for block in first}
    n = max(len(first), 1)
    means: list[Floats] = []
    seconds: list[Floats] = []
    for shape in shapes:
        kernels = np.zeros((0, len(shape.landmarks)))
        if shape.shape in blocks:
            kernels = shape.kernels(blocks[shape.shape])
        means.append(kernels.sum(axis=0) / n)
        seconds.append(kernels.T @ kernels / n)
    # Outputs of two shapes have kernel 0.
    return LandmarkMoments(mean=np.concatenate(means), second=block_diag(*seconds))


def unit_weights(gram: Floats, difference: Floats, ridge: float) -> Floats:
    """Returns the weights of the function of norm 1 that separates the means best.

    Args:
        gram: shape (landmarks, landmarks).
        difference: shape (landmarks,), of the mean kernels of both sides.
        ridge: smooths the function.

    Returns:
        Shape (landmarks,).
    """
    weights = np.linalg.solve(gram + ridge * np.eye(len(gram)), difference)
    norm = math.sqrt(max(float(weights @ gram @ weights), 0.0)) * _SAFE_NORM
    if norm > _SMALLEST_NORM:
        return np.asarray(weights / norm, dtype=np.float64)
    return np.zeros(len(weights))


def as_function(
    shapes: list[ShapeKernel], weights: Floats, left: Outputs, right: Outputs
) -> FunctionCells:
    """Cuts the function with these weights into cells, which are fine where training draws lie.

    Args:
        shapes: the kernel.
        weights: shape (landmarks,).
        left: training outputs of the left.
        right: training outputs of the right.
    """
    first = slice(0, _PAIRS)
    training_blocks = {
        left_block.shape: (left_block, right_block)
        for left_block, right_block in blocks_of_both(left.take(first), right.take(first))
    }
    ends = np.cumsum([len(shape.landmarks) for shape in shapes])[:-1]
    blocks: list[BlockPartition] = []
    lowest: list[Floats] = []
    highest: list[Floats] = []
    for shape, shape_weights in zip(shapes, np.split(weights, ends), strict=True):
        if shape.embedding is None:
            blocks.append(BlockPartition(shape.shape, (), (Group((0,)),)))
            values = np.clip(np.array([shape_weights[0], 0.0]), -1.0, 1.0)
            lowest.append(values)
            highest.append(values)
            continue
        score = KernelScore(
            embedding=shape.embedding,
            bandwidth=shape.bandwidth,
            landmarks=shape.landmarks,
            weights=shape_weights,
            kernel=shape.kernel,
        )
        line = _line_of_values(score, training_blocks.get(shape.shape))
        n_columns = len(shape.embedding.axes)
        group = Group((-1,) * n_columns, line, score=score)
        blocks.append(BlockPartition(shape.shape, (None,) * n_columns, (group,)))
        edges = np.clip(line.edges, -1.0, 1.0)
        # Below the first edge, between edges, above the last; NaN and other signatures do not
        # happen.
        lowest.append(np.concatenate([[-1.0], edges, [-1.0, -1.0]]))
        highest.append(np.concatenate([edges, [1.0, 1.0, 1.0]]))
    # Outputs of unknown shape have kernel 0 with every landmark.
    return FunctionCells(
        partition=Partition(tuple(blocks)),
        lowest=np.concatenate([*lowest, [0.0]]),
        highest=np.concatenate([*highest, [0.0]]),
    )


def _line_of_values(score: KernelScore, blocks: tuple[Block, Block] | None) -> Line:
    """Returns even cells over the values of the function on training draws, and a little beyond."""
    values = np.zeros(0)
    if blocks is not None:
        values = np.concatenate([score.evaluate(block.columns) for block in blocks])
    low = float(values.min(initial=0.0))
    high = float(values.max(initial=0.0))
    # 1e-9 keeps the cells apart where the function is constant.
    margin = 0.1 * (high - low) + 1e-9
    return Line(np.unique(np.linspace(max(low - margin, -1.0), min(high + margin, 1.0), _CELLS)))
