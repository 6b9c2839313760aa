"""Peak memory of an audit over the size of its samples, in a fresh process."""

from __future__ import annotations

from benchmarks.measurement import Measurement
from benchmarks.processes import run_fresh
from benchmarks.speed import LARGE

SAMPLE_BYTES = 2 * LARGE * 8
# The kernel's own high-water mark of resident memory. What ru_maxrss says may be left from the parent process.
_PEAK = """
def peak():
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    except OSError:
        import resource, sys
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
import numpy as np
import epsilometer as em
def noisy(dataset, n, rng):
    return rng.laplace(dataset, 1.0, n)
mechanism = em.from_batch(noisy)
em.audit(mechanism, (0.0, 1.0), em.PureDP(1.0), samples=1000, seed=0)
"""
_AUDIT = f"""{_PEAK}
before = peak()
em.audit(mechanism, (0.0, 1.0), em.PureDP(1.0), samples={LARGE}, seed=0)
print(peak() - before)
"""
_COMPARE = f"""{_PEAK}
before = peak()
left, right = (np.random.default_rng(seed).laplace(seed, 1.0, {LARGE}) for seed in (0, 1))
em.compare(left, right, em.PureDP(1.0), seed=0)
print(peak() - before)
"""


def measure_memory(repeats: int) -> list[Measurement]:
    """Growth of the peak from after a first small audit, which has loaded everything; largest of the repeats."""
    audit, compare = (max(run_fresh(code) for _ in range(repeats)) for code in (_AUDIT, _COMPARE))
    return [
        _measurement("audit of 2 × 5e6 scalars / size of the samples", audit, 3.0),
        _measurement("compare of 2 × 5e6 recorded scalars, samples included", compare, None),
    ]


def _measurement(name: str, grown: float, target: float | None) -> Measurement:
    detail = f"peak grows by {grown / 1e6:.0f} MB, the samples are {SAMPLE_BYTES / 1e6:.0f} MB"
    return Measurement("memory", name, grown / SAMPLE_BYTES, "×", "≤", target, detail)
