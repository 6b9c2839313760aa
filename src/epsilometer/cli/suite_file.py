"""A suite: many audits in one TOML file."""

import ast
import contextlib
import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsilometer.cli.files import read_parsed
from epsilometer.cli.output import FILE_KEYS
from epsilometer.cli.request import NOTION_NAMES
from epsilometer.cli.settings_file import (
    CALL_KEYS,
    CLAIM_KEYS,
    INPUT_KEYS,
    check_keys,
    check_settings_table,
    in_toml,
)
from epsilometer.cli.targets import public_target, split_command
from epsilometer.environment import package_version
from epsilometer.errors import InputError, did_you_mean, short_repr
from epsilometer.redaction import public
from epsilometer.result import Verdict
from epsilometer.storage import files_digest
from epsilometer.storage.formats import named_files
from epsilometer.suites.outcomes import Entry

# Keys above the first audit that are about the suite as a whole.
_KEYS_OF_THE_WHOLE = ("family_confidence", "nights", "title")
# Keys of one audit, besides those of a single audit's file.
_SUITE_KEYS = ("name", "expect", "time_limit", "notion")
# Keys of a claim that are more than a fixed parameter of what is measured.
_WHOLE_CLAIMS = ("epsilon", "mu", "rho", "accountant")
# Keys that are about the outcome, and not about how the audit is run.
_NOT_OF_THE_AUDIT = ("name", "expect", "time_limit", "fail_blind")


@dataclass(frozen=True, slots=True)
class Suite:
    """What a suite's file says.

    Attributes:
        title: of the suite.
        entries: its audits.
        family_confidence: with which no true claim of the suite is called refuted; None if each is
            judged alone.
        nights: whether that confidence is about all nights instead of one run.
    """

    title: str
    entries: list[Entry]
    family_confidence: float | None = None
    nights: bool = False


def check_family_confidence(value: object, name: str) -> float:
    """Returns a confidence between 0 and 1; raises InputError for anything else.

    Args:
        value: as it was given.
        name: of the option or key, for the message.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 1.0:
        raise InputError(
            f"{name} = {short_repr(value)} must be a number above 0 and below 1, for example 0.95"
        )
    return float(value)


def read_suite(path: Path) -> Suite:
    """Reads a suite; a file with a single audit is a suite of one.

    Keys above the first `[[audit]]` are defaults for all audits, but for those that are about the
    suite as a whole: title, family_confidence and nights.
    """
    tables = read_parsed(path, tomllib.loads, "TOML")
    audits = tables.pop("audit", None)
    title = tables.pop("title", path.stem)
    if not isinstance(title, str):
        raise InputError(f"{path}: title = {title!r} must be a text")
    family_confidence = tables.pop("family_confidence", None)
    if family_confidence is not None:
        family_confidence = check_family_confidence(family_confidence, f"{path}: family_confidence")
    nights = tables.pop("nights", False)
    if not isinstance(nights, bool):
        raise InputError(f"{path}: nights = {short_repr(nights)} must be true or false")
    if audits is None:
        audits = [tables]
        tables = {}
    is_list = isinstance(audits, list) and len(audits) > 0
    if not is_list or not all(isinstance(audit, dict) for audit in audits):
        raise InputError(f"{path}: write every audit under a line [[audit]]")
    known = (*_SUITE_KEYS, *_KEYS_OF_THE_WHOLE)
    check_keys(tables, f"{path}, above the first [[audit]]", known)
    entries: dict[str, Entry] = {}
    for audit in audits:
        entry = _entry(path, {**_defaults_for(audit, tables), **audit})
        if entry.name in entries:
            raise InputError(
                f"{path}: two audits are called {entry.name!r}; give each its own name"
            )
        entries[entry.name] = entry
    return Suite(
        title=title,
        entries=list(entries.values()),
        family_confidence=family_confidence,
        nights=nights,
    )


def _defaults_for(audit: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The suite's defaults without its claim or inputs where an audit has its own."""
    replaced: set[str] = set()
    for keys in (CLAIM_KEYS, INPUT_KEYS):
        if not audit.keys().isdisjoint(keys):
            replaced.update(keys)
    if "notion" in audit and not defaults.keys().isdisjoint(_WHOLE_CLAIMS):
        replaced.update(CLAIM_KEYS)  # what is measured claims nothing
    replaced.update(_defaults_of_other_targets(audit.get("mechanism", defaults.get("mechanism"))))
    return {name: value for name, value in defaults.items() if name not in replaced}


def _defaults_of_other_targets(target: object) -> set[str]:
    """The keys about how a target is called that this kind of target does not have."""
    kind = str(target).partition(":")[0]
    if kind == "command":
        own_key = "dataset_format"
    elif kind in ("http", "https"):
        own_key = "http"
    elif kind in ("zoo", "recording"):
        own_key = ""
    else:
        own_key = "params"
    return set(CALL_KEYS) - {own_key}


def _entry(path: Path, table: dict[str, Any]) -> Entry:
    # A name is printed, stored and shown: the key in the address of a service must not get into it.
    name = public(str(table.get("name", public_target(table.get("mechanism", "")))))
    where = f"{path}, audit {name!r}" if name else str(path)
    misplaced = [key for key in _KEYS_OF_THE_WHOLE if key in table]
    if misplaced:
        raise InputError(
            f"{where}: {misplaced[0]} is about the whole suite; write it above the first [[audit]]"
        )
    check_settings_table(table, where, _SUITE_KEYS)
    given = [key for key in FILE_KEYS if key in table]
    if given:
        raise InputError(
            f"{where}: {given[0]} is for single audits; a suite writes its files into --out"
        )
    if "notion" in table:
        _check_notion(table["notion"], where)
    if "notion" in table and "expect" in table:
        raise InputError(
            f"{where}: expect = … is about a verdict, and notion = … measures without one: leave "
            "out one of the two"
        )
    settings = {key: value for key, value in table.items() if key not in _NOT_OF_THE_AUDIT}
    try:
        expected = Verdict(table["expect"]) if "expect" in table else None
    except ValueError:
        allowed = [str(verdict) for verdict in Verdict]
        listed = ", ".join(map(repr, allowed))
        hint = did_you_mean(table["expect"], allowed)
        raise InputError(
            f"{where}: expect = {in_toml(table['expect'])} must be one of {listed}{hint}"
        ) from None
    limit = table.get("time_limit")
    if limit is not None and (
        isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0
    ):
        raise InputError(
            f"{where}: time_limit = {in_toml(limit)} must be a number of seconds above 0"
        )
    return Entry(
        name,
        settings,
        _digest(path, settings),
        expected,
        None if limit is None else float(limit),
        fail_blind=bool(table.get("fail_blind", False)),
    )


def _check_notion(notion: object, where: str) -> None:
    if notion not in NOTION_NAMES:
        listed = ", ".join(map(repr, NOTION_NAMES))
        raise InputError(
            f"{where}: notion = {in_toml(notion)} must be one of {listed}"
            f"{did_you_mean(notion, NOTION_NAMES)}"
        )


def _digest(path: Path, settings: Mapping[str, Any]) -> str:
    """A digest that changes with the settings, the files that they name or import, and with us."""
    mechanism = str(settings.get("mechanism", ""))
    files = {*_input_files(path, settings), *_mechanism_files(path, mechanism)}
    if "accountant" in settings:
        files.update(_mechanism_files(path, str(settings["accountant"])))
    written = json.dumps(settings, sort_keys=True, default=str)
    content = f"{package_version()}\n{written}\n{files_digest(sorted(files))}\n"
    return hashlib.sha256(content.encode()).hexdigest()


def _input_files(path: Path, value: Any) -> Iterator[Path]:
    """The files that settings name as inputs, at any depth."""
    if isinstance(value, str):
        if value.startswith("@") and not value.startswith("@@"):
            yield path.parent / value[1:]
    elif isinstance(value, Mapping):
        for key, content in value.items():
            if key == "around" and isinstance(content, str):  # a file with or without the @
                yield path.parent / content.removeprefix("@")
            else:
                yield from _input_files(path, content)
    elif isinstance(value, list):
        for item in value:
            yield from _input_files(path, item)


def _mechanism_files(path: Path, target: str) -> Iterator[Path]:
    """The files of a mechanism: a recording, a program with its arguments' files, or modules."""
    kind, _, rest = target.partition(":")
    if kind == "recording":
        for name in (rest, *rest.split(",")):  # as `open_target` splits it
            yield Path(name if Path(name).exists() else name.rpartition(":")[0] or name)
    elif kind == "command":
        with contextlib.suppress(InputError, IndexError):  # the audit will report it
            yield from named_files(split_command(rest), Path())
    else:
        yield from _source_files((Path.cwd(), path.parent), [kind])


def _source_files(folders: Sequence[Path], modules: Iterable[str]) -> Iterator[Path]:
    """The files of modules in these folders and all that they import from there; no code runs."""
    waiting = list(modules)
    visited: set[str] = set()
    while waiting:
        module = waiting.pop()
        if not module or module in visited:
            continue
        visited.add(module)
        parent = module.rpartition(".")[0]
        waiting.append(parent)  # importing a.b runs a
        place = module.replace(".", "/")
        for folder in folders:
            as_module = folder / f"{place}.py"
            if as_module.is_file():
                yield as_module
                waiting += _imported_names(as_module, parent)
            as_package = folder / place / "__init__.py"
            if as_package.is_file():
                yield as_package
                waiting += _imported_names(as_package, module)


def _imported_names(file: Path, package: str) -> list[str]:
    """The names of everything that a module may import.

    Args:
        file: the module.
        package: that it belongs to, for relative imports.
    """
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):  # running it will report it
        return []
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _imported_base(node, package)
            names.append(base)
            names += [f"{base}.{alias.name}".lstrip(".") for alias in node.names]
    return names


def _imported_base(node: ast.ImportFrom, package: str) -> str:
    """The absolute name of the module in `from … import`."""
    parts: list[str] = []
    if node.level:
        # One dot is the package itself, each further one its parent.
        ancestors = package.split(".")
        parts += ancestors[: len(ancestors) - node.level + 1]
    if node.module:
        parts.append(node.module)
    return ".".join(part for part in parts if part)
