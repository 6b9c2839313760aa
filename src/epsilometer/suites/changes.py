"""What changed in a suite since its previous run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from epsilometer.report.formatting import figure_down
from epsilometer.suites.outcomes import Entry, Outcome

# With another seed, bounds of the same mechanism differ by chance. A difference of less than this
# fraction of the larger bound is not reported.
_MIN_RELATIVE_CHANGE = 0.05


@dataclass(frozen=True, slots=True)
class Change:
    """How an audit differs from its previous run.

    Attributes:
        name: of the audit.
        kind: "new", "gone", "verdict", "bound", "settings" or "same".
        text: the difference in words; empty if there is none.
    """

    name: str
    kind: str
    text: str

    @property
    def is_news(self) -> bool:
        """Whether the change is worth showing."""
        return self.kind != "same"


def find_changes(
    entries: Sequence[Entry],
    now: Mapping[str, Outcome],
    before: Mapping[str, Outcome],
) -> dict[str, Change]:
    """Compares the outcomes of a run with those of the previous one.

    Args:
        entries: the suite.
        now: the outcomes of this run by name.
        before: the outcomes of the previous run by name; empty for the first run.

    Returns:
        A change for every audit of this run, in the order of the suite, then one for every audit
        that is gone.
    """
    is_first_run = not before
    changes: dict[str, Change] = {}
    for entry in entries:
        if entry.name not in now:
            continue
        previous = before.get(entry.name)
        if previous is not None:
            changes[entry.name] = _compare(now[entry.name], previous)
        elif is_first_run:
            changes[entry.name] = Change(name=entry.name, kind="same", text="")
        else:
            changes[entry.name] = Change(name=entry.name, kind="new", text="new")
    for name, previous in before.items():
        if name not in changes:
            changes[name] = Change(name=name, kind="gone", text=f"gone; was {previous.word}")
    return changes


def _compare(now: Outcome, before: Outcome) -> Change:
    """Returns the most important difference between two outcomes of one audit."""
    unchanged = Change(name=now.name, kind="same", text="")
    if now.word != before.word:
        return Change(name=now.name, kind="verdict", text=f"{before.word} → {now.word}")
    if now.result is None or before.result is None:
        return unchanged
    old_claim = before.result.claim
    new_claim = now.result.claim
    if new_claim != old_claim:
        text = f"claim {old_claim.describe()} → {new_claim.describe()}"
        return Change(name=now.name, kind="settings", text=text)
    old_bound = before.result.lower_bound
    new_bound = now.result.lower_bound
    larger_bound = max(abs(new_bound), abs(old_bound))
    if abs(new_bound - old_bound) > _MIN_RELATIVE_CHANGE * larger_bound:
        text = f"{new_claim.symbol} ≥ {figure_down(old_bound)} → {figure_down(new_bound)}"
        return Change(name=now.name, kind="bound", text=text)
    if now.digest != before.digest:
        return Change(name=now.name, kind="settings", text="settings or code changed")
    return unchanged
