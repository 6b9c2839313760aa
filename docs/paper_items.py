"""The table of the papers' 135 items: what each is, and which test compares it.

What the items are stands in `paper_items.toml`. How each stands to our code is said by the tests themselves:

    @pytest.mark.paper("C11", "equal")

so that no item can be called equal without a test that says so where it compares. The tests are read, not run.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ITEMS = DOCS / "paper_items.toml"
TESTS = DOCS.parent / "tests"

# What a marker may say: a test compares ours with the paper's own; ours corrects the paper, and a test shows it;
# ours differs otherwise; there is nothing of it.
MARKER_STATES = ("equal", "corrected", "differs", "missing")
# What the file may say of an item that no test can show.
STATES_WITHOUT_TEST = ("differs", "missing")
NOT_COMPARED = "not compared"


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a paper.

    Attributes:
        number: a letter for the paper and a number, such as "C11".
        place: where it is in the paper.
        what: what it is, in our words.
        where: where the project has it.
        note: what is corrected, differs or is missing, and why; may be empty.
        state: for an item that no test can show, one of `STATES_WITHOUT_TEST`; else empty.
    """

    number: str
    place: str
    what: str
    where: str
    note: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True)
class Marker:
    """What one test says about one item.

    Attributes:
        item: the number of the item.
        state: one of `MARKER_STATES`.
        test: the test as pytest names it, relative to the folder of the tests.
    """

    item: str
    state: str
    test: str


def papers() -> dict[str, str]:
    """Returns authors and year of each paper, by its letter."""
    return dict(tomllib.loads(ITEMS.read_text(encoding="utf-8"))["papers"])


def items() -> list[Item]:
    """Returns all items in the order of the file."""
    described = tomllib.loads(ITEMS.read_text(encoding="utf-8"))["items"]
    return [Item(number, **fields) for number, fields in described.items()]


def markers(folder: Path = TESTS) -> list[Marker]:
    """Returns the markers of all tests below a folder.

    Raises:
        ValueError: a marker is not written as two texts, or its state is unknown.
    """
    found: list[Marker] = []
    for path in sorted(folder.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        # Most files have none, and reading a file's syntax takes longer than looking for the word.
        if "mark.paper" in source:
            name = path.relative_to(folder).as_posix()
            found.extend(_markers_of(ast.parse(source), name))
    return found


def _markers_of(tree: ast.Module | ast.ClassDef, name: str) -> Iterator[Marker]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _markers_of(node, f"{name}::{node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and _is_marker(decorator.func):
                    yield _marker(decorator, f"{name}::{node.name}")


def _is_marker(function: ast.expr) -> bool:
    return ast.unparse(function) == "pytest.mark.paper"


def _marker(call: ast.Call, test: str) -> Marker:
    texts = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    if call.keywords or len(texts) != len(call.args) or len(texts) != 2:
        raise ValueError(
            f"{test}: a marker is pytest.mark.paper(ITEM, STATE), two texts, such as "
            f'("C11", "equal"); found {ast.unparse(call)}'
        )
    item, state = map(str, texts)
    if state not in MARKER_STATES:
        raise ValueError(f"{test}: state={state!r} must be one of {', '.join(MARKER_STATES)}")
    return Marker(item, state, test)


def state_of(item: Item, said: list[Marker]) -> str:
    """Returns the state of an item: that of its markers, that of the file, or that nobody compared it.

    Args:
        item: the item.
        said: its markers.

    Raises:
        ValueError: its tests disagree.
    """
    states = {marker.state for marker in said}
    if len(states) > 1:
        tests = ", ".join(f"{marker.test} ({marker.state})" for marker in said)
        raise ValueError(f"{item.number}: its tests disagree about its state: {tests}")
    if states:
        return states.pop()
    return item.state or NOT_COMPARED


def table() -> str:
    """Returns the table of all items with a line of totals, as Markdown."""
    by_item: dict[str, list[Marker]] = {}
    for marker in markers():
        by_item.setdefault(marker.item, []).append(marker)
    totals = dict.fromkeys((*MARKER_STATES, NOT_COMPARED), 0)
    lines: list[str] = []
    letter = ""
    for item in items():
        if item.number[0] != letter:
            letter = item.number[0]
            lines += ["", f"**{papers()[letter]}**", ""]
            lines += [
                "| | in the paper | what | here | state | test |",
                "|---|---|---|---|---|---|",
            ]
        said = by_item.get(item.number, [])
        state = state_of(item, said)
        totals[state] += 1
        lines.append(_row(item, state, said))
    counted = ", ".join(f"{number} {state}" for state, number in totals.items() if number)
    return "\n".join([f"{len(items())} items: {counted}.", *lines, ""])


def _row(item: Item, state: str, said: list[Marker]) -> str:
    tests = "<br>".join(f"`{marker.test}`" for marker in said) or "–"
    shown = f"{state}: {item.note}" if item.note else state
    cells = (item.number, item.place, item.what, item.where, shown, tests)
    return f"| {' | '.join(cells)} |"
