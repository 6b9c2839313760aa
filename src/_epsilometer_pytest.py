"""The pytest plugin: audits as tests that state how often they may fail by chance.

It is loaded by every pytest run where Epsilometer is installed. So it imports nothing of
Epsilometer until a test calls `epsilometer.assert_private`.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import re
import secrets
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from _pytest._code.code import (
    ExceptionRepr,
    ReprEntry,
    ReprEntryNative,
    ReprFuncArgs,
    ReprTraceback,
)

if TYPE_CHECKING:
    from epsilometer import AuditResult

# A true claim fails a test at most once in a million runs: a suite of a hundred such tests, run a
# hundred times a day, then has a false alarm every hundred days at most. Draws cost little: a
# Laplace audit with 1e-6 instead of 0.05 certifies 3 % less at 100 000 draws.
DEFAULT_CONFIDENCE = 1.0 - 1e-6
# Draws per input of an audit whose test names no number.
DEFAULT_SAMPLES = 100_000


class Profile(NamedTuple):
    """How thoroughly a run audits.

    Attributes:
        sample_factor: the number of draws of every audit is multiplied by this.
        is_fresh: whether every run has a seed of its own.
    """

    sample_factor: int
    is_fresh: bool


PROFILES = {
    "ci": Profile(sample_factor=1, is_fresh=False),
    "nightly": Profile(sample_factor=10, is_fresh=True),
}

# The names of our properties of a test begin with this; the summary reads them back.
_PROPERTY_PREFIX = "epsilometer."
# The properties that make a row of the summary, and the titles of their columns.
_SUMMARY_COLUMNS = {
    "verdict": "verdict",
    "claim": "claim",
    "lower_bound": "lower bound",
    "refutes_from": "refutes from",
    "samples": "samples",
    "false_alarm": "false alarm ≤",
}
# The greatest number of characters of a guarantee or of a mechanism's name in a property.
_MAX_PROPERTY_LENGTH = 200
# Characters of what weakens a reading, in a row of the summary.
_MAX_RESERVATIONS_LENGTH = 120
# The settings of `assert_private` and `audited` that belong to the search; all others belong to
# the audit.
_SEARCH_SETTINGS = ("relation", "beyond", "trials")

# What pytest writes before the message of a failed audit.
_FAILED_AUDITS = ("epsilometer.errors.PrivacyViolation", "epsilometer.errors.BlindAudit")
# The fixtures of this plugin.
_FIXTURES = ("epsilometer", "epsilometer_module")

_SEED = pytest.StashKey[int]()
# The test that is being run.
_ITEM = pytest.StashKey[pytest.Item]()
_FAMILY = pytest.StashKey["Family | None"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options for samples, profile, seed and family of all audits."""
    group = parser.getgroup("epsilometer", "audits of differential privacy")
    group.addoption(
        "--epsilometer-samples",
        type=_count,
        metavar="N",
        help="draws per input of every audit, whatever the test says",
    )
    group.addoption(
        "--epsilometer-profile",
        choices=sorted(PROFILES),
        default="ci",
        help=(
            "ci: the same draws in every run (default); "
            "nightly: ten times as many, and others every night"
        ),
    )
    group.addoption(
        "--epsilometer-seed",
        type=int,
        metavar="S",
        help="draws that belong to this number (default: 0; nightly: fresh)",
    )
    group.addoption(
        "--epsilometer-write-tests",
        metavar="FOLDER",
        help="write every counterexample into this folder, as a test that fails until it is mended",
    )
    group.addoption(
        "--epsilometer-night",
        type=int,
        metavar="K",
        help=(
            "this run is the K-th night of the family, "
            "which spends 6/(πK)² of its failure probability"
        ),
    )
    parser.addini(
        "epsilometer_family_confidence",
        help=(
            "with this probability no true claim is called refuted by any audit of a run; "
            "each gets an equal share"
        ),
        default="",
    )
    parser.addini(
        "epsilometer_family_size",
        help=(
            "the greatest number of audits in a run, among which the failure probability is shared "
            "(default: those of the collected tests; needed with pytest-xdist)"
        ),
        default="",
    )
    parser.addini(
        "epsilometer_fail_blind",
        help=(
            "whether a test fails if its audit could not have refuted anything (default: it warns)"
        ),
        type="bool",
        default=False,
    )


def _count(text: str) -> int:
    """Reads a number as our command line does: 20000, 2e4 or 20k."""
    import typer

    from epsilometer.cli.options import count

    try:
        return count(text)
    except typer.BadParameter as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker, and decides the seed and the family of the run."""
    config.addinivalue_line(
        "markers",
        "epsilometer(samples=…, confidence=…, audits=…, …): "
        "settings for the audits of this test (see em.audit); "
        "audits: how many it runs, if the audits of a run are a family",
    )
    config.stash[_SEED] = _decide_seed(config)
    config.stash[_FAMILY] = _open_family(config)


def _decide_seed(config: pytest.Config) -> int:
    """Returns the seed of the run: the given one, that of the main process, or by the profile."""
    given = config.getoption("--epsilometer-seed")
    if given is not None:
        return int(given)
    from_main_process = getattr(config, "workerinput", {})  # in a worker of pytest-xdist
    if "epsilometer_seed" in from_main_process:
        return int(from_main_process["epsilometer_seed"])
    if _profile(config).is_fresh:
        return secrets.randbits(32)
    return 0


def _profile(config: pytest.Config) -> Profile:
    return PROFILES[config.getoption("--epsilometer-profile")]


@dataclass
class Family:
    """All audits of a run, which share one failure probability equally.

    An audit takes a share of its test's shares before it draws. A test that has none left is
    refused: a further audit, or one of a test that is run again, would be a look that no share
    covers.

    Attributes:
        confidence: the probability with which no true claim is called refuted.
        night: the number of the night, counted from 1; None if the confidence is about this run
            alone.
        size: the number of shares; None until the tests are collected.
        is_size_given: whether the size is in the configuration instead of counted.
        left: by the id of a collected test, how many audits it may still run.
        problem: the reason why no audit may be run; empty if there is none.
    """

    confidence: float
    night: int | None
    size: int | None
    is_size_given: bool
    left: dict[str, int] = field(default_factory=dict)
    problem: str = ""

    @property
    def failure_probability(self) -> float:
        """The part of the family's failure probability that this run may spend."""
        over_all_nights = 1.0 - self.confidence
        if self.night is None:
            return over_all_nights
        # The parts of all nights sum to 1, see `epsilometer.suites.family.night_share`.
        return over_all_nights * 6.0 / (math.pi * self.night) ** 2

    def collect(self, items: list[pytest.Item]) -> None:
        """Counts the audits of the tests that will be run."""
        self.left = {item.nodeid: _n_audits(item) for item in items if _takes_fixture(item)}
        n_audits = sum(self.left.values())
        if self.size is None:
            self.size = n_audits
        elif n_audits > self.size:
            self.problem = (
                f"epsilometer_family_size={self.size}, "
                f"but the collected tests run {n_audits} audits: "
                f"set it to {n_audits} or more, or select fewer tests"
            )

    def take_share(self, nodeid: str) -> float:
        """Returns the failure probability of the next audit of a test, and counts the audit.

        Args:
            nodeid: the id of the test.

        Raises:
            InputError: the test has no share left.
        """
        from epsilometer import InputError

        if self.problem:
            raise InputError(self.problem)
        if self.size is None or nodeid not in self.left:
            raise InputError(
                f"{nodeid} was not counted as a test with an audit, so it has no share of the "
                "failure probability of epsilometer_family_confidence: "
                "name the fixture epsilometer in the arguments of the test"
            )
        if self.left[nodeid] < 1:
            raise InputError(
                f"{nodeid} has spent its share of the failure probability of "
                "epsilometer_family_confidence: a further audit, or an audit of a test that is run "
                "again, is a new look. If the test runs several audits, "
                "say how many: @pytest.mark.epsilometer(audits=2)"
            )
        self.left[nodeid] -= 1
        return self.failure_probability / self.size

    def options(self) -> str:
        """Returns the options that give a test the same share when it is run alone."""
        options = ""
        if not self.is_size_given:
            options += f" -o epsilometer_family_size={self.size}"
        if self.night is not None:
            options += f" --epsilometer-night={self.night}"
        return options

    def promise(self) -> str:
        """Returns the guarantee of the family as a sentence."""
        scope = "in this run"
        if self.night is not None:
            scope = f"over all nights, of which this is number {self.night}"
        noun = "share" if self.size == 1 else "shares"
        shares = f"{self.size} {noun} of {self.failure_probability:.3g}"
        return (
            f"family: with probability at least {100.0 * self.confidence:.12g} % "
            f"no true claim is called refuted {scope} ({shares})"
        )


def _open_family(config: pytest.Config) -> Family | None:
    """Returns the family that the configuration asks for; None if it asks for none.

    Raises:
        UsageError: the settings are invalid, or processes of pytest-xdist would not know the size
            of the family.
    """
    confidence_text = str(config.getini("epsilometer_family_confidence")).strip()
    size_text = str(config.getini("epsilometer_family_size")).strip()
    night = config.getoption("--epsilometer-night")
    if not confidence_text:
        if night is not None:
            raise pytest.UsageError(
                "--epsilometer-night needs epsilometer_family_confidence in the configuration"
            )
        return None
    try:
        confidence = float(confidence_text)
    except ValueError:
        confidence = math.nan
    if not 0.0 < confidence < 1.0:
        raise pytest.UsageError(
            f"epsilometer_family_confidence={confidence_text} "
            "must be a number above 0 and below 1, for example 0.95"
        )
    if size_text and not (size_text.isdecimal() and int(size_text) >= 1):
        raise pytest.UsageError(
            f"epsilometer_family_size={size_text} must be a whole number of at least 1"
        )
    if night is not None and night < 1:
        raise pytest.UsageError(f"--epsilometer-night={night} must be at least 1")
    distribution = config.getoption("dist", "no")
    if distribution == "each":
        raise pytest.UsageError(
            "--dist=each runs every audit several times, "
            "which epsilometer_family_confidence does not pay for: use another --dist"
        )
    if distribution != "no" and not size_text:
        raise pytest.UsageError(
            "epsilometer_family_confidence with pytest-xdist needs epsilometer_family_size: "
            "write the greatest number of audits of a run into the configuration"
        )
    size = int(size_text) if size_text else None
    return Family(confidence=confidence, night=night, size=size, is_size_given=size is not None)


def _takes_fixture(item: pytest.Item) -> bool:
    return not set(_FIXTURES).isdisjoint(getattr(item, "fixturenames", ()))


def _n_audits(item: pytest.Item) -> int:
    """Returns how many audits a test runs: the number in its nearest marker, else one."""
    for marker in item.iter_markers("epsilometer"):
        if "audits" in marker.kwargs:
            audits = marker.kwargs["audits"]
            if isinstance(audits, bool) or not isinstance(audits, int) or audits < 1:
                raise pytest.UsageError(
                    f"{item.nodeid}: audits={audits!r} must be a whole number of at least 1"
                )
            return audits
    return 1


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Shares the failure probability among the selected tests; deselected ones get nothing."""
    family = session.config.stash[_FAMILY]
    if family is None:
        return
    family.collect(getattr(session, "items", []))
    is_worker = hasattr(session.config, "workerinput")
    if family.problem and not is_worker:  # in a worker of pytest-xdist, the tests report it
        raise pytest.UsageError(family.problem)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Sends the seed of the run to a worker of pytest-xdist."""
    node.workerinput["epsilometer_seed"] = node.config.stash[_SEED]


def pytest_report_header(config: pytest.Config) -> str | None:
    """Shows the seed if the run cannot be repeated without it, and warns of repeated draws."""
    profile = config.getoption("--epsilometer-profile")
    is_seed_given = config.getoption("--epsilometer-seed") is not None
    is_night = config.getoption("--epsilometer-night") is not None
    lines = []
    if profile != "ci" or is_seed_given or is_night:
        lines.append(f"epsilometer: profile {profile}, --epsilometer-seed={config.stash[_SEED]}")
    has_fixed_seed = is_seed_given or not _profile(config).is_fresh
    if is_night and has_fixed_seed:
        lines.append(
            "epsilometer: warning: with a fixed seed every night sees the same draws, "
            "which is no new evidence; "
            "use --epsilometer-profile=nightly without --epsilometer-seed"
        )
    return "\n".join(lines) or None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Remembers which test is run: the results of a module's audits are shown with it."""
    item.config.stash[_ITEM] = item
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Lets the failure of an audit begin with its own message, without frames of the engine."""
    if call.excinfo is None:
        return (yield)
    error = call.excinfo.value
    if not _takes_fixture(item) and not _is_of_an_audit(error):
        return (yield)
    from epsilometer import BlindAudit, EpsilometerError, PrivacyViolation

    with _engine_frames_hidden(error):
        report = yield
    failure = report.longrepr
    if isinstance(failure, ExceptionRepr) and isinstance(error, EpsilometerError):
        message = str(error).partition("\n")[0]
        if failure.reprcrash is not None:
            failure.reprcrash.message = message  # a line of pytest's summary, which is cut
        if isinstance(error, PrivacyViolation | BlindAudit):
            _begin_with_message(failure.reprtraceback, message)
    return report


def _is_of_an_audit(error: BaseException) -> bool:
    """Whether `AuditResult.raise_if_refuted` raised an error; imports nothing to find out."""
    return f"{type(error).__module__}.{type(error).__qualname__}" in _FAILED_AUDITS


@contextmanager
def _engine_frames_hidden(error: BaseException) -> Iterator[None]:
    """Marks the modules of Epsilometer that an error passed through as hidden, for pytest.

    What is left of the traceback is the test and the mechanism. `contextlib`, by which Epsilometer
    calls itself, goes with it.
    """
    hidden: list[dict[str, Any]] = []
    next_error: BaseException | None = error
    while next_error is not None:
        was_ours = False
        for frame, _ in traceback.walk_tb(next_error.__traceback__):
            names = frame.f_globals
            package = str(names.get("__name__", "")).partition(".")[0]
            is_ours = package == "epsilometer" or (was_ours and package == "contextlib")
            was_ours = is_ours
            if is_ours and "__tracebackhide__" not in names:
                names["__tracebackhide__"] = True
                hidden.append(names)
        next_error = next_error.__cause__ or next_error.__context__
    try:
        yield
    finally:
        for names in hidden:
            del names["__tracebackhide__"]


def _begin_with_message(shown: ReprTraceback, message: str) -> None:
    """Puts the first line of its message before the traceback of a failed audit.

    Args:
        shown: how pytest shows the traceback.
        message: the line.
    """
    for entry in shown.reprentries:
        if isinstance(entry, ReprEntry) and entry.reprfuncargs is not None:
            arguments = entry.reprfuncargs.args
            entry.reprfuncargs = ReprFuncArgs(
                [argument for argument in arguments if argument[0] not in _FIXTURES]
            )
        # The class of the error says no more than the message.
        entry.lines = [_without_class(line) for line in entry.lines]
    shown.reprentries = [ReprEntryNative([f"{message}\n"]), *shown.reprentries]


def _without_class(line: str) -> str:
    """Returns a line of pytest without the class of a failed audit."""
    if line.startswith("E "):
        for name in _FAILED_AUDITS:
            line = line.replace(f"{name}: ", "", 1)
    return line


def _marked_settings(node: pytest.Item | pytest.Module) -> dict[str, Any]:
    """Returns the settings from the markers of a test or a module, those of the nearest first."""
    marked: dict[str, Any] = {}
    nearest_first = list(node.iter_markers("epsilometer"))
    for marker in reversed(nearest_first):
        marked.update(marker.kwargs)
    marked.pop("audits", None)  # counted when the tests were collected
    return marked


@pytest.fixture
def epsilometer(request: pytest.FixtureRequest) -> Auditor:
    """Audits mechanisms: `epsilometer.assert_private(mechanism, inputs, claim)`."""
    node = request.node
    return Auditor(config=request.config, node=node, marked=_marked_settings(node))


@pytest.fixture(scope="module")
def epsilometer_module(request: pytest.FixtureRequest) -> Auditor:
    """Like `epsilometer`, for fixtures of a module: one audit that several tests look at."""
    node = request.node
    return Auditor(config=request.config, node=node, marked=_marked_settings(node))


def audited(
    inputs: Any, claim: Any, **settings: Any
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Makes an audit of a function: it is given data, and what it returns must keep the claim.

    As with `hypothesis.given`, the function is written like a test of one input, and its inputs are
    chosen for it:

        @audited(st.lists(st.floats(0, 1)), em.PureDP(1.0), relation="add-remove")
        def test_noisy_sum(data, rng):
            return noisy_sum(data, rng)

    Args:
        inputs: a strategy of Hypothesis, a domain, or whatever `epsilometer.audit` takes.
        claim: as `epsilometer.audit` takes it.
        **settings: those of `Auditor.assert_private`: relation, beyond and trials of the search,
            samples, confidence, …
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., None]:
        def test(epsilometer: Auditor) -> None:
            __tracebackhide__ = True
            from epsilometer import from_callable

            mechanism = from_callable(function, name=test.__name__)
            epsilometer.assert_private(mechanism, inputs, claim, **settings)

        test.__name__ = function.__name__
        test.__doc__ = function.__doc__
        test.__module__ = function.__module__
        test.__qualname__ = function.__qualname__
        # The test has taken the function's name. Workers and regression tests find the function
        # as an attribute of the test.
        function.__qualname__ += ".audited"
        test.audited = function  # type: ignore[attr-defined]
        return test

    return decorate


@dataclass(repr=False)
class Auditor:
    """The value of the fixtures: runs the audits of one test, or of one module.

    Attributes:
        config: of the run.
        node: the test or the module.
        marked: the settings from its markers.
        results: of its audits so far.
    """

    config: pytest.Config
    node: pytest.Item | pytest.Module
    marked: Mapping[str, Any]
    results: list[AuditResult] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<epsilometer of {self.node.name}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Names the method that everybody looks for, under whichever name."""
            __tracebackhide__ = True
            raise AttributeError(
                f"the fixture has no {name!r}: audit with epsilometer.assert_private(mechanism, "
                "inputs, claim)"
            )

    @property
    def _test(self) -> pytest.Item:
        """The test that is being run; its report shows the audits."""
        return self.node if isinstance(self.node, pytest.Item) else self.config.stash[_ITEM]

    def assert_private(
        self,
        mechanism: object,
        inputs: Any = None,
        claim: Any = None,
        *,
        samples: int | None = None,
        confidence: float | None = None,
        fail_blind: bool | None = None,
        allow_inconclusive: bool | None = None,
        **settings: Any,
    ) -> AuditResult:
        """Fails the test if the claim is refuted, or if the audit is inconclusive.

        An audit that could not have refuted anything warns with a `BlindAuditWarning`.

        Args:
            mechanism: as `epsilometer.audit` takes it.
            inputs: likewise, or a strategy of Hypothesis, whose examples and their neighbours are
                searched.
            claim: likewise.
            samples: draws per input (default 100 000); the profile and `--epsilometer-samples`
                change it.
            confidence: a true claim fails the test with probability at most 1 − confidence (default
                1e-6). If the audits of the run are a family, an audit gets its share of the failure
                probability; a higher confidence is kept.
            fail_blind: fails the test if nothing could have been refuted (default: as
                `epsilometer_fail_blind` in the configuration says, which is no).
            allow_inconclusive: whether a test may go on if nothing can be said about the claim,
                because the draws cannot be trusted, or the method guarantees nothing.
            **settings: further keywords of `epsilometer.audit`, and `relation`, `beyond` and
                `trials` of the search of a domain or a strategy. The seed is the test's own unless
                it is given.

        Guarantee: that of the method, exact by default: no assumption but independent draws.
        """
        __tracebackhide__ = True
        from epsilometer import audit
        from epsilometer.claims.base import check_flag

        audit_settings = self._settings(samples, confidence, settings)
        marked_fail_blind = audit_settings.pop("fail_blind", None)
        if fail_blind is None:
            fail_blind = marked_fail_blind
        if fail_blind is None:
            fail_blind = bool(self.config.getini("epsilometer_fail_blind"))
        check_flag("fail_blind", fail_blind)
        marked_allowance = audit_settings.pop("allow_inconclusive", False)
        if allow_inconclusive is None:
            allow_inconclusive = marked_allowance
        check_flag("allow_inconclusive", allow_inconclusive)
        search_settings = {
            name: audit_settings.pop(name) for name in _SEARCH_SETTINGS if name in audit_settings
        }
        searched_inputs = _searched(inputs, search_settings, audit_settings["seed"])
        result = audit(mechanism, searched_inputs, claim, **audit_settings)
        self.results.append(result)
        self._add_properties(result)
        allowed = {"NOT_REFUTED", "INCONCLUSIVE"} if allow_inconclusive else {"NOT_REFUTED"}
        if result.verdict is None or result.verdict.name not in allowed:
            raise self._failure(result)
        if result.blind is not None:
            self._report_blind(result, fail_blind)
        return result

    def _report_blind(self, result: AuditResult, fail_blind: bool) -> None:
        """Warns that a test says nothing, or fails it."""
        __tracebackhide__ = True
        from epsilometer import BlindAudit, BlindAuditWarning
        from epsilometer.report.wording import headline, verdict_sentence

        message = f"{self.node.name}: {headline(result)}: {verdict_sentence(result)}"
        if fail_blind:
            from epsilometer.report.headline import headline as short_headline

            raise BlindAudit(f"{short_headline(result)}\n\n{result}", result)
        warnings.warn(message, BlindAuditWarning, stacklevel=3)

    def _settings(
        self, samples: int | None, confidence: float | None, settings: dict[str, Any]
    ) -> dict[str, Any]:
        """Returns the settings of the next audit, and takes its share of the family."""
        chosen = {"confidence": DEFAULT_CONFIDENCE, "seed": self._seed(), **self.marked}
        if samples is not None:
            chosen["samples"] = samples
        if confidence is not None:
            chosen["confidence"] = confidence
        chosen.update(settings)

        samples_option = self.config.getoption("--epsilometer-samples")
        if samples_option:
            chosen["samples"] = samples_option
        else:
            factor = _profile(self.config).sample_factor
            chosen["samples"] = factor * int(chosen.get("samples", DEFAULT_SAMPLES))

        family = self.config.stash[_FAMILY]
        if family is not None:
            shared_confidence = 1.0 - family.take_share(self._test.nodeid)
            is_confidence_given = confidence is not None or "confidence" in self.marked
            if not is_confidence_given:
                chosen["confidence"] = shared_confidence
            elif isinstance(chosen["confidence"], int | float):
                chosen["confidence"] = max(chosen["confidence"], shared_confidence)
            # Otherwise it is not a number, which the audit refuses.
        return chosen

    def _seed(self) -> int:
        """Returns the seed of the next audit, the same in any order and selection of tests."""
        text = f"{self.config.stash[_SEED]}\0{self.node.nodeid}\0{len(self.results)}"
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return int.from_bytes(digest) >> 1

    def _add_properties(self, result: AuditResult) -> None:
        """Adds the result to the properties of the test.

        JUnit files show them, and our summary reads them, also those from workers.
        """
        names = {name for name, _ in self._test.user_properties}
        number = 1
        while f"{_prefix_of_audit(number)}verdict" in names:
            number += 1
        prefix = _prefix_of_audit(number)
        properties = {
            "verdict": str(result.verdict),
            "claim": result.claim.describe(),
            "lower_bound": f"{result.lower_bound:.6g}",
            "refutes_from": _refutes_from(result),
            "samples": result.settings["samples"],
            "confidence": result.confidence,
            "false_alarm": f"{1.0 - result.confidence:.2g}",
            "guarantee": result.guarantee[:_MAX_PROPERTY_LENGTH],
            "seed": result.settings["seed"],
            "mechanism": str(result.settings["mechanism"])[:_MAX_PROPERTY_LENGTH],
        }
        if result.blind is not None:
            properties = {"blind": result.blind, **properties}
        from epsilometer.report.reservations import reservations

        weakened = reservations(result.settings)
        if weakened:
            properties["with"] = weakened
        for name, value in properties.items():
            self._test.user_properties.append((prefix + name, value))

    def _failure(self, result: AuditResult) -> Exception:
        """Returns the exception that fails the test, with the result and what to do next."""
        from epsilometer import PrivacyViolation
        from epsilometer.report.headline import headline

        lines = [headline(result), "", str(result), "", *self._advice(result)]
        return PrivacyViolation("\n".join(lines), result)

    def _advice(self, result: AuditResult) -> Iterator[str]:
        """Yields lines about the false alarm, and how to repeat and to replay the audit."""
        if result.is_refuted:
            runs_per_false_alarm = 1.0 / (1.0 - result.confidence)
            guarantee = result.guarantee.partition(":")[0]
            yield (
                "False alarm: if the claim is true, this assertion fails at most once in "
                f"{runs_per_false_alarm:,.0f} runs; {guarantee} guarantee."
            )
        else:
            yield (
                "This failure says nothing about the claim: see the remarks on the draws. "
                "allow_inconclusive=True lets such a test go on."
            )
        seed = self.config.stash[_SEED]
        family = self.config.stash[_FAMILY]
        family_options = "" if family is None else family.options()
        samples_option = f"--epsilometer-samples={result.settings['samples']}"
        command = f'pytest "{self.node.nodeid}"{family_options} {samples_option}'
        if result.settings.get("seeded_mechanism"):
            yield f"The same draws again: {command} --epsilometer-seed={seed}"
            yield f"Fresh draws:          {command} --epsilometer-seed={seed + 1}"
        else:
            yield (
                f"Fresh draws (the mechanism takes no seed): {command} --epsilometer-seed={seed}"
            )
        stored = self._store(result)
        if stored is not None:
            yield f"Stored; replay with:  epsilometer replay {stored} module:function"
        yield from self._write_test(result)

    def _write_test(self, result: AuditResult) -> Iterator[str]:
        """Writes a regression test if the user asked for it, and yields a line about it."""
        folder = self.config.getoption("--epsilometer-write-tests")
        if folder is None or not result.is_refuted:
            return
        from epsilometer import InputError
        from epsilometer.storage.writing import write_atomically

        try:
            text = result.to_test()
        except InputError as error:
            yield f"No regression test:   {error}"
            return
        name = re.sub(r"\W+", "_", self.node.name).strip("_").removeprefix("test_")
        number = "" if len(self.results) == 1 else f"_{len(self.results)}"
        path = Path(folder) / f"test_leak_{name}{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        yield f"Regression test:      {write_atomically(path, text)}"

    def _store(self, result: AuditResult) -> str | None:
        """Saves the result in pytest's cache, and returns the path; None if there is no cache."""
        cache = getattr(self.config, "cache", None)
        if cache is None:
            return None
        text = f"{self.node.nodeid}{len(self.results)}"
        name = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        return str(result.save_json(cache.mkdir("epsilometer") / f"{name}.json"))


def _refutes_from(result: AuditResult) -> str:
    """Returns the least spread leak that an audit would have refuted with 90 % power, as text."""
    if result.blind is not None:
        return "nothing"
    if result.verdict is None or result.verdict.name != "NOT_REFUTED":
        return "-"
    detectable = result.detectable
    if detectable is None:
        return "?"
    return "hardly anything" if math.isinf(detectable) else f"{detectable:.4g}"


def _searched(inputs: Any, search_settings: dict[str, Any], seed: int) -> Any:
    """Returns a search of a strategy's examples, or of a domain if it has search settings.

    Other inputs are returned as they are.
    """
    from epsilometer import domains, finders

    is_strategy = any(base.__module__.startswith("hypothesis.") for base in type(inputs).__mro__)
    if not is_strategy and not search_settings:
        return inputs
    domain = domains.from_strategy(inputs) if is_strategy else inputs
    return finders.Search(domain, seed=seed % 2**32, **search_settings)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Writes a line for each audit, the expected false alarms, and the family's guarantee."""
    reports = list(_reports(terminalreporter))
    rows = [row for report in reports for row in _rows(report, tuple(_SUMMARY_COLUMNS))]
    if not rows:
        return
    terminalreporter.section("epsilometer")
    titles = ("test", *_SUMMARY_COLUMNS.values())
    table = [titles, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(titles))]
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        terminalreporter.write_line("  ".join(cells).rstrip())
    false_alarm = min(1.0, sum(float(row[-1]) for row in rows))
    audits = "1 audit" if len(rows) == 1 else f"{len(rows)} audits"
    terminalreporter.write_line(
        f"{audits}; the chance that any true claim fails in this run is at most {false_alarm:.2g}"
    )
    family = config.stash[_FAMILY]
    if family is None:
        return
    terminalreporter.write_line(family.promise())
    for report in reports:
        for nodeid, guarantee in _rows(report, ("guarantee",)):
            if guarantee != "exact":
                terminalreporter.write_line(
                    f"not covered by that: {nodeid}, whose guarantee is {guarantee}"
                )


def _reports(terminalreporter: Any) -> Iterator[pytest.TestReport]:
    """Yields the reports of all tests that were run, whatever their outcome."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            if not isinstance(report, pytest.TestReport):
                continue
            # A test whose fixture failed has no other report.
            if report.when == "call" or (report.when == "setup" and report.failed):
                yield report


def _rows(report: pytest.TestReport, properties: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yields the id of a test and some properties of an audit, for each audit of the test."""
    values = {name: str(value) for name, value in report.user_properties}
    number = 1
    prefix = _prefix_of_audit(number)
    while f"{prefix}verdict" in values:
        row = [values[f"{prefix}{name}"] for name in properties]
        # What was switched off, say.
        weakened = values.get(f"{prefix}with")
        if weakened and "verdict" in properties:
            place = list(properties).index("verdict")
            row[place] += f", with {weakened[:_MAX_RESERVATIONS_LENGTH]}"
        yield (report.nodeid, *row)
        number += 1
        prefix = _prefix_of_audit(number)


def _prefix_of_audit(number: int) -> str:
    """Returns the start of the names of an audit's properties; the first audit has no number."""
    return _PROPERTY_PREFIX if number == 1 else f"{_PROPERTY_PREFIX}{number}."
