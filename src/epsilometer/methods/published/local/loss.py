"""The empirical loss function |ln f̂(t) − ln f̂'(t)| of two samples, and where it is greatest.

Reference: Askin, Kutta, Dette (2022), "Statistical quantification of differential privacy: a local
    approach", (18) to (20) and Algorithm 3.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.errors import InputError
from epsilometer.inputs.copying import equal_fields
from epsilometer.methods.published.local import densities
from epsilometer.methods.published.local.kernels import SpaceKernel
from epsilometer.methods.published.local.mixtures import Slice, find_mixture
from epsilometer.methods.published.local.options import Box, Options
from epsilometer.methods.published.local.samples import (
    Outcomes,
    as_matrix,
    count_outcomes,
    find_kind,
)
from epsilometer.one_line import one_line
from epsilometer.outputs import Outputs, read_outputs

# The default region reaches from this quantile of the pooled draws to its mirror image, in each
# coordinate.
EDGE_QUANTILE = 0.01
# In several dimensions the corners of that box would be empty (measured on two Laplace numbers, ε =
# .7: .91 of the truth with this, .76 without).
EDGE_QUANTILE_OF_VECTORS = 0.1
# Beyond the dimensions of a grid, places are draws themselves: this many of each side, so that a
# loss function of 20 000 draws takes seconds …
_PLACES_PER_SIDE = 300
# … but not more than this fraction of them, for the densities are estimated from the others: a
# place must not count itself.
_PLACES_FRACTION = 0.1
# Fewer draws than this, as in the first round of a search, may miss a sensible region by chance.
_ENOUGH_TO_CHECK_REGION = 200


@dataclass(frozen=True, slots=True)
class LossFunction:
    """Two floored densities and the loss between them, at m places.

    Call it with places to get the loss there.

    Attributes:
        kind: "discrete", "continuous" or "mixed".
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
            or the distinct outcomes; None if it is mixed.
        shares: which fractions of all draws of left and right `draws` are; below 1 for a part of a
            mixed distribution, whose densities integrate to them.
    """

    kind: str
    points: Any
    left_density: Floats
    right_density: Floats
    floor: float
    n: tuple[int, int]
    bandwidths: Floats | None
    kernel: SpaceKernel | None
    region: Box | None
    limits: Box | None
    draws: tuple[Floats, Floats] | Outcomes | None
    shares: tuple[float, float] = (1.0, 1.0)

    __eq__ = equal_fields

    def __repr__(self) -> str:
        largest = f"{self.estimate:.4g} at {one_line(self.location)}"
        return f"<LossFunction: at most {largest}, {len(self.left_density)} {self.kind} places>"

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
        return np.asarray(np.sqrt(inverse * self.kernel.roughness / np.prod(common)))

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
        assert self.draws is not None
        left_rows, right_rows = self.draws
        left_share, right_share = self.shares
        p = self._floored_density(left_rows, places.reshape(-1, d), self.bandwidths[0], left_share)
        q = self._floored_density(
            right_rows, places.reshape(-1, d), self.bandwidths[1], right_share
        )
        losses = np.abs(np.log(p / q))
        return np.asarray(losses.reshape(places.shape if d == 1 else places.shape[:-1]))

    def _floored_density(self, rows: Floats, places: Floats, h: Floats, share: float) -> Floats:
        assert self.kernel is not None
        density = densities.kernel_density(rows, places, h, self.kernel, self.limits)
        return np.maximum(share * density, self.floor)


class LossPart(NamedTuple):
    """One part of a mixed distribution.

    Attributes:
        slice: where its outputs lie; None for the point masses.
        loss: the loss function there.
    """

    slice: Slice | None
    loss: LossFunction

    def point(self, number: int) -> Any:
        """Returns a place of this part as plain data."""
        point = self.loss.point(number)
        return point if self.slice is None else self.slice.location(point)


@dataclass(frozen=True, slots=True)
class MixedLoss(LossFunction):
    """The loss of a mixed distribution: at point masses, and along densities beside them.

    Its places, densities and losses are those of its parts, one after the other; a "density" at a
    point mass is its probability.

    Attributes:
        parts: the point masses, if there are any, and one part for each slice with a density.
    """

    parts: tuple[LossPart, ...] = ()

    @property
    def deviations(self) -> Floats:
        """The standard error of the loss at the points for one draw per side, shape (m,)."""
        return np.concatenate([part.loss.deviations for part in self.parts])

    def locate(self, number: int) -> tuple[LossPart, int]:
        """Returns the part to which a place belongs, and its number there."""
        for part in self.parts:
            if number < len(part.loss.left_density):
                return part, number
            number -= len(part.loss.left_density)
        raise IndexError(number)

    def point(self, number: int) -> Any:
        """Returns a place as plain data."""
        part, number = self.locate(number)
        return part.point(number)

    def __call__(self, t: Any) -> Floats:
        """Returns the loss at an output."""
        point_masses = None
        for part in self.parts:
            if part.slice is None:
                point_masses = part.loss
                continue
            number = part.slice.number_of(t)
            if number is not None:
                return part.loss(number)
        return np.asarray(0.0) if point_masses is None else point_masses(t)


class MixedPoints:
    """The places of a mixed distribution as plain data, made one by one."""

    def __init__(self, parts: tuple[LossPart, ...]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(len(part.loss.left_density) for part in self._parts)

    def __iter__(self) -> Iterator[Any]:
        for part in self._parts:
            for number in range(len(part.loss.left_density)):
                yield part.point(number)


def loss_function(
    left_outputs: object, right_outputs: object, options: Options | None = None, **chosen: Any
) -> LossFunction:
    """Estimates the loss function of two samples.

    Args:
        left_outputs: n outputs of one input; anything a mechanism may return, axis 0 counts
            outputs.
        right_outputs: outputs of the other.
        options: settings; or give them one by one:
        **chosen: `region`, `floor`, `bandwidth`, `kernel`, `kernel_shape`, `support`, `kind`; see
            `Options`.

    Returns:
        A `LossFunction`: its `.points`, `.loss`, `.left_density`, `.right_density`, `.location` and
        `.estimate`; call it for the loss elsewhere. A `MixedLoss` if there are point masses beside
        a density: its `.parts`, `.location` and `.estimate`.

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
    kind = find_kind(left, right, options.kind)
    if kind == "discrete":
        return _discrete_loss(count_outcomes(left, right), options)
    if kind == "mixed":
        return _mixed_loss(left, right, options)
    return _continuous_loss(as_matrix(left), as_matrix(right), options)


def _mixed_loss(left: Outputs, right: Outputs, options: Options) -> MixedLoss:
    """Returns the loss at point masses and in the slices of a mixed distribution."""
    n = (len(left), len(right))
    mixture = find_mixture(left, right)
    if mixture.outcomes is None and not mixture.slices:
        raise InputError("there are too few draws to tell point masses from a density; draw more")
    parts: list[LossPart] = []
    if mixture.outcomes is not None:
        # A region is for the densities; point masses are few.
        loss = _discrete_loss(mixture.outcomes, replace(options, region=None))
        parts.append(LossPart(slice=None, loss=loss))
    for where in mixture.slices:
        left_rows = where.rows(left)
        right_rows = where.rows(right)
        loss = _continuous_loss(left_rows, right_rows, options, n)
        parts.append(LossPart(slice=where, loss=loss))
    return MixedLoss(
        kind="mixed",
        points=MixedPoints(tuple(parts)),
        left_density=np.concatenate([part.loss.left_density for part in parts]),
        right_density=np.concatenate([part.loss.right_density for part in parts]),
        floor=min(part.loss.floor for part in parts),
        n=n,
        bandwidths=None,
        kernel=None,
        region=None,
        limits=options.support_box(1),
        draws=None,
        parts=tuple(parts),
    )


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


def _continuous_loss(
    left: Floats, right: Floats, options: Options, n: tuple[int, int] | None = None
) -> LossFunction:
    """Returns the loss at places in the region: on a grid, or at draws in many dimensions.

    Args:
        left: shape (k, d), training draws.
        right: shape (l, d).
        options: settings.
        n: all draws of both sides, of which these are a part; None if these are all.
    """
    d = left.shape[1]
    kernel = options.space_kernel(d)
    limits = densities.checked_support(options, left, right)
    region = _region(left, right, options, limits)
    if min(len(left), len(right)) >= _ENOUGH_TO_CHECK_REGION:
        _check_any(_count_inside(left, region) + _count_inside(right, region), options)
    if d <= densities.MOST_GRID_DIMENSIONS:
        places = None
    else:
        held_out = _hold_out_places(left, right, region)
        _check_any(len(held_out.places), options)
        places = held_out.places
        left = held_out.left
        right = held_out.right
    if n is None:
        n = (len(left), len(right))
    shares = (len(left) / n[0], len(right) / n[1])
    bandwidths = _bandwidths(left, right, options, kernel)
    left_h, right_h = bandwidths
    if places is None:
        grid = densities.MarginGrid.over(region.low, region.high, bandwidths, kernel)
        places = grid.places()
        left_density = grid.density(left, left_h, kernel, limits)
        right_density = grid.density(right, right_h, kernel, limits)
    else:
        left_density = densities.kernel_density(left, places, left_h, kernel, limits)
        right_density = densities.kernel_density(right, places, right_h, kernel, limits)
    left_density = shares[0] * left_density
    right_density = shares[1] * right_density
    peak = float(max(left_density.max(), right_density.max()))
    floor = options.floor or densities.kernel_floor(min(n), bandwidths.min(axis=0), kernel, peak)
    return LossFunction(
        kind="continuous",
        points=places[:, 0] if d == 1 else places,
        left_density=np.maximum(left_density, floor),
        right_density=np.maximum(right_density, floor),
        floor=floor,
        n=n,
        bandwidths=bandwidths,
        kernel=kernel,
        region=region,
        limits=limits,
        draws=(left, right),
        shares=shares,
    )


def _bandwidths(left: Floats, right: Floats, options: Options, kernel: SpaceKernel) -> Floats:
    """Returns the bandwidths of step 1, shape (2, d); a side with hardly a draw takes the other's.

    Args:
        left: shape (k, d), draws with a density.
        right: shape (l, d).
        options: settings.
        kernel: the kernel.
    """
    by_side = [
        densities.bandwidth_of(
            "bandwidth", options.bandwidth, rows, kernel, options.search_undersmoothing
        )
        if len(rows) > 1
        else None
        for rows in (left, right)
    ]
    left_h, right_h = by_side
    if left_h is None:
        left_h = right_h
    if right_h is None:
        right_h = left_h
    assert left_h is not None
    assert right_h is not None
    return np.stack([left_h, right_h])


class HeldOutPlaces(NamedTuple):
    """Places that are draws, and the other draws.

    Attributes:
        places: shape (m, d).
        left: shape (k, d), draws that are no places.
        right: shape (l, d), likewise.
    """

    places: Floats
    left: Floats
    right: Floats


def _hold_out_places(left: Floats, right: Floats, region: Box) -> HeldOutPlaces:
    """Takes the first draws of each side inside the region as places."""
    places: list[Floats] = []
    others: list[Floats] = []
    for rows in (left, right):
        n_candidates = max(1, int(_PLACES_FRACTION * len(rows)))
        candidates = rows[:n_candidates]
        inside = np.all((candidates >= region.low) & (candidates <= region.high), axis=1)
        places.append(candidates[inside][:_PLACES_PER_SIDE])
        others.append(rows[n_candidates:])
    return HeldOutPlaces(np.concatenate(places), left=others[0], right=others[1])


def _region(left: Floats, right: Floats, options: Options, limits: Box | None) -> Box:
    """Returns the given region, or one from the draws' quantiles, inside the support."""
    d = left.shape[1]
    box = options.region_box(d)
    if box is None:
        # Places that are draws are never in an empty corner.
        has_corners = 1 < d <= densities.MOST_GRID_DIMENSIONS
        edge = EDGE_QUANTILE_OF_VECTORS if has_corners else EDGE_QUANTILE
        ends = np.stack(
            [np.quantile(rows, [edge, 1.0 - edge], axis=0) for rows in (left, right) if len(rows)]
        )
        box = Box(low=ends[:, 0].min(axis=0), high=ends[:, 1].max(axis=0))
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
