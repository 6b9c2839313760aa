"""What `import epsilometer` costs on top of the NumPy and SciPy that it needs."""

from __future__ import annotations

from statistics import median

from benchmarks.measurement import Measurement, median_ratio
from benchmarks.processes import run_fresh

_FEWEST = 7
_TIMED = """
import time
began = time.perf_counter()
import {modules}
print(time.perf_counter() - began)
"""
_OURS = _TIMED.format(modules="epsilometer")
_BASE = _TIMED.format(modules="numpy, scipy.special")


def measure_import(repeats: int) -> list[Measurement]:
    """Interleaved fresh processes, bytecode compiled before (see `processes.py`)."""
    for code in (_OURS, _BASE):
        run_fresh(code)
    ours, base = [], []
    for _ in range(max(_FEWEST, repeats)):
        base.append(run_fresh(_BASE))
        ours.append(run_fresh(_OURS))
    detail = (
        f"{median(ours) * 1e3:.0f} ms and {median(base) * 1e3:.0f} ms, median of {len(ours)} interleaved fresh "
        "processes, bytecode compiled for all (PYTHONDONTWRITEBYTECODE unset)"
    )
    name = "import epsilometer / import numpy, scipy.special"
    return [Measurement("import", name, median_ratio(ours, base), "×", "≤", 1.5, detail)]
