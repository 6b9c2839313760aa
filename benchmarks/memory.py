"""Peak memory of an audit over the size of its samples, in a fresh process."""

from __future__ import annotations

from benchmarks.effort import Effort, short
from benchmarks.measurement import Measurement
from benchmarks.processes import run_fresh

_DRAWS = 5_000_000
_BEGIN = """
from benchmarks.processes import peak_memory
import numpy as np
import epsilometer as em
def noisy(dataset, n, rng):
    return rng.laplace(dataset, 1.0, n)
mechanism = em.from_batch(noisy)
em.audit(mechanism, (0.0, 1.0), em.PureDP(1.0), samples=1000, seed=0)
"""
_AUDIT = """
before = peak_memory()
em.audit(mechanism, (0.0, 1.0), em.PureDP(1.0), samples={n}, seed=0)
print(peak_memory() - before)
"""
_COMPARE = """
before = peak_memory()
left, right = (np.random.default_rng(seed).laplace(seed, 1.0, {n}) for seed in (0, 1))
em.compare(left, right, em.PureDP(1.0), seed=0)
print(peak_memory() - before)
"""


def peak_growth(n: int) -> float:
    """Bytes by which the peak grows in an audit of n draws per side, from after a first small audit."""
    return run_fresh(_BEGIN + _AUDIT.format(n=n))


def measure_memory(effort: Effort) -> list[Measurement]:
    """Growth of the peak from after a first small audit, which has loaded everything; largest of the repeats."""
    n = effort.draws(_DRAWS)
    audit, compare = (
        max(run_fresh(_BEGIN + code.format(n=n)) for _ in range(min(effort.repeats, 3)))
        for code in (_AUDIT, _COMPARE)
    )
    return [
        _measurement(
            f"audit of 2 × {short(n)} scalars / size of the samples", audit, n, effort.target(3.0)
        ),
        _measurement(
            f"compare of 2 × {short(n)} recorded scalars, samples included", compare, n, None
        ),
    ]


def _measurement(name: str, grown: float, n: int, target: float | None) -> Measurement:
    size = 2 * n * 8
    detail = f"peak grows by {grown / 1e6:.0f} MB, the samples are {size / 1e6:.0f} MB"
    return Measurement("memory", name, grown / size, "×", "≤", target, detail)
