"""Families of mechanisms outside every grammar and table, each with the exact ratio of its outputs.

`family_of(name)` gives `.mechanism`, `.pair`, `.log_ratio(outputs)`, `.description`; `all_families()` gives all.
"""

from benchmarks.families import invented, reported, texts
from benchmarks.families.family import Family

__all__ = ["Family", "all_families", "family_of"]


def all_families() -> tuple[Family, ...]:
    """In the order of the table."""
    return (*invented.FAMILIES, *texts.FAMILIES, *reported.FAMILIES)


def family_of(name: str) -> Family:
    """The family of that name."""
    return {family.name: family for family in all_families()}[name]
