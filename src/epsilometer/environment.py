"""Where an audit ran: versions and machine, for the record."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version


def package_version() -> str:
    """The installed version of Epsilometer."""
    try:
        return version("epsilometer")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"


@cache
def describe_environment() -> dict[str, str | int]:
    """Versions of Python and libraries, and the kind of machine. Nothing that names the user or the host."""
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
