"""Keeps the navigation of the site true: what is named but not there is left out, what is there but not named is added.

Pages are written by several people at a time; a page must not be lost because nobody put it into `mkdocs.yml`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Pages whose name begins so belong to this section; all others are methods.
_SECTIONS = {"how-to-": "How to"}
_DEFAULT = "Methods"


def on_config(config: Any) -> Any:
    """Called by mkdocs with its configuration."""
    folder = Path(config["docs_dir"])
    navigation = [entry for entry in (_existing(entry, folder) for entry in config["nav"]) if entry]
    named = set(_pages(navigation))
    for page in sorted(folder.glob("*.md")):
        if page.name not in named:
            _section(navigation, page.name).append(page.name)
    decisions = [f"decisions/{page.name}" for page in sorted((folder / "decisions").glob("0*.md"))]
    for entry in navigation:
        if entry.get("Decisions"):
            entry["Decisions"] = ["decisions/README.md", *decisions]
    config["nav"] = navigation
    return config


def _existing(entry: Any, folder: Path) -> Any:
    if isinstance(entry, str):
        return entry if (folder / entry).is_file() else None
    ((title, value),) = entry.items()
    if isinstance(value, str):
        return entry if (folder / value).is_file() else None
    kept = [each for each in (_existing(each, folder) for each in value) if each]
    return {title: kept} if kept else None


def _pages(entries: list[Any]) -> list[str]:
    found: list[str] = []
    for entry in entries:
        values = [entry] if isinstance(entry, str) else list(entry.values())
        for value in values:
            found += [value] if isinstance(value, str) else _pages(value)
    return found


def _section(navigation: list[Any], name: str) -> list[Any]:
    title = next((section for start, section in _SECTIONS.items() if name.startswith(start)), _DEFAULT)
    return next(entry[title] for entry in navigation if title in entry)
