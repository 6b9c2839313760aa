"""Finders on the command line and in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epsilometer.errors import InputError

# The flags of a search, and what a finder calls them.
SEARCH_FLAGS = {
    "finder": "name",
    "domain": "domain",
    "relation": "relation",
    "trials": "trials",
    "trial_samples": "samples",
    "search_on": "stop_at_refutation",
}


def search_wishes(given: Mapping[str, Any]) -> dict[str, Any]:
    """What flags say about a search, by the names of a finder's settings."""
    wishes = {name: given[flag] for flag, name in SEARCH_FLAGS.items() if flag in given}
    if "search_on" in given:
        wishes["stop_at_refutation"] = not given["search_on"]
    return wishes


def merged_search(table: Any, wishes: Mapping[str, Any]) -> dict[str, Any]:
    """The table of a file with what the flags say instead."""
    merged = {**(table or {}), **wishes}
    if "name" not in merged:
        flag = next(flag for flag, name in SEARCH_FLAGS.items() if name in wishes)
        raise InputError(f"--{flag.replace('_', '-')} is for a search; name a finder with --finder")
    return merged


def open_finder(table: Mapping[str, Any], seed: int | None) -> Any:
    """The finder that a table describes; its seed is that of the audit unless it has its own."""
    from epsilometer.inputs.finders.reading import FINDERS, read_finder

    is_seeded = seed is not None and table.get("name") in FINDERS and table.get("name") != "patterns"
    return read_finder({"seed": seed, **table} if is_seeded else table)
