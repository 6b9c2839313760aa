"""A score: one number for an output of many columns, from plain arrays: additive, trees, networks, kernels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from epsilometer.arrays import Floats, Integers
from epsilometer.outputs.columns import Column
from epsilometer.outputs.embedding import Embedding
from epsilometer.outputs.lines import CodedColumn, Line

# The share of their variance that weights must have in common with a straight line to be written as a multiple.
_STRAIGHT = 0.4


@dataclass(frozen=True, slots=True)
class Term(CodedColumn):
    """One column's part of an additive score: a weight per cell of the column.

    Attributes:
        weights: shape (cells,); for names the last weight is that of any other name.
        mix: shape (columns,), the number that is cut is this combination of the columns, instead of one of them.
    """

    weights: Floats
    mix: Floats | None = None

    def numbers(self, columns: Sequence[Column]) -> NDArray[np.generic]:
        """The numbers that a line cuts, shape (n,)."""
        if self.mix is None:
            return CodedColumn.numbers(self, columns)
        total = np.zeros(len(columns[0]))
        for share, column in zip(self.mix, columns, strict=True):
            if share:
                total += share * np.asarray(column.values, dtype=np.float64)  # type: ignore[union-attr]
        return total

    @property
    def reach(self) -> float:
        """How far apart its weights are: how much the column matters."""
        weights = self.weights[:-1] if isinstance(self.cells, Line) else self.weights  # NaN aside
        return float(np.ptp(weights)) if len(weights) else 0.0

    def straight(self) -> tuple[float, float] | None:
        """Slope and height of the straight line that the weights follow, if they do."""
        if not isinstance(self.cells, Line) or len(self.cells.edges) < 3:
            return None
        with np.errstate(all="ignore"):  # a stored score may hold any numbers
            x, y = (self.cells.edges[1:] + self.cells.edges[:-1]) / 2.0, self.weights[1:-2]
            known = np.isfinite(x) & np.isfinite(y)
            if np.count_nonzero(known) < 2:
                return None
            middle, level = np.mean(x[known]), np.mean(y[known])
            x, y = x[known] - middle, y[known] - level
            slope = (x @ y) / (x @ x)
            height, explained = level - slope * middle, slope * (x @ y) / (y @ y)
        is_straight = np.isfinite(slope) and np.isfinite(height) and explained >= _STRAIGHT
        return (float(slope), float(height)) if is_straight else None

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        mix = {} if self.mix is None else {"mix": self.mix.tolist()}
        return CodedColumn.to_dict(self) | {"weights": self.weights.tolist()} | mix

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        coded, weights = CodedColumn.from_dict(data), np.array(data["weights"], dtype=np.float64)
        if weights.shape != (coded.n_codes,):
            raise ValueError("a term of a score must have one weight per cell")
        mix = np.array(data["mix"], dtype=np.float64) if "mix" in data else None
        if mix is not None and not (isinstance(coded.cells, Line) and mix.ndim == 1 and np.isfinite(mix).all()):
            raise ValueError("a combination of columns must have one finite share per column")
        return cls(coded.column, coded.cells, weights, mix)


@dataclass(frozen=True, slots=True)
class AdditiveScore:
    """The sum of one weight per column: an additive model of the log-ratio of the two distributions."""

    terms: tuple[Term, ...]

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads."""
        mixed = (range(len(term.mix)) if term.mix is not None else (term.column,) for term in self.terms)
        return tuple(sorted({column for columns in mixed for column in columns}))

    def evaluate(self, columns: Sequence[Column]) -> Floats:
        """The score of each row, shape (n,)."""
        total: Floats = self.terms[0].weights[self.terms[0].index(columns)]
        for term in self.terms[1:]:
            total += term.weights[term.index(columns)]
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"terms": [term.to_dict() for term in self.terms]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        terms = tuple(Term.from_dict(term) for term in data["terms"])
        if not terms:
            raise ValueError("a score must have a term")
        return cls(terms)


@dataclass(frozen=True, slots=True)
class TreeScore:
    """The sum of trees that ask the same question of every output at one level ("oblivious" trees).

    Attributes:
        codings: the coded columns.
        features: shape (trees, depth), which coding a level asks about.
        thresholds: shape (trees, depth), the answer is yes from this code on.
        leaves: shape (trees, 2^depth), the value for each row of answers, with the first question as the highest bit.
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
        """What each column adds while the others are in the middle: for people, not for evaluation."""
        found = []
        for place, coding in enumerate(self.codings):
            varied = [np.full(coding.n_codes, each.n_codes // 2) for each in self.codings]
            varied[place] = np.arange(coding.n_codes)
            found.append(Term(coding.column, coding.cells, self.of_codes(varied)))
        return tuple(found)

    def evaluate(self, columns: Sequence[Column]) -> Floats:
        """The score of each row, shape (n,)."""
        return self.of_codes([coding.index(columns).astype(np.int16) for coding in self.codings])

    def of_codes(self, codes: Sequence[NDArray[np.signedinteger]]) -> Floats:
        """The score of rows that are coded already, shape (n,)."""
        total = np.zeros(len(codes[0]))
        for features, thresholds, leaves in zip(self.features, self.thresholds, self.leaves, strict=True):
            leaf = np.zeros(len(total), dtype=np.int16)
            for feature, threshold in zip(features, thresholds, strict=True):
                leaf += leaf
                leaf += codes[feature] >= threshold
            total += leaves[leaf]
        return total

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        arrays = {name: getattr(self, name).tolist() for name in ("features", "thresholds", "leaves")}
        return {"kind": "trees", "codings": [coding.to_dict() for coding in self.codings], **arrays}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        codings = tuple(CodedColumn.from_dict(coding) for coding in data["codings"])
        features, thresholds = (np.array(data[name], dtype=np.int64) for name in ("features", "thresholds"))
        leaves = np.array(data["leaves"], dtype=np.float64)
        fits = features.ndim == 2 and thresholds.shape == features.shape
        if not codings or not fits or leaves.shape != (len(features), 1 << features.shape[1]):
            raise ValueError("the trees of a score do not fit together")
        if features.min(initial=0) < 0 or features.max(initial=0) >= len(codings) or not np.isfinite(leaves).all():
            raise ValueError("a tree of a score asks about a column that does not exist, or has an infinite leaf")
        return cls(codings, features, thresholds, leaves)


class PointScore:
    """A score of the points that an embedding makes of outputs."""

    __slots__ = ()
    embedding: Embedding
    # Points that are scored at a time, so that all that is computed of them fits the cache.
    at_once: ClassVar[int]

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that it reads."""
        return self.embedding.columns

    def of_points(self, points: Floats) -> Floats:
        """The score of each point, shape (n,)."""
        raise NotImplementedError

    def evaluate(self, columns: Sequence[Column]) -> Floats:
        """The score of each row, shape (n,)."""
        points, step = self.embedding.points(columns), self.at_once
        pieces = (self.of_points(points[start : start + step]) for start in range(0, len(points), step))
        return np.concatenate([np.empty(0), *pieces])


@dataclass(frozen=True, slots=True)
class NetworkScore(PointScore):
    """Dense layers with tanh between them; the last has one unit and is squashed into ±bound.

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
        """The score of each point, shape (n,)."""
        for weights, biases in zip(self.weights[:-1], self.biases[:-1], strict=True):
            points = np.tanh(points @ weights + biases)
        last = points @ self.weights[-1] + self.biases[-1]
        return np.asarray(self.bound * np.tanh(last[:, 0] / self.bound), dtype=np.float64)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        layers = {name: [layer.tolist() for layer in getattr(self, name)] for name in ("weights", "biases")}
        return {"kind": "network", "axes": self.embedding.to_list(), **layers, "bound": self.bound}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        weights = tuple(np.array(layer, dtype=np.float64) for layer in data["weights"])
        biases = tuple(np.array(layer, dtype=np.float64) for layer in data["biases"])
        chained = all(a.shape[1] == b.shape[0] for a, b in pairwise(weights))
        fits = [layer.shape == (each.shape[1],) for each, layer in zip(weights, biases, strict=True)]
        bound = float(data["bound"])
        if not weights or not chained or not all(fits) or weights[-1].shape[1] != 1 or not 0.0 < bound < np.inf:
            raise ValueError("the layers of a network do not fit together")
        if not all(np.isfinite(layer).all() for layer in (*weights, *biases)):
            raise ValueError("a network has an infinite weight")
        return cls(Embedding.from_list(data["axes"], len(weights[0])), weights, biases, bound)


# A kernel: its name, or the caller's own k(x, y) of points that broadcast against each other, shapes (…, dimensions).
KernelOfPoints = str | Callable[[Floats, Floats], Floats]


def _polynomial(x: Floats, y: Floats) -> Floats:
    """(1 + x·y)², divided by its values at (x, x) and (y, y), so that it lies between 0 and 1 as the others do."""
    norms = (1.0 + (x * x).sum(axis=-1)) * (1.0 + (y * y).sum(axis=-1))
    return np.asarray((1.0 + (x * y).sum(axis=-1)) ** 2 / norms, dtype=np.float64)


KERNELS_OF_POINTS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "gaussian": lambda x, y: np.exp(-0.5 * ((x - y) ** 2).sum(axis=-1)),
    "laplace": lambda x, y: np.exp(-np.sqrt(((x - y) ** 2).sum(axis=-1))),
    "polynomial": _polynomial,
}


def kernel_of_points(kernel: KernelOfPoints, x: Floats, y: Floats) -> Floats:
    """k(x, y) of points that broadcast against each other; the last axis holds the coordinates."""
    return np.asarray((kernel if callable(kernel) else KERNELS_OF_POINTS[kernel])(x, y), dtype=np.float64)


def kernel_matrix(kernel: KernelOfPoints, left: Floats, right: Floats) -> Floats:
    """The kernel of all pairs of points, shape (n, m)."""
    if kernel == "gaussian":  # e^(−‖x − y‖²/2), several times as fast by the product of two matrices
        distances = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2.0 * (left @ right.T)
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
        kernel: its name; a score with a function of the caller's cannot be stored.
    """

    embedding: Embedding
    bandwidth: float
    landmarks: Floats
    weights: Floats
    kernel: KernelOfPoints = "gaussian"
    at_once = 1024

    def of_points(self, points: Floats) -> Floats:
        """The score of each point, shape (n,)."""
        return kernel_matrix(self.kernel, points / self.bandwidth, self.landmarks / self.bandwidth) @ self.weights

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `from_dict` is the inverse."""
        arrays = {"landmarks": self.landmarks.tolist(), "weights": self.weights.tolist()}
        kernel = {} if self.kernel == "gaussian" else {"kernel": self.kernel}
        return {"kind": "kernel", "axes": self.embedding.to_list(), "bandwidth": self.bandwidth, **arrays, **kernel}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        landmarks, weights = (np.array(data[name], dtype=np.float64) for name in ("landmarks", "weights"))
        bandwidth = float(data["bandwidth"])
        if landmarks.ndim != 2 or weights.shape != (len(landmarks),) or not 0.0 < bandwidth < np.inf:
            raise ValueError("a kernel score needs one weight per landmark and a positive bandwidth")
        if not (np.isfinite(landmarks).all() and np.isfinite(weights).all()):
            raise ValueError("a kernel score has an infinite number")
        kernel = str(data.get("kernel", "gaussian"))
        if kernel not in KERNELS_OF_POINTS:
            raise ValueError(f"a kernel score with the unknown kernel {kernel!r:.40}")
        return cls(Embedding.from_list(data["axes"], landmarks.shape[1]), bandwidth, landmarks, weights, kernel)


Score = AdditiveScore | TreeScore | NetworkScore | KernelScore

_KINDS: dict[str, Any] = {"additive": AdditiveScore, "trees": TreeScore, "network": NetworkScore, "kernel": KernelScore}


def score_from_dict(data: dict[str, Any]) -> Score:
    """The inverse of a score's `to_dict`; a score without a kind is additive."""
    kind = data.get("kind", "additive")
    if kind not in _KINDS:
        raise ValueError(f"a score of the unknown kind {kind!r:.40}")
    score: Score = _KINDS[kind].from_dict(data)
    return score
