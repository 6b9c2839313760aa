"""DP-SGD of a linear model in plain NumPy, right and with the bugs that are found in the field.

Every entry releases all noisy gradients of one training. Its claim is the curve that an accountant
gives for Poisson batches and Gaussian noise, for adding or removing one record; its pair shows the
bug. The bugs are in the code and not in the parameters, so each of them is one overridden part of a
training that is right.

>>> from epsilometer import zoo
>>> entry = zoo.training.dp_sgd("per_layer_clipping")
>>> entry.keeps_claim, entry.parameters["steps"], entry.parameters["noise_multiplier"]
(False, 1, 0.35)
"""

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp

from epsilometer.arrays import Floats
from epsilometer.claims.base import as_number, check_positive
from epsilometer.errors import InputError
from epsilometer.inputs import Pair
from epsilometer.mechanisms import from_batch
from epsilometer.models.likelihoods import subsampled_score
from epsilometer.zoo.distributions.composition import composed_claim
from epsilometer.zoo.distributions.exact import PairDistributions
from epsilometer.zoo.entry import ZooEntry, check_count

__all__ = ["BUGS", "CLIP_NORM", "TrainingEntry", "dp_sgd"]

# The longest gradient of one record, after clipping.
CLIP_NORM = 1.0
# Records of a dataset, as everybody may know; the expected size of a batch is a share of it.
_RECORDS = 20
_LEARNING_RATE = 0.05
# Features of the usual records: small, so that their gradients are never clipped.
_USUAL_FEATURES = 0.2
_USUAL_LABEL = 0.1
# The canary's features and label: its gradient is 300 clip norms long whatever the model does.
_CANARY_FEATURE = 10.0
_CANARY_LABEL = 30.0
# Labels above this count as rare ones, which `label_sampling` takes more often.
_RARE_LABEL = 1.0
_RARE_LABEL_FACTOR = 3.0
# Added to standard deviations of features, as batch normalisation does.
_LEAST_DEVIATION = 0.1
# The seed that `seed_reused` gives to its noise in every run.
_REUSED_SEED = 7
_MAX_STEPS = 1000
_MAX_FEATURES = 4096
# The weakest noise: with less the claim says nothing that draws could refute.
_LEAST_NOISE = 0.05


# --- data


def _usual_records(n: int, d: int, label: float = _USUAL_LABEL) -> Floats:
    """Records with short gradients: features and, in the last column, the label.

    They are the same for everybody: they are the example, and no audit draws from them.
    """
    features = np.random.default_rng(0).normal(size=(n, d))
    features *= _USUAL_FEATURES / np.linalg.norm(features, axis=1, keepdims=True)
    return np.column_stack([features, np.full(n, label)])


def _canary(d: int, places: tuple[int, ...] = (-1,), sign: float = 1.0) -> Floats:
    """A record with a long gradient along some parameters."""
    record = np.zeros(d + 1)
    for place in places:
        record[:d][place] = sign * _CANARY_FEATURE
    record[d] = _CANARY_LABEL
    return record


def _added(records: Floats, record: Floats) -> Pair:
    """The records with one more, against those without it."""
    return Pair(np.vstack([records, record]), records)


def _canary_pair(d: int) -> Pair:
    return _added(_usual_records(_RECORDS - 1, d), _canary(d))


def _two_layers_pair(d: int) -> Pair:
    return _added(_usual_records(_RECORDS - 1, d), _canary(d, places=(0, -1)))


def _opposite_pair(d: int) -> Pair:
    """One record replaced by another one, whose gradient has the opposite direction."""
    usual = _usual_records(_RECORDS - 1, d)
    return Pair(np.vstack([usual, _canary(d)]), np.vstack([usual, _canary(d, sign=-1.0)]))


def _missing_value_pair(d: int) -> Pair:
    record = _canary(d)
    record[d - 1] = np.nan
    return _added(_usual_records(_RECORDS - 1, d), record)


def _large_labels_pair(d: int) -> Pair:
    """Others whose gradients are all as long as clipping allows, so that each can turn around."""
    return _added(_usual_records(_RECORDS - 1, d, label=_CANARY_LABEL), _canary(d))


def _first_record_pair(d: int) -> Pair:
    return _added(np.empty((0, d + 1)), _canary(d))


def _usual_pair(n: int, d: int) -> Pair:
    """A dataset of n usual records, against the same without the last one."""
    records = _usual_records(n, d)
    return Pair(records, records[:-1])


# --- training


@dataclass(frozen=True)
class _Training:
    """DP-SGD as it should be; the bugs override one of its parts.

    Attributes:
        steps: how many.
        rate: each record is in a batch with this probability, independently.
        noise_multiplier: the standard deviation of the noise, in clip norms.
        lot: the expected batch size, which is public.
    """

    steps: int
    rate: float
    noise_multiplier: float
    lot: float

    def run(self, rows: Floats, rng: Generator) -> Floats:
        """One training.

        Args:
            rows: shape (records, d + 1), features and label.
            rng: all chance.

        Returns:
            Everything that is released, one after the other: the noisy gradients of all steps, then
            whatever else is released.
        """
        model = np.zeros(rows.shape[1] - 1)
        noises = self.noises(len(model), rng)
        released: list[Floats] = []
        others: list[float] = []
        with np.errstate(over="ignore", invalid="ignore"):
            for batch in self.batches(rows, rng):
                gradients = self.released_gradients(model, batch, next(noises), len(rows))
                model = model - _LEARNING_RATE * np.sum(gradients, axis=0)
                released += gradients
                others += self.other_releases(model, batch)
        return np.concatenate([*released, others])

    def batches(self, rows: Floats, rng: Generator) -> Iterator[Floats]:
        """The batches of all steps: each record is in each with the same probability."""
        for _ in range(self.steps):
            yield rows[rng.random(len(rows)) < self.rate]

    def noises(self, d: int, rng: Generator) -> Iterator[Floats]:
        """The noise of all steps, for sums of gradients."""
        while True:
            yield self.noise_multiplier * CLIP_NORM * rng.normal(size=d)

    def released_gradients(
        self, model: Floats, batch: Floats, noise: Floats, n_records: int
    ) -> list[Floats]:
        """The noisy average gradient of a batch, one or several parts of shape (d,)."""
        total = self.clipped_sum(self.gradients(model, batch))
        return [(total + noise) / self.divisor(len(batch), n_records)]

    def gradients(self, model: Floats, batch: Floats) -> Floats:
        """The gradient of the squared error of each record, shape (records, d)."""
        features = batch[:, :-1]
        residuals = features @ model - batch[:, -1]
        return np.asarray(residuals[:, None] * features)

    def clipped_sum(self, gradients: Floats) -> Floats:
        """The sum of the clipped gradients; what is no number counts as 0."""
        finite = np.where(np.isfinite(gradients).all(axis=1, keepdims=True), gradients, 0.0)
        return np.asarray(_clipped(finite).sum(axis=0))

    def divisor(self, batch_size: int, n_records: int) -> float:
        """What sums are divided by: the expected batch size."""
        return self.lot

    def other_releases(self, model: Floats, batch: Floats) -> list[float]:
        """What is released besides the noisy gradient: nothing."""
        return []

    def noiseless(self) -> "_Training":
        """One step without noise, in which all records take part."""
        return replace(self, steps=1, rate=1.0, noise_multiplier=0.0, lot=float(_RECORDS))


def _clipped(gradients: Floats) -> Floats:
    """Gradients of at most the clip norm; `gradients` has shape (records, d)."""
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return np.asarray(gradients * np.minimum(1.0, CLIP_NORM / np.maximum(norms, 1e-300)))


class _ActualBatchSize(_Training):
    def divisor(self, batch_size: int, n_records: int) -> float:
        return max(batch_size, 1)


class _PrivateSize(_Training):
    def divisor(self, batch_size: int, n_records: int) -> float:
        return n_records * self.rate or 1.0


class _PrivateSizeFloored(_Training):
    def divisor(self, batch_size: int, n_records: int) -> float:
        # The small number makes up for rounding: 5 · .2 is one record.
        return max(int(n_records * self.rate + 1e-9), 1)


class _PerLayerClipping(_Training):
    def clipped_sum(self, gradients: Floats) -> Floats:
        middle = gradients.shape[1] // 2
        layers = [gradients[:, :middle], gradients[:, middle:]]
        return np.concatenate([super(_PerLayerClipping, self).clipped_sum(one) for one in layers])


class _ClipAfterAverage(_Training):
    def clipped_sum(self, gradients: Floats) -> Floats:
        average = gradients.sum(axis=0, keepdims=True) / max(len(gradients), 1)
        return np.asarray(_clipped(average)[0] * self.lot)


class _NoClipping(_Training):
    def clipped_sum(self, gradients: Floats) -> Floats:
        return np.asarray(gradients.sum(axis=0))


class _NanSurvives(_Training):
    def clipped_sum(self, gradients: Floats) -> Floats:
        # "Longer than the clip norm" is false for NaN.
        norms = np.linalg.norm(gradients, axis=1, keepdims=True)
        return np.asarray(np.where(norms > CLIP_NORM, gradients / norms, gradients).sum(axis=0))


class _EmptyBatchSkipped(_Training):
    def released_gradients(
        self, model: Floats, batch: Floats, noise: Floats, n_records: int
    ) -> list[Floats]:
        if not len(batch):
            return [np.zeros_like(model)]
        return super().released_gradients(model, batch, noise, n_records)


class _NoiseReused(_Training):
    def noises(self, d: int, rng: Generator) -> Iterator[Floats]:
        noise = next(super().noises(d, rng))
        while True:
            yield noise


class _MicroBatches(_Training):
    def released_gradients(
        self, model: Floats, batch: Floats, noise: Floats, n_records: int
    ) -> list[Floats]:
        halves = [batch[0::2], batch[1::2]]
        return [
            super(_MicroBatches, self).released_gradients(model, half, noise, n_records)[0]
            for half in halves
        ]


class _NoiseNotScaled(_Training):
    def noises(self, d: int, rng: Generator) -> Iterator[Floats]:
        for noise in super().noises(d, rng):
            yield noise / self.lot


class _ParameterWithoutNoise(_Training):
    def noises(self, d: int, rng: Generator) -> Iterator[Floats]:
        for noise in super().noises(d, rng):
            noise[-1] = 0.0
            yield noise


class _SeedReused(_Training):
    def noises(self, d: int, rng: Generator) -> Iterator[Floats]:
        return super().noises(d, np.random.default_rng(_REUSED_SEED))


class _Shuffled(_Training):
    def batches(self, rows: Floats, rng: Generator) -> Iterator[Floats]:
        per_epoch = max(round(1.0 / self.rate), 1)
        for step in range(self.steps):
            if step % per_epoch == 0:
                order = rng.permutation(len(rows))
            yield rows[order[step % per_epoch :: per_epoch]]


class _LabelSampling(_Training):
    def batches(self, rows: Floats, rng: Generator) -> Iterator[Floats]:
        rare = min(_RARE_LABEL_FACTOR * self.rate, 1.0)
        rates = np.where(rows[:, -1] > _RARE_LABEL, rare, self.rate)
        for _ in range(self.steps):
            yield rows[rng.random(len(rows)) < rates]


class _LossReleased(_Training):
    def other_releases(self, model: Floats, batch: Floats) -> list[float]:
        if not len(batch):
            return [0.0]
        return [float(np.mean((batch[:, :-1] @ model - batch[:, -1]) ** 2))]


class _BatchStatistics(_Training):
    def gradients(self, model: Floats, batch: Floats) -> Floats:
        if len(batch):
            features = batch[:, :-1]
            deviations = features.std(axis=0) + _LEAST_DEVIATION
            batch = np.column_stack([(features - features.mean(axis=0)) / deviations, batch[:, -1]])
        return super().gradients(model, batch)


# --- scores


def _projections(output: Floats, training: _Training, pair: Pair, n_parts: int = 1) -> Floats:
    """The noisy gradients along the canary's gradient, in clip norms; shape (steps · parts,)."""
    d = pair.left.shape[1] - 1
    # The model begins at 0, so that the gradient is minus the label times the features.
    direction = -pair.left[-1, :d]
    direction = direction / np.linalg.norm(direction)
    gradients = output[: training.steps * n_parts * d].reshape(-1, d)
    return np.asarray(gradients @ direction * training.lot)


def _likelihood_ratio(output: Floats, training: _Training, pair: Pair) -> float:
    along = _projections(output, training, pair)
    return float(subsampled_score(along, training.rate, training.noise_multiplier))


def _likelihood_ratio_of_one_step(output: Floats, training: _Training, pair: Pair) -> float:
    """As it is if the canary is in exactly one of the batches."""
    along = _projections(output, training, pair)
    return float(logsumexp(along / training.noise_multiplier**2))


def _sum_along(output: Floats, training: _Training, pair: Pair) -> float:
    return float(_projections(output, training, pair).sum())


def _largest_along(output: Floats, training: _Training, pair: Pair) -> float:
    return float(_projections(output, training, pair).max())


def _range_along(output: Floats, training: _Training, pair: Pair) -> float:
    return float(np.ptp(_projections(output, training, pair)))


def _largest_difference_of_halves(output: Floats, training: _Training, pair: Pair) -> float:
    along = _projections(output, training, pair, n_parts=2)
    return float(np.abs(along[0::2] - along[1::2]).max())


def _smallness(output: Floats, training: _Training, pair: Pair) -> float:
    """Minus the mean square of all numbers."""
    return -float(np.mean(output**2))


def _smallness_of_a_step(output: Floats, training: _Training, pair: Pair) -> float:
    """Minus the mean square of the step in which it is smallest."""
    return -float(np.mean(output.reshape(training.steps, -1) ** 2, axis=1).min())


def _n_not_finite(output: Floats, training: _Training, pair: Pair) -> float:
    return float(np.count_nonzero(~np.isfinite(output)))


def _n_not_zero(output: Floats, training: _Training, pair: Pair) -> float:
    return float(np.count_nonzero(output))


def _largest_loss(output: Floats, training: _Training, pair: Pair) -> float:
    return float(output[-training.steps :].max())


class _ScoreOfOutput(Protocol):
    """A number that tells the sides of a pair apart, larger on the left."""

    def __call__(self, output: Floats, training: _Training, pair: Pair) -> float: ...


# --- bugs


@dataclass(frozen=True)
class _Bug:
    """A bug, with inputs and parameters that show it.

    Attributes:
        summary: what the code does.
        training: the code.
        pair: inputs of d features for an audit, the record on the left.
        score: what tells the two sides of the pair apart.
        movement_pair: inputs on which a step without noise moves too far, where others show it
            better.
        steps: parameters at which few runs are enough.
        rate: likewise.
        noise_multiplier: likewise.
        d: likewise.
    """

    summary: str
    training: type[_Training]
    pair: Callable[[int], Pair] = _canary_pair
    score: _ScoreOfOutput = _likelihood_ratio
    movement_pair: Callable[[int], Pair] | None = None
    steps: int = 10
    rate: float = 0.2
    noise_multiplier: float = 1.0
    d: int = 8


_RIGHT = _Bug("DP-SGD of a linear model: Poisson batches, clipped gradients, noise", _Training)

_BUGS: dict[str, _Bug] = {
    "actual_batch_size": _Bug(
        "divides by the number of records that happen to be in the batch",
        _ActualBatchSize,
        pair=partial(_usual_pair, 2),
        score=_smallness_of_a_step,
        movement_pair=_first_record_pair,
        d=64,
    ),
    "private_size": _Bug(
        "divides by an expected batch size that it takes from the private number of records",
        _PrivateSize,
        pair=partial(_usual_pair, 9),
        score=_smallness,
        movement_pair=_first_record_pair,
        d=64,
    ),
    "private_size_floored": _Bug(
        "divides by the private expected batch size, rounded down (Opacus #819)",
        _PrivateSizeFloored,
        pair=partial(_usual_pair, 10),
        score=_smallness,
        movement_pair=_first_record_pair,
        d=64,
    ),
    "per_layer_clipping": _Bug(
        "clips each of two layers to the bound of both together",
        _PerLayerClipping,
        pair=_two_layers_pair,
        steps=1,
        rate=1.0,
        noise_multiplier=0.35,
    ),
    "clip_after_average": _Bug(
        "clips the average gradient instead of each record's", _ClipAfterAverage
    ),
    "no_clipping": _Bug("does not clip", _NoClipping),
    "replace_one": _Bug(
        "is right, but its accountant is for adding or removing, and records are replaced",
        _Training,
        pair=_opposite_pair,
        steps=1,
        rate=1.0,
    ),
    "nan": _Bug(
        "lets a gradient that is not a number survive clipping",
        _NanSurvives,
        pair=_missing_value_pair,
        score=_n_not_finite,
    ),
    "empty_batch": _Bug(
        "skips the step, noise included, when a batch is empty",
        _EmptyBatchSkipped,
        pair=_first_record_pair,
        score=_n_not_zero,
    ),
    "noise_reused": _Bug(
        "draws noise once and adds it in every step", _NoiseReused, score=_range_along
    ),
    "micro_batches": _Bug(
        "adds the same noise to both micro-batches of a step",
        _MicroBatches,
        score=_largest_difference_of_halves,
    ),
    "noise_not_scaled": _Bug("adds the noise of an average to a sum", _NoiseNotScaled),
    "parameter_without_noise": _Bug(
        "forgets the noise of one parameter", _ParameterWithoutNoise, score=_largest_along
    ),
    "seed_reused": _Bug("seeds its noise alike in every run", _SeedReused, score=_sum_along),
    "shuffled": _Bug(
        "goes through shuffled data, with the accountant of Poisson batches",
        _Shuffled,
        score=_likelihood_ratio_of_one_step,
        steps=5,
        noise_multiplier=0.4,
    ),
    "label_sampling": _Bug("puts records with rare labels into more batches", _LabelSampling),
    "loss_released": _Bug(
        "tells the loss of each batch without noise", _LossReleased, score=_largest_loss
    ),
    "batch_statistics": _Bug(
        "normalises features by the batch's means, so that each record moves all gradients",
        _BatchStatistics,
        pair=_large_labels_pair,
    ),
}

# The names that `dp_sgd` takes, and what each of them does.
BUGS = MappingProxyType({name: bug.summary for name, bug in _BUGS.items()})


class _Unknown(PairDistributions):
    """Output distributions of which nothing is known in closed form."""

    def renyi(self, order: float) -> None:
        """See `PairDistributions`."""


@dataclass(frozen=True, repr=False)
class TrainingEntry(ZooEntry):
    """A training, what it claims, and what shows its bug.

    Attributes:
        movement_pair: neighbours on which a step without noise moves most.
        clip_norm: how far one record may move a step without noise.
        step: `step(dataset, rng)` is one step without noise in which all records take part, as the
            sum of gradients, for `epsilometer.models.movement`.
        score: `score(output)` is a number that tells the sides of `worst_pair` apart, larger on the
            left, for `epsilometer.from_scores`.
    """

    movement_pair: Pair
    clip_norm: float
    step: Callable[[Any, Generator], Floats] = field(repr=False, compare=False)
    score: Callable[[Floats], float] = field(repr=False, compare=False)


def dp_sgd(
    bug: str | None = None,
    steps: int | None = None,
    rate: float | None = None,
    noise_multiplier: float | None = None,
    d: int | None = None,
    *,
    lot: float | None = None,
) -> TrainingEntry:
    """DP-SGD of a linear model, which releases its noisy gradients; right, or with a bug.

    An output has the d numbers of each step's noisy average gradient, one step after the other, and
    then whatever the bug tells beside them. Datasets are arrays of shape (records, d + 1), with the
    label in the last column. The claim is the curve of `steps` Poisson-subsampled Gaussian steps,
    for adding or removing one record.

    Args:
        bug: one of `BUGS`; None for the right one.
        steps: how many. None takes a number at which the bug shows in few runs, 10 for most; so do
            the other parameters.
        rate: the probability with which each record is in a batch.
        noise_multiplier: the standard deviation of the noise, in clip norms.
        d: parameters of the model.
        lot: the expected size of a batch, as everybody may know it. None takes that of the entry's
            own pairs, which have about 20 records.

    Reference: Abadi et al., "Deep learning with differential privacy".

    Example:
        >>> from epsilometer import zoo
        >>> entry = zoo.training.dp_sgd("no_clipping")
        >>> em.audit(entry, samples=200, seed=0).verdict
        <Verdict.REFUTED: 'refuted'>
    """
    about = _RIGHT if bug is None else _find_bug(bug)
    parameters = {
        "steps": check_count("steps", about.steps if steps is None else steps, 1, _MAX_STEPS),
        "rate": _check_rate(about.rate if rate is None else rate),
        "noise_multiplier": _check_noise(
            about.noise_multiplier if noise_multiplier is None else noise_multiplier
        ),
        "d": check_count("d", about.d if d is None else d, 2, _MAX_FEATURES),
    }
    parameters["lot"] = _RECORDS * parameters["rate"] if lot is None else check_positive("lot", lot)
    n_features = int(parameters["d"])
    training = about.training(
        steps=int(parameters["steps"]),
        rate=parameters["rate"],
        noise_multiplier=parameters["noise_multiplier"],
        lot=parameters["lot"],
    )
    pair = about.pair(n_features)
    movement_pair = about.movement_pair or about.pair
    return TrainingEntry(
        name="training.dp_sgd",
        summary=about.summary,
        mechanism=from_batch(partial(_trainings, training=training), name="training.dp_sgd"),
        claim=composed_claim(training.rate, training.noise_multiplier, training.steps),
        worst_pair=pair,
        keeps_claim=bug is None,
        parameters=({} if bug is None else {"bug": bug}) | parameters,
        make_distributions=_Unknown,
        movement_pair=movement_pair(n_features),
        clip_norm=CLIP_NORM,
        step=partial(_noiseless_step, training=training.noiseless()),
        score=partial(about.score, training=training, pair=pair),
    )


def _trainings(dataset: Any, n: int, rng: Generator, *, training: _Training) -> Floats:
    """Draws n trainings; outputs of shape (n, released numbers)."""
    rows = _as_rows(dataset)
    return np.stack([training.run(rows, rng) for _ in range(n)])


def _noiseless_step(dataset: Any, rng: Generator, *, training: _Training) -> Floats:
    """One step without noise, as the sum of gradients."""
    return training.run(_as_rows(dataset), rng) * training.lot


def _as_rows(dataset: Any) -> Floats:
    rows = np.asarray(dataset, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] < 3:
        raise InputError(
            f"the dataset has shape {rows.shape}; it must have one row per record, "
            "with two features or more and the label in the last column"
        )
    return rows


def _find_bug(name: str) -> _Bug:
    bug = _BUGS.get(name)
    if bug is None:
        close = difflib.get_close_matches(str(name), _BUGS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        raise InputError(f"bug={name!r} is unknown; {hint}there are: {', '.join(_BUGS)}")
    return bug


def _check_rate(value: float) -> float:
    rate = as_number("rate", value)
    if not 0.0 < rate <= 1.0:
        raise InputError(f"rate={value!r} must be above 0 and at most 1")
    return rate


def _check_noise(value: float) -> float:
    noise_multiplier = check_positive("noise_multiplier", value)
    if noise_multiplier < _LEAST_NOISE:
        raise InputError(
            f"noise_multiplier={value!r} must be at least {_LEAST_NOISE}; "
            "`step` of the entry is without noise"
        )
    return noise_multiplier
