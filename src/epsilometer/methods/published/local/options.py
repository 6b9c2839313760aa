"""The settings of the local approach, checked before anything is drawn."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims.base import (
    as_number,
    check_at_least,
    check_choice,
    check_positive,
    check_whole,
)
from epsilometer.errors import InputError
from epsilometer.methods.published.local.kernels import (
    RULES,
    SHAPES,
    BandwidthChoice,
    KernelChoice,
    SpaceKernel,
    find_kernel,
    find_space_kernel,
)
from epsilometer.one_line import fields_on_one_line

# One end of a region: a number for all coordinates, or one for each.
Bound = float | Sequence[float]
# (low, high) as users give it.
Region = tuple[Bound, Bound]

KINDS = ("auto", "discrete", "continuous", "mixed")
SELECTIONS = ("loss", "bound")
# Fewer draws than this estimate nothing.
FEWEST_DRAWS = 10


class Box(NamedTuple):
    """A box of outputs.

    Attributes:
        low: shape (d,), the lower ends; −inf where the box is open.
        high: shape (d,), the upper ends; inf where the box is open.
    """

    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class Options:
    """How the local approach estimates; the finding's details report what None has chosen.

    Attributes:
        n: draws per side for every pair in step 1, which finds the pair and the location.
        N: fresh draws per side for the best pair in step 2, which certifies; at least n.
        region: the closed box C = (low, high) in which the location is sought; numbers, or one per
            coordinate.
        floor: τ, below which no density estimate of step 1 is trusted.
        proof_floor: τ of step 2; None for that of step 1, 0 for none.
        bandwidth: of step 1: a number or one per coordinate; "nrd0" (Silverman's rule of thumb, the
            default) or "nrd" (Scott's); or a function from the draws, of shape (n,) or (n, d), to
            either.
        proof_bandwidth: of step 2, likewise, common to both sides.
        undersmoothing: γ, an extra factor N^(−γ) on the chosen bandwidth of step 2.
        search_undersmoothing: the same for step 1, n^(−γ). Both default to 0; 2/15 in step 1 and
            more in step 2 meet the paper's conditions (C3) and (C4) for Lipschitz densities of one
            number.
        kernel: "gaussian", "epanechnikov", "biweight", "laplace", "silverman", or any function K(u)
            of an array that is symmetric and integrates to 1.
        kernel_shape: in several dimensions, "product" for ∏K(u_i) or "spherical" for c·K(|u|), as
            the paper's condition (K1).
        support: (low, high) outside which outputs cannot lie, with None or ±inf for an open end;
            densities are reflected at its ends, and training draws outside are an error. Per
            coordinate: two sequences.
        kind: "discrete", "continuous", "mixed" (point masses beside densities of single numbers),
            or "auto", which looks at the draws.
        select: the location with the greatest estimated "loss", as in the paper, or with the
            greatest predicted "bound", which avoids noisy tails.
    """

    n: int | None = None
    N: int | None = None
    region: Region | None = None
    floor: float | None = None
    proof_floor: float | None = None
    bandwidth: BandwidthChoice = None
    proof_bandwidth: BandwidthChoice = None
    undersmoothing: float = 0.0
    search_undersmoothing: float = 0.0
    kernel: KernelChoice = "gaussian"
    kernel_shape: str = "product"
    support: tuple[Any, Any] | None = None
    kind: str = "auto"
    select: str = "bound"

    __repr__ = fields_on_one_line

    def __post_init__(self) -> None:
        check_size("n", self.n)
        check_size("N", self.N)
        if self.n is not None and self.N is not None and self.n > self.N:
            raise InputError(
                f"n={self.n} is more than N={self.N}: step 2 proves and needs at least as many "
                "draws"
            )
        check_floor(self.floor)
        if self.proof_floor is not None:
            check_at_least("proof_floor", self.proof_floor, 0.0)
        check_bandwidth("bandwidth", self.bandwidth)
        check_bandwidth("proof_bandwidth", self.proof_bandwidth)
        _check_undersmoothing("undersmoothing", self.undersmoothing)
        _check_undersmoothing("search_undersmoothing", self.search_undersmoothing)
        find_kernel(self.kernel)
        check_choice("kernel_shape", self.kernel_shape, SHAPES)
        region = self.region_box()
        support = self.support_box()
        check_choice("kind", self.kind, KINDS)
        check_choice("select", self.select, SELECTIONS)
        if region is None or support is None:
            return
        low = np.maximum(region.low, support.low)
        high = np.minimum(region.high, support.high)
        if not (low < high).all():
            raise InputError(f"region={self.region!r} lies outside support={self.support!r}")

    def space_kernel(self, d: int) -> SpaceKernel:
        """Returns the kernel for outputs of d coordinates."""
        return find_space_kernel(self.kernel, self.kernel_shape, d)

    def region_box(self, d: int | None = None) -> Box | None:
        """Returns the region, or None if none is given.

        Args:
            d: coordinates of the outputs. Without it, a number that stands for all coordinates
                stays one of shape (1,).
        """
        if self.region is None:
            return None
        return _as_box("region", self.region, d, open_ends=False)

    def support_box(self, d: int | None = None) -> Box | None:
        """Returns the support likewise, −inf and inf where it is open."""
        if self.support is None:
            return None
        return _as_box("support", self.support, d, open_ends=True)


def _check_undersmoothing(name: str, value: float) -> None:
    """Checks an exponent: at least 0 and below 1."""
    if not 0.0 <= as_number(name, value) < 1.0:
        raise InputError(f"{name}={value!r} must be at least 0 and below 1, e.g. 0.1")


def check_size(name: str, value: int | None) -> None:
    """Checks a number of draws: a whole number of at least 10, or None."""
    if value is not None:
        check_whole(name, value, FEWEST_DRAWS)


def check_floor(floor: float | None) -> None:
    """Checks a floor: positive, or None."""
    if floor is not None:
        check_positive("floor", floor, hint="; None chooses it from the draws")


def check_bandwidth(name: str, bandwidth: object) -> None:
    """Checks a bandwidth: positive numbers, a rule, a function, or None."""
    if bandwidth is None or callable(bandwidth):
        return
    if isinstance(bandwidth, str):
        check_choice(name, bandwidth, tuple(RULES))
        return
    values = _as_floats(name, bandwidth)
    is_row = values.ndim <= 1 and values.size > 0
    if not is_row or not (np.isfinite(values) & (values > 0.0)).all():
        raise InputError(
            f"{name}={bandwidth!r} must be positive, e.g. 0.1; None chooses it from the draws"
        )


def per_coordinate(name: str, values: Floats, d: int) -> Floats:
    """Returns one number per coordinate, shape (d,), where a single one may stand for all."""
    if len(values) not in (1, d):
        raise InputError(f"{name} has {len(values)} coordinates, the outputs have {d}")
    return np.broadcast_to(values, (d,)).astype(np.float64)


def _as_box(name: str, ends: object, d: int | None, open_ends: bool) -> Box:
    """Returns (low, high) as a checked box.

    Args:
        name: of the setting, for error texts.
        ends: as the user gave them.
        d: coordinates of the outputs; None leaves a number that stands for all of them.
        open_ends: whether None and infinities are allowed.
    """
    if not isinstance(ends, tuple | list | np.ndarray) or len(ends) != 2:
        raise InputError(f"{name}={ends!r} must be (low, high)")
    given_low, given_high = ends
    if open_ends:
        given_low = _with_open_end(given_low, -math.inf)
        given_high = _with_open_end(given_high, math.inf)
    low = np.atleast_1d(_as_floats(name, given_low))
    high = np.atleast_1d(_as_floats(name, given_high))
    are_rows = low.ndim == 1 and high.ndim == 1
    if not are_rows or len(low) != len(high) or not len(low):
        raise InputError(f"{name}={ends!r} must have two ends of equal length")
    if not open_ends and not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise InputError(f"{name}={ends!r} is unbounded: give finite ends, (low, high)")
    if not (low < high).all():
        raise InputError(f"{name}={ends!r} is empty: each low must be below its high")
    if d is None:
        return Box(low, high)
    return Box(per_coordinate(name, low, d), per_coordinate(name, high, d))


def _with_open_end(end: object, infinity: float) -> object:
    """Replaces None by infinity, as an end itself or among the ends of several coordinates."""
    if end is None:
        return infinity
    if isinstance(end, tuple | list):
        return [infinity if coordinate is None else coordinate for coordinate in end]
    return end


def _as_floats(name: str, value: object) -> Floats:
    try:
        numbers: Floats = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name}={value!r} must be numbers") from None
    if np.isnan(numbers).any():
        raise InputError(f"{name}={value!r} must not contain nan")
    return numbers
