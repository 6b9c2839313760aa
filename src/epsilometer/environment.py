"""Where an audit runs: versions and machine for the record, and a limit on threads."""

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
    """Versions of Python and the libraries, and the kind of machine.

    Nothing in it names the user or the host.
    """
    import platform

    import numpy
    import scipy

    return {
        "epsilometer": package_version(),
        "python": ".".join(map(str, sys.version_info[:3])),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count() or 1,
    }


@cache
def _libraries(has_scipy: bool) -> Any:
    """The BLAS libraries of this process; the search takes time, so what it finds is kept.

    Args:
        has_scipy: whether SciPy's linear algebra is loaded, which has a library of its own.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> Any:
    """A context in which the linear algebra that is loaded does not start threads.

    Whoever needs `scipy.linalg` inside of it imports that before. It is not imported here, because
    audits of numbers need none of it, and it takes as long as they do.
    """
    has_scipy = "scipy.linalg" in sys.modules
    return _libraries(has_scipy).limit(limits=1, user_api="blas")
