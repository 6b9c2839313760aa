"""How much a run of the benchmarks measures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SIZES = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
# Fewer draws than this are no audit that would be worth its fixed costs.
_FEWEST = 400


@dataclass(frozen=True)
class Effort:
    """What a run may cost.

    Attributes:
        repeats: interleaved repeats of each timing.
        sizes: draws per side for the figures that depend on them.
        runs: seeds per line of the power table.
        jobs: processes for the power table; timings use one.
        out: folder for results.
        share: of the draws of figures with a fixed size; below 1 for a quick look.
        seeds: audits per line of the strength table.
        only: lines of the strength table, by name; all if empty.
        population: fresh draws per side for the chances of a chosen event; 0 for the certified bounds themselves.
        samples: draws per side of the families; 0 for what each of them says.
        first_seed: of the audits of the families.
    """

    repeats: int = 7
    sizes: tuple[int, ...] = SIZES
    runs: int = 10
    jobs: int = 2
    out: Path = Path("benchmarks/out")
    share: float = 1.0
    seeds: int = 3
    only: tuple[str, ...] = ()
    population: int = 0
    samples: int = 0
    first_seed: int = 0

    def draws(self, n: int) -> int:
        """So many draws, or the share of them."""
        return max(_FEWEST, int(n * self.share))

    def target(self, figure: float | None) -> float | None:
        """The target of a figure with a fixed size: it holds for all of its draws only."""
        return figure if self.share == 1.0 else None

    def repeats_at(self, n: int) -> int:
        """Fewer repeats of what takes long: each is quieter, too."""
        return self.repeats if n <= 10_000_000 else min(self.repeats, 3)


def short(n: int) -> str:
    """A number of draws as people say it: 5e6."""
    digits = len(str(n)) - 1
    return str(n) if n < 1000 else f"{n / 10**digits:.3g}e{digits}"
