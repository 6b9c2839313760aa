"""Scores: one number for an output of many columns, computed from plain arrays.

A score is additive, a sum of trees, a neural network or a sum of kernels. Each is made of arrays
only, so that it can be stored, read back and evaluated again anywhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Floats, Integers
from epsilometer.outputs.columns import Column, Numbers
from epsilometer.outputs.embedding import Embedding
from epsilometer.outputs.lines import CodedColumn, Line

# The fraction of the weights' variance (R²) that a straight line must explain for the weights to be
# described as a multiple of the column.
_MIN_EXPLAINED_VARIANCE = 0.4

# --- additive scores


class LinearFit(NamedTuple):
    """A straight line: slope·number + intercept."""

    slope: float
    intercept: float


@dataclass(frozen=True, slots=True)
class Term(CodedColumn):
    """One column's part of an additive score: a weight per cell of the column.

    Attributes:
        weights: shape (cells,); for labels the last weight is that of any other label.
        mix: shape (columns,), coefficients of the columns. If given, the line cuts this linear
            combination of the columns instead of the one column.
    """

    weights: Floats
    mix: Floats | None = None

    def numbers(self, columns: Sequence[Column]) -> NDArray[np.generic]:
        """Returns the numbers that the line cuts, shape (n,)."""
        if self.mix is None:
            return CodedColumn.numbers(self, columns)
        total = np.zeros(len(columns[0]))
        for coefficient, column in zip(self.mix, columns, strict=True):
            if coefficient:
                values = np.asarray(column.values, dtype=np.float64)  # type: ignore[union-attr]
                total += coefficient * values
        return total

    @property
    def reach(self) -> float:
        """The range of its weights, without that of NaN: how much the column matters."""
        weights = self.weights[:-1] if isinstance(self.cells, Line) else self.weights
        return float(np.ptp(weights)) if len(weights) else 0.0

    def linear_fit(self) -> LinearFit | None:
        """Returns the least-squares line through the weights of the bounded cells.

        Returns:
            None if the weights do not follow a straight line.
        """
        if not isinstance(self.cells, Line) or len(self.cells.edges) < 3:
            return None
        edges = self.cells.edges
        with np.errstate(all="ignore"):  # a stored score may hold any numbers
            centres = (edges[1:] + edges[:-1]) / 2.0
            weights = self.weights[1:-2]
            is_finite = np.isfinite(centres) & np.isfinite(weights)
            if np.count_nonzero(is_finite) < 2:
                return None
            mean_centre = np.mean(centres[is_finite])
            mean_weight = np.mean(weights[is_finite])
            x = centres[is_finite] - mean_centre
            y = weights[is_finite] - mean_weight
            slope = (x @ y) / (x @ x)
            intercept = mean_weight - slope * mean_centre
            explained = slope * (x @ y) / (y @ y)
        if not (np.isfinite(slope) and np.isfinite(intercept)):
            return None
        if not explained >= _MIN_EXPLAINED_VARIANCE:
            return None
        return LinearFit(slope=float(slope), intercept=float(intercept))

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `from_dict` is the inverse."""
        data = CodedColumn.to_dict(self)
        data["weights"] = self.weights.tolist()
        if self.mix is not None:
            data["mix"] = self.mix.tolist()
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Inverse of `to_dict`."""
        coded = CodedColumn.from_dict(data)
        weights = _floats(data["weights"])
        if weights.shape != (coded.n_codes,):
            raise ValueError("a term of a score must have one weight per cell")
        mix = _floats(data["mix"]) if "mix" in data else None
        if mix is not None:
            is_valid = isinstance(coded.cells, Line) and mix.ndim == 1 and np.isfinite(mix).all()
            if not is_valid:
                raise ValueError("a combination of columns must have one finite share per column")
        return cls(column=coded.column, cells=coded.cells, weights=weights, mix=mix)


@dataclass(frozen=True, slots=True)
class AdditiveScore:
    """The sum of one weight per column: an additive model of the two distributions' log-ratio.

    Attributes:
        terms: at least one.
    """

    terms: tuple[Term, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads, in order."""
        columns: set[int] = set()
        for term in self.terms:
            if term.mix is None:
                columns.add(term.column)
            else:
                columns.update(range(len(term.mix)))
        return tuple(sorted(columns))

    def evaluate(self, columns: Sequence[Column]) -> Floats:
        """Returns the score of each row, shape (n,)."""
        first = self.terms[0]
        total: Floats = first.weights[first.index(columns)]
        for term in self.terms[1:]:
            total += term.weights[term.index(columns)]
        return total

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `from_dict` is the inverse."""
        return {"terms": [term.to_dict() for term in self.terms]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Inverse of `to_dict`."""
        terms = tuple(Term.from_dict(term) for term in data["terms"])
        if not terms:
            raise ValueError("a score must have a term")
        return cls(terms)


# --- trees


@dataclass(frozen=True, slots=True)
class TreeScore:
    """The sum of oblivious trees: all nodes of a level ask the same question.

    Attributes:
        codings: the coded columns.
        features: shape (trees, depth), which coding a level asks about.
        thresholds: shape (trees, depth); the answer is yes from this code on.
        leaves: shape (trees, 2^depth), the value for each sequence of answers; the first question
            is the highest bit of the position.
    """

    codings: tuple[CodedColumn, ...]
    features: Integers
    thresholds: Integers
    leaves: Floats

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads."""
        return tuple(coding.column for coding in self.codings)

    @property
    def terms(self) -> tuple[Term, ...]:
        """What each column adds while the others have their middle code; only for descriptions."""
        terms = []
        for position, coding in enumerate(self.codings):
            codes = [np.full(coding.n_codes, other.n_codes // 2) for other in self.codings]
            codes[position] = np.arange(coding.n_codes)
            weights = self.of_codes(codes)
            terms.append(Term(column=coding.column, cells=coding.cells, weights=weights))
        return tuple(terms)

    def evaluate(self, columns: Sequence[Column]) -> Floats:
        """Returns the score of each row, shape (n,)."""
        return self.of_codes([coding.index(columns).astype(np.int16) for coding in self.codings])

    def of_codes(self, codes: Sequence[NDArray[np.signedinteger]]) -> Floats:
        """Returns the score of rows that are coded already, shape (n,)."""
        total = np.zeros(len(codes[0]))
        trees = zip(self.features, self.thresholds, self.leaves, strict=True)
        for features, thresholds, leaves in trees:
            leaf = np.zeros(len(total), dtype=np.int16)
            for feature, threshold in zip(features, thresholds, strict=True):
                # Append the answer as the lowest bit.
                leaf += leaf
                leaf += codes[feature] >= threshold
            total += leaves[leaf]
        return total

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `from_dict` is the inverse."""
        return {
            "kind": "trees",
            "codings": [coding.to_dict() for coding in self.codings],
            "features": self.features.tolist(),
            "thresholds": self.thresholds.tolist(),
            "leaves": self.leaves.tolist(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Inverse of `to_dict`."""
        codings = tuple(CodedColumn.from_dict(coding) for coding in data["codings"])
        features = np.array(data["features"], dtype=np.int64)
        thresholds = np.array(data["thresholds"], dtype=np.int64)
        leaves = _floats(data["leaves"])
        same_shape = features.ndim == 2 and thresholds.shape == features.shape
        if not codings or not same_shape or leaves.shape != (len(features), 1 << features.shape[1]):
            raise ValueError("the trees of a score do not fit together")
        is_coding = (features >= 0) & (features < len(codings))
        if not is_coding.all() or not np.isfinite(leaves).all():
            raise ValueError(
                "a tree of a score asks about a column that does not exist, or has an infinite leaf"
            )
        return cls(codings=codings, features=features, thresholds=thresholds, leaves=leaves)


# --- scores of points


class PointScore:
    """A score of the points that an embedding makes of outputs."""

    __slots__ = ()
    embedding: Embedding
    # Points that are scored at a time, so that all temporary arrays fit into the cache.
    at_once: ClassVar[int]

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads."""
        return self.embedding.columns

    def of_points(self, points: Floats) -> Floats:
        """Returns the score of each point, shape (n,); `points` has shape (n, dimensions)."""
        raise NotImplementedError

    def evaluate(self, columns: Sequence[Column]) -> Floats:
        """Returns the score of each row, shape (n,)."""
        points = self.embedding.points(columns)
        scores = np.empty(len(points))
        for start in range(0, len(points), self.at_once):
            stop = start + self.at_once
            scores[start:stop] = self.of_points(points[start:stop])
        return scores


@dataclass(frozen=True, slots=True)
class NetworkScore(PointScore):
    """Dense layers with tanh between them; the single last unit is squashed into ±bound.

    Attributes:
        embedding: turns outputs into points.
        weights: one matrix per layer, shape (inputs, units).
        biases: one vector per layer, shape (units,).
        bound: C, the largest absolute value of a score.
    """

    embedding: Embedding
    weights: tuple[Floats, ...]
    biases: tuple[Floats, ...]
    bound: float
    at_once = 4096

    def of_points(self, points: Floats) -> Floats:
        """Returns the score of each point, shape (n,)."""
        for weights, biases in zip(self.weights[:-1], self.biases[:-1], strict=True):
            points = np.tanh(points @ weights + biases)
        last = points @ self.weights[-1] + self.biases[-1]
        return np.asarray(self.bound * np.tanh(last[:, 0] / self.bound), dtype=np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `from_dict` is the inverse."""
        return {
            "kind": "network",
            "axes": self.embedding.to_list(),
            "weights": [layer.tolist() for layer in self.weights],
            "biases": [layer.tolist() for layer in self.biases],
            "bound": self.bound,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Inverse of `to_dict`."""
        weights = tuple(_floats(layer) for layer in data["weights"])
        biases = tuple(_floats(layer) for layer in data["biases"])
        bound = float(data["bound"])
        layers_fit = all(
            layer.shape[1] == following.shape[0] for layer, following in pairwise(weights)
        )
        biases_fit = all(
            bias.shape == (layer.shape[1],) for layer, bias in zip(weights, biases, strict=True)
        )
        has_one_output = bool(weights) and weights[-1].shape[1] == 1
        if not (layers_fit and biases_fit and has_one_output and 0.0 < bound < np.inf):
            raise ValueError("the layers of a network do not fit together")
        if not all(np.isfinite(layer).all() for layer in (*weights, *biases)):
            raise ValueError("a network has an infinite weight")
        embedding = Embedding.from_list(data["axes"], len(weights[0]))
        return cls(embedding=embedding, weights=weights, biases=biases, bound=bound)


# A kernel: its name, or the caller's own k(x, y) of points that broadcast against each other; the
# last axis holds the coordinates.
KernelOfPoints = str | Callable[[Floats, Floats], Floats]


def _gaussian(x: Floats, y: Floats) -> Floats:
    """e^(−‖x − y‖²/2)."""
    return np.asarray(np.exp(-0.5 * ((x - y) ** 2).sum(axis=-1)), dtype=np.float64)


def _laplace(x: Floats, y: Floats) -> Floats:
    """e^(−‖x − y‖)."""
    return np.asarray(np.exp(-np.sqrt(((x - y) ** 2).sum(axis=-1))), dtype=np.float64)


def _polynomial(x: Floats, y: Floats) -> Floats:
    """(1 + x·y)², normalised so that k(x, x) = 1 and values lie between 0 and 1."""
    norms = (1.0 + (x * x).sum(axis=-1)) * (1.0 + (y * y).sum(axis=-1))
    return np.asarray((1.0 + (x * y).sum(axis=-1)) ** 2 / norms, dtype=np.float64)


KERNELS_OF_POINTS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "gaussian": _gaussian,
    "laplace": _laplace,
    "polynomial": _polynomial,
}


def kernel_of_points(kernel: KernelOfPoints, x: Floats, y: Floats) -> Floats:
    """Returns k(x, y) of points that broadcast; the last axis holds the coordinates."""
    function = kernel if callable(kernel) else KERNELS_OF_POINTS[kernel]
    return np.asarray(function(x, y), dtype=np.float64)


def kernel_matrix(kernel: KernelOfPoints, left: Floats, right: Floats) -> Floats:
    """Returns the kernel of all pairs of points, shape (n, m)."""
    if kernel == "gaussian":
        # ‖x − y‖² = ‖x‖² + ‖y‖² − 2x·y: several times as fast by the product of two matrices.
        left_norms = (left**2).sum(axis=1)[:, None]
        right_norms = (right**2).sum(axis=1)
        distances = left_norms + right_norms - 2.0 * (left @ right.T)
        return np.asarray(np.exp(-0.5 * np.maximum(distances, 0.0)), dtype=np.float64)
    return kernel_of_points(kernel, left[:, None, :], right[None, :, :])


@dataclass(frozen=True, slots=True)
class KernelScore(PointScore):
    """f(output) = Σ weight·kernel(output, landmark).

    Attributes:
        embedding: turns outputs into points.
        bandwidth: of the kernel, in the units of the embedding.
        landmarks: shape (k, dimensions).
        weights: shape (k,).
        kernel: its name, or the caller's function; a score with a function cannot be stored.
    """

    embedding: Embedding
    bandwidth: float
    landmarks: Floats
    weights: Floats
    kernel: KernelOfPoints = "gaussian"
    at_once = 1024

    def of_points(self, points: Floats) -> Floats:
        """Returns the score of each point, shape (n,)."""
        scaled_points = points / self.bandwidth
        scaled_landmarks = self.landmarks / self.bandwidth
        return kernel_matrix(self.kernel, scaled_points, scaled_landmarks) @ self.weights

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `from_dict` is the inverse."""
        data = {
            "kind": "kernel",
            "axes": self.embedding.to_list(),
            "bandwidth": self.bandwidth,
            "landmarks": self.landmarks.tolist(),
            "weights": self.weights.tolist(),
        }
        if self.kernel != "gaussian":
            data["kernel"] = self.kernel
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Inverse of `to_dict`."""
        landmarks = _floats(data["landmarks"])
        weights = _floats(data["weights"])
        bandwidth = float(data["bandwidth"])
        fits = landmarks.ndim == 2 and weights.shape == (len(landmarks),)
        if not fits or not 0.0 < bandwidth < np.inf:
            raise ValueError(
                "a kernel score needs one weight per landmark and a positive bandwidth"
            )
        if not (np.isfinite(landmarks).all() and np.isfinite(weights).all()):
            raise ValueError("a kernel score has an infinite number")
        kernel = str(data.get("kernel", "gaussian"))
        if kernel not in KERNELS_OF_POINTS:
            raise ValueError(f"a kernel score with the unknown kernel {kernel!r:.40}")
        return cls(
            embedding=Embedding.from_list(data["axes"], landmarks.shape[1]),
            bandwidth=bandwidth,
            landmarks=landmarks,
            weights=weights,
            kernel=kernel,
        )


# --- joint scores


@dataclass(frozen=True, slots=True)
class JointScore:
    """A score of several columns of numbers together, which are standardised and decorrelated.

    With y = (columns − centre)/scale and z = rotation·y, both clipped, the score is
    linear·z + direction·z/‖z‖ + zᵀ·quadratic·z + norms·(‖y‖₁, ‖z‖₂, ‖y‖_∞).

    Attributes:
        read: positions of the k columns that it reads.
        centre: shape (k,).
        scale: shape (k,), positive.
        rotation: shape (k, k).
        linear: shape (k,).
        direction: shape (k,).
        quadratic: shape (k, k).
        norms: shape (3,).
    """

    read: tuple[int, ...]
    centre: Floats
    scale: Floats
    rotation: Floats
    linear: Floats
    direction: Floats
    quadratic: Floats
    norms: Floats

    @classmethod
    def of_norm(
        cls, read: tuple[int, ...], centre: Floats, scale: Floats, rotation: Floats, norm: int
    ) -> "JointScore":
        """One of the norms alone: 0 for ‖y‖₁, 1 for ‖z‖₂, 2 for ‖y‖_∞."""
        k = len(read)
        return cls(
            read=read,
            centre=centre,
            scale=scale,
            rotation=rotation,
            linear=np.zeros(k),
            direction=np.zeros(k),
            quadratic=np.zeros((k, k)),
            norms=np.eye(3)[norm],
        )

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads."""
        return self.read

    def standardised(self, rows: Floats) -> Floats:
        """y, shape (n, k); `rows` has shape (n, k)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.clip((rows - self.centre) / self.scale, -_MOST_UNITS, _MOST_UNITS)

    def rotated(self, standardised: Floats) -> Floats:
        """z, shape (n, k)."""
        return np.clip(standardised @ self.rotation.T, -_MOST_DEVIATIONS, _MOST_DEVIATIONS)

    def of_rows(self, rows: Floats) -> Floats:
        """Returns the score of each row, shape (n,); `rows` has shape (n, k)."""
        y = self.standardised(rows)
        z = self.rotated(y)
        norm = np.sqrt((z**2).sum(axis=1))
        total = z @ self.linear + ((z @ self.quadratic) * z).sum(axis=1) + self.norms[1] * norm
        if self.direction.any():
            total += (z @ self.direction) / np.maximum(norm, 1e-300)
        if self.norms[0]:
            total += self.norms[0] * np.abs(y).sum(axis=1)
        if self.norms[2]:
            total += self.norms[2] * np.abs(y).max(axis=1)
        return np.asarray(total, dtype=np.float64)

    def evaluate(self, columns: Sequence[Column]) -> Floats:
        """Returns the score of each row, shape (n,); NaN where a column is NaN or no number."""
        n = len(columns[0])
        scores = np.empty(n)
        for start in range(0, n, _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            scores[rows] = self.of_rows(
                np.stack([_column_numbers(columns[number], rows) for number in self.read], axis=1)
            )
        return scores

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `from_dict` is the inverse."""
        return {
            "kind": "joint",
            "columns": list(self.read),
            "centre": self.centre.tolist(),
            "scale": self.scale.tolist(),
            "rotation": self.rotation.tolist(),
            "linear": self.linear.tolist(),
            "direction": self.direction.tolist(),
            "quadratic": self.quadratic.tolist(),
            "norms": self.norms.tolist(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Inverse of `to_dict`."""
        score = cls(
            read=tuple(int(number) for number in data["columns"]),
            centre=_floats(data["centre"]),
            scale=_floats(data["scale"]),
            rotation=_floats(data["rotation"]),
            linear=_floats(data["linear"]),
            direction=_floats(data["direction"]),
            quadratic=_floats(data["quadratic"]),
            norms=_floats(data["norms"]),
        )
        k = len(score.read)
        vectors = (score.centre, score.scale, score.linear, score.direction)
        fits = all(vector.shape == (k,) for vector in vectors) and score.norms.shape == (3,)
        matrices = (score.rotation, score.quadratic)
        if not k or not fits or any(matrix.shape != (k, k) for matrix in matrices):
            raise ValueError("the parts of a joint score do not fit together")
        parts = (*vectors, *matrices, score.norms)
        if not all(np.isfinite(part).all() for part in parts) or not (score.scale > 0.0).all():
            raise ValueError(
                "a joint score has an infinite number, or a scale that is not positive"
            )
        return score


# Standardised columns are clipped to ± this, in units of their scale.
_MOST_UNITS = 50.0
# Decorrelated columns are clipped to ± this, in standard deviations: products of larger ones would
# let a few draws decide.
_MOST_DEVIATIONS = 5.0
# Rows that are scored at a time, so that all temporary arrays fit into the cache.
_ROWS_AT_ONCE = 8192


def _column_numbers(column: Column, rows: slice) -> Floats:
    """Some rows of a column as floats; NaN for labels."""
    if isinstance(column, Numbers):
        return np.asarray(column.values[rows], dtype=np.float64)
    return np.full(len(column.codes[rows]), np.nan)


# --- summaries

# Larger numbers count as this one, so that their squares are finite.
_LARGEST_SQUARED = 1e145


class Statistic(StrEnum):
    """What a summary says about the numbers of an output."""

    MEAN_SQUARE = "mean square"
    LARGEST = "largest absolute value"
    ZEROS = "zeros"
    NOT_FINITE = "not finite"

    @property
    def is_count(self) -> bool:
        """Whether it is a whole number."""
        return self in (Statistic.ZEROS, Statistic.NOT_FINITE)


@dataclass(frozen=True, slots=True)
class SummaryScore:
    """One statistic of many columns of numbers: nothing in it is learned.

    Attributes:
        read: positions of the columns that it reads.
        statistic: what it says about them.
    """

    read: tuple[int, ...]
    statistic: Statistic

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads."""
        return self.read

    def evaluate(self, columns: Sequence[Column]) -> Floats:
        """Returns the statistic of each row, shape (n,).

        Mean square and largest absolute value are those of the finite numbers; NaN if there are
        none.
        """
        n = len(columns[0])
        total = np.zeros(n)
        n_finite = np.zeros(n)
        for number in self.read:
            numbers = _column_numbers(columns[number], slice(0, n))
            is_finite = np.isfinite(numbers)
            n_finite += is_finite
            if self.statistic is Statistic.ZEROS:
                total += numbers == 0.0
            elif self.statistic is Statistic.NOT_FINITE:
                total += ~is_finite
            else:
                size = np.minimum(np.abs(np.where(is_finite, numbers, 0.0)), _LARGEST_SQUARED)
                if self.statistic is Statistic.MEAN_SQUARE:
                    total += size**2
                else:
                    np.maximum(total, size, out=total)
        if self.statistic.is_count:
            return total
        if self.statistic is Statistic.MEAN_SQUARE:
            total /= np.maximum(n_finite, 1.0)
        return np.where(n_finite > 0.0, total, np.nan)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `from_dict` is the inverse."""
        return {
            "kind": "summary",
            "statistic": self.statistic.value,
            "columns": list(self.read),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Inverse of `to_dict`."""
        read = tuple(int(number) for number in data["columns"])
        if not read:
            raise ValueError("a summary reads no columns")
        return cls(read, Statistic(data["statistic"]))


# --- sums of scores


@dataclass(frozen=True, slots=True)
class SumScore:
    """A weighted sum of scores.

    Attributes:
        parts: the scores; none of them is a sum.
        weights: shape (parts,).
    """

    parts: tuple["AdditiveScore | TreeScore | JointScore", ...]
    weights: Floats

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads, in order."""
        return tuple(sorted({column for part in self.parts for column in part.columns}))

    def evaluate(self, columns: Sequence[Column]) -> Floats:
        """Returns the score of each row, shape (n,)."""
        total = np.zeros(len(columns[0]))
        for weight, part in zip(self.weights.tolist(), self.parts, strict=True):
            total += weight * part.evaluate(columns)
        return total

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data; `from_dict` is the inverse."""
        return {
            "kind": "sum",
            "parts": [part.to_dict() for part in self.parts],
            "weights": self.weights.tolist(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Inverse of `to_dict`."""
        parts = []
        for part in data["parts"]:
            # Checked before it is restored: sums within sums could be nested without end.
            if part.get("kind", "additive") not in ("additive", "trees", "joint"):
                raise ValueError("a sum of scores has a part of another kind")
            parts.append(score_from_dict(part))
        weights = _floats(data["weights"])
        if not parts or weights.shape != (len(parts),) or not np.isfinite(weights).all():
            raise ValueError("a sum of scores needs one finite weight per part")
        return cls(tuple(parts), weights)  # type: ignore[arg-type]


# --- all scores

Score = (
    AdditiveScore | TreeScore | JointScore | SummaryScore | SumScore | NetworkScore | KernelScore
)

# The classes of scores by their name in files.
_SCORE_KINDS: dict[str, Any] = {
    "additive": AdditiveScore,
    "trees": TreeScore,
    "joint": JointScore,
    "summary": SummaryScore,
    "sum": SumScore,
    "network": NetworkScore,
    "kernel": KernelScore,
}


def score_from_dict(data: dict[str, Any]) -> Score:
    """Inverse of a score's `to_dict`; a score without a kind is additive."""
    kind = data.get("kind", "additive")
    if kind not in _SCORE_KINDS:
        raise ValueError(f"a score of the unknown kind {kind!r:.40}")
    score: Score = _SCORE_KINDS[kind].from_dict(data)
    return score


def _floats(data: Any) -> Floats:
    return np.array(data, dtype=np.float64)
