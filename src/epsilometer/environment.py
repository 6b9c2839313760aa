"""Where an audit ran and what it ran: versions, machine, date, and the identity of the code, for the record."""

import os
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

# Whoever sets this variable wants to be named in results.
RUN_BY = "EPSILOMETER_RUN_BY"


def package_version() -> str:
    """The installed version of Epsilometer."""
    try:
        return version("epsilometer")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"


@cache
def describe_environment() -> dict[str, str | int]:
    """Versions of Python and libraries, and the kind of machine. Nothing that names the user or the host."""
    import platform

    import numpy
    import scipy

    versions = {"epsilometer": package_version(), "python": ".".join(map(str, sys.version_info[:3]))}
    versions |= {"numpy": numpy.__version__, "scipy": scipy.__version__}
    return {**versions, "machine": f"{platform.system()} {platform.machine()}", "cores": os.cpu_count() or 1}


def identity_of(mechanism: Any) -> dict[str, Any]:
    """What was audited: a digest of the code, its file and, if that is under version control, the commit.

    Returns:
        `code_digest`, `file`, `commit`, `dirty` (whether the files differ from the commit), each where it is known, and
        `run_by` if the variable `EPSILOMETER_RUN_BY` is set. Files are named from the top of their repository.
    """
    found: dict[str, Any] = {}
    try:
        found["code_digest"] = mechanism.digest()
    except Exception:  # an open connection has no content; the audit is none the worse for it
        found["code_digest"] = ""
    code = getattr(mechanism, "function", mechanism)
    from inspect import getsourcefile  # slow to import: --version asks here, too

    while hasattr(code, "func"):  # a partial function
        code = code.func
    kind = code if hasattr(code, "__code__") or isinstance(code, type) else type(code)
    if not str(getattr(kind, "__module__", "")).startswith("epsilometer.mechanisms"):  # programs, services, recordings
        with suppress(TypeError, OSError, ValueError):  # compiled, or typed in
            path = Path(getsourcefile(kind) or "")
            found |= _commit(path, path.stat().st_mtime_ns)
    return found | ({"run_by": os.environ[RUN_BY]} if os.environ.get(RUN_BY) else {})


@cache
def _commit(path: Path, changed: int) -> dict[str, Any]:
    """The name of a file and its commit; asked again when the file has changed."""
    import subprocess

    git = ["git", "-C", str(path.parent)]
    try:
        told = [
            subprocess.run([*git, *words], capture_output=True, text=True, timeout=2.0, check=True).stdout.strip()
            for words in (["rev-parse", "--show-toplevel", "HEAD"], ["status", "--porcelain", "--", str(path)])
        ]
        top, commit = told[0].splitlines()
        return {"file": str(path.resolve().relative_to(Path(top).resolve())), "commit": commit, "dirty": bool(told[1])}
    except (OSError, subprocess.SubprocessError, ValueError):
        return {"file": path.name}


@cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401  # SciPy has a BLAS library of its own: loaded first, it is found, too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # searches for libraries, so only once


def one_thread() -> Any:
    """A context in which linear algebra does not start threads."""
    return _libraries().limit(limits=1, user_api="blas")
