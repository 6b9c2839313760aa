"""From options and settings files to the arguments of `epsilometer.audit`.

Settings are a dictionary by the long names of the options, whether they come from the command line
or from a TOML file. The command line wins.
"""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from epsilometer.cli.files import (
    read_dataset,
    read_headers,
    read_options,
    read_value,
    read_values,
)
from epsilometer.cli.options import count
from epsilometer.cli.output import FILE_KEYS, Answers, OutputFiles, writable
from epsilometer.cli.settings_file import (
    CALL_KEYS,
    CLAIM_KEYS,
    INPUT_KEYS,
    RUN_KEYS,
    SEARCH_KEYS,
    read_settings,
)
from epsilometer.cli.targets import HTTP_KEYS, open_accountant, open_target, public_target
from epsilometer.errors import InputError, MechanismError, did_you_mean
from epsilometer.redaction import public

if TYPE_CHECKING:
    from epsilometer.auditing.profile import Profile
    from epsilometer.claims import Claim
    from epsilometer.mechanisms.functions import AuditTarget
    from epsilometer.result import AuditResult

_Result = TypeVar("_Result", "AuditResult", "Profile")

# The names that --notion takes.
NOTION_NAMES = ("pure", "approx", "renyi", "zcdp", "gaussian")
# No size of an array may reach this.
_TOO_MANY = 1 << 53
# The settings of a search that a finder calls by another name.
_FINDER_NAMES = {"trial_samples": "samples"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """What to run and where to put the answer.

    Attributes:
        audit_target: the mechanism that the target names, with what it brings.
        inputs: pairs of inputs, or a finder; None for the worst pair of a zoo entry.
        parameters: the parameters of a claim that were given.
        accountant_claim: the claim of the accountant that was given; None if none was.
        keywords: settings of the run that were given.
        record: what is added to the settings of the result.
        files: where the result goes.
        fail_blind: whether an audit that could not have refuted anything exits with status 3.
    """

    audit_target: "AuditTarget"
    inputs: Any
    parameters: dict[str, float]
    keywords: dict[str, Any]
    record: dict[str, Any]
    files: OutputFiles
    fail_blind: bool = False
    accountant_claim: "Claim | None" = None

    def claim(self) -> "Claim | None":
        """What is claimed; None leaves it to a mechanism that brings its own claim."""
        from epsilometer.claims import from_parameters

        if self.accountant_claim is not None:
            return self.accountant_claim
        if not self.parameters and self.audit_target.has_claim:
            return None
        return from_parameters(**self.parameters)


def given_settings(**settings: Any) -> dict[str, Any]:
    """The settings that were given: all that are not None."""
    return {name: value for name, value in settings.items() if value is not None}


def make_request(target: str, given: Mapping[str, Any], answers: Answers) -> AuditRequest:
    """Puts options together with the TOML file that `target` may be; options win.

    Args:
        target: a mechanism, or a file that ends in .toml.
        given: the options that were given, by their long names, as the command line has them.
        answers: where the answer goes.
    """
    settings = dict(given)
    for side in ("left", "right"):
        if side in settings:
            settings[side] = read_value(settings[side], f"--{side}")
    if "option" in settings:
        settings["options"] = read_options(settings.pop("option"))
    settings = read_call_options(settings)
    if "around" in settings:
        data_file = Path(settings["around"].removeprefix("@"))
        settings["around"] = read_dataset(data_file, "--around", settings.get("user"))
    finder_name = settings.pop("finder", None)
    folders: tuple[Path, ...] = ()
    if target.endswith(".toml"):
        path = Path(target)
        settings = _merge(read_settings(path), settings)
        target = settings["mechanism"]
        folders = (path.parent.resolve(),)
    if finder_name is not None:
        settings["finder"] = {**settings.get("finder", {}), "name": finder_name}
    return request_from_settings(target, settings, answers, folders)


def read_call_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options with those about the call of the target as a file has them.

    --param becomes the table `params`, those that begin with --http- become the table `http`.
    """
    settings = dict(given)
    if "param" in settings:
        settings["params"] = read_values(settings.pop("param"), "--param")
    http: dict[str, Any] = {}
    if "http_header" in settings:
        http["headers"] = read_headers(settings.pop("http_header"))
    for key in HTTP_KEYS:
        if f"http_{key}" in settings:
            http[key] = settings.pop(f"http_{key}")
    if http:
        settings["http"] = http
    return settings


def request_from_settings(
    target: str,
    settings: Mapping[str, Any],
    answers: Answers,
    folders: tuple[Path, ...] = (),
) -> AuditRequest:
    """The request from settings that were already read.

    Args:
        target: a mechanism.
        settings: by their long names; inputs are values, not text.
        answers: where the answer goes.
        folders: searched for modules after the current folder.
    """
    settings = collect_finder_settings(settings)
    files = OutputFiles(**{key: settings.get(key) for key in FILE_KEYS}).checked(answers)
    if isinstance(settings.get("samples"), str):  # of a file
        settings["samples"] = count(settings["samples"])
    keywords = {name: settings[name] for name in RUN_KEYS if name in settings}
    if "checkpoint" in keywords:
        keywords["checkpoint"] = writable(keywords["checkpoint"], "--checkpoint", answers)
    for option in ("samples", "jobs", "distance"):
        value = settings.get(option)
        if isinstance(value, int) and abs(value) >= _TOO_MANY:
            raise InputError(f"{option} = {value} is too large")
    batch = bool(settings.get("batch"))
    call_settings = {key: settings[key] for key in CALL_KEYS if key in settings}
    audit_target = open_target(
        target, batch, folders, features=settings.get("features"), **call_settings
    )
    parameters = claim_parameters(settings)
    record = target_record(target, batch, call_settings)
    accountant = settings.get("accountant")
    if accountant is not None:
        record["accountant"] = accountant
    return AuditRequest(
        audit_target=audit_target,
        inputs=_inputs(settings, audit_target),
        parameters=parameters,
        accountant_claim=read_accountant(accountant, parameters, folders),
        keywords=keywords,
        record=record,
        files=files,
        fail_blind=bool(settings.get("fail_blind")),
    )


def target_record(
    target: str, batch: bool, call_settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What the settings of a result say about its target, and how it was called.

    Of headers there are the names, whatever their values are.
    """
    record: dict[str, Any] = {"target": public_target(target)}
    if batch:
        record["batch"] = True
    http = (call_settings or {}).get("http") or {}
    shown = {key: public(str(value)) for key, value in http.items() if key != "headers"}
    if shown:
        record["http"] = shown
    if http.get("headers"):
        record["http_headers"] = sorted(http["headers"])
    return record


def run_with_progress(work: Callable[..., _Result], record: Mapping[str, Any]) -> _Result:
    """Does the work and adds to the settings of the result what the command line knows.

    Args:
        work: gets a progress, as a keyword.
        record: what to add.

    Raises:
        KeyboardInterrupt: with a text that says how far the work came.
    """
    from epsilometer.report.progress import PatienceNotice, ProgressBar
    from epsilometer.result import AuditResult

    hint = "--stop-early usually needs fewer draws, --jobs uses more cores"
    progress = ProgressBar(hint=hint, waited=time.process_time())
    try:
        result = work(progress=progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(progress.summary()) from None
    except Exception:
        raise
    except SystemExit as error:
        # Its status would pass for our verdict.
        raise MechanismError(
            f"the mechanism tried to end the program: SystemExit({error.code!r})"
        ) from error
    except BaseException as error:
        raise MechanismError(f"the mechanism raised {type(error).__name__}: {error}") from error
    asked = result.settings.get("jobs_asked")
    if asked is not None:
        sys.stderr.write(
            f"epsilometer: --jobs {asked} was lowered to {result.settings['jobs']}: more workers "
            "do not help on this machine\n"
        )
    result = replace(result, settings={**result.settings, **record})
    if isinstance(result, AuditResult):
        with PatienceNotice("working out what this audit would have seen"):
            _ = result.detectable, result.detectable_mass
    return result


def claim_parameters(settings: Mapping[str, Any]) -> dict[str, float]:
    """The parameters of a claim that were given: its numbers, not an accountant."""
    names = [name for name in CLAIM_KEYS if name != "accountant"]
    return {name: settings[name] for name in names if settings.get(name) is not None}


def read_accountant(
    place: str | None, parameters: Mapping[str, Any], folders: tuple[Path, ...] = ()
) -> "Claim | None":
    """The claim of the accountant that was given, None if none was.

    Args:
        place: what --accountant says.
        parameters: other parameters of a claim, which contradict an accountant.
        folders: searched for modules after the current folder.
    """
    if place is None:
        return None
    if parameters:
        given = ", ".join(f"--{name}" for name in parameters)
        raise InputError(f"--accountant is a whole claim and does not go with {given}")
    return open_accountant(place, folders)


def find_notion(name: str) -> "type[Claim]":
    """The notion of that name."""
    from epsilometer.claims import NOTIONS

    if name not in NOTION_NAMES:
        known = ", ".join(NOTION_NAMES)
        hint = did_you_mean(name, NOTION_NAMES)
        raise InputError(f"--notion {name!r} is unknown; known are {known}{hint}")
    return NOTIONS[name]


def collect_finder_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with those of a search moved into the table `finder`.

    What stands outside of that table wins over what stands in it.
    """
    for_finder = {
        _FINDER_NAMES.get(key, key): settings[key] for key in SEARCH_KEYS if key in settings
    }
    if not for_finder and "finder" not in settings:
        return dict(settings)
    if isinstance(for_finder.get("samples"), str):  # of a file
        for_finder["samples"] = count(for_finder["samples"])
    if "search_on" in for_finder:
        for_finder["stop_at_refutation"] = not for_finder.pop("search_on")
    table = {**settings.get("finder", {}), **for_finder}
    if "name" not in table:
        if "domain" not in table and "around" not in table:
            given = next((key for key in SEARCH_KEYS if key in settings), "finder")
            flag = given.replace("_", "-")
            raise InputError(
                f"--{flag} is for a search; say what to search with --domain or --around"
            )
        table["name"] = "search"
    others = {key: value for key, value in settings.items() if key not in SEARCH_KEYS}
    return {**others, "finder": table}


def open_finder(table: Mapping[str, Any], seed: int | None) -> Any:
    """The finder that a table describes; its seed is that of the audit unless it has its own."""
    from epsilometer.inputs.finders.plain import FINDERS, read_finder

    name = table.get("name")
    takes_a_seed = name in FINDERS and name != "patterns"
    settings = dict(table)
    if seed is not None and takes_a_seed:
        settings.setdefault("seed", seed)
    if "around" not in settings:
        if "user" in settings:
            raise InputError(
                "--user names a column of the data of --around; the user column of a domain is "
                'part of it: {"kind": "table", "columns": …, "user": "COLUMN"}'
            )
        return read_finder(settings)
    if "domain" in settings or settings.pop("name") != "search":
        raise InputError(
            "--around searches the neighbours of its data, so it goes with neither --domain "
            "nor --finder"
        )
    from epsilometer import around

    try:
        return around(settings.pop("around"), **settings)
    except TypeError as error:  # a setting that it does not know
        raise InputError(f"finder: {str(error).partition('() ')[2] or error}") from error


def _merge(from_file: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The settings of a file, changed by those of the command line.

    A claim, inputs or a method on the command line replace those of the file as a whole; options
    and finders are changed one by one.
    """
    replaced: set[str] = set()
    if any(key in given for key in CLAIM_KEYS):
        replaced.update(CLAIM_KEYS)
    names_a_pair = "left" in given or "right" in given
    # A finder on the command line changes the one of the file instead of replacing it.
    input_keys = [key for key in INPUT_KEYS if names_a_pair or key != "finder"]
    if any(key in given for key in input_keys):
        replaced.update(input_keys)
    if "method" in given:
        replaced.update(("method", "options"))
    settings = {name: value for name, value in from_file.items() if name not in replaced}
    settings.update(given)
    for table in ("options", "params", "http"):
        if table in given and table in from_file and table not in replaced:
            settings[table] = {**from_file[table], **given[table]}
    if "headers" in given.get("http", {}) and "headers" in from_file.get("http", {}):
        headers = {**from_file["http"]["headers"], **given["http"]["headers"]}
        settings["http"] = {**settings["http"], "headers": headers}
    return settings


def _inputs(settings: Mapping[str, Any], audit_target: "AuditTarget") -> Any:
    sides = [side for side in ("left", "right") if side in settings]
    if "finder" in settings:
        if sides or "pairs" in settings:
            raise InputError(
                "a search (--domain, --around, --finder) and the inputs themselves (--left and "
                "--right, or pairs) are given: leave out one of the two, not both can decide"
            )
        return open_finder(settings["finder"], settings.get("seed"))
    if "pairs" in settings:
        if sides:
            raise InputError("give either left and right or pairs, not both")
        return settings["pairs"]
    if len(sides) == 2:
        from epsilometer.inputs import Pair

        return Pair(settings["left"], settings["right"])
    if sides:
        missing = "--right" if sides == ["left"] else "--left"
        raise InputError(
            f"--{sides[0]} needs {missing} as well (in a file: left = … and right = …)"
        )
    if audit_target.worst_pair is None:
        raise InputError(
            "--left and --right are needed: the two neighbouring inputs, as JSON or @file; "
            "or --domain, or --around"
        )
    return None
