"""What the package imports is what it declares: a module that happens to be there is there for somebody else."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OURS = {"epsilometer", "_epsilometer_pytest", "epsilometer_experiments"}
# Whoever has jinja2 has markupsafe: jinja2 needs it.
# Others are asked for where they are running already (tests, notebooks) or by type checkers only.
COME_ALONG = {"markupsafe", "pytest", "_pytest", "xdist", "IPython", "typing_extensions"}


def name_of(requirement):
    """The distribution that a requirement is about, as its name is normalised."""
    return normalised(re.match(r"[\w.-]+", requirement).group())


def normalised(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def imported_modules(path, *, at_top_only):
    """The third-party modules that a file imports, by their first name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if at_top_only else ast.walk(tree)
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    first_names = {name.partition(".")[0] for name in names}
    return first_names - set(sys.stdlib_module_names) - OURS - COME_ALONG


def distributions_of(module):
    return {normalised(name) for name in packages_distributions().get(module, [module])}


@pytest.mark.parametrize(
    "path", SOURCES, ids=lambda path: path.relative_to(ROOT / "src").as_posix()
)
def test_imports_are_declared(path):
    core = {name_of(requirement) for requirement in PROJECT["dependencies"]}
    extras = {
        name_of(requirement)
        for requirements in PROJECT["optional-dependencies"].values()
        for requirement in requirements
    }
    for module in imported_modules(path, at_top_only=True):
        assert distributions_of(module) & (core | extras), f"{module} is no dependency"
    for module in imported_modules(path, at_top_only=False):
        assert distributions_of(module) & (core | extras), f"{module} is not even an extra"
