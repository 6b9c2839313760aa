"""The empirical loss function |ln f̂(t) − ln f̂'(t)| of two samples, and where it is greatest.

Reference: Askin, Kutta, Dette (2022), "Statistical quantification of differential privacy: a local
    approach", (18) to (20) and Algorithm 3.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InputError
from epsilometer.methods.published.local import densities
from epsilometer.methods.published.local.kernels import Kernel, find_kernel
from epsilometer.methods.published.local.options import Box, Options
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
_ENOUGH_TO_CHECK_REGION = 200


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
        limits: ends of the support, each of shape (d,); None if it is open or discrete.
        draws: the sample itself, for other places than `points`: shape (n, d) of left and right,
            or the distinct outcomes.
    """

    kind: str
    points: Any
    left_density: Floats
    right_density: Floats
    floor: float
    n: tuple[int, int]
    bandwidths: Floats | None
    kernel: Kernel | None
    region: Box | None
    limits: Box | None
    draws: tuple[Floats, Floats] | Outcomes

    @property
    def loss(self) -> Floats:
        """The loss at the points, shape (m,)."""
        return np.asarray(np.abs(np.log(self.left_density / self.right_density)))

    @property
    def deviations(self) -> Floats:
        """The standard error of the loss at the points for one draw per side, shape (m,).

        It is σ̂ of the paper.
        """
        inverse = 1.0 / self.left_density + 1.0 / self.right_density
        if self.kind == "discrete":
            return np.asarray(np.sqrt(np.maximum(inverse - 2.0, 0.0)))
        assert self.kernel is not None
        assert self.bandwidths is not None
        common = self.bandwidths.min(axis=0)
        return np.asarray(np.sqrt(inverse * self.kernel.roughness ** len(common) / np.prod(common)))

    def best(self, penalty: float = 0.0) -> int:
        """Returns the number of the point with the greatest loss − penalty·σ̂.

        A penalty of 0 is the paper's arg max.
        """
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
        """Returns a place as plain data."""
        point = self.points[number]
        if isinstance(point, np.ndarray):
            return point.tolist()
        if isinstance(point, np.generic):
            return point.item()
        return point

    def __call__(self, t: Any) -> Floats:
        """Returns the loss at other places: a number, an array, or an outcome."""
        if isinstance(self.draws, Outcomes):
            wanted = list(t) if isinstance(t, tuple | np.ndarray) else t
            for number in range(len(self.draws)):
                if self.draws[number] == wanted:
                    return np.asarray(self.loss[number])
            # Never seen on either side: both densities are the floor.
            return np.asarray(0.0)
        assert self.bandwidths is not None
        d = self.bandwidths.shape[1]
        places = np.asarray(t, dtype=np.float64)
        left_rows, right_rows = self.draws
        p = self._floored_density(left_rows, places.reshape(-1, d), self.bandwidths[0])
        q = self._floored_density(right_rows, places.reshape(-1, d), self.bandwidths[1])
        losses = np.abs(np.log(p / q))
        return np.asarray(losses.reshape(places.shape if d == 1 else places.shape[:-1]))

    def _floored_density(self, rows: Floats, places: Floats, h: Floats) -> Floats:
        assert self.kernel is not None
        density = densities.kernel_density(rows, places, h, self.kernel, self.limits)
        return np.maximum(density, self.floor)


def loss_function(
    left_outputs: object, right_outputs: object, options: Options | None = None, **chosen: Any
) -> LossFunction:
    """Estimates the loss function of two samples.

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

    Reference: Askin, Kutta, Dette (2022), (20).
    """
    left = as_outputs(left_outputs)
    right = as_outputs(right_outputs)
    return estimate_loss(left, right, with_chosen(options, chosen))


def with_chosen(options: Options | None, chosen: dict[str, Any]) -> Options:
    """Returns options with some of them given by keyword."""
    try:
        return replace(options or Options(), **chosen)
    except TypeError as error:
        raise InputError(f"{error}; see epsilometer.local.Options for the names") from None


def as_outputs(outputs: object) -> Outputs:
    """Returns outputs of a mechanism as they are; reads anything else."""
    return outputs if isinstance(outputs, Outputs) else read_outputs(outputs)


def estimate_loss(left: Outputs, right: Outputs, options: Options) -> LossFunction:
    """Estimates the loss function from training draws."""
    if not len(left) or not len(right):
        raise InputError(
            f"there are {len(left)} left and {len(right)} right outputs; both sides need some"
        )
    if find_kind(left, right, options.kind) == "discrete":
        return _discrete_loss(count_outcomes(left, right), options)
    return _continuous_loss(as_matrix(left), as_matrix(right), options)


def _discrete_loss(outcomes: Outcomes, options: Options) -> LossFunction:
    """Returns the loss at the distinct outcomes (inside the region)."""
    n_left, n_right = outcomes.n
    floor = options.floor or densities.DRAWS_AT_FLOOR / min(outcomes.n)
    region = options.region_box(1)
    if region is not None:
        numbers = outcomes.numbers()
        if numbers is None:
            raise InputError(
                "region= is for numbers; these outcomes are not single numbers: leave it out"
            )
        inside = np.flatnonzero((numbers >= region.low) & (numbers <= region.high))
        _check_any(len(inside), options)
        outcomes = outcomes.only(inside)
    return LossFunction(
        kind="discrete",
        points=outcomes,
        left_density=np.maximum(outcomes.left / n_left, floor),
        right_density=np.maximum(outcomes.right / n_right, floor),
        floor=floor,
        n=outcomes.n,
        bandwidths=None,
        kernel=None,
        region=region,
        limits=None,
        draws=outcomes,
    )


def _continuous_loss(left: Floats, right: Floats, options: Options) -> LossFunction:
    """Returns the loss on a grid over the region.

    Args:
        left: shape (n, d), training draws.
        right: shape (m, d).
        options: settings.
    """
    d = left.shape[1]
    n = (len(left), len(right))
    kernel = find_kernel(options.kernel)
    limits = options.support_box(d)
    left_h = densities.bandwidth_of("bandwidth", options.bandwidth, left, kernel)
    right_h = densities.bandwidth_of("bandwidth", options.bandwidth, right, kernel)
    bandwidths = np.stack([left_h, right_h])
    region = _region(left, right, options, limits)
    if min(n) >= _ENOUGH_TO_CHECK_REGION:
        _check_any(_count_inside(left, region) + _count_inside(right, region), options)
    grid = densities.MarginGrid.over(region.low, region.high, bandwidths, kernel)
    left_density = grid.density(left, left_h, kernel, limits)
    right_density = grid.density(right, right_h, kernel, limits)
    peak = float(max(left_density.max(), right_density.max()))
    floor = options.floor or densities.kernel_floor(min(n), bandwidths.min(axis=0), kernel, peak)
    return LossFunction(
        kind="continuous",
        points=grid.places()[:, 0] if d == 1 else grid.places(),
        left_density=np.maximum(left_density, floor),
        right_density=np.maximum(right_density, floor),
        floor=floor,
        n=n,
        bandwidths=bandwidths,
        kernel=kernel,
        region=region,
        limits=limits,
        draws=(left, right),
    )


def _region(left: Floats, right: Floats, options: Options, limits: Box | None) -> Box:
    """Returns the given region, or one from the draws' quantiles, inside the support."""
    d = left.shape[1]
    box = options.region_box(d)
    if box is None:
        edge = EDGE_QUANTILE if d == 1 else EDGE_QUANTILE_OF_VECTORS
        left_ends = np.quantile(left, [edge, 1.0 - edge], axis=0)
        right_ends = np.quantile(right, [edge, 1.0 - edge], axis=0)
        box = Box(
            low=np.minimum(left_ends[0], right_ends[0]),
            high=np.maximum(left_ends[1], right_ends[1]),
        )
    if limits is not None:
        box = Box(low=np.maximum(box.low, limits.low), high=np.minimum(box.high, limits.high))
    if not (box.low < box.high).all():
        raise InputError(
            f"region={options.region!r} and support={options.support!r} leave no room for a "
            "location"
        )
    return box


def _count_inside(rows: Floats, box: Box) -> int:
    return int(np.all((rows >= box.low) & (rows <= box.high), axis=1).sum())


def _check_any(n_inside: int, options: Options) -> None:
    if not n_inside:
        raise InputError(
            f"region={options.region!r} holds none of the training draws: choose it where outputs "
            "lie, or leave it out"
        )
