"""Keeps the navigation of the site true: what is named but not there is left out, what is there but not named is added.

Pages are written by several people at a time; a page must not be lost because nobody put it into `mkdocs.yml`.

Links from a page to a file or folder of the repository (`../src/…`) work where the repository is browsed. For the site,
which must be readable from a folder, each of them gets a page that shows it.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

# Pages whose name begins so belong to this section; all others explain something.
_SECTIONS = {"how-to-": "How to"}
_DEFAULT = "Explanation"
# A link that leaves the folder of the documentation for the code.
_CODE_LINK = re.compile(r"\]\(\.\./((?:src|examples|tests)/[^)#]*)\)")


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


def on_files(files: Any, config: Any) -> Any:
    """Called by mkdocs with the files of the site: adds a page for every file or folder of code that is linked to."""
    folder = Path(config["docs_dir"])
    targets = {
        target for page in folder.glob("*.md") for target in _CODE_LINK.findall(page.read_text(encoding="utf-8"))
    }
    for target in sorted(targets):
        content = _code_page(folder.parent / target, target)
        files.append(File.generated(config, _address(target), content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs with the text of a page: links to code lead to the page that shows it."""
    return _CODE_LINK.sub(lambda found: f"]({_address(found[1])})", markdown)


def _address(target: str) -> str:
    return f"source/{target.rstrip('/')}.md"


def _code_page(path: Path, name: str) -> str:
    """A file as it is; a folder as a list of what its files say about themselves. Not for the search box."""
    head = f"---\nsearch:\n  exclude: true\n---\n\n# {name}\n\n"
    if path.is_file():
        return f"{head}````{path.suffix[1:]}\n{path.read_text(encoding='utf-8')}````\n"
    rows = [f"| `{each.relative_to(path)}` | {_first_line(each)} |" for each in sorted(path.rglob("*.py"))]
    return "\n".join([f"{head}| file | |", "|---|---|", *rows, ""])


def _first_line(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].replace("|", "\\|")
