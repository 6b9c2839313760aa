"""From flags and files to what `epsilometer.audit` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsilometer.cli.files import check_writable, read_options, read_value
from epsilometer.cli.searching import SEARCH_FLAGS, merged_search, open_finder, search_wishes
from epsilometer.cli.settings_file import CLAIM_KEYS, INPUT_KEYS, RUN_KEYS, read_settings
from epsilometer.cli.targets import open_target
from epsilometer.errors import InputError


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run and where to put the answer.

    Attributes:
        target: the mechanism's name as it was given.
        mechanism: what it names.
        inputs: pairs of inputs, or a finder; None for the worst pair of a zoo entry.
        parameters: the flags of a claim that were given.
        keywords: settings of the run that were given.
        record: what is added to the settings of the result.
        json: file for the result.
        html: file for the report.
        junit: file for the result as JUnit XML.
        markdown: file for a summary.
    """

    target: str
    mechanism: Any
    inputs: Any
    parameters: dict[str, float]
    keywords: dict[str, Any]
    record: dict[str, Any]
    json: str | None
    html: str | None
    junit: str | None = None
    markdown: str | None = None


def make_plan(target: str, flags: Mapping[str, Any]) -> Plan:
    """Puts flags together with the TOML file that `target` may be; flags win.

    Args:
        target: a mechanism, or a file that ends in .toml.
        flags: the options by their long names; None is "not given".
    """
    given = {name: value for name, value in flags.items() if value is not None}
    for side in ("left", "right"):
        if side in given:
            given[side] = read_value(given[side], f"--{side}")
    if "option" in given:
        given["options"] = read_options(given.pop("option"))
    wishes = search_wishes(given)
    given = {name: value for name, value in given.items() if name not in SEARCH_FLAGS}
    folders: tuple[Path, ...] = ()
    if target.endswith(".toml"):
        path = Path(target)
        given = _merge(read_settings(path), given)
        target, folders = given["mechanism"], (path.parent.resolve(),)
    if wishes:
        given["finder"] = merged_search(given.get("finder"), wishes)
    return plan_from(target, given, folders)


def plan_from(target: str, given: Mapping[str, Any], folders: tuple[Path, ...] = ()) -> Plan:
    """The plan of settings that were read already.

    Args:
        target: a mechanism.
        given: settings by their long names; inputs are values, not text.
        folders: searched for modules after the current folder.
    """
    for option in ("json", "html", "junit", "markdown"):
        check_writable(given.get(option), f"--{option}")
    batch = bool(given.get("batch"))
    mechanism = open_target(target, batch, folders)
    return Plan(
        target,
        mechanism,
        _inputs(given, mechanism),
        {name: given[name] for name in CLAIM_KEYS if name in given},
        {name: given[name] for name in RUN_KEYS if name in given},
        {"target": target, "batch": True} if batch else {"target": target},
        given.get("json"),
        given.get("html"),
        given.get("junit"),
        given.get("markdown"),
    )


def _merge(settings: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """A claim, a pair or a method of the command line replaces the whole one of the file; options are added."""
    for names in (CLAIM_KEYS, INPUT_KEYS, ("method", "options") if "method" in given else ()):
        if any(name in given for name in names):
            settings = {name: value for name, value in settings.items() if name not in names}
    if "options" in given:
        given = {**given, "options": {**settings.get("options", {}), **given["options"]}}
    return {**settings, **given}


def _inputs(given: Mapping[str, Any], mechanism: Any) -> Any:
    sides = [side for side in ("left", "right") if side in given]
    if "finder" in given:
        if sides or "pairs" in given:
            raise InputError("give either a finder or the inputs themselves, not both")
        return open_finder(given["finder"], given.get("seed"))
    if "pairs" in given:
        if sides:
            raise InputError("give either left and right or pairs, not both")
        return given["pairs"]
    if len(sides) == 2:
        from epsilometer.inputs import Pair

        return Pair(given["left"], given["right"])
    if sides:
        raise InputError(f"--{sides[0]} needs {'--right' if sides == ['left'] else '--left'} as well")
    if getattr(mechanism, "worst_pair", None) is None:
        raise InputError(
            "--left and --right are needed: the two neighbouring inputs, as JSON or @file; or --finder and --domain"
        )
    return None
