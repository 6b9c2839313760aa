"""docs/reference/papers.md: every statement names files and tests that exist, and every deviation has a reason."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "papers.md").read_text(encoding="utf-8")
# At least as many as an independent reader counted in the four papers.
_LEAST = 178
STATES = (
    "equal",
    "deviates: ",
    "not run: ",
    "notation: ",
    "a proof; ",
    "a step of a proof; ",
    "shown for ",
    "n as ",
)


def rows():
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in PAGE.splitlines()
        if re.match(r"\| \d", line)
    ]


def test_the_statements_are_numbered_and_complete():
    numbers = [int(row[0]) for row in rows()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= _LEAST
    assert {len(row) for row in rows()} == {5}


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_what_is_named_exists(row):
    _, _, files, tests, state = row
    paths = re.findall(r"\((?:\.\./)+([^)]+)\)", files) + re.findall(r"`([^`]+)`", files)
    assert paths
    for path in paths:
        assert (ROOT / path).is_file(), path
    names = re.findall(r"`([^`]+)`", tests)
    assert names
    for name in names:
        path, _, function = name.partition("::")
        assert re.search(
            rf"^ *def {function}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE
        ), name
    assert state.startswith(STATES)
    assert state == "equal" or len(state) > len("deviates: ") + 10, "a deviation needs its reason"


def test_experiments_that_are_named_exist():
    import epsilometer_experiments as experiments

    named = set(re.findall(r"`((?:local|renyi|ldp|auditorium)/[a-zA-Z0-9_-]+)`", PAGE))
    assert named
    assert named <= set(experiments.names())
