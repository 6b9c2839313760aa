"""The shares of the oracle as a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any

import numpy as np

from benchmarks.effort import short
from benchmarks.generated.measuring import TELLING, Outcome

# An oracle that proves less is left out: a share of next to nothing says nothing.
LEAST_ORACLE = 0.05
_WORST = 10


def measured(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Returns those whose oracle proves enough to be compared with."""
    return [outcome for outcome in outcomes if outcome.oracle >= LEAST_ORACLE]


def blind(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Returns those that prove nothing in more than one of the audits, where the oracle proves something."""
    return [outcome for outcome in outcomes if outcome.oracle >= TELLING and outcome.empty > 1]


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Returns the distribution of the shares."""
    compared = measured(outcomes)
    shares = [outcome.share for outcome in compared]
    if not shares:
        return {"mechanisms": len(outcomes), "compared": 0}
    return {
        "mechanisms": len(outcomes),
        "compared": len(compared),
        "median": median(shares),
        "tenth percentile": float(np.quantile(shares, 0.1)),
        "mean": fmean(shares),
        "least": min(shares),
        "proves nothing": len(blind(outcomes)),
    }


def markdown(outcomes: Sequence[Outcome], title: str, *, is_closed: bool = False) -> str:
    """Returns the whole table: the distribution, families and layouts, the worst, and what proves nothing.

    Args:
        outcomes: of a set.
        title: its heading.
        is_closed: shows the distribution only, so that nobody learns from the set.
    """
    figures = summary(outcomes)
    lines = [
        f"### {title}",
        "",
        f"{figures['compared']} of {figures['mechanisms']} mechanisms have an oracle of {LEAST_ORACLE:g} or more.",
    ]
    if not figures["compared"]:
        return "\n".join(lines)
    lines += [
        "",
        "| median | tenth percentile | mean | least | proves nothing where the oracle proves .3 |",
        "|---:|---:|---:|---:|---:|",
        f"| {figures['median']:.3f} | {figures['tenth percentile']:.3f} | {figures['mean']:.3f} | "
        f"{figures['least']:.3f} | {figures['proves nothing']} |",
        "",
    ]
    if is_closed:
        return "\n".join(lines)
    compared = measured(outcomes)
    alone = [outcome for outcome in compared if len(outcome.leaks) == 1]
    lines += _groups("leak (alone)", alone, lambda outcome: outcome.leaks[0])
    lines += _groups("shown as", compared, lambda outcome: outcome.layout)
    lines += _groups("oracle", compared, _size)
    lines += _groups("notion", compared, lambda outcome: outcome.notion)
    lines += _worst(compared)
    lines += _blind(outcomes)
    return "\n".join(lines)


def _size(outcome: Outcome) -> str:
    """The order of magnitude of the oracle."""
    edges = (0.3, 1.0, 3.0)
    place = sum(outcome.oracle >= edge for edge in edges)
    return ("below 0.3", "0.3 to 1", "1 to 3", "above 3")[place]


def _groups(heading: str, outcomes: Sequence[Outcome], key: Callable[[Outcome], str]) -> list[str]:
    """A table of groups, the worst first."""
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[key(outcome)].append(outcome)
    lines = [
        f"| {heading} | mechanisms | mean share | least | prove nothing |",
        "|---|---:|---:|---:|---:|",
    ]
    rows = sorted(groups.items(), key=lambda item: fmean(o.share for o in item[1]))
    for name, members in rows:
        shares = [member.share for member in members]
        lines.append(
            f"| {name.replace('_', ' ')} | {len(members)} | {fmean(shares):.2f} | {min(shares):.2f} | "
            f"{len(blind(members))} |"
        )
    return [*lines, ""]


def _worst(compared: Sequence[Outcome]) -> list[str]:
    # Of equal shares, the one where most could be proved.
    worst = sorted(compared, key=lambda outcome: (outcome.share, -outcome.oracle))[:_WORST]
    return [f"The worst {len(worst)}:", "", *(f"- {_line(outcome)}" for outcome in worst), ""]


def _blind(outcomes: Sequence[Outcome]) -> list[str]:
    lines = [
        f"- in {outcome.empty} of {outcome.audits} audits: {_line(outcome)}"
        for outcome in sorted(blind(outcomes), key=lambda outcome: -outcome.oracle)
    ]
    return ["Proves nothing:", "", *(lines or ["- none"]), ""]


def _line(outcome: Outcome) -> str:
    return (
        f"{outcome.share:.2f} ({outcome.bound:.3g} of {outcome.oracle:.3g}, {outcome.notion}), seed {outcome.seed}: "
        f"{outcome.description}"
    )


def title_of(
    set_seed: int, count: int, n: int, *, is_outside: bool = False, is_told: bool = False
) -> str:
    """Names a run."""
    kind = "members of families outside the grammar" if is_outside else "mechanisms"
    told = ", exact log-likelihood ratios instead of outputs" if is_told else ""
    return f"Set {set_seed}, {count} {kind} at {short(n)} draws{told}"
