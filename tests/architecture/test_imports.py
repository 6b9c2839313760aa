"""The trusted kernel stands on little, and starting costs little. Import contracts are part of `make check`."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "epsilometer"
# Each of these costs more to load than everything that an audit of numbers needs.
SLOW = [
    "scipy.stats",
    "matplotlib",
    "sklearn",
    "pandas",
    "typer",
    "rich",
    "joblib",
    "jinja2",
    "pydantic",
]


def kernel_files() -> list[Path]:
    folders = [PACKAGE / "claims", PACKAGE / "bounds"]
    alone = [PACKAGE / "errors.py", PACKAGE / "redaction.py"]
    return [*alone, *(path for folder in folders for path in sorted(folder.rglob("*.py")))]


def imported_packages(source: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(source)))
    plain = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    from_ = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in plain + from_}


@pytest.mark.parametrize(
    "path", kernel_files(), ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_trusted_kernel_needs_numpy_and_scipy_only(path):
    foreign = imported_packages(path.read_text(encoding="utf-8")) - set(sys.stdlib_module_names)
    assert foreign <= {"epsilometer", "numpy", "scipy"}


def loaded_by(code: str) -> set[str]:
    code = f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_import_loads_nothing_slow():
    loaded = loaded_by("import epsilometer")
    assert [name for name in SLOW if name in loaded] == []


def test_an_audit_loads_only_what_it_needs():
    loaded = loaded_by(
        "import epsilometer as em\n"
        "em.audit(lambda x, rng: x + rng.laplace(), (0, 1), em.PureDP(1), samples=200, seed=0, progress=False)"
    )
    unneeded = (
        "inputs.finders",
        "inputs.domains",
        "mechanisms.recordings",
        "storage.journal",
        "methods.published",
        "cli",
        "auditing.search",
        "auditing.sequential",
        "report.html",
    )
    ours = [f"epsilometer.{name}" for name in unneeded]
    foreign = ["scipy.stats", "scipy.optimize", "matplotlib"]
    assert [name for name in (*ours, *foreign) if name in loaded] == []


def test_the_version_loads_next_to_nothing():
    loaded = loaded_by(
        "from epsilometer.cli import main\nimport sys\nsys.stdout = sys.stderr\nmain(['--version'])\n"
        "sys.stdout = sys.__stdout__"
    )
    assert [name for name in (*SLOW, "inspect", "subprocess", "platform") if name in loaded] == []


# The conformance suites unpickle what they have just pickled themselves: workers do the same with proposals.
AT_WORK = sorted(
    path for path in PACKAGE.rglob("*.py") if "testing" not in path.relative_to(PACKAGE).parts
)


# Work that we have packed ourselves, in the worker that runs it, and its answer: a worker runs our code anyway.
TRAVELLING = {
    PACKAGE / "engine" / "task_serialization.py",
    PACKAGE / "engine" / "local_worker.py",
    PACKAGE / "engine" / "fresh_process.py",
}


@pytest.mark.parametrize("path", AT_WORK, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_nothing_foreign_is_executed(path):
    """What a file or a mechanism gives us is data, never code: no eval, no unpickling, no shell."""
    calls = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]
    names = {ast.unparse(call.func) for call in calls} - (
        {"pickle.loads"} if path in TRAVELLING else set()
    )
    assert not names & {
        "eval",
        "exec",
        "os.system",
        "pickle.load",
        "pickle.loads",
        "pickle.Unpickler",
        "joblib.load",
    }
    switches = [
        keyword
        for call in calls
        for keyword in call.keywords
        if keyword.arg in {"shell", "allow_pickle"}
    ]
    assert {ast.unparse(keyword.value) for keyword in switches} <= {"False"}
