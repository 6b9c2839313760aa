"""The pytest plugin: audits as tests that say how often they may fail by chance.

Loaded by every pytest run where Epsilometer is installed, so it imports nothing of Epsilometer until a test calls
`epsilometer.assert_private`.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from epsilometer import AuditResult

# A true claim fails a test at most once in a million runs: a suite of a hundred such tests, run a hundred times a day,
# then has a false alarm every hundred days at most. Draws cost little: a Laplace audit with 1e-6 instead of 0.05
# certifies 3 % less at 100 000 draws.
DEFAULT_CONFIDENCE = 1.0 - 1e-6
DEFAULT_SAMPLES = 100_000
# How many times the draws of a test each profile takes, and whether it takes other ones every time.
PROFILES = {"ci": (1, False), "nightly": (10, True)}
# Properties of a test that our summary reads back, after the prefix.
_PREFIX = "epsilometer."
_COLUMNS = ("verdict", "claim", "lower_bound", "samples", "false_alarm")
# Characters of what weakens a reading, in a line of the summary.
_MOST_RESERVATIONS = 120
_SEED = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Samples, profile and seed of all audits, and the confidence of all of them together."""
    group = parser.getgroup("epsilometer", "audits of differential privacy")
    group.addoption(
        "--epsilometer-samples", type=_count, metavar="N", help="draws per input of every audit, whatever the test says"
    )
    group.addoption(
        "--epsilometer-profile",
        choices=sorted(PROFILES),
        default="ci",
        help="ci: the same draws in every run (default); nightly: ten times as many, and others every night",
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
        help="this run is the K-th night of the family, which spends 6/(πK)² of its failure probability",
    )
    parser.addini(
        "epsilometer_family_confidence",
        help="with this probability no true claim is called refuted by any audit of a run; each gets an equal share",
        default="",
    )
    parser.addini(
        "epsilometer_family_size",
        help="the greatest number of audits in a run, among which the failure probability is shared "
        "(default: those of the collected tests; needed with pytest-xdist)",
        default="",
    )


def _count(text: str) -> int:
    """As on our command line: 20000, 2e4, 20k."""
    import typer

    from epsilometer.cli.options import count

    try:
        return count(text)
    except typer.BadParameter as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known and decides the seed."""
    config.addinivalue_line(
        "markers",
        "epsilometer(samples=…, confidence=…, audits=…, …): settings for the audits of this test (see em.audit); "
        "audits: how many it runs, if the audits of a run are a family",
    )
    config.stash[_SEED] = _decide_seed(config)
    config.stash[_FAMILY] = _open_family(config)


def _decide_seed(config: pytest.Config) -> int:
    given = config.getoption("--epsilometer-seed")
    if given is not None:
        return int(given)
    sent = getattr(config, "workerinput", {})  # a worker of pytest-xdist
    if "epsilometer_seed" in sent:
        return int(sent["epsilometer_seed"])
    fresh = PROFILES[config.getoption("--epsilometer-profile")][1]
    return secrets.randbits(32) if fresh else 0


@dataclass
class Family:
    """All audits of a run, which share one failure probability equally.

    An audit takes a share of its test's, before it draws. A test that has none left is refused: a further audit, or
    one of a test that is run again, would be a look that nobody paid for.

    Attributes:
        confidence: the probability with which no true claim is called refuted.
        night: the number of the night, counted from 1; None if the confidence is about this run alone.
        size: the number of shares; None until the tests are collected.
        is_size_given: whether the size is in the configuration instead of counted.
        left: by the id of a collected test, how many audits it may still run.
        problem: why no audit may be run; empty if there is no reason.
    """

    confidence: float
    night: int | None
    size: int | None
    is_size_given: bool
    left: dict[str, int] = field(default_factory=dict)
    problem: str = ""

    @property
    def failure_probability(self) -> float:
        """What this run may spend."""
        whole = 1.0 - self.confidence
        return whole if self.night is None else whole * 6.0 / (math.pi * self.night) ** 2

    def collect(self, items: list[pytest.Item]) -> None:
        """Counts the audits of the tests that will be run."""
        self.left = {item.nodeid: _audits_of(item) for item in items if _takes_the_fixture(item)}
        n_audits = sum(self.left.values())
        if self.size is None:
            self.size = n_audits
        elif n_audits > self.size:
            self.problem = (
                f"epsilometer_family_size={self.size}, but the collected tests run {n_audits} audits: "
                f"set it to {n_audits} or more, or select fewer tests"
            )

    def take_share(self, nodeid: str) -> float:
        """The failure probability of the next audit of a test.

        Raises:
            InputError: the test has no share left.
        """
        from epsilometer import InputError

        if self.problem:
            raise InputError(self.problem)
        if self.size is None or nodeid not in self.left:
            raise InputError(
                f"{nodeid} was not counted as a test with an audit, so it has no share of the failure probability of "
                "epsilometer_family_confidence: name the fixture epsilometer in the arguments of the test"
            )
        if self.left[nodeid] < 1:
            raise InputError(
                f"{nodeid} has spent its share of the failure probability of epsilometer_family_confidence: a further "
                "audit, or an audit of a test that is run again, is a new look. If the test runs several audits, "
                "say how many: @pytest.mark.epsilometer(audits=2)"
            )
        self.left[nodeid] -= 1
        return self.failure_probability / self.size

    def options(self) -> str:
        """Options that give a test the same share when it is run alone."""
        size = "" if self.is_size_given else f" -o epsilometer_family_size={self.size}"
        night = "" if self.night is None else f" --epsilometer-night={self.night}"
        return size + night

    def promise(self) -> str:
        """What holds, in a sentence."""
        scope = "in this run" if self.night is None else f"over all nights, of which this is number {self.night}"
        shares = f"{self.size} {'share' if self.size == 1 else 'shares'} of {self.failure_probability:.3g}"
        return (
            f"family: with probability at least {100.0 * self.confidence:.12g} % no true claim is called refuted "
            f"{scope} ({shares})"
        )


_FAMILY = pytest.StashKey["Family | None"]()


def _open_family(config: pytest.Config) -> Family | None:
    """The family that the configuration asks for.

    Raises:
        UsageError: its settings make no sense, or processes of pytest-xdist would not know its size.
    """
    confidence_text = str(config.getini("epsilometer_family_confidence")).strip()
    size_text = str(config.getini("epsilometer_family_size")).strip()
    night = config.getoption("--epsilometer-night")
    if not confidence_text:
        if night is not None:
            raise pytest.UsageError("--epsilometer-night needs epsilometer_family_confidence in the configuration")
        return None
    try:
        confidence = float(confidence_text)
    except ValueError:
        confidence = math.nan
    if not 0.0 < confidence < 1.0:
        hint = "must be a number above 0 and below 1, for example 0.95"
        raise pytest.UsageError(f"epsilometer_family_confidence={confidence_text} {hint}")
    if size_text and not (size_text.isdecimal() and int(size_text) >= 1):
        raise pytest.UsageError(f"epsilometer_family_size={size_text} must be a whole number of at least 1")
    if night is not None and night < 1:
        raise pytest.UsageError(f"--epsilometer-night={night} must be at least 1")
    distribution = config.getoption("dist", "no")
    if distribution == "each":
        raise pytest.UsageError(
            "--dist=each runs every audit several times, which epsilometer_family_confidence does not pay for: "
            "use another --dist"
        )
    if distribution != "no" and not size_text:
        raise pytest.UsageError(
            "epsilometer_family_confidence with pytest-xdist needs epsilometer_family_size: write the greatest number "
            "of audits of a run into the configuration"
        )
    size = int(size_text) if size_text else None
    return Family(confidence=confidence, night=night, size=size, is_size_given=size is not None)


def _takes_the_fixture(item: pytest.Item) -> bool:
    return "epsilometer" in getattr(item, "fixturenames", ())


def _audits_of(item: pytest.Item) -> int:
    """How many audits a test runs, as its nearest marker says; one if none does."""
    for marker in item.iter_markers("epsilometer"):
        if "audits" in marker.kwargs:
            audits = marker.kwargs["audits"]
            if isinstance(audits, bool) or not isinstance(audits, int) or audits < 1:
                raise pytest.UsageError(f"{item.nodeid}: audits={audits!r} must be a whole number of at least 1")
            return audits
    return 1


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Shares the failure probability among the tests that were selected; what is deselected gets nothing."""
    family = session.config.stash[_FAMILY]
    if family is None:
        return
    family.collect(getattr(session, "items", []))
    is_worker = hasattr(session.config, "workerinput")
    if family.problem and not is_worker:  # in a worker of pytest-xdist, the tests say it
        raise pytest.UsageError(family.problem)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Workers of pytest-xdist take the seed of the whole run."""
    node.workerinput["epsilometer_seed"] = node.config.stash[_SEED]


def pytest_report_header(config: pytest.Config) -> str | None:
    """A run that nobody can repeat without its seed says it; so does a night that sees no new draws."""
    profile = config.getoption("--epsilometer-profile")
    is_seed_given = config.getoption("--epsilometer-seed") is not None
    is_night = config.getoption("--epsilometer-night") is not None
    lines = []
    if profile != "ci" or is_seed_given or is_night:
        lines.append(f"epsilometer: profile {profile}, --epsilometer-seed={config.stash[_SEED]}")
    if is_night and (is_seed_given or not PROFILES[profile][1]):
        lines.append(
            "epsilometer: warning: with a fixed seed every night sees the same draws, which is no new evidence; "
            "use --epsilometer-profile=nightly without --epsilometer-seed"
        )
    return "\n".join(lines) or None


@pytest.fixture
def epsilometer(request: pytest.FixtureRequest) -> Auditor:
    """Audits mechanisms: `epsilometer.assert_private(mechanism, inputs, claim)`."""
    marked: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("epsilometer"))):
        marked.update(marker.kwargs)
    marked.pop("audits", None)  # counted when the tests were collected
    return Auditor(request.config, request.node, marked)


# What `assert_private` and `audited` pass on to the search, all others to the audit.
_OF_THE_SEARCH = ("relation", "beyond", "trials")


def audited(inputs: Any, claim: Any, **settings: Any) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Makes an audit of a function: it is given data, and what it returns must keep the claim.

    As with `hypothesis.given`, the function is written like a test of one input, and its inputs are chosen for it:

        @audited(st.lists(st.floats(0, 1)), em.PureDP(1.0), relation="add-remove")
        def test_noisy_sum(data, rng):
            return noisy_sum(data, rng)

    Args:
        inputs: a strategy of Hypothesis, a domain, or whatever `epsilometer.audit` takes.
        claim: as `epsilometer.audit` takes it.
        **settings: those of `Auditor.assert_private`: relation, beyond and trials of the search, samples, confidence, …
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., None]:
        def test(epsilometer: Auditor) -> None:
            __tracebackhide__ = True
            from epsilometer import from_callable

            epsilometer.assert_private(from_callable(function, name=test.__name__), inputs, claim, **settings)

        test.__name__, test.__doc__, test.__module__ = function.__name__, function.__doc__, function.__module__
        test.__qualname__ = function.__qualname__
        # The test has taken the function's name, so this is how workers and regression tests find the function.
        function.__qualname__ += ".audited"
        test.audited = function  # type: ignore[attr-defined]
        return test

    return decorate


@dataclass
class Auditor:
    """What the fixture gives to a test.

    Attributes:
        config: of the run.
        node: the test.
        marked: settings of its markers.
        results: of its audits so far.
    """

    config: pytest.Config
    node: pytest.Item
    marked: Mapping[str, Any]
    results: list[AuditResult] = field(default_factory=list)

    def assert_private(
        self,
        mechanism: object,
        inputs: Any = None,
        claim: Any = None,
        *,
        samples: int | None = None,
        confidence: float | None = None,
        **settings: Any,
    ) -> AuditResult:
        """Fails the test if the claim is refuted, or if the draws cannot be trusted.

        Args:
            mechanism: as `epsilometer.audit` takes it.
            inputs: likewise, or a strategy of Hypothesis, whose examples and their neighbours are searched.
            claim: likewise.
            samples: draws per input (default 100 000); the profile and `--epsilometer-samples` change it.
            confidence: a true claim fails the test with probability at most 1 − confidence (default 1e-6). If the
                audits of the run are a family, an audit gets its share of the failure probability; a higher
                confidence is kept.
            **settings: further keywords of `epsilometer.audit`, and `relation`, `beyond` and `trials` of the search of
                a domain or a strategy. The seed is the test's own unless it is given.

        Guarantee: that of the method, exact by default: no assumption but independent draws.
        """
        __tracebackhide__ = True
        from epsilometer import audit

        chosen = self._settings(samples, confidence, settings)
        search = {name: chosen.pop(name) for name in _OF_THE_SEARCH if name in chosen}
        result = audit(mechanism, _searched(inputs, search, chosen["seed"]), claim, **chosen)
        self.results.append(result)
        self._note(result)
        if result.verdict is None or result.verdict.name != "NOT_REFUTED":
            raise self._failure(result)
        return result

    def _settings(self, samples: int | None, confidence: float | None, settings: dict[str, Any]) -> dict[str, Any]:
        given = {"samples": samples, "confidence": confidence}
        own = {name: value for name, value in given.items() if value is not None}
        chosen = {"confidence": DEFAULT_CONFIDENCE, "seed": self._seed(), **self.marked, **own, **settings}
        factor = PROFILES[self.config.getoption("--epsilometer-profile")][0]
        wanted = self.config.getoption("--epsilometer-samples")
        chosen["samples"] = wanted or factor * int(chosen.get("samples", DEFAULT_SAMPLES))
        family = self.config.stash[_FAMILY]
        if family is not None:
            shared = 1.0 - family.take_share(self.node.nodeid)
            is_own = "confidence" in self.marked or "confidence" in own
            chosen["confidence"] = _stricter(chosen["confidence"], shared) if is_own else shared
        return chosen

    def _seed(self) -> int:
        """One per test and audit, the same in any order and selection of tests."""
        text = f"{self.config.stash[_SEED]}\0{self.node.nodeid}\0{len(self.results)}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1

    def _note(self, result: AuditResult) -> None:
        """Properties of the test: JUnit files show them, and our summary reads them, also from workers."""
        from epsilometer.report.wording import reservations

        number = len(self.results)
        prefix = _PREFIX if number == 1 else f"{_PREFIX}{number}."
        noted = {
            "verdict": str(result.verdict),
            "claim": result.claim.describe(),
            "lower_bound": f"{result.lower_bound:.6g}",
            "samples": result.settings["samples"],
            "confidence": result.confidence,
            "false_alarm": f"{1.0 - result.confidence:.2g}",
            "guarantee": result.guarantee[:200],
            "seed": result.settings["seed"],
            "mechanism": str(result.settings["mechanism"])[:200],
        }
        if weakened := reservations(result.settings):
            noted["with"] = weakened
        self.node.user_properties += [(prefix + name, value) for name, value in noted.items()]

    def _failure(self, result: AuditResult) -> Exception:
        from epsilometer import PrivacyViolation

        return PrivacyViolation("\n".join([str(result), "", *self._advice(result)]), result)

    def _advice(self, result: AuditResult) -> Iterator[str]:
        yield f"False alarm: {_rate(1.0 - result.confidence)}; {result.guarantee.partition(':')[0]} guarantee."
        family = self.config.stash[_FAMILY]
        shared = "" if family is None else family.options()
        samples = f"--epsilometer-samples={result.settings['samples']}"
        again = f'pytest "{self.node.nodeid}"{shared} {samples} --epsilometer-seed='
        if result.settings.get("seeded_mechanism"):
            yield f"The same draws again: {again}{self.config.stash[_SEED]}"
            yield f"Fresh draws:          {again}{self.config.stash[_SEED] + 1}"
        else:
            yield f"Fresh draws (the mechanism takes no seed): {again}{self.config.stash[_SEED]}"
        stored = self._store(result)
        if stored is not None:
            yield f"Stored; replay with:  epsilometer replay {stored} module:function"
        yield from self._write_test(result)

    def _write_test(self, result: AuditResult) -> Iterator[str]:
        folder = self.config.getoption("--epsilometer-write-tests")
        if folder is None or not result.is_refuted:
            return
        from epsilometer import InputError
        from epsilometer.storage.writing import write_whole

        number = "" if len(self.results) == 1 else f"_{len(self.results)}"
        name = re.sub(r"\W+", "_", self.node.name).strip("_").removeprefix("test_")
        try:
            text = result.to_test()
        except InputError as error:
            yield f"No regression test:   {error}"
            return
        Path(folder).mkdir(parents=True, exist_ok=True)
        yield f"Regression test:      {write_whole(Path(folder) / f'test_leak_{name}{number}.py', text)}"

    def _store(self, result: AuditResult) -> str | None:
        cache = getattr(self.config, "cache", None)
        if cache is None:
            return None
        name = hashlib.blake2b(f"{self.node.nodeid}{len(self.results)}".encode(), digest_size=6).hexdigest()
        return str(result.save_json(cache.mkdir("epsilometer") / f"{name}.json"))


def _stricter(own: Any, shared: float) -> Any:
    """The higher confidence; what is no number is left for the audit to refuse."""
    return max(own, shared) if isinstance(own, int | float) else own


def _searched(inputs: Any, search: dict[str, Any], seed: int) -> Any:
    """A search of the examples of a strategy, or of a domain if there are settings for one; else what was given."""
    from epsilometer import domains, finders

    is_strategy = any(each.__module__.startswith("hypothesis.") for each in type(inputs).__mro__)
    if not is_strategy and not search:
        return inputs
    domain = domains.from_strategy(inputs) if is_strategy else inputs
    return finders.Search(domain, seed=seed % 2**32, **search)


def _rate(false_alarm: float) -> str:
    return f"if the claim is true, this assertion fails at most once in {1.0 / false_alarm:,.0f} runs"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """A line per audit, how many false alarms this run had to expect, and what holds for all audits together."""
    reports = list(_reports(terminalreporter))
    rows = [row for report in reports for row in _rows(report, _COLUMNS)]
    if not rows:
        return
    terminalreporter.section("epsilometer")
    head = ("test", "verdict", "claim", "lower bound", "samples", "false alarm ≤")
    table = [head, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    for row in table:
        terminalreporter.write_line(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    expected = sum(float(row[-1]) for row in rows)
    audits = "1 audit" if len(rows) == 1 else f"{len(rows)} audits"
    terminalreporter.write_line(
        f"{audits}; if all claims are true, at most {expected:.2g} of them fail by chance, on average"
    )
    family = config.stash[_FAMILY]
    if family is None:
        return
    terminalreporter.write_line(family.promise())
    for report in reports:
        for nodeid, guarantee in _rows(report, ("guarantee",)):
            if guarantee != "exact":
                terminalreporter.write_line(f"not covered by that: {nodeid}, whose guarantee is {guarantee}")


def _reports(terminalreporter: Any) -> Iterator[pytest.TestReport]:
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                yield report


def _rows(report: pytest.TestReport, columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """For each audit of a test, the test's id and these properties of the audit."""
    noted = {name: str(value) for name, value in report.user_properties}
    number = 1
    prefix = _PREFIX
    while f"{prefix}verdict" in noted:
        verdict, *figures = (noted[f"{prefix}{name}"] for name in columns)
        if weakened := noted.get(f"{prefix}with"):  # what was switched off, say
            verdict += f", with {weakened[:_MOST_RESERVATIONS]}"
        yield (report.nodeid, verdict, *figures)
        number += 1
        prefix = f"{_PREFIX}{number}."
