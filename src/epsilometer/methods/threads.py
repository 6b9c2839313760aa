"""Keeps linear algebra on one thread where its matrices are small.

Threads of the BLAS library that wait for each other cost processor time: L-BFGS with 64 unknowns takes 0.06 s on one
thread, 0.4 to 1 s on two of a busy machine.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


@cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401  # SciPy has a BLAS library of its own: loaded first, it is found, too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()  # looks for libraries once


def one_thread() -> AbstractContextManager[None]:
    """A context in which linear algebra does not start threads."""
    limited: AbstractContextManager[None] = _libraries().limit(limits=1, user_api="blas")
    return limited
