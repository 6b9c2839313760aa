"""A look at how steep the densities seem to be. A hint, never an assumption that was checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilometer.engine import Phase, Sampler, check_seed
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.mechanisms import as_mechanism
from epsilometer.methods.ldp.counting import Cells, check_inside
from epsilometer.methods.ldp.formulas import check_interval

NOTE = (
    "a hint from pilot draws, not a bound: a density may be steeper between the cells, or on inputs that were not drawn"
)
# Fewer cells than this see no shape at all.
_FEWEST_CELLS = 4


@dataclass(frozen=True, slots=True)
class LipschitzHint:
    """How steep the densities seem.

    Attributes:
        lipschitz: the largest slope between neighbouring cells of one input: C seems to be at least about this.
        noise: the standard deviation that chance alone gives such a slope.
        input_lipschitz: the largest slope between neighbouring inputs (numbers); None if the inputs are none.
        note: says that this is a hint.
    """

    lipschitz: float
    noise: float
    input_lipschitz: float | None
    note: str = NOTE


def lipschitz_hint(
    mechanism: object,
    inputs: Sequence[Any],
    *,
    domain: tuple[float, float],
    n: int = 100_000,
    seed: int | None = None,
) -> LipschitzHint:
    """Looks at the slopes of coarse histograms.

    Args:
        mechanism: as `epsilometer.audit` takes it.
        inputs: what to run it on; if they are numbers, slopes between them are looked at, too.
        domain: (a, b), where all outputs lie.
        n: pilot draws per input.
        seed: of the draws.

    Guarantee: none. Do not use a constant that was estimated from draws as if it were known.
    """
    if len(inputs) < 1 or n < _FEWEST_CELLS:
        raise InputError(f"inputs={inputs!r:.100}, n={n!r}: at least one input and {_FEWEST_CELLS} draws are needed")
    low, high = check_interval("domain", domain)
    # The fifth root keeps the noise of a slope, about √(m³/n), falling as n grows.
    cells = Cells((low, high), max(_FEWEST_CELLS, round(n**0.2)))
    sampler = Sampler(as_mechanism(mechanism), check_seed(seed))
    counts = []
    for number, each in enumerate(inputs):
        counts.append(cells.count(sampler.outputs(Phase.TRAIN, number, Pair(each, each), 0, n)))
    check_inside(cells, *counts)
    width = (high - low) / cells.number
    densities = np.array([side.counts / n / width for side in counts])
    slopes = np.abs(np.diff(densities, axis=1)) / width
    noise = float(np.sqrt(2.0 * densities.max() / (n * width))) / width
    return LipschitzHint(float(slopes.max()), noise, _input_slope(densities, inputs))


def _input_slope(densities: NDArray[np.float64], inputs: Sequence[Any]) -> float | None:
    if len(inputs) < 2 or not all(isinstance(each, int | float) for each in inputs):
        return None
    order = np.argsort(np.asarray(inputs, dtype=np.float64), kind="stable")
    gaps = np.diff(np.asarray(inputs, dtype=np.float64)[order])
    rises = np.abs(np.diff(densities[order], axis=0)).max(axis=1)
    return float((rises[gaps > 0] / gaps[gaps > 0]).max()) if (gaps > 0).any() else None
