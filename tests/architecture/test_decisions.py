"""Decision records: the index is complete, and what a record says of the code is what the code says of itself."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "docs" / "explanation" / "decisions"
INDEX = (RECORDS / "README.md").read_text(encoding="utf-8")


def contract_layers():
    """The layers of the import contract, from the highest to the lowest, without the name of the package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [re.findall(r"epsilometer\.(\w+)", layer) for layer in layers]


def test_every_number_is_in_the_index():
    numbers = re.findall(r"^\| (\d{4}) \|", INDEX, re.MULTILINE)
    assert numbers == [f"{number:04d}" for number in range(1, len(numbers) + 1)]


def test_every_record_is_in_the_index_under_its_own_number():
    listed = re.findall(r"^\| (\d{4}) \| \[[^]]*\]\((\d{4}-[\w-]+\.md)\)", INDEX, re.MULTILINE)
    assert [name for _, name in listed] == sorted(path.name for path in RECORDS.glob("0*.md"))
    assert all(name.startswith(number) for number, name in listed)


def test_the_layers_are_those_of_the_import_contract():
    record = (RECORDS / "0010-layers.md").read_text(encoding="utf-8")
    listed = re.search(r"```text\n(.*?)```", record, re.DOTALL)[1].splitlines()
    assert [line.split(" | ") for line in listed] == contract_layers()


def test_the_packages_of_the_architecture_page_are_in_the_order_of_the_contract():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("## Packages")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\[.*?) \| ", table, re.MULTILINE)
    listed = [re.findall(r"\[`(\w+)(?:/|\.py)`\]", row) for row in rows]
    upwards = [sorted(layer) for layer in reversed(contract_layers())]
    # The lowest row also names the modules beside `errors`, and the checker stands alone.
    assert "errors" in listed[0]
    assert [sorted(names) for names in listed[1:-1]] == upwards[1:]
    assert listed[-1] == ["checker"]


@pytest.mark.parametrize("record", sorted(RECORDS.glob("0*.md")), ids=lambda path: path.stem)
def test_the_files_that_a_record_names_exist(record):
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", record.read_text(encoding="utf-8")))
    places = [ROOT, ROOT / "src", ROOT / "src" / "epsilometer"]
    gone = [name for name in named if not any((place / name).exists() for place in places)]
    assert not gone, f"{record.name} describes the code of today, and these files are gone"
