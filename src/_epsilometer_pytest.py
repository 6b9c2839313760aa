"""The pytest plugin: audits as tests that say how often they may fail by chance.

Loaded by every pytest run where Epsilometer is installed, so it imports nothing of Epsilometer until a test calls
`epsilometer.assert_private`.
"""

from __future__ import annotations

import argparse
import hashlib
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
_SEED = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Samples, profile and seed of all audits."""
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
        "markers", "epsilometer(samples=…, confidence=…, …): settings for the audits of this test (see em.audit)"
    )
    config.stash[_SEED] = _decide_seed(config)


def _decide_seed(config: pytest.Config) -> int:
    given = config.getoption("--epsilometer-seed")
    if given is not None:
        return int(given)
    sent = getattr(config, "workerinput", {})  # a worker of pytest-xdist
    if "epsilometer_seed" in sent:
        return int(sent["epsilometer_seed"])
    fresh = PROFILES[config.getoption("--epsilometer-profile")][1]
    return secrets.randbits(32) if fresh else 0


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Workers of pytest-xdist take the seed of the whole run."""
    node.workerinput["epsilometer_seed"] = node.config.stash[_SEED]


def pytest_report_header(config: pytest.Config) -> str | None:
    """A run that nobody can repeat without its seed says it."""
    profile = config.getoption("--epsilometer-profile")
    if profile == "ci" and config.getoption("--epsilometer-seed") is None:
        return None
    return f"epsilometer: profile {profile}, --epsilometer-seed={config.stash[_SEED]}"


@pytest.fixture
def epsilometer(request: pytest.FixtureRequest) -> Auditor:
    """Audits mechanisms: `epsilometer.assert_private(mechanism, inputs, claim)`."""
    marked: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers("epsilometer"))):
        marked.update(marker.kwargs)
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
            confidence: a true claim fails the test with probability at most 1 − confidence (default 1e-6).
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
        return chosen

    def _seed(self) -> int:
        """One per test and audit, the same in any order and selection of tests."""
        text = f"{self.config.stash[_SEED]}\0{self.node.nodeid}\0{len(self.results)}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1

    def _note(self, result: AuditResult) -> None:
        """Properties of the test: JUnit files show them, and our summary reads them, also from workers."""
        number = len(self.results)
        prefix = _PREFIX if number == 1 else f"{_PREFIX}{number}."
        noted = {
            "verdict": str(result.verdict),
            "claim": result.claim.describe(),
            "lower_bound": f"{result.lower_bound:.6g}",
            "samples": result.settings["samples"],
            "confidence": result.confidence,
            "false_alarm": f"{1.0 - result.confidence:.2g}",
            "seed": result.settings["seed"],
            "mechanism": str(result.settings["mechanism"])[:200],
        }
        self.node.user_properties += [(prefix + name, value) for name, value in noted.items()]

    def _failure(self, result: AuditResult) -> Exception:
        from epsilometer import PrivacyViolation

        return PrivacyViolation("\n".join([str(result), "", *self._advice(result)]), result)

    def _advice(self, result: AuditResult) -> Iterator[str]:
        yield f"False alarm: {_rate(1.0 - result.confidence)}; {result.guarantee.partition(':')[0]} guarantee."
        again = f'pytest "{self.node.nodeid}" --epsilometer-samples={result.settings["samples"]} --epsilometer-seed='
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


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A line per audit, and how many false alarms this run had to expect."""
    rows = [row for report in _reports(terminalreporter) for row in _rows(report)]
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


def _reports(terminalreporter: Any) -> Iterator[pytest.TestReport]:
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport) and report.when == "call":
                yield report


def _rows(report: pytest.TestReport) -> Iterator[tuple[str, ...]]:
    noted = {name: str(value) for name, value in report.user_properties}
    number = 1
    prefix = _PREFIX
    while f"{prefix}verdict" in noted:
        yield (report.nodeid, *(noted[f"{prefix}{name}"] for name in _COLUMNS))
        number += 1
        prefix = f"{_PREFIX}{number}."
