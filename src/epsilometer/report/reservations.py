"""What weakens the reading of a result or profile, from the facts that its settings record.

The settings may come from a file that anybody wrote: every value is checked before it is shown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from epsilometer.report.formatting import plain

# Inputs of a recording whose rows are listed.
_MAX_INPUTS = 4
# Characters of the name of an input.
_MAX_INPUT_CHARACTERS = 16


def reservations(settings: Mapping[str, Any]) -> str | None:
    """Returns what weakens a reading, as it continues "the claim is refuted, with …".

    Returns None if nothing does.

    Args:
        settings: of a result or a profile.
    """
    parts = [
        _switched_off(settings),
        _said_to_be_a_leak(settings),
        _failed_runs(settings),
        _with_counts("requests sent again", settings.get("retried")),
        _with_counts("draws that were begun, lost and drawn again", settings.get("redrawn")),
    ]
    statuses = names_in(settings.get("statuses"))
    if statuses:
        parts.append(f"the exit statuses {_listed(statuses)} taken for success")
    columns = names_in(settings.get("columns"))
    if columns:
        parts.append(f"no look at columns other than {_listed(columns)}")
    answer = settings.get("answer")
    if answer:
        parts.append(f"no look at the answers of the service but for their {plain(answer)}")
    if settings.get("representation") == "bits":
        parts.append("no look at anything but the bits of floating-point numbers")
    features = settings.get("features")
    if features:
        name = features.get("name") if isinstance(features, Mapping) else features
        parts.append(f"features of the outputs ({plain(name)})")
    if settings.get("distance", 1) != 1:
        parts.append(f"inputs that are {plain(settings['distance'])} neighbouring steps apart")
    return "; ".join(part for part in parts if part) or None


def _switched_off(settings: Mapping[str, Any]) -> str | None:
    """Which health checks were switched off, and which of them would have had a remark."""
    names = names_in(settings.get("suppress"))
    if not names:
        return None
    checks = f"the {names[0]} check" if len(names) == 1 else f"the checks {_listed(names)}"
    silenced = names_in(settings.get("silenced"))
    remark = f" ({_listed(silenced)} would have remarked on these draws)" if silenced else ""
    return f"{checks} switched off{remark}"


def _said_to_be_a_leak(settings: Mapping[str, Any]) -> str | None:
    """That nobody was to find out why answers are constant."""
    if settings.get("constant") != "leak":
        return None
    return "constant answers taken for a leak without noise (constant='leak')"


def _failed_runs(settings: Mapping[str, Any]) -> str | None:
    text = "failed runs counted as outcomes"
    if settings.get("failed") is not None:
        return _with_counts(text, settings["failed"])
    return text if settings.get("on_error") == "outcome" else None


def _with_counts(text: str, counts: Any) -> str | None:
    """The text with its numbers for both inputs; None if there are no numbers."""
    if counts is None:
        return None
    is_pair = isinstance(counts, list | tuple) and len(counts) == 2
    if is_pair and all(isinstance(count, int) for count in counts):
        left, right = counts
        return f"{text} ({left:,} left, {right:,} right)"
    return f"{text} ({plain(counts)})"


def names_in(setting: Any) -> list[str]:
    """Returns the names in a setting that is a list, a single name or None."""
    if setting is None:
        return []
    if isinstance(setting, list | tuple):
        return [plain(name) for name in setting]
    return [plain(setting)]


def _listed(names: Sequence[str]) -> str:
    """The names as an English list: "a, b and c"."""
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def recorded_rows(settings: Mapping[str, Any]) -> str | None:
    """Returns which rows of a recording chose the event and which certified it.

    Returns None if nothing was recorded, or if the stored facts cannot be read.
    """
    recording = settings.get("recording")
    if not isinstance(recording, Mapping):
        return None
    try:
        draws = recording.get("draws", [])
        listed = draws[:_MAX_INPUTS]
        rows_of_inputs = [_rows_of_input(entry) for entry in listed]
        names = [plain(entry.get("input"), _MAX_INPUT_CHARACTERS) for entry in listed]
        n_more = len(draws) - len(listed)
    except (AttributeError, TypeError, ValueError, KeyError, IndexError):
        return None
    if not rows_of_inputs:
        return None
    if len(rows_of_inputs) > 1 and len(set(rows_of_inputs)) == 1:
        text = rows_of_inputs[0].format(of="of each input")
    else:
        texts = [
            rows.format(of=f"of {name}") for rows, name in zip(rows_of_inputs, names, strict=True)
        ]
        text = "; ".join(texts)
    return f"{text}; and {n_more} more inputs" if n_more else text


def _rows_of_input(entry: Mapping[str, Any]) -> str:
    """The rows of one input, with the place {of} for its name. People count rows from 1."""
    chose = entry["chose"]
    proved = entry["proved"]
    if entry.get("shuffled"):
        n_chose = _n_rows(chose)
        n_proved = _n_rows(proved)
        return (
            f"all {n_chose + n_proved:,} rows {{of}}, shuffled: "
            f"{n_chose:,} chose, {n_proved:,} proved"
        )
    parts: list[str] = []
    for rows, purpose in ((chose, "chose"), (proved, "proved")):
        if rows:
            ranges = _listed([f"{int(start) + 1} to {int(stop)}" for start, stop in rows])
            owner = "" if parts else " {of}"
            parts.append(f"rows {ranges}{owner} {purpose}")
    return ", ".join(parts)


def _n_rows(ranges: Sequence[Sequence[Any]]) -> int:
    return sum(int(stop) - int(start) for start, stop in ranges)
