"""Where an audit ran: versions and machine, for the record; and how many threads it may use."""

import os
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any


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

    versions = {
        "epsilometer": package_version(),
        "python": ".".join(map(str, sys.version_info[:3])),
    }
    versions |= {"numpy": numpy.__version__, "scipy": scipy.__version__}
    return {
        **versions,
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count() or 1,
    }


@cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401  # SciPy has a BLAS library of its own: loaded first, it is found, too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # searches for libraries, so only once


def one_thread() -> Any:
    """A context in which linear algebra does not start threads."""
    return _libraries().limit(limits=1, user_api="blas")
