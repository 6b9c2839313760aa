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
from epsilometer.cli.settings_file import CLAIM_KEYS, INPUT_KEYS, check_settings_table
from epsilometer.cli.targets import public_target, split_command
from epsilometer.environment import package_version
from epsilometer.errors import InputError, public, shown
from epsilometer.result import Verdict
from epsilometer.storage import files_digest
from epsilometer.storage.exchange import named_files
from epsilometer.suites.history import Entry

# Keys of one audit, besides those of a single audit's file.
_SUITE_KEYS = ("name", "expect", "time_limit", "notion")


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
    """A confidence between 0 and 1.

    Args:
        value: as it was given.
        name: of the option or key, for the message.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 1.0:
        raise InputError(
            f"{name} = {shown(value)} must be a number above 0 and below 1, for example 0.95"
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
        raise InputError(f"{path}: nights = {shown(nights)} must be true or false")
    if audits is None:
        audits = [tables]
        tables = {}
    if (
        not isinstance(audits, list)
        or not audits
        or not all(isinstance(each, dict) for each in audits)
    ):
        raise InputError(f"{path}: write every audit under a line [[audit]]")
    entries: dict[str, Entry] = {}
    for audit in audits:
        # An audit with its own claim or inputs replaces those of the suite as a whole.
        replaced = {
            name
            for keys in (CLAIM_KEYS, INPUT_KEYS)
            if not audit.keys().isdisjoint(keys)
            for name in keys
        }
        entry = _entry(
            path, {name: value for name, value in tables.items() if name not in replaced} | audit
        )
        if entry.name in entries:
            raise InputError(
                f"{path}: two audits are called {entry.name!r}; give each its own name"
            )
        entries[entry.name] = entry
    return Suite(title, list(entries.values()), family_confidence, nights)


def _entry(path: Path, table: dict[str, Any]) -> Entry:
    # A name is printed, stored and shown: the key in the address of a service must not get into it.
    name = public(str(table.get("name", public_target(table.get("mechanism", "?")))))
    where = f"{path}, audit {name!r}"
    misplaced = [key for key in ("family_confidence", "nights") if key in table]
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
    settings = {
        key: value for key, value in table.items() if key not in ("name", "expect", "time_limit")
    }
    try:
        expected = Verdict(table["expect"]) if "expect" in table else None
    except ValueError:
        allowed = ", ".join(repr(str(verdict)) for verdict in Verdict)
        raise InputError(
            f"{where}: expect = {table['expect']!r} must be one of {allowed}"
        ) from None
    limit = table.get("time_limit")
    if limit is not None and (
        isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0
    ):
        raise InputError(f"{where}: time_limit = {limit!r} must be a number of seconds above 0")
    # Changes when the settings do, or a file that they name or import, or this program.
    files = sorted(
        {*_input_files(path, settings), *_mechanism_files(path, str(settings.get("mechanism", "")))}
    )
    content = f"{package_version()}\n{json.dumps(settings, sort_keys=True, default=str)}\n{files_digest(files)}\n"
    digest = hashlib.sha256(content.encode()).hexdigest()
    return Entry(name, settings, digest, expected, None if limit is None else float(limit))


def _input_files(path: Path, value: Any) -> Iterator[Path]:
    if isinstance(value, str) and value.startswith("@") and not value.startswith("@@"):
        yield path.parent / value[1:]
    elif isinstance(value, Mapping) and isinstance(value.get("around"), str):
        yield from _input_files(
            path, {**value, "around": ["@" + value["around"].removeprefix("@")]}
        )
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _input_files(path, each)


def _mechanism_files(path: Path, target: str) -> Iterator[Path]:
    """The files behind a mechanism: a recording, a program with the files of its arguments, or modules."""
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
    """The files of modules in these folders and of everything that they import from there; no code is run."""
    waiting = list(modules)
    met = set[str]()
    while waiting:
        module = waiting.pop()
        if not module or module in met:
            continue
        met.add(module)
        place = module.replace(".", "/")
        waiting.append(module.rpartition(".")[0])  # importing a.b runs a
        for file in (
            folder / name for folder in folders for name in (f"{place}.py", f"{place}/__init__.py")
        ):
            if file.is_file():
                yield file
                waiting += _imported(
                    file, module if file.name == "__init__.py" else module.rpartition(".")[0]
                )


def _imported(file: Path, package: str) -> list[str]:
    """The names of everything that a module may import."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):  # running it will report it
        return []
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = (
                ".".join(package.split(".")[: len(package.split(".")) - node.level + 1])
                if node.level
                else ""
            )
            base = ".".join(filter(None, (above, node.module)))
            found += [base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)]
    return found
