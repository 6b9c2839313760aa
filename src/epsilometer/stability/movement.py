"""How far one step moves between two neighbouring inputs: a counterexample without statistics."""

import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epsilometer.arrays import Floats
from epsilometer.claims.base import check_positive, check_whole
from epsilometer.errors import InputError, MechanismError
from epsilometer.inputs import Pair
from epsilometer.inputs.copying import copier, equal_fields
from epsilometer.mechanisms.base import failure_text, parameters_of
from epsilometer.stability.vectors import NumberVector, as_vector

# How many last digits of the two results together rounding may cost.
_DIGITS_LOST = 64.0
# Of the bound. Less is no counterexample, whatever type of number the step computes with inside.
_LEAST_EXCESS = 1e-6


@dataclass(frozen=True)
class Movement:
    """How far a step moved between two inputs, and how far it may.

    Attributes:
        largest: the distance of the two results, as a Euclidean norm; inf if they have different
            keys or numbers of values, or one has a number where the other has none.
        allowed: the declared bound.
        rounding: what floating-point arithmetic may add to it.
        pair: the inputs.
        values: what the step returned for each of them, as vectors.
        seed: of the random numbers that both had.

    Guarantee: exact. A movement above the bound is a counterexample by itself; one below it says
        nothing about other inputs.
    """

    largest: float
    allowed: float
    rounding: float
    pair: Pair
    values: tuple[Floats, Floats] = field(repr=False)
    seed: int

    __eq__ = equal_fields

    @property
    def is_refuted(self) -> bool:
        """Whether the step moves further than the bound, beyond rounding."""
        return self.largest > self.allowed + self.rounding

    def __str__(self) -> str:
        verdict = "refuted" if self.is_refuted else "not refuted on these inputs"
        return f"movement {self.largest:.4g}, allowed {self.allowed:.4g}: {verdict}"

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data, without the inputs."""
        return {
            "largest": self.largest,
            "allowed": self.allowed,
            "rounding": self.rounding,
            "is_refuted": self.is_refuted,
            "difference": self.pair.difference,
            "seed": self.seed,
        }


def movement(
    step: Callable[..., Any], left: Any, right: Any, bound: float, *, seed: int | None = None
) -> Movement:
    """Runs a step without noise on two neighbouring inputs, with the same random numbers.

    Set the noise multiplier to 0 and the sampling rate to 1, and return what the noise would be
    added to: the sum of the clipped gradients, or their average times the expected batch size. One
    record may then move it by at most the clip norm. Two runs decide; only where they refute, both
    are repeated, to make sure that the step returns the same again.

    Args:
        step: f(dataset), or f(dataset, rng) with a parameter of exactly that name, which gets the
            same random numbers on both sides. It returns numbers, arrays or tensors, or lists and
            dicts of them.
        left: a dataset.
        right: a neighbour of it.
        bound: how far the step may move, the clip norm.
        seed: of the random numbers; None takes a fresh one, which the result has.

    Raises:
        InputError: the step returns something else when it is called again.
        MechanismError: the step failed.

    Example:
        >>> from epsilometer import models, zoo
        >>> entry = zoo.training.dp_sgd("per_layer_clipping")
        >>> left, right = entry.movement_pair.left, entry.movement_pair.right
        >>> moved = models.movement(entry.step, left, right, entry.clip_norm)
        >>> print(moved)
        movement 1.414, allowed 1: refuted
    """
    if not callable(step):
        raise InputError(f"step={step!r:.100} must be a function of a dataset")
    allowed = check_positive("bound", bound)
    seed = secrets.randbits(63) if seed is None else check_whole("seed", seed, least=0)
    pair = Pair(left, right)
    one = _run(step, left, seed)
    other = _run(step, right, seed)
    moved = Movement(
        largest=_distance(one, other),
        allowed=allowed,
        rounding=_rounding(one, other, allowed, max(_count_records(left), _count_records(right))),
        pair=pair,
        values=(one.numbers, other.numbers),
        seed=seed,
    )
    if moved.is_refuted:
        _check_repeatable(step, moved, (one, other))
    return moved


def _run(step: Callable[..., Any], dataset: Any, seed: int) -> NumberVector:
    """One call of the step, with a copy of the dataset and random numbers of its own."""
    keywords = {"rng": np.random.default_rng(seed)} if "rng" in parameters_of(step) else {}
    try:
        result = step(copier(dataset)(), **keywords)
    except Exception as error:
        raise MechanismError(failure_text("step", dataset, error)) from error
    vector = as_vector("step", result)
    if not len(vector.numbers):
        raise InputError("step returned no numbers")
    return vector


def _count_records(dataset: Any) -> int:
    """How many records a dataset may have: the length of it, or of its longest part."""
    parts: Iterable[Any] = ()
    if isinstance(dataset, Mapping):
        parts = dataset.values()
    elif isinstance(dataset, tuple | list):
        parts = dataset
    sizes = [_length(dataset), *map(_length, parts)]
    return max(sizes)


def _length(value: Any) -> int:
    """The length of a collection; 1 for what has none."""
    try:
        return len(value)
    except TypeError:
        return 1


def _distance(one: NumberVector, other: NumberVector) -> float:
    """The Euclidean distance. Entries of dicts are compared key by key, whatever their order."""
    if one.by_key.keys() != other.by_key.keys():
        return float("inf")
    distances = [_distance_of_arrays(one.by_key[key], other.by_key[key]) for key in one.by_key]
    if not np.isfinite(distances).all():
        return float("inf")
    return _norm(np.array(distances))


def _distance_of_arrays(one: Floats, other: Floats) -> float:
    """The Euclidean distance; equal infinities and two NaN in one place do not count."""
    if one.shape != other.shape:
        return float("inf")
    is_same = (one == other) | (np.isnan(one) & np.isnan(other))
    with np.errstate(over="ignore", invalid="ignore"):
        differences = one[~is_same] - other[~is_same]
    if not np.isfinite(differences).all():
        return float("inf")
    return _norm(differences)


def _norm(numbers: Floats) -> float:
    """The Euclidean norm, also where the squares of the numbers are beyond all floats."""
    largest = float(np.abs(numbers).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    return largest * float(np.linalg.norm(numbers / largest))


def _rounding(one: NumberVector, other: NumberVector, bound: float, records: int) -> float:
    """What rounding may add to a distance.

    Digits of the results are lost where these are computed, and digits of the sum of all records,
    each of them up to the bound, before they cancel.
    """
    spacing = max(one.spacing, other.spacing)
    of_results = sum(
        _DIGITS_LOST * spacing * _norm(vector.numbers[np.isfinite(vector.numbers)])
        for vector in (one, other)
    )
    return of_results + (records * spacing + _LEAST_EXCESS) * bound


def _check_repeatable(
    step: Callable[..., Any], moved: Movement, results: tuple[NumberVector, NumberVector]
) -> None:
    """Raises an InputError if the step returns something else when it is called again."""
    for dataset, before in zip((moved.pair.left, moved.pair.right), results, strict=True):
        again = _run(step, dataset, moved.seed)
        if not _distance(before, again) <= moved.rounding:
            raise InputError(
                "step returns something else when it is called again with the same dataset: "
                "without noise it must depend on its arguments alone. Take random numbers from a "
                "parameter `rng`, or seed them inside the step; switch dropout off"
            )
