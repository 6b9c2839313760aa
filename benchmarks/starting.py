"""What starting costs: `import epsilometer` over the NumPy and SciPy that it needs, and the command line."""

from __future__ import annotations

from statistics import median

from benchmarks.effort import Effort
from benchmarks.measurement import Measurement, of_repeats, ratios
from benchmarks.processes import run_fresh, start_fresh

_TIMED = """
import time
began = time.perf_counter()
import {modules}
print(time.perf_counter() - began)
"""
_OURS = _TIMED.format(modules="epsilometer")
_BASE = _TIMED.format(modules="numpy, scipy.special")


def measure_start(effort: Effort) -> list[Measurement]:
    """Interleaved fresh processes, bytecode compiled before (see `processes.py`)."""
    return [_importing(effort), _command_line(effort)]


def _importing(effort: Effort) -> Measurement:
    for code in (_OURS, _BASE):
        run_fresh(code)
    found = [(run_fresh(_OURS), run_fresh(_BASE)) for _ in range(effort.repeats)]
    ours, base = ([pair[side] for pair in found] for side in (0, 1))
    detail = (
        f"{median(ours) * 1e3:.0f} ms and {median(base) * 1e3:.0f} ms, median of {len(ours)} interleaved fresh "
        "processes, bytecode compiled for all (PYTHONDONTWRITEBYTECODE unset)"
    )
    name = "import epsilometer / import numpy, scipy.special"
    return of_repeats("start", name, ratios(ours, base), "×", "≤", 1.5, detail)


def _command_line(effort: Effort) -> Measurement:
    version, nothing = ["-m", "epsilometer", "--version"], ["-c", "pass"]
    start_fresh(version)
    found = [(start_fresh(version), start_fresh(nothing)) for _ in range(effort.repeats)]
    extra = [ours - bare for ours, bare in found]
    detail = f"bare Python {median(bare for _, bare in found) * 1e3:.0f} ms, by the clock"
    return of_repeats(
        "start", "epsilometer --version, more than bare Python", extra, "s", "≤", 0.3, detail
    )
