"""Objects of other libraries, used directly as mechanisms.

These are measurements of OpenDP, mechanisms of diffprivlib, and anything with a method `randomise`;
and what installed packages bring as plug-ins.
"""

import inspect
import math
import pickle
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from importlib.metadata import EntryPoint, entry_points
from numbers import Real
from typing import Any

import numpy as np

from epsilometer.claims import ZCDP, ApproxDP, Claim, PureDP
from epsilometer.errors import InputError, MechanismError, blamed, short_repr
from epsilometer.inputs import Pair
from epsilometer.inputs.copying import copier, snapshot
from epsilometer.mechanisms.base import Mechanism, failure_text, parameters_of
from epsilometer.mechanisms.drawing_log import draw_one_by_one
from epsilometer.outputs import Outputs, read_outputs
from epsilometer.storage import Undigestible, code_digest

# Outputs per chunk: such objects draw one at a time, in ten to a hundred microseconds.
_CHUNK = 256
# A distance may exceed a limit by this fraction because of rounding: 0.3 - 0.2 is above 0.1.
_ROUNDING = 1e-9


class OpenDPMechanism(Mechanism):
    """A measurement, or a function without arguments that makes one."""

    is_seeded = False

    def __init__(
        self,
        source: Any,
        *,
        distance: float | None = None,
        delta: float | None = None,
        name: str | None = None,
    ) -> None:
        if not is_measurement(source) and not callable(source):
            raise InputError(
                f"measurement={short_repr(source)} must be an OpenDP Measurement "
                "or a function that makes one"
            )
        self.source = source
        self.distance = distance
        self.delta = delta
        self.chunk_size = _CHUNK
        measurement = self.measurement
        self.name = name or (
            f"OpenDP measurement from {measurement.input_metric} to {measurement.output_measure}"
        )

    @cached_property
    def measurement(self) -> Any:
        """The measurement itself."""
        if is_measurement(self.source):
            return self.source
        measurement = self.source()
        if not is_measurement(measurement):
            raise InputError(
                f"the function {short_repr(self.source)} made {short_repr(measurement)}, "
                "not an OpenDP Measurement"
            )
        return measurement

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Invokes the measurement n times, each time with a copy of the dataset."""
        return _draw_each(self, self.measurement, dataset, n)

    def promise(self, pairs: Sequence[Pair]) -> Claim:
        """Returns the privacy map at the distance of the pair that is farthest apart.

        Distances are in the measurement's own metric.
        """
        distances = [self._distance_of(pair) for pair in pairs]
        if not pairs and self.distance is not None:
            distances = [self.distance]
        if not distances:
            raise InputError(
                f"the claim of {self.name} depends on how far the two inputs are apart; "
                "give the inputs, em.from_opendp(measurement, distance=…), or a claim"
            )
        distance = max(distances)
        try:
            # Of the type that the map takes: whole for edits, a float for differences of floats.
            takes_floats = str(self.measurement.input_distance_type).startswith("f")
            loss = self.measurement.map(float(distance) if takes_floats else math.ceil(distance))
        except Exception as error:
            raise InputError(
                f"the privacy map of {self.name} fails at the distance {distance!r}: {error}; "
                "give a claim"
            ) from error
        return _claim(str(self.measurement.output_measure), loss, self.delta)

    def _distance_of(self, pair: Pair) -> float:
        """Returns how far the inputs of a pair are apart: as given, or by the metric."""
        metric = str(self.measurement.input_metric)
        if self.distance is None:
            return _distance(metric, pair)
        apart = 0.0
        if _kind_of(metric) in _EXACT_METRICS:
            with suppress(InputError):  # where it is not known, the caller is believed
                apart = _distance(metric, pair)
        if apart > self.distance * (1.0 + _ROUNDING):
            raise InputError(
                f"distance={self.distance!r} is too small: {short_repr(pair.left)} and "
                f"{short_repr(pair.right)} are {apart:g} apart in {metric}; "
                "omit distance=, or give closer inputs or a claim"
            )
        return self.distance

    def digest(self) -> str:
        """Returns a digest of the function that makes the measurement.

        The object itself cannot be inspected.
        """
        if is_measurement(self.source):
            advice = "give em.from_opendp a function that makes it"
            raise Undigestible(f"an OpenDP measurement cannot be recognised again; {advice}")
        return code_digest((self.source, self.distance, self.delta))

    def __getstate__(self) -> dict[str, Any]:
        if is_measurement(self.source):
            advice = "for worker processes give em.from_opendp a function that makes it"
            raise pickle.PicklingError(f"cannot pickle an OpenDP measurement; {advice}")
        return {key: value for key, value in vars(self).items() if key != "measurement"}


def _draw_each(
    mechanism: Mechanism,
    draw: Callable[..., Any],
    dataset: Any,
    n: int,
    keywords: Mapping[str, Any] = {},
) -> Outputs:
    """Draws n outputs, each from a copy of the dataset.

    Args:
        mechanism: whose name and features are used.
        draw: returns one output of a dataset.
        dataset: the input.
        n: how many outputs.
        keywords: further arguments of `draw`.
    """
    fresh_copy = copier(dataset)
    read = mechanism.features or read_outputs
    try:
        values = draw_one_by_one(lambda: snapshot(draw(fresh_copy(), **keywords)), n, read)
    except Exception as error:
        raise MechanismError(failure_text(mechanism.name, dataset, error)) from error
    return read(values, n)


def from_opendp(
    measurement: Any,
    *,
    distance: float | None = None,
    delta: float | None = None,
    name: str | None = None,
) -> OpenDPMechanism:
    """A mechanism from an OpenDP measurement, with what the bare object leaves open.

    Args:
        measurement: the object, or a function without arguments that makes it (which worker
            processes need).
        distance: of the two inputs, by the measurement's metric; worked out for common metrics.
        delta: where to read a claim off a privacy map that is a whole profile.
        name: its name in reports.

    Example:
        >>> import opendp.prelude as dp
        >>> dp.enable_features("contrib")
        >>> domain = dp.atom_domain(T=float, nan=False)
        >>> laplace = dp.m.make_laplace(domain, dp.absolute_distance(T=float), scale=1.0)
        >>> em.audit(em.from_opendp(laplace), em.Pair(0.0, 1.0), samples=300, seed=0).claim
        PureDP(epsilon=1.0)
    """
    return OpenDPMechanism(measurement, distance=distance, delta=delta, name=name)


def is_measurement(candidate: object) -> bool:
    """Returns whether this is a `Measurement` of OpenDP, without importing it."""
    candidate_type = type(candidate)
    return candidate_type.__name__ == "Measurement" and _library_of(candidate_type) == "opendp"


def _library_of(a_class: type) -> str:
    """Returns the name of the library that defines a class."""
    return a_class.__module__.partition(".")[0]


def _claim(measure: str, loss: Any, delta: float | None) -> Claim:
    """Returns the claim that a privacy map makes.

    Args:
        measure: the name of the privacy measure.
        loss: what the map returned.
        delta: where to read a claim off a privacy profile.
    """
    if measure == "MaxDivergence":
        return PureDP(float(loss))
    if measure == "ZeroConcentratedDivergence":
        return ZCDP(float(loss))
    if measure == "Approximate(MaxDivergence)":
        epsilon = float(loss[0])
        return ApproxDP(epsilon, float(loss[1])) if loss[1] > 0 else PureDP(epsilon)
    advice = ""
    if measure == "SmoothedMaxDivergence":
        if delta is not None:
            return ApproxDP(float(loss.epsilon(delta)), delta)
        advice = "em.from_opendp(measurement, delta=…) or "
    raise InputError(
        f"the privacy map is in {measure}, which is not a claim by itself; give {advice}a claim"
    )


def _kind_of(metric: str) -> str:
    """Returns the name of a metric, without its parameters."""
    return metric.partition("(")[0]


def _distance(metric: str, pair: Pair) -> float:
    """Returns how far the inputs of a pair are apart.

    Raises:
        InputError: if that is not known: for other metrics, and for values that have no distance,
            like NaN.
    """
    rule = _DISTANCE_RULES.get(_kind_of(metric))
    if _kind_of(metric) == "LInfDistance" and "monotonic" in metric:
        rule = _greatest_change_of_one_sign
    if rule is not None:
        with suppress(TypeError, ValueError, OverflowError):
            distance = rule(pair.left, pair.right)
            if math.isfinite(distance):
                return distance
    raise InputError(
        f"how far apart {short_repr(pair.left)} and {short_repr(pair.right)} are in {metric} is "
        "not known; "
        "give em.from_opendp(measurement, distance=…) or a claim"
    )


def _rows(dataset: Any) -> list[Any]:
    """Returns the rows of a dataset.

    A data frame or a text is refused: it would be taken apart into other things than rows.
    """
    if not _is_vector(dataset):
        raise TypeError("not a list of rows")
    return dataset.tolist() if isinstance(dataset, np.ndarray) else list(dataset)


def _is_vector(value: object) -> bool:
    return isinstance(value, list | tuple | np.ndarray)


def _number(value: Any) -> int | float:
    """Returns a number as a Python number: whole ones of any size are exact."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, int | float):
        raise TypeError("not a number")
    return value


def _differences(left: Any, right: Any) -> list[int | float]:
    """Returns what each number of a vector changes by; a single number is a vector of one."""
    if not _is_vector(left) and not _is_vector(right):
        return [_number(left) - _number(right)]
    pairs = zip(_rows(left), _rows(right), strict=True)
    return [_number(left_value) - _number(right_value) for left_value, right_value in pairs]


def _sum_of_changes(left: Any, right: Any) -> float:
    """Returns the L1 distance, exact for whole numbers."""
    changes = [abs(change) for change in _differences(left, right)]
    if all(isinstance(change, int) for change in changes):
        return sum(changes)
    return math.fsum(changes)


def _length_of_change(left: Any, right: Any) -> float:
    """Returns the L2 distance."""
    return math.hypot(*_differences(left, right))


def _greatest_change(left: Any, right: Any) -> float:
    """Returns the L∞ distance."""
    return max((abs(change) for change in _differences(left, right)), default=0)


def _greatest_change_of_one_sign(left: Any, right: Any) -> float:
    """Returns the L∞ distance in a monotonic metric.

    It is undefined between vectors of which some numbers grow and others shrink.
    """
    changes = _differences(left, right)
    if min(changes, default=0) < 0 < max(changes, default=0):
        raise ValueError("changes of both signs")
    return _greatest_change(left, right)


def _edits(left: Any, right: Any) -> float:
    """Returns the number of rows to be added and removed, whatever their order."""
    left_rows = Counter(_rows(left))
    right_rows = Counter(_rows(right))
    return (left_rows - right_rows).total() + (right_rows - left_rows).total()


def _changes(left: Any, right: Any) -> float:
    """Returns the number of rows to be changed, position by position.

    That is never less than OpenDP's distance, which may reorder.
    """
    pairs = zip(_rows(left), _rows(right), strict=True)
    return sum(bool(left_row != right_row) for left_row, right_row in pairs)


def _one_step(left: Any, right: Any) -> float:
    """Returns 1: inputs that differ are neighbours."""
    return 1


_DISTANCE_RULES: dict[str, Callable[[Any, Any], float]] = {
    "AbsoluteDistance": _sum_of_changes,
    "L1Distance": _sum_of_changes,
    "L2Distance": _length_of_change,
    "LInfDistance": _greatest_change,
    "DiscreteDistance": _one_step,
    "SymmetricDistance": _edits,
    "ChangeOneDistance": _changes,
    "HammingDistance": _changes,
}
# Metrics whose rule is exact. The others may be shorter than our rule says, because rows may be
# reordered.
_EXACT_METRICS = _DISTANCE_RULES.keys() - {"ChangeOneDistance"}


class ObjectMechanism(Mechanism):
    """An object whose method `randomise` (or `randomize`) turns a dataset into one output."""

    def __init__(self, owner: Any, method: str) -> None:
        self.owner = owner
        self.method = method
        self.name = type(owner).__name__
        self.chunk_size = _CHUNK
        self.is_seeded = "rng" in parameters_of(getattr(owner, method))

    def sample(self, dataset: Any, n: int, rng: np.random.Generator) -> Outputs:
        """Calls the method n times, each time with a copy of the dataset."""
        keywords = {"rng": rng} if self.is_seeded else {}
        return _draw_each(self, getattr(self.owner, self.method), dataset, n, keywords)


class DiffprivlibMechanism(ObjectMechanism):
    """A mechanism of diffprivlib, with the claim that its epsilon and delta make."""

    def __init__(self, owner: Any) -> None:
        super().__init__(owner, "randomise")
        self.name = f"diffprivlib {type(owner).__name__}"
        value = parameters_of(owner.randomise).get("value")
        if value is not None and value.default is not inspect.Parameter.empty:
            # Exponential and PermuteAndFlip ignore the value: an audit would compare equal
            # distributions.
            raise InputError(
                f"{self.name} has its dataset inside, as `utility`; give a function of it instead: "
                f"lambda utility: {type(owner).__name__}(…, utility=utility).randomise()"
            )

    def promise(self, pairs: Sequence[Pair]) -> Claim:
        """Returns the (ε, δ) of the object.

        It promises them for numbers no farther apart than its sensitivity.
        """
        sensitivity = getattr(self.owner, "sensitivity", None)
        if isinstance(sensitivity, Real):
            for pair in pairs:
                self._check_near(pair, float(sensitivity))
        epsilon = float(self.owner.epsilon)
        delta = float(self.owner.delta)
        return ApproxDP(epsilon, delta) if delta > 0 else PureDP(epsilon)

    def _check_near(self, pair: Pair, sensitivity: float) -> None:
        """Refuses inputs farther apart than the sensitivity, and inputs that have no distance."""
        inputs = f"the inputs {short_repr(pair.left)} and {short_repr(pair.right)}"
        advice = f"give closer inputs, a domain with sensitivity={sensitivity:g}, or your own claim"
        try:
            apart = float(abs(_number(pair.left) - _number(pair.right)))
        except (TypeError, OverflowError):
            apart = math.nan
        if math.isnan(apart):
            raise InputError(
                f"how far apart {inputs} are is not known, so what {self.name} claims is not; "
                f"{advice}"
            )
        if apart > sensitivity * (1.0 + _ROUNDING):
            raise InputError(
                f"{inputs} are {apart:g} apart, but {self.name} only makes a promise up to "
                f"sensitivity={sensitivity:g}; {advice}"
            )

    def __reduce__(self) -> "tuple[Callable[..., DiffprivlibMechanism], tuple[Any, ...]]":
        state = dict(vars(self.owner))
        generator = state.pop("_rng", None)
        if generator is not None and not isinstance(generator, secrets.SystemRandom):
            reason = "its random_state would be copied and every worker would draw the same"
            raise pickle.PicklingError(f"cannot pickle {self.name}: {reason}")
        return _restore_diffprivlib, (type(self.owner), state, self.features)


def adapt(candidate: object) -> Mechanism | None:
    """Returns an object of another library as a mechanism; None if it is not recognised."""
    if is_measurement(candidate):
        return OpenDPMechanism(candidate)
    if isinstance(candidate, type):
        return None
    for ancestor in type(candidate).__mro__:
        if ancestor.__name__ == "DPMechanism" and _library_of(ancestor) == "diffprivlib":
            return DiffprivlibMechanism(candidate)
    for method in ("randomise", "randomize"):
        if callable(getattr(candidate, method, None)):
            return ObjectMechanism(candidate, method)
    return None


@cache
def installed_plugins(kind: str) -> dict[str, EntryPoint]:
    """Returns the plug-ins of installed packages by name.

    They are entry points of the group `epsilometer.<kind>`. This reads every package's metadata. Of
    two packages that bring one name, the alphabetically first wins.
    """
    # The last one of a name stays.
    plugins = sorted(
        entry_points(group=f"epsilometer.{kind}"),
        key=lambda plugin: plugin.value,
        reverse=True,
    )
    return {plugin.name: plugin for plugin in plugins}


def find_installed_mechanism(name: str) -> Any:
    """Loads the mechanism that an installed package brings under a name.

    It may be anything that `audit` takes for a mechanism.
    """
    plugins = installed_plugins("mechanisms")
    if name not in plugins:
        names = ", ".join(sorted(plugins)) or "none"
        raise InputError(f"no installed package brings a mechanism {name!r}; there are: {names}")
    with blamed(f"the mechanism {name!r} of {plugins[name].value} cannot be loaded"):
        return plugins[name].load()


def _restore_diffprivlib(
    owner_class: type, state: dict[str, Any], features: Any
) -> DiffprivlibMechanism:
    """Restores a mechanism in a worker, with a generator of the worker's own."""
    owner: Any = object.__new__(owner_class)
    vars(owner).update(state, _rng=secrets.SystemRandom())
    return DiffprivlibMechanism(owner).with_features(features)


def fitted(estimator: Any) -> dict[str, Any]:
    """Returns what an estimator of scikit-learn has learned, as an output that can be audited.

    These are its public attributes whose names end in an underscore (`coef_`, `classes_`, ...), of
    the estimators inside it as well. Whatever else it holds, like its copy of the training data, is
    not looked at.

    Example:
        >>> class Estimator:
        ...     def fit(self, values):
        ...         self.mean_ = sum(values) / len(values)
        ...         return self
        >>> em.fitted(Estimator().fit([1.0, 2.0]))
        {'mean_': 1.5}

    Raises:
        MechanismError: if it has learned nothing.
    """
    names = [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]
    if not names:
        raise MechanismError(
            f"{short_repr(estimator)} has learned nothing: no attribute ends in an underscore; "
            "call fit first"
        )
    return {name: _learned(vars(estimator)[name]) for name in names}


def _learned(value: Any) -> Any:
    """Returns a learned value as an output, with what estimators inside it have learned."""
    if isinstance(value, list | tuple):
        return [_learned(item) for item in value]
    if isinstance(value, dict):
        return {name: _learned(item) for name, item in value.items()}
    if hasattr(value, "get_params") and hasattr(value, "fit"):
        return fitted(value)
    # The nodes of a tree: an object of compiled code, whose state is arrays.
    if _library_of(type(value)) == "sklearn":
        state = value.__getstate__()
        if isinstance(state, dict):
            return state
    return value
