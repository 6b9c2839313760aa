"""Domains: which datasets a search may try, and which of them are neighbours."""

from epsilometer.inputs.coordinates import RELATIONS, Neighbours
from epsilometer.inputs.domains.numbers import Boolean, Category, Date, Domain, Integer, Number, Text
from epsilometer.inputs.domains.records import Optional, Queries, Vector
from epsilometer.inputs.domains.tables import Matrix, Records, Table, from_strategy

__all__ = [
    "RELATIONS",
    "Boolean",
    "Category",
    "Date",
    "Domain",
    "Integer",
    "Matrix",
    "Neighbours",
    "Number",
    "Optional",
    "Queries",
    "Records",
    "Table",
    "Text",
    "Vector",
    "from_strategy",
]
