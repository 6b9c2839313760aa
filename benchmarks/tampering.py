"""`python -m benchmarks.tampering`: honest results must pass the checker, and forged ones must not.

    python -m benchmarks.tampering [--honest 500] [--forged 2000] [--seed 0]

Prints how many of each kind hold, do not hold, and cannot be checked. The exit status is 1 if an honest
result is turned down or a forged one holds.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field

import numpy as np

from benchmarks.forgeries import FORGERIES, UNKNOWABLE, Document, forged_results
from benchmarks.honest_results import honest_results
from epsilometer.checker import Check, verify

# Forgeries per kind of change that no file can betray: enough to see that they pass.
_UNKNOWABLE_PER_KIND = 5


@dataclass
class Tally:
    """How the checker answered about the results of one kind."""

    holds: int = 0
    does_not_hold: int = 0
    cannot_be_checked: int = 0

    def add(self, check: Check) -> None:
        """Counts one more answer."""
        if check.holds is True:
            self.holds += 1
        elif check.holds is False:
            self.does_not_hold += 1
        else:
            self.cannot_be_checked += 1

    @property
    def total(self) -> int:
        """How many there are."""
        return self.holds + self.does_not_hold + self.cannot_be_checked


@dataclass
class Tampering:
    """The outcome of both counts.

    Attributes:
        honest: answers about honest results with an exact guarantee: all must hold.
        unprovable: answers about honest results that no count proves: none can be checked.
        forged: by kind of forgery; none may hold.
        unknowable: by kind of change that no file can betray: they hold.
        mistakes: a sentence for every wrong answer.
    """

    honest: Tally = field(default_factory=Tally)
    unprovable: Tally = field(default_factory=Tally)
    forged: dict[str, Tally] = field(default_factory=dict)
    unknowable: dict[str, Tally] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)

    @property
    def n_forged(self) -> int:
        """How many forged results there were."""
        return sum(tally.total for tally in self.forged.values())

    @property
    def n_forged_that_hold(self) -> int:
        """How many of them the checker accepted."""
        return sum(tally.holds for tally in self.forged.values())

    def table(self) -> str:
        """All counts as plain text."""
        lines = [f"{'':58}{'holds':>8}{'does not':>10}{'cannot be checked':>19}"]
        lines.append(_row("honest, exact", self.honest))
        lines.append(_row("honest, no count proves them", self.unprovable))
        lines += [_row(f"forged: {name}", tally) for name, tally in self.forged.items()]
        lines += [_row(f"unknowable: {name}", tally) for name, tally in self.unknowable.items()]
        return "\n".join(lines)


def _row(name: str, tally: Tally) -> str:
    figures = f"{tally.holds:>8}{tally.does_not_hold:>10}{tally.cannot_be_checked:>19}"
    return f"{name:58.58}{figures}"


def run_tampering(honest: int = 500, forged: int = 2000, seed: int = 0) -> Tampering:
    """Makes honest and forged results and asks the checker about all of them.

    Args:
        honest: how many honest results, over all kinds.
        forged: how many forged ones, over all kinds of forgery.
        seed: of the audits and of what is forged.
    """
    outcome = Tampering()
    sources: list[tuple[str, Document]] = []
    for kind, document in honest_results(honest, first_seed=seed):
        check = verify(document)
        tally = outcome.honest if kind.holds else outcome.unprovable
        tally.add(check)
        if check.holds is not kind.holds:
            outcome.mistakes.append(f"honest: {kind.name}: {check}")
        sources.append((kind.name, document))
    rng = np.random.default_rng([seed, 7])
    for attempt in forged_results(sources, FORGERIES, forged, rng):
        check = verify(attempt.document)
        outcome.forged.setdefault(attempt.kind, Tally()).add(check)
        if check.holds is True:
            outcome.mistakes.append(f"forged: {attempt.kind}, in {attempt.source}: {check}")
    n_unknowable = _UNKNOWABLE_PER_KIND * len(UNKNOWABLE)
    for attempt in forged_results(sources, UNKNOWABLE, n_unknowable, rng):
        outcome.unknowable.setdefault(attempt.kind, Tally()).add(verify(attempt.document))
    return outcome


def main(arguments: list[str] | None = None) -> int:
    """Runs both counts and prints them."""
    parser = argparse.ArgumentParser(
        description="honest results must pass the checker, forged ones must not"
    )
    parser.add_argument("--honest", type=int, default=500)
    parser.add_argument("--forged", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    outcome = run_tampering(options.honest, options.forged, options.seed)
    print(outcome.table())
    accepted = outcome.n_forged_that_hold
    print(f"\nhonest: {outcome.honest.holds} of {outcome.honest.total} hold", end="; ")
    print(
        f"{outcome.unprovable.cannot_be_checked} of {outcome.unprovable.total} cannot be checked, as stated"
    )
    print(f"forged: {accepted} of {outcome.n_forged} hold ({len(outcome.forged)} kinds)")
    print(f"{time.perf_counter() - began:.0f} s")
    for mistake in outcome.mistakes:
        print(mistake)
    return 1 if outcome.mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
