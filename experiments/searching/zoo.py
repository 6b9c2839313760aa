"""The zoo of library bugs: all of them, by name."""

from __future__ import annotations

from epsilometer_experiments.searching import sums, tables
from epsilometer_experiments.searching.bug import Bug

BUGS: dict[str, Bug] = {bug.name: bug for bug in (*sums.BUGS, *tables.BUGS)}
