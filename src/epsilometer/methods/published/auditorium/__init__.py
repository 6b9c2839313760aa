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

from typing import TYPE_CHECKING

from epsilometer.namespaces import namespace

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

# Where each name lives; the others are modules.
_HOMES = dict.fromkeys(("AlgorithmTrial", "TrialsResult", "audit"), f"{__name__}.algorithm") | {
    name: f"{__name__}.{name}"
    for name in ("estimators", "hockey_stick", "mmd", "poisson_histogram", "renyi_variational")
}

if not TYPE_CHECKING:
    __getattr__, __dir__ = namespace(__name__, __all__, homes=_HOMES)
