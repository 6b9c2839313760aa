"""Which paper each experiment repeats, and which figure, table or section of it."""

from __future__ import annotations

from typing import NamedTuple

OURS = "ours"

LOCAL = "Askin, Kutta, Dette 2022"
RENYI = "Kutta, Askin, Dunsche 2024"
HISTOGRAMS = "Gorla et al. 2023"
AUDITORIUM = "Kong et al. 2023"
SNIPER = "Bichsel et al. 2021"


class Origin(NamedTuple):
    """Where the figures of an experiment were published.

    Attributes:
        paper: its authors and year, or `OURS`.
        place: the figure, table or section; empty for our own.
    """

    paper: str = OURS
    place: str = ""


ORIGINS = {
    "local/figure1": Origin(LOCAL, "Figure 1"),
    "local/figure2": Origin(LOCAL, "Figure 2"),
    "local/figure3": Origin(LOCAL, "Figure 3"),
    "local/figure4": Origin(LOCAL, "Figure 4"),
    "local/figure5": Origin(LOCAL, "Figure 5"),
    "local/figure6": Origin(LOCAL, "Figure 6"),
    "local/example2": Origin(LOCAL, "Example 2"),
    "local/table2": Origin(LOCAL, "Table II"),
    "renyi/figure1": Origin(RENYI, "Figure 1"),
    "renyi/table1": Origin(RENYI, "Table 1"),
    "renyi/appendixF": Origin(RENYI, "Appendix F"),
    "ldp/samples": Origin(HISTOGRAMS, "sample sizes"),
    "ldp/laplace": Origin(HISTOGRAMS, "Section 2"),
    "ldp/renyi": Origin(HISTOGRAMS, "Section 2"),
    "ldp/impossibility": Origin(HISTOGRAMS, "Theorem 1"),
    "ldp/renyi-impossibility": Origin(HISTOGRAMS, "Section 2"),
    "auditorium/table1": Origin(AUDITORIUM, "Table 1"),
    "auditorium/table2": Origin(AUDITORIUM, "Table 2"),
    "auditorium/figure1": Origin(AUDITORIUM, "Figure 1"),
    "auditorium/figure2": Origin(AUDITORIUM, "Figure 2"),
    "auditorium/figure3": Origin(AUDITORIUM, "Figure 3"),
    "auditorium/anecdotes": Origin(AUDITORIUM, "Section 6.7"),
    "auditorium/canaries": Origin(AUDITORIUM, "Section 5"),
    "sniper/table": Origin(SNIPER, "evaluation"),
}
