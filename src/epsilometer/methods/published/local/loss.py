"""The empirical loss function |ln f̂(t) − ln f̂'(t)| of two samples, and where it is greatest."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InputError
from epsilometer.methods.published.local import densities
from epsilometer.methods.published.local.kernels import Kernel, find_kernel
from epsilometer.methods.published.local.options import Options
from epsilometer.methods.published.local.samples import (
    Outcomes,
    as_matrix,
    count_outcomes,
    find_kind,
)
from epsilometer.outputs import Outputs, read_outputs

# The default region reaches from this quantile of the pooled draws to its mirror image, in each
# coordinate.
EDGE_QUANTILE = 0.01
# In several dimensions the corners of that box would be empty (measured on two Laplace numbers, ε =
# .7: .91 of the truth with this, .76 without).
EDGE_QUANTILE_OF_VECTORS = 0.1
# Fewer draws than this, as in the first round of a search, may miss a sensible region by chance.
_ENOUGH_TO_MISS = 200


@dataclass(frozen=True, slots=True)
class LossFunction:
    """Two floored densities and the loss between them, at m places.

    Call it with places to get the loss there.

    Attributes:
        kind: "discrete" or "continuous".
        points: the places: shape (m,) in one dimension, (m, d) in more; a list of outcomes if
            discrete.
        left_density: shape (m,), floored.
        right_density: shape (m,), floored.
        floor: τ.
        n: draws of left and right.
        bandwidths: shape (2, d), of left and right; None if discrete.
        kernel: the kernel; None if discrete.
        region: low and high ends, each of shape (d,); None for all outcomes.
        draws: the sample itself, for other places than `points`.
    """

    kind: str
    points: Any
    left_density: Floats
    right_density: Floats
    floor: float
    n: tuple[int, int]
    bandwidths: Floats | None
    kernel: Kernel | None
    region: densities.Limits | None
    limits: densities.Limits | None
    draws: tuple[Floats, Floats] | Outcomes

    @property
    def loss(self) -> Floats:
        """The loss at the points, shape (m,)."""
        return np.asarray(np.abs(np.log(self.left_density / self.right_density)))

    @property
    def deviations(self) -> Floats:
        """The standard error of the loss at the points for one draw per side, shape (m,): σ̂ of the paper."""
        inverse = 1.0 / self.left_density + 1.0 / self.right_density
        if self.kind == "discrete":
            return np.asarray(np.sqrt(np.maximum(inverse - 2.0, 0.0)))
        assert self.kernel is not None
        assert self.bandwidths is not None
        common = self.bandwidths.min(axis=0)
        return np.asarray(np.sqrt(inverse * self.kernel.roughness ** len(common) / np.prod(common)))

    def best(self, penalty: float = 0.0) -> int:
        """The number of the point with the greatest loss − penalty·σ̂; penalty 0 is the paper's arg max."""
        return int(np.argmax(self.loss - penalty * self.deviations))

    @property
    def estimate(self) -> float:
        """ε̂, the greatest loss."""
        return float(self.loss.max())

    @property
    def location(self) -> Any:
        """t̂, where the loss is greatest."""
        return self.point(self.best())

    def point(self, number: int) -> Any:
        """A place as plain data."""
        point = self.points[number]
        return (
            point.tolist()
            if isinstance(point, np.ndarray)
            else point.item()
            if hasattr(point, "item")
            else point
        )

    def __call__(self, t: Any) -> Floats:
        """The loss at other places: a number, an array, or an outcome."""
        if isinstance(self.draws, Outcomes):
            wanted = list(t) if isinstance(t, tuple | np.ndarray) else t
            losses = (
                self.loss[number]
                for number in range(len(self.draws))
                if self.draws[number] == wanted
            )
            # never seen on either side: both densities are the floor
            return np.asarray(next(losses, 0.0))
        assert self.kernel is not None
        assert self.bandwidths is not None
        d = self.bandwidths.shape[1]
        places = np.asarray(t, dtype=np.float64)
        flat = places.reshape(-1, d)
        both = [
            np.maximum(
                densities.kernel_density(rows, flat, h, self.kernel, self.limits), self.floor
            )
            for rows, h in zip(self.draws, self.bandwidths, strict=True)
        ]
        return np.asarray(
            np.abs(np.log(both[0] / both[1])).reshape(places.shape if d == 1 else places.shape[:-1])
        )


def loss_function(
    left_outputs: object, right_outputs: object, options: Options | None = None, **chosen: Any
) -> LossFunction:
    """The empirical loss function of two samples.

    Args:
        left_outputs: n outputs of one input; anything a mechanism may return, axis 0 counts
            outputs.
        right_outputs: outputs of the other.
        options: settings; or give them one by one:
        **chosen: `region`, `floor`, `bandwidth`, `kernel`, `support`, `kind`; see `Options`.

    Returns:
        A `LossFunction`: its `.points`, `.loss`, `.left_density`, `.right_density`, `.location` and
        `.estimate`; call it for the loss elsewhere.

    Guarantee: none: an estimate; where densities fall below the floor it is too small.
    Reference: Askin, Kutta, Dette, "Statistical quantification of differential privacy: a local
        approach", (20).
    """
    return estimate_loss(
        as_outputs(left_outputs), as_outputs(right_outputs), with_chosen(options, chosen)
    )


def with_chosen(options: Options | None, chosen: dict[str, Any]) -> Options:
    """Options with some of them given by keyword."""
    try:
        return replace(options or Options(), **chosen)
    except TypeError as error:
        raise InputError(f"{error}; see epsilometer.local.Options for the names") from None


def estimate_loss(left: Outputs, right: Outputs, options: Options) -> LossFunction:
    """The loss function of training draws."""
    if not len(left) or not len(right):
        raise InputError(
            f"there are {len(left)} left and {len(right)} right outputs; both sides need some"
        )
    if find_kind(left, right, options.kind) == "discrete":
        return _discrete_loss(count_outcomes(left, right), options)
    return _continuous_loss((as_matrix(left), as_matrix(right)), options)


def _discrete_loss(outcomes: Outcomes, options: Options) -> LossFunction:
    floor = options.floor or densities.DRAWS_AT_FLOOR / min(outcomes.n)
    region = options.box(1)
    if region is not None:
        numbers = outcomes.numbers()
        if numbers is None:
            raise InputError(
                "region= is for numbers; these outcomes are not single numbers: leave it out"
            )
        inside = np.flatnonzero((numbers >= region[0]) & (numbers <= region[1]))
        _check_any(len(inside), options)
        left = outcomes.left[inside]
        right = outcomes.right[inside]
        outcomes = replace(outcomes, left=left, right=right, where=outcomes.where[inside])
    p = np.maximum(outcomes.left / outcomes.n[0], floor)
    q = np.maximum(outcomes.right / outcomes.n[1], floor)
    # The outcomes are a sequence that makes them one by one: there may be many, and few are needed.
    return LossFunction(
        "discrete", outcomes, p, q, floor, outcomes.n, None, None, region, None, outcomes
    )


def _continuous_loss(draws: tuple[Floats, Floats], options: Options) -> LossFunction:
    kernel = find_kernel(options.kernel)
    d = draws[0].shape[1]
    limits = options.limits(d)
    bandwidths = np.stack(
        [densities.bandwidth_of("bandwidth", options.bandwidth, rows, kernel) for rows in draws]
    )
    low, high = _region(draws, options, limits)
    n = len(draws[0]), len(draws[1])
    if min(n) >= _ENOUGH_TO_MISS:
        _check_any(
            sum(np.all((rows >= low) & (rows <= high), axis=1).sum() for rows in draws), options
        )
    grid = densities.MarginGrid.over(low, high, bandwidths, kernel)
    left, right = (
        grid.density(rows, h, kernel, limits) for rows, h in zip(draws, bandwidths, strict=True)
    )
    peak = float(max(left.max(), right.max()))
    floor = options.floor or densities.kernel_floor(min(n), bandwidths.min(axis=0), kernel, peak)
    places = grid.places()[:, 0] if d == 1 else grid.places()
    p = np.maximum(left, floor)
    q = np.maximum(right, floor)
    return LossFunction(
        "continuous", places, p, q, floor, n, bandwidths, kernel, (low, high), limits, draws
    )


def _region(
    draws: tuple[Floats, Floats], options: Options, limits: densities.Limits | None
) -> densities.Limits:
    d = draws[0].shape[1]
    if (box := options.box(d)) is None:
        edge = EDGE_QUANTILE if d == 1 else EDGE_QUANTILE_OF_VECTORS
        ends = [np.quantile(rows, [edge, 1.0 - edge], axis=0) for rows in draws]
        box = np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])
    low, high = box
    if limits is not None:
        low = np.maximum(low, limits[0])
        high = np.minimum(high, limits[1])
    if not (low < high).all():
        raise InputError(
            f"region={options.region!r} and support={options.support!r} leave no room for a location"
        )
    return low, high


def _check_any(inside: int, options: Options) -> None:
    if not inside:
        raise InputError(
            f"region={options.region!r} holds none of the training draws: choose it where outputs lie, or leave it out"
        )


def as_outputs(outputs: object) -> Outputs:
    """Outputs of a mechanism as they are; anything else is read."""
    return outputs if isinstance(outputs, Outputs) else read_outputs(outputs)
