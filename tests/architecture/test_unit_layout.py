"""Unit tests mirror the source: whoever changes a module finds its tests by name."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "tests" / "unit"
# What the folders of tests/unit mirror, where it is not a package of epsilometer.
OTHER_SOURCES = {"benchmarks": ROOT / "benchmarks", "experiments": ROOT / "experiments"}


def source_of(folder: Path) -> Path:
    """The folder of sources that a folder of unit tests mirrors."""
    first, *others = folder.parts or ("",)
    if first in OTHER_SOURCES:
        return OTHER_SOURCES[first].joinpath(*others)
    return ROOT / "src" / "epsilometer" / folder


def names_in(source: Path) -> set[str]:
    """The modules and packages in a folder, and the folder's own name."""
    modules = {path.stem for path in source.glob("*.py")}
    packages = {path.parent.name for path in source.glob("*/__init__.py")}
    return modules | packages | {source.name}


def is_named_after_its_source(test: Path) -> bool:
    subject = test.stem.removeprefix("test_")
    names = names_in(source_of(test.parent))
    return any(subject == name or subject.startswith(f"{name}_") for name in names)


def unit_tests() -> list[Path]:
    return sorted(path.relative_to(UNIT) for path in UNIT.rglob("test_*.py"))


def listed() -> set[Path]:
    """The files that tests/README.md lists as spanning modules."""
    text = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    section = text.split("## Unit tests mirror the source")[1].split("\n## ")[0]
    return {Path(path) for path in re.findall(r"^\| `(\S+\.py)` \|", section, re.MULTILINE)}


def test_every_folder_of_unit_tests_mirrors_one_of_sources():
    folders = {path.parent for path in unit_tests()}
    assert [folder for folder in sorted(folders) if not source_of(folder).is_dir()] == []


def test_every_unit_test_has_the_name_of_its_module_or_is_listed():
    others = {path for path in unit_tests() if not is_named_after_its_source(path)}
    assert others == listed(), "rename it after its module, or list it in tests/README.md"
