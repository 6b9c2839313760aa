"""All methods by name: ours, and those of other packages (entry points of the group `epsilometer.methods`).

A method's code is loaded when it is asked for: most audits need only one of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, cast

from epsilometer.claims import Claim, PureDP
from epsilometer.errors import InputError, blamed, did_you_mean, meant_or_known
from epsilometer.inputs import Pair
from epsilometer.mechanisms.libraries import brought
from epsilometer.methods.base import Candidate, Method, Proposal, Task
from epsilometer.methods.events import EventProposal
from epsilometer.outputs import Event, Outputs
from epsilometer.outputs.events import LogRatio
from epsilometer.result import Finding, Witness

# Module and class of each. The class makes its method from its own options object, or from None for
# its defaults.
_METHODS: dict[str, tuple[str, str]] = {
    "auto": ("epsilometer.methods.auto", "AutoMethod"),
    "events": ("epsilometer.methods.events", "EventsMethod"),
    "hockey-stick": ("epsilometer.methods.published.auditorium.hockey_stick", "HockeyStickMethod"),
    "ldp-histogram": ("epsilometer.methods.published.ldp.method", "HistogramMethod"),
    "profile": ("epsilometer.methods.profile", "ProfileMethod"),
    "sequential": ("epsilometer.methods.sequential", "SequentialMethod"),
    "bits": ("epsilometer.methods.bits", "BitsMethod"),
    "local": ("epsilometer.methods.published.local.method", "LocalMethod"),
    "mmd": ("epsilometer.methods.published.auditorium.mmd", "MmdMethod"),
    "poisson-histogram": (
        "epsilometer.methods.published.auditorium.poisson_histogram",
        "PoissonHistogramMethod",
    ),
    "renyi-bet": ("epsilometer.methods.renyi_bet", "RenyiBetMethod"),
    "renyi-variational": (
        "epsilometer.methods.published.auditorium.renyi_variational",
        "RenyiVariationalMethod",
    ),
    "renyi-floored": ("epsilometer.methods.published.renyi.method", "RenyiFlooredMethod"),
}


def names() -> list[str]:
    """Every name that `method=` takes, ours first."""
    return [*_METHODS, *sorted(brought("methods").keys() - _METHODS.keys())]


def origin(name: str) -> str:
    """The package that brings a method."""
    if name in _METHODS:
        return "epsilometer"
    source = brought("methods")[name].dist
    return "?" if source is None else source.name


def find_method(name: str, options: object = None) -> Method:
    """The method of that name; `auto` is the best one for the claim.

    Args:
        options: that method's own options object, the same as a mapping, or None for the defaults.
    """
    if name not in _METHODS and name in brought("methods"):
        entry = brought("methods")[name]
        with blamed(f"the method {entry.name} of {entry.value} cannot be made"):
            # an object, or a factory of one, called with the options if there are any
            made = entry.load()
            if isinstance(made, type) or not callable(getattr(made, "propose", None)):
                made = made() if options is None else made(options)
                options = None
        return as_method(made, options)
    if name not in _METHODS:
        raise InputError(
            f"method={name!r} is unknown; known are {', '.join(names())}{did_you_mean(name, names())}"
        )
    kind = getattr(import_module(_METHODS[name][0]), _METHODS[name][1])
    chosen = None if options is None else as_options(name, options)
    if chosen is not None and not option_names(name):
        hint = "; name the method they belong to" if name == "auto" else ""
        raise InputError(f"options={options!r:.100}: the method {name} has none{hint}")
    return cast(Method, kind() if chosen is None else kind(chosen))


def as_method(method: object, options: object = None) -> Method:
    """A method by its name, or the caller's own object that does what `Method` says and brings its options."""
    if isinstance(method, str):
        return find_method(method, options)
    texts = {name: getattr(method, name, None) for name in ("name", "summary", "guarantee")}
    wrong = [name for name, text in texts.items() if not isinstance(text, str) or not text]
    wrong += [] if callable(getattr(method, "propose", None)) else ["propose(left, right, task)"]
    if wrong or isinstance(method, type):
        hint = (
            "make an object of it" if isinstance(method, type) else f"it lacks {', '.join(wrong)}"
        )
        raise InputError(
            f"method={method!r:.100} is neither a name of `epsilometer methods` nor a method: {hint}"
        )
    if options is not None:
        raise InputError(
            f"options={options!r:.100}: a method that is given as an object brings its options with it"
        )
    return method if isinstance(method, Method) else _ForeignMethod(method)


class _ForeignMethod(Method):
    """An object that has the names of a method, completed with the defaults of those it lacks."""

    def __init__(self, own: Any) -> None:
        self.own = own
        self.name = own.name
        self.summary = own.summary
        self.guarantee = own.guarantee

    def __repr__(self) -> str:
        return repr(self.own)

    def propose(self, left: Outputs, right: Outputs, task: Task) -> Proposal:
        """Its proposal, completed likewise."""
        proposal = self.own.propose(left, right, task)
        return proposal if isinstance(proposal, Proposal) else _ForeignProposal(proposal)

    def check(self, claim: Claim, n_pairs: int, samples: int) -> None:
        """Asks it, if it has this check."""
        getattr(self.own, "check", super().check)(claim, n_pairs, samples)

    def fixed_sizes(self, n_pairs: int, samples: int) -> tuple[int, int] | None:
        """Asks it, if it has its own sizes."""
        sizes: tuple[int, int] | None = getattr(self.own, "fixed_sizes", super().fixed_sizes)(
            n_pairs, samples
        )
        return sizes


@dataclass(frozen=True)
class _ForeignProposal(Proposal):
    own: Any

    @property
    def predicted(self) -> float:
        """As it says."""
        return float(self.own.predicted)

    @property
    def event(self) -> Event | None:
        """Its own, if it has one that we can count."""
        event = getattr(self.own, "event", None)
        return event if isinstance(event, Event) else None

    @property
    def detectable(self) -> float | None:
        """As it says, if it does."""
        return cast(float | None, getattr(self.own, "detectable", None))

    def tally(self, outputs: Outputs, side: int) -> Any:
        """Its own."""
        return self.own.tally(outputs, side)

    def certify(self, left: Any, right: Any, pair: Pair, failure_probability: float) -> Finding:
        """Its own."""
        return cast(Finding, self.own.certify(left, right, pair, failure_probability))

    def p_value(self, left: Any, right: Any, failure_probability: float) -> float | None:
        """Asks it, if it has p-values."""
        own = getattr(self.own, "p_value", super().p_value)
        return cast(float | None, own(left, right, failure_probability))

    def certify_beside(
        self, left: Any, right: Any, pair: Pair, failure_probability: float
    ) -> tuple[Finding, ...]:
        """Its own, if it has any."""
        beside = getattr(self.own, "certify_beside", super().certify_beside)
        return tuple(beside(left, right, pair, failure_probability))


def as_options(name: object, options: object) -> object:
    """Options given as a mapping (command line, file) as the method's own options object; others unchanged."""
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
    try:
        return import_module(_METHODS[name][0]).Options(
            **{key: _as_tuples(value) for key, value in options.items()}
        )
    except TypeError as error:  # a required one is missing, or a text stands in place of a number
        raise InputError(f"these are not options of the method {name}: {error}") from error


def option_names(name: str) -> list[str]:
    """The names of a method's options."""
    kind = getattr(import_module(_METHODS[name][0]), "Options", None) if name in _METHODS else None
    return [] if kind is None else [field.name for field in fields(kind)]


def _as_tuples(value: Any) -> Any:
    """Files only have lists."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def restore_proposal(witness: Witness, task: Task, predicted: float) -> Proposal:
    """The proposal that a witness came from, ready for fresh draws.

    Args:
        witness: a set of outputs or a score of them.
        task: what is to be proved this time.
        predicted: the bound that was found before.
    """
    above, below = witness.counts[::-1] if witness.flipped else witness.counts
    if isinstance(witness.event, LogRatio):
        # Only a replay of a score needs these methods, but every audit loads this file.
        from epsilometer.methods.published.auditorium.renyi_variational import restored_function
        from epsilometer.methods.renyi_bet import restored_bet

        n_known = min(above.trials, below.trials)
        if isinstance(task.claim, PureDP):
            return restored_function(witness.event, witness.flipped, task, n_known)
        return restored_bet(witness.event, witness.flipped, task, predicted, n_known)
    return EventProposal(
        Candidate(witness.event, witness.flipped, above.share, below.share, predicted), task
    )
