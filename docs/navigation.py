"""Hooks of the documentation site: a complete navigation, links into the code, and the ranking of the search box.

Pages are written by several people at a time, and a page must not be lost because nobody put it into
`mkdocs.yml`: pages that are named there but do not exist are left out, and pages that exist but are not
named are added to the section of their folder.

Links from a page to a file or folder of the repository (`../../src/…`) work where the repository is
browsed. For the site, which must be readable from a folder, each target gets a page that shows it.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

# The section of the navigation that lists the pages of a folder.
SECTION_OF_FOLDER = {
    "tutorials": "Tutorials",
    "how-to": "How to",
    "reference": "Reference",
    "explanation": "Explanation",
}
DECISIONS = "explanation/decisions"
# Factors for the scores of the search box, by folder; other pages have 1. Somebody who searches wants
# to learn or to get something done before looking up a signature or the reason for a design.
SEARCH_BOOST = {
    "tutorials": 3.0,
    "how-to": 2.0,
    DECISIONS: 0.5,
}
# A link that leaves the folder of the documentation for the code.
CODE_LINK = re.compile(r"\]\((?:\.\./)+((?:src|examples|experiments|tests)/[^)#]*)\)")


def on_config(config: Any) -> Any:
    """Completes the navigation. Called by mkdocs with its configuration."""
    docs = Path(config["docs_dir"])
    navigation = _existing_entries(config["nav"], docs)
    named_pages = set(_pages(navigation))
    for folder, title in SECTION_OF_FOLDER.items():
        section = next(entry[title] for entry in navigation if title in entry)
        for path in sorted((docs / folder).glob("*.md")):
            page = f"{folder}/{path.name}"
            if page not in named_pages:
                section.append(page)
    records = [f"{DECISIONS}/{path.name}" for path in sorted((docs / DECISIONS).glob("0*.md"))]
    for entry in navigation:
        if "Decisions" in entry:
            entry["Decisions"] = [f"{DECISIONS}/README.md", *records]
    config["nav"] = navigation
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds a page for every file or folder of code that a page links to. Called by mkdocs."""
    docs = Path(config["docs_dir"])
    targets: set[str] = set()
    for page in docs.rglob("*.md"):
        targets.update(CODE_LINK.findall(page.read_text(encoding="utf-8")))
    for target in sorted(targets):
        content = _code_page(docs.parent / target, target)
        files.append(File.generated(config, _code_address(target), content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Points links to code at the pages that show it, and ranks the page for the search. Called by mkdocs."""
    address = page.file.src_uri
    boost = search_boost(address)
    if boost is not None:
        page.meta.setdefault("search", {}).setdefault("boost", boost)
    folder = posixpath.dirname(address)

    def link_to_code_page(match: re.Match[str]) -> str:
        return f"]({posixpath.relpath(_code_address(match[1]), folder or '.')})"

    return CODE_LINK.sub(link_to_code_page, markdown)


def search_boost(address: str) -> float | None:
    """The factor for a page in the search, by the deepest folder that has one; None means 1."""
    folder = posixpath.dirname(address)
    while folder:
        if folder in SEARCH_BOOST:
            return SEARCH_BOOST[folder]
        folder = posixpath.dirname(folder)
    return None


def _existing_entries(entries: list[Any], docs: Path) -> list[Any]:
    """The entries of a navigation without the pages that do not exist and the sections that are empty then."""
    kept: list[Any] = []
    for entry in entries:
        if isinstance(entry, str):
            if (docs / entry).is_file():
                kept.append(entry)
            continue
        ((title, value),) = entry.items()
        if isinstance(value, str):
            if (docs / value).is_file():
                kept.append(entry)
            continue
        inside = _existing_entries(value, docs)
        if inside:
            kept.append({title: inside})
    return kept


def _pages(entries: list[Any]) -> list[str]:
    """The addresses of all pages that a navigation names."""
    pages: list[str] = []
    for entry in entries:
        values = [entry] if isinstance(entry, str) else list(entry.values())
        for value in values:
            if isinstance(value, str):
                pages.append(value)
            else:
                pages += _pages(value)
    return pages


def _code_address(target: str) -> str:
    """Where the site shows a file or folder of the repository."""
    return f"source/{target.rstrip('/')}.md"


def _code_page(path: Path, name: str) -> str:
    """A file as it is, or a folder as a list of the first lines of its files. Not found by the search box."""
    head = f"---\nsearch:\n  exclude: true\n---\n\n# {name}\n\n"
    if path.is_file():
        return f"{head}````{path.suffix[1:]}\n{path.read_text(encoding='utf-8')}````\n"
    rows = [
        f"| `{file.relative_to(path)}` | {_first_line(file)} |"
        for file in sorted(path.rglob("*.py"))
    ]
    return "\n".join([f"{head}| file | |", "|---|---|", *rows, ""])


def _first_line(path: Path) -> str:
    """The first line of a module's docstring, for a cell of a table."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].replace("|", "\\|")
