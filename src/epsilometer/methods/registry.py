"""All methods by name: ours, and those of other packages.

Other packages bring theirs as entry points of the group `epsilometer.methods`. The code of a method
is loaded when it is asked for: most audits need only one of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, cast

from epsilometer.claims import Claim, PureDP
from epsilometer.errors import InputError, blamed, did_you_mean, meant_or_known
from epsilometer.inputs import Pair
from epsilometer.mechanisms.libraries import installed_plugins
from epsilometer.methods.base import Candidate, Method, Proposal, Task
from epsilometer.methods.events import EventProposal
from epsilometer.outputs import Event, Outputs
from epsilometer.outputs.events import LogRatio
from epsilometer.result import Finding, Witness


class _MethodPlace(NamedTuple):
    """Where the class of a method is; it takes the method's options object, or nothing."""

    module: str
    class_name: str

    def load_module(self) -> ModuleType:
        """Imports the module."""
        return import_module(self.module)


_PUBLISHED = "epsilometer.methods.published"
_METHODS: dict[str, _MethodPlace] = {
    "auto": _MethodPlace("epsilometer.methods.auto", "AutoMethod"),
    "events": _MethodPlace("epsilometer.methods.events", "EventsMethod"),
    "hockey-stick": _MethodPlace(f"{_PUBLISHED}.auditorium.hockey_stick", "HockeyStickMethod"),
    "ldp-histogram": _MethodPlace(f"{_PUBLISHED}.ldp.method", "HistogramMethod"),
    "profile": _MethodPlace("epsilometer.methods.profile", "ProfileMethod"),
    "sequential": _MethodPlace("epsilometer.methods.sequential", "SequentialMethod"),
    "bits": _MethodPlace("epsilometer.methods.bits", "BitsMethod"),
    "local": _MethodPlace(f"{_PUBLISHED}.local.method", "LocalMethod"),
    "mmd": _MethodPlace(f"{_PUBLISHED}.auditorium.mmd", "MmdMethod"),
    "poisson-histogram": _MethodPlace(
        f"{_PUBLISHED}.auditorium.poisson_histogram", "PoissonHistogramMethod"
    ),
    "renyi-bet": _MethodPlace("epsilometer.methods.renyi_bet", "RenyiBetMethod"),
    "renyi-variational": _MethodPlace(
        f"{_PUBLISHED}.auditorium.renyi_variational", "RenyiVariationalMethod"
    ),
    "renyi-floored": _MethodPlace(f"{_PUBLISHED}.renyi.method", "RenyiFlooredMethod"),
}


def names() -> list[str]:
    """Every name that `method=` takes, ours first."""
    plugins = installed_plugins("methods").keys() - _METHODS.keys()
    return [*_METHODS, *sorted(plugins)]


def origin(name: str) -> str:
    """The name of the package that brings a method."""
    if name in _METHODS:
        return "epsilometer"
    distribution = installed_plugins("methods")[name].dist
    return "?" if distribution is None else distribution.name


def find_method(name: str, options: object = None) -> Method:
    """Makes the method of that name; `auto` is the best one for the claim.

    Args:
        name: one of `names()`.
        options: the method's options object, the same as a mapping, or None for the defaults.
    """
    if name in _METHODS:
        return _make_built_in(name, options)
    if name in installed_plugins("methods"):
        return _load_plugin(name, options)
    raise InputError(
        f"method={name!r} is unknown; known are {', '.join(names())}{did_you_mean(name, names())}"
    )


def _make_built_in(name: str, options: object) -> Method:
    place = _METHODS[name]
    method_class = getattr(place.load_module(), place.class_name)
    if options is None:
        return cast(Method, method_class())
    checked_options = as_options(name, options)
    if not option_names(name):
        hint = "; name the method they belong to" if name == "auto" else ""
        raise InputError(f"options={options!r:.100}: the method {name} has none{hint}")
    return cast(Method, method_class(checked_options))


def _load_plugin(name: str, options: object) -> Method:
    entry_point = installed_plugins("methods")[name]
    with blamed(f"the method {entry_point.name} of {entry_point.value} cannot be made"):
        method = entry_point.load()
        is_factory = isinstance(method, type) or not callable(getattr(method, "propose", None))
        if is_factory:
            method = method() if options is None else method(options)
            # The method has them now.
            options = None
    return as_method(method, options)


def as_method(method: object, options: object = None) -> Method:
    """Makes a method of what a user gives as `method=`.

    Args:
        method: the name of a method, or an object that does what `Method` says.
        options: those of a named method; an object brings its own.
    """
    if isinstance(method, str):
        return find_method(method, options)
    missing = []
    for name in ("name", "summary", "guarantee"):
        text = getattr(method, name, None)
        if not isinstance(text, str) or not text:
            missing.append(name)
    if not callable(getattr(method, "propose", None)):
        missing.append("propose(left, right, task)")
    is_class = isinstance(method, type)
    if missing or is_class:
        hint = "make an object of it" if is_class else f"it lacks {', '.join(missing)}"
        raise InputError(
            f"method={method!r:.100} is neither a name of `epsilometer methods` nor a method:"
            f" {hint}"
        )
    if options is not None:
        raise InputError(
            f"options={options!r:.100}: a method that is given as an object brings its options"
            " with it"
        )
    return method if isinstance(method, Method) else _ForeignMethod(method)


class _ForeignMethod(Method):
    """Wraps an object that has the names of a method, and adds the defaults of those it lacks."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped
        self.name = wrapped.name
        self.summary = wrapped.summary
        self.guarantee = wrapped.guarantee

    def __repr__(self) -> str:
        return repr(self.wrapped)

    def propose(self, left: Outputs, right: Outputs, task: Task) -> Proposal:
        """Delegates to the wrapped method, and wraps its proposal likewise."""
        proposal = self.wrapped.propose(left, right, task)
        return proposal if isinstance(proposal, Proposal) else _ForeignProposal(proposal)

    def check(self, claim: Claim, n_pairs: int, samples: int) -> None:
        """Delegates to the wrapped method if it has this check."""
        check = getattr(self.wrapped, "check", super().check)
        check(claim, n_pairs, samples)

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int] | None:
        """Delegates to the wrapped method if it fixes sizes."""
        fixed_sizes = getattr(self.wrapped, "fixed_sizes", super().fixed_sizes)
        return cast(tuple[int, int] | None, fixed_sizes(n_pairs, samples))


@dataclass(frozen=True)
class _ForeignProposal(Proposal):
    """Wraps an object that has the names of a proposal, and adds the defaults of those it lacks."""

    wrapped: Any

    @property
    def predicted(self) -> float:
        """The prediction of the wrapped proposal."""
        return float(self.wrapped.predicted)

    @property
    def event(self) -> Event | None:
        """The event of the wrapped proposal, if it has one that we can count."""
        event = getattr(self.wrapped, "event", None)
        return event if isinstance(event, Event) else None

    @property
    def detectable(self) -> float | None:
        """The detectable value of the wrapped proposal, if it knows one."""
        return cast(float | None, getattr(self.wrapped, "detectable", None))

    def tally(self, outputs: Outputs, side: int) -> Any:
        """Delegates to the wrapped proposal."""
        return self.wrapped.tally(outputs, side)

    def certify(self, left: Any, right: Any, pair: Pair, failure_probability: float) -> Finding:
        """Delegates to the wrapped proposal."""
        return cast(Finding, self.wrapped.certify(left, right, pair, failure_probability))

    def p_value(self, left: Any, right: Any, failure_probability: float) -> float | None:
        """Delegates to the wrapped proposal if it has p-values."""
        p_value = getattr(self.wrapped, "p_value", super().p_value)
        return cast(float | None, p_value(left, right, failure_probability))

    def certify_secondary(
        self, left: Any, right: Any, pair: Pair, failure_probability: float
    ) -> tuple[Finding, ...]:
        """Delegates to the wrapped proposal if it has secondary findings.

        `certify_beside`, the former name, works as well.
        """
        for name in ("certify_secondary", "certify_beside"):
            certify_secondary = getattr(self.wrapped, name, None)
            if certify_secondary is not None:
                return tuple(certify_secondary(left, right, pair, failure_probability))
        return ()


def as_options(name: object, options: object) -> object:
    """Turns options given as a mapping (command line, file) into the method's options object.

    Args:
        name: of a built-in method; for anything else the options are returned unchanged.
        options: a mapping; anything else is returned unchanged.
    """
    if not isinstance(name, str) or not isinstance(options, Mapping) or name not in _METHODS:
        return options
    known = option_names(name)
    if not known:
        raise InputError(
            f"the method {name} has no options, but {', '.join(map(str, options))} was given"
        )
    for key in options:
        if key not in known:
            raise InputError(f"the method {name} has no option {key!r}{meant_or_known(key, known)}")
    values = {key: _as_tuples(value) for key, value in options.items()}
    try:
        return _METHODS[name].load_module().Options(**values)
    except TypeError as error:
        # A required option is missing, or one has the wrong type.
        raise InputError(f"these are not options of the method {name}: {error}") from error


def option_names(name: str) -> list[str]:
    """The names of a method's options; none for a method of another package."""
    if name not in _METHODS:
        return []
    options_class = getattr(_METHODS[name].load_module(), "Options", None)
    if options_class is None:
        return []
    return [field.name for field in fields(options_class)]


def _as_tuples(value: Any) -> Any:
    """Turns lists into tuples, which options hold but files lack."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def restore_proposal(witness: Witness, task: Task, predicted: float) -> Proposal:
    """Makes the proposal that a witness came from, ready for fresh draws.

    Args:
        witness: a set of outputs or a score of them.
        task: what is to be certified this time.
        predicted: the bound that was found before.
    """
    above, below = witness.counts[::-1] if witness.flipped else witness.counts
    if isinstance(witness.event, LogRatio):
        # Only a replay of a score needs these methods, but every audit loads this module.
        from epsilometer.methods.published.auditorium.renyi_variational import restored_function
        from epsilometer.methods.renyi_bet import restored_bet

        n_known = min(above.trials, below.trials)
        if isinstance(task.claim, PureDP):
            return restored_function(witness.event, witness.flipped, task, n_known)
        return restored_bet(witness.event, witness.flipped, task, predicted, n_known)
    candidate = Candidate(
        event=witness.event,
        flipped=witness.flipped,
        p=above.share,
        q=below.share,
        predicted=predicted,
    )
    return EventProposal(candidate, task)
