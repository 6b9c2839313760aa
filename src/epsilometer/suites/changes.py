"""What is different from the run before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from epsilometer.report.showing import figure_down
from epsilometer.suites.outcomes import Entry, Outcome

# Bounds of the same mechanism differ by chance if the seed does; less than this share of the larger one is no news.
_MOVED = 0.05


@dataclass(frozen=True, slots=True)
class Change:
    """How an audit differs from its last run.

    Attributes:
        name: of the audit.
        kind: "new", "gone", "verdict", "bound", "settings" or "same".
        text: the difference in words; empty when there is none.
    """

    name: str
    kind: str
    text: str

    @property
    def is_news(self) -> bool:
        """Whether it should be shown."""
        return self.kind != "same"


def find_changes(
    entries: Sequence[Entry], now: Mapping[str, Outcome], before: Mapping[str, Outcome]
) -> dict[str, Change]:
    """A change for every audit of now, in the order of the suite, then for those that are gone.

    Args:
        entries: the suite.
        now: outcomes by name.
        before: outcomes of the run before by name; empty for the first run.
    """
    known = [entry.name for entry in entries if entry.name in now]
    changes = {name: _change(now[name], before.get(name), bool(before)) for name in known}
    for name in before:
        if name not in changes:
            changes[name] = Change(name, "gone", f"gone; was {before[name].word}")
    return changes


def _change(now: Outcome, before: Outcome | None, has_before: bool) -> Change:
    if before is None:
        return Change(now.name, "new", "new") if has_before else Change(now.name, "same", "")
    if now.word != before.word:
        return Change(now.name, "verdict", f"{before.word} → {now.word}")
    if now.result is None or before.result is None:
        return Change(now.name, "same", "")
    if now.result.claim != before.result.claim:
        claims = f"claim {before.result.claim.describe()} → {now.result.claim.describe()}"
        return Change(now.name, "settings", claims)
    old, new = before.result.lower_bound, now.result.lower_bound
    if abs(new - old) > _MOVED * max(abs(new), abs(old)):
        symbol = now.result.claim.symbol
        return Change(now.name, "bound", f"{symbol} ≥ {figure_down(old)} → {figure_down(new)}")
    if now.digest != before.digest:
        return Change(now.name, "settings", "settings or code changed")
    return Change(now.name, "same", "")
