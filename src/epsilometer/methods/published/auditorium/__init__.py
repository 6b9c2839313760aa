"""The testers of DP-Auditorium (Kong, Muñoz Medina, Ribero, Syed 2023), one file each.

They are public as `epsilometer.auditorium`: `hockey_stick`, `mmd`, `poisson_histogram` and
`renyi_variational`, each with its `Options`; `audit`, which is the paper's Algorithm 1 as printed,
and the divergence `estimators` that it takes.

Example:
    >>> options = em.auditorium.mmd.Options(kernel="laplace")
    >>> noisy = em.from_batch(lambda x, n, rng: x + rng.normal(size=n))
    >>> pair = em.Pair(0, 3)
    >>> found = em.measure(noisy, pair, samples=2000, seed=0, method="mmd", options=options)
    >>> found.lower_bound > 0.0
    True

Reference: Kong, Muñoz Medina, Ribero, Syed (2023), "DP-Auditorium: a Large Scale Library for
    Auditing Differential Privacy".
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

# At run time each module is imported when it is first used.
if TYPE_CHECKING:
    from epsilometer.methods.published.auditorium import (
        estimators,
        hockey_stick,
        mmd,
        poisson_histogram,
        renyi_variational,
    )
    from epsilometer.methods.published.auditorium.algorithm import (
        AlgorithmTrial,
        TrialsResult,
        audit,
    )

__all__ = [
    "AlgorithmTrial",
    "TrialsResult",
    "audit",
    "estimators",
    "hockey_stick",
    "mmd",
    "poisson_histogram",
    "renyi_variational",
]

# The names that belong to a module of another name.
_OF_ALGORITHM = ("AlgorithmTrial", "TrialsResult", "audit")


# Hidden from type checkers, for which any misspelt name would otherwise exist.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name in _OF_ALGORITHM:
            return getattr(import_module(f"{__name__}.algorithm"), name)
        if name in __all__:
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
