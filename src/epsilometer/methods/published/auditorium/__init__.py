"""The testers of DP-Auditorium (Kong, Muñoz Medina, Ribero, Syed 2023), one file each.

They are public as `epsilometer.auditorium`: `hockey_stick`, `mmd`, `poisson_histogram` and
`renyi_variational`, each with its `Options`.

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
        hockey_stick,
        mmd,
        poisson_histogram,
        renyi_variational,
    )

__all__ = [
    "hockey_stick",
    "mmd",
    "poisson_histogram",
    "renyi_variational",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
